# SPDX-License-Identifier: Apache-2.0
"""Memory: public packing problems, arenas of real plans, caps."""
import glob, os


def register(row, need, Failed):
    @row("p10", "memory")
    def memory(run):
        said, short = [], []
        worst, slowest = 0, 0
        files = sorted(glob.glob(os.path.join(run.shared, "placement-instances/minimalloc/*.csv")))
        need(files, "no packing problems in ../shared")
        for path in files:
            capacity = int(os.path.basename(path).split(".")[1])
            before = os.times()
            d = run.json("place", path)
            after = os.times()
            seconds = after.children_user - before.children_user
            ratio = d["objective"] / capacity
            said.append(f"{os.path.basename(path)[0]} {ratio:.3f} in {seconds:.1f} s")
            worst, slowest = max(worst, ratio), max(slowest, seconds)
        if worst > 1.17: short.append(f"{worst:.3f} x capacity")
        if slowest > 10: short.append(f"{slowest:.1f} s of CPU")
        models = [("digits", run.digits[0], run.digits[2])]
        for size in ("S",) if run.a.quick else ("S", "M", "L"):
            d = run.h3(size)
            models.append((f"h3-{size}", *d) if isinstance(d, tuple) else (f"h3-{size}", f"{d}/data.h5", f"{d}/model.yaml"))
        for name, data, config in models:
            text = run.ok("plan", "--data", data, "--config", config, "--devices", "cpu*2").stdout
            line = [l for l in text.splitlines() if l.startswith("all devices: arena over live bytes")][0]
            over = float(line.split()[-1])
            said.append(f"{name} arena {over:.3f}")
            if over > 1.02: short.append(f"{name}: arena {over} of the live bytes")
        data, _, config = run.digits
        ways = [("digits", run.digits[0], config, "", ()), ("digits", run.digits[0], config, "=4MiB", ()),
                ("digits in 4 parts", run.digits[0], config, "", ("--micro-batches", "4")),
                ("digits pipelined", run.digits[0], config, "", ("--micro-batches", "4", "--pipeline", "1f1b"))]
        ways += [(name, d, c, "", ()) for name, d, c in models[1:]]
        for name, data, config, cap, more in ways:
            d = run.train(data, config, "--epochs", "1", "--devices", f"cpu*2{cap}", *more)
            for m in d["device_memory"]:
                need(m["peak_bytes"] > 0, f"{name}: no peak on {m['name']}")
                need(m["peak_bytes"] <= m["planned_bytes"], f"{name}, cpu*2{cap}, {m['name']}: {m['peak_bytes']} of {m['planned_bytes']} planned")
                if cap: need(m["peak_bytes"] <= 4 << 20, f"{m['name']} went over its cap: {m['peak_bytes']}")
        r = run.call("train", "--data", run.digits[0], "--config", run.digits[2], "--epochs", "1", "--devices", "cpu:0=4MiB", "--out", run.out())
        need(r.returncode == 1 and r.stderr.count("\n") == 1 and "MiB" in r.stderr, f"one device of 4 MiB: exit {r.returncode}, {r.stderr[-300:]}")
        need(not short, "; ".join(short) + " — " + "; ".join(said))
        return "; ".join(said) + "; digits fits no device of 4 MiB and trains on two; peaks of digits (whole, in parts, pipelined) and h3 within the plan"
