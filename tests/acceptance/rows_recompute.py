# SPDX-License-Identifier: Apache-2.0
"""Recomputing: the same bits, the memory saved and the time paid, caps under which only it trains."""
import os, re

DEEP = """\
inputs:
  profile: {kind: dense, path: /profile, hidden: [256], activation: gelu}
outputs:
  digit:   {path: /digit, task: classification}
trunk:     {hidden: [%s], activation: gelu, dropout: 0.1, norm: batch}
train:     {optimizer: sgd, learning_rate: 0.01, batch: 512, epochs: 1}
""" % ", ".join(["256"] * 16)
MIB = 1048576


def register(row, need, Failed):
    @row("p13", "recompute")
    def recompute(run):
        said = []
        data, _, config = run.digits
        folder = run.out()
        os.makedirs(folder, exist_ok=True)
        batch_norm, deep = os.path.join(folder, "batch_norm.yaml"), os.path.join(folder, "deep.yaml")
        with open(config) as f: text = re.sub(r"\s*monitor: [\w.]+,", "", f.read())  # no rows are set aside
        config = os.path.join(folder, "digits.yaml")
        with open(config, "w") as f: f.write(text)
        with open(batch_norm, "w") as f: f.write(text.replace("norm: layer", "norm: batch"))
        with open(deep, "w") as f: f.write(DEEP)
        size = run.h3("S" if run.a.quick else "M")
        h3 = size if isinstance(size, tuple) else (f"{size}/data.h5", f"{size}/model.yaml")
        steps = 10 if run.a.quick else 40

        def train(d, c, *more):
            return run.train(d, c, "--epochs", "1", "--steps", steps, "--valid-fraction", "0", *more)

        def peak(d, c, *more):
            return run.json("plan", "--data", d, "--config", c, *more)["devices"][0]["peak_bytes"]

        # The same bits: dropout and batch norm, whole, in parts, pipelined.
        modules, ways = "profile,strokes,pixels,trunk", 0
        for more in ((), ("--micro-batches", "4"), ("--devices", "cpu*2", "--objective", "spread"),
                     ("--micro-batches", "4", "--pipeline", "1f1b", "--devices", "cpu*2", "--objective", "spread"),
                     ("--micro-batches", "4", "--pipeline", "zb", "--devices", "cpu*3", "--objective", "spread")):
            plain = train(data, batch_norm, "--recompute", "none", *more)
            for listed in (modules, "strokes+pixels,trunk"):
                again = train(data, batch_norm, "--recompute", listed, *more)
                need(again["params_sha256"] == plain["params_sha256"], f"digits {more} {listed}: other parameters")
                need(again["recompute"]["bytes"] > 0, f"digits {more} {listed}: nothing recomputed")
                for m in again["device_memory"]:
                    need(m["peak_bytes"] <= m["planned_bytes"], f"{more}: peak {m['peak_bytes']} of {m['planned_bytes']} planned")
                ways += 1
        said.append(f"digits with batch norm and dropout: {ways} ways, the same parameters")

        # Memory and time as planned; a cap in between, under which only recomputing trains.
        for name, d, c, listed in (("digits", data, config, modules), ("h3", *h3, "sequence,set"), ("16 layers", data, deep, None)):
            if listed is None:  # every fourth layer's output is kept
                layers = ["dense" if i == 0 else f"dense_{i}" for i in range(16)]
                norms = ["batch_norm" if i == 0 else f"batch_norm_{i}" for i in range(16)]
                listed = ",".join("+".join(f"trunk/{m}" for i in range(at, at + 4) for m in (layers[i], norms[i])) for at in range(0, 16, 4))
            plain, again = train(d, c, "--recompute", "none"), train(d, c, "--recompute", listed)
            need(plain["params_sha256"] == again["params_sha256"], f"{name}: other parameters")
            before, after = peak(d, c, "--recompute", "none"), peak(d, c, "--recompute", listed)
            measured = [t["device_memory"][0]["peak_bytes"] for t in (plain, again)]
            need(after < before, f"{name}: {after} planned with, {before} without")
            need(measured[0] - measured[1] >= 0.95 * (before - after), f"{name}: planned {before} and {after}, measured {measured}")
            cap = (before + after) // 2 // 1024
            limit = ("--devices", f"cpu:0={cap}KiB")
            r = run.call("train", "--data", d, "--config", c, "--out", run.out(), "--recompute", "none", *limit)
            need(r.returncode == 1 and r.stderr.count("\n") == 1 and "--recompute auto" in r.stderr, f"{name}, capped: exit {r.returncode}, {r.stderr[-300:]}")
            auto = train(d, c, *limit)
            need(auto["params_sha256"] == plain["params_sha256"], f"{name}, capped: other parameters")
            need("no placement found fits without" in auto["recompute"]["cause"], f"{name}, capped: {auto['recompute']['cause']}")
            need(0 < auto["device_memory"][0]["peak_bytes"] <= cap * 1024, f"{name}: {auto['device_memory']} under {cap} KiB")
            enough = train(d, c, "--devices", f"cpu:0={before // 1024 + 1}KiB")
            need("recompute" not in enough, f"{name}: recomputed without need")
            said.append(f"{name} {before / MIB:.1f} to {after / MIB:.1f} MiB for {again['recompute']['ms']:.2f} ms planned, "
                        f"{measured[0] / MIB:.1f} to {measured[1] / MIB:.1f} MiB and {plain['step_ms']:.2f} to {again['step_ms']:.2f} ms measured, "
                        f"trains under {cap / 1024:.1f} MiB for {auto['recompute']['ms']:.2f} ms planned")
        return "; ".join(said)
