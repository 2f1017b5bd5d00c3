# SPDX-License-Identifier: Apache-2.0
"""Rows 8 and 9 of the placement table: pipelines. The program is tools/bench_pipeline of the build (ninja tools/bench_pipeline)."""
import itertools, json, os, statistics, subprocess


def register(row, need, Failed):
    def bench(run, *args, timeout=1200):
        program = os.path.join(run.a.build, "tools", "bench_pipeline")
        need(os.path.exists(program), f"{program} is not built: ninja -C {run.a.build} tools/bench_pipeline")
        r = subprocess.run([program, *map(str, args)], capture_output=True, text=True, timeout=timeout)
        need(r.returncode == 0, f"bench_pipeline {' '.join(map(str, args))}: exit {r.returncode}: {r.stderr.strip()[-300:]}")
        return [json.loads(line) for line in r.stdout.splitlines()]

    def brute_force(p, m):
        """Fewest units for a chain of p stages with tasks of one unit: breadth first over what each stage has done of F, B, W."""
        states, units = {((0, 0, 0),) * p}, 0
        goal = ((m, m, m),) * p
        seen = set(states)
        while goal not in states:
            units += 1
            following = set()
            for state in states:
                moves = []
                for s, (f, b, w) in enumerate(state):
                    can = [(f, b, w)]
                    if f < m and (s == 0 or state[s - 1][0] > f):
                        can.append((f + 1, b, w))
                    if b < f and (s == p - 1 or state[s + 1][1] > b):
                        can.append((f, b + 1, w))
                    if w < b:
                        can.append((f, b, w + 1))
                    moves.append(can)
                following.update(itertools.product(*moves))
            states = following - seen
            seen |= states
        return units

    def check_form(f, b, w, line):
        p, m = line["p"], line["M"]
        for rule in ("gpipe", "1f1b"):
            form = (m + p - 1) * (f + b + w)
            need(line[rule]["step"] == form, f"{rule} p {p} M {m}: {line[rule]['step']}, its form {form}")
        for s in range(p):
            need(line["gpipe"]["in_flight"][s] <= m, f"GPipe p {p} M {m}: {line['gpipe']['in_flight']} in flight")
            need(line["1f1b"]["in_flight"][s] <= min(m, p - s), f"1F1B p {p} M {m}: {line['1f1b']['in_flight']} in flight")

    def check_zero_bubble(line):
        p, m, zb = line["p"], line["M"], line["zb"]
        if m >= p:
            need(zb["step"] == 100 * (p - 1) + 300 * m, f"zero-bubble p {p} M {m}: {zb['step']}")
        need(zb["step"] == zb["bound"], f"zero-bubble p {p} M {m}: {zb['step']}, and not proved best: bound {zb['bound']}")
        need(max(zb["in_flight"]) <= p, f"zero-bubble p {p} M {m}: {zb['in_flight']} in flight from F to W")

    def bits(run):
        by_work = {}
        for line in bench(run, "bits"):
            by_work.setdefault((line["model"], line["M"]), {})[line["schedule"], line["devices"]] = line["sha256"]
        for work, hashes in by_work.items():
            need(len(set(hashes.values())) == 1, f"{work}: other parameters: {hashes}")
            need(len(hashes) == 12, f"{work}: {len(hashes)} settings of 12")
        return sum(len(h) for h in by_work.values())

    def command(run):
        """The digits, by the command: the same parameters, and a report of the pipeline."""
        train, _, config = run.digits
        hashes = set()
        for more in ((), ("--pipeline", "gpipe"), ("--pipeline", "1f1b"), ("--pipeline", "zb")):
            r = run.train(train, config, "--micro-batches", 4, "--epochs", 1, "--devices", "cpu*2", "--objective", "spread", *more)
            hashes.add(r["params_sha256"])
            need(bool(more) == ("pipeline" in r), f"train {' '.join(more)}: pipeline in the report: {'pipeline' in r}")
        need(len(hashes) == 1, f"digits: {len(hashes)} different sets of parameters from four schedules")

    def times(run):
        """Measured over simulated step: the median of rounds for each schedule."""
        figures = []
        works = [("lstm", 4)] if run.a.quick else [(model, m) for model in ("lstm", "dense") for m in (4, 8)]
        for model, m in works:
            ratios = {}
            for line in bench(run, "run", "--model", model, "--micro", m, "--steps", 20, "--rounds", 1 if run.a.quick else 5):
                if line["schedule"] != "sequential":
                    ratios.setdefault(line["schedule"], []).append(line["measured_ms"] / line["simulated_ms"])
            for schedule, r in ratios.items():
                figures.append((statistics.median(r), f"{model} M {m} {schedule}"))
        for ratio, what in figures:
            need(run.a.quick or 0.85 <= ratio <= 1.15, f"{what}: measured {ratio:.3f} of simulated (idle machine?); all: "
                 + ", ".join(f"{w} {r:.3f}" for r, w in figures))
        return f"{min(figures)[0]:.3f} to {max(figures)[0]:.3f}"

    @row("p8", "pipelines: closed forms, brute force, bits, the clock")
    def pipelines(run):
        n = 0
        for f, b, w in ((100, 100, 100), (10, 13, 9), (30, 20, 40)):
            for line in bench(run, "forms", "--f", f, "--b", b, "--w", w):
                check_form(f, b, w, line)
                if f == b == w:
                    check_zero_bubble(line)
                n += 1
        lines = {(l["p"], l["M"]): l for l in bench(run, "forms")}
        small = [(p, m) for p in (2, 3, 4) for m in range(1, p)] + ([] if run.a.quick else [(5, 1), (5, 2), (5, 3), (6, 1), (6, 2)])
        for p, m in small:
            best = 100 * brute_force(p, m)
            need(lines[p, m]["zb"]["step"] == best, f"zero-bubble p {p} M {m}: {lines[p, m]['zb']['step']}, brute force {best}")
        command(run)
        return (f"{n} chains on their forms, zero-bubble at its bound on all 224 and at brute force on {len(small)}; "
                f"{bits(run)} trainings, one hash a model and M; measured/simulated {times(run)}")

    @row("p9", "two encoders and a trunk over 3 devices")
    def branches(run):
        by_work, shorter = {}, 0
        for line in bench(run, "branches"):
            by_work.setdefault((line["set"], line["M"]), {})[line["chain"]] = line
        for (which, m), lines in by_work.items():
            flying = lines[0]["1f1b"]["in_flight"]
            need(flying == [min(2, m), min(2, m), 1], f"set {which} M {m}: {flying} in flight")
            for rule in ("gpipe", "1f1b", "zb"):
                best = min(lines[c][rule]["step"] for c in (1, 2))
                need(lines[0][rule]["step"] <= best, f"set {which} M {m} {rule}: {lines[0][rule]['step']}, as a chain {best}")
                shorter += lines[0][rule]["step"] < best
        return f"2, 2, 1 in flight (a chain: 3, 2, 1); never longer than the best chain, shorter in {shorter} of {3 * len(by_work)}"
