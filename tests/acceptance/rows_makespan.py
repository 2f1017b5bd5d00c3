# SPDX-License-Identifier: Apache-2.0
"""Rows 3, 4 and 5 of the placement table: the shortest step."""
import importlib.util
import json
import os
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def load_planted():
    spec = importlib.util.spec_from_file_location("planted", os.path.join(HERE, "planted.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.planted


def register(row, need, Failed):
    def place(run, path, *args):
        begin = time.monotonic()
        out = json.loads(run.ok("place", path, "--json", *args).stdout)
        return out, time.monotonic() - begin

    @row("p3", "doppler graphs within 1% of the best found, 60 s")
    def doppler(run):
        words = []
        for name, best in (("chain_mm_112nodes", 1200.08), ("ffnn_192nodes", 56.696), ("transformer_block_215nodes", 148.33)):
            path = os.path.join(run.shared, "placement-instances", "doppler", name + ".txt")
            out, seconds = place(run, path, "--devices", 4, "--seed", 1)
            need(out["objective"] <= 1.01 * best, f"{name}: {out['objective']:.4f}, best found {best}")
            need(out["objective"] >= out["lower_bound"] - 1e-6, f"{name}: below its own bound {out['lower_bound']}")
            need(seconds <= 60, f"{name}: {seconds:.1f} s")
            words.append(f"{name} {out['objective']:.4f} (best found {best}, bound {out['lower_bound']:.4f}, {seconds:.1f} s)")
        return "; ".join(words)

    @row("p4", "planted optimum: 1,000 tasks within 3%, 10,000 within 6% and 60 s, same plan for the same seed")
    def planted_optimum(run):
        make, words = load_planted(), []
        rows = [(1000, k, e) for k in (2, 4, 8, 16) for e in (2, 3, 20)] + ([] if run.a.quick else [(10000, k, 3) for k in (2, 4, 8, 16)])
        with tempfile.TemporaryDirectory() as folder:
            for n, devices, edges in rows:
                problem, best = make(7, devices, n, edges)
                path = os.path.join(folder, "problem.json")
                with open(path, "w") as f:
                    json.dump(problem, f)
                out, seconds = place(run, path, "--seed", 3)
                ratio = out["objective"] / best
                words.append(f"{n}/{devices} devices/{edges} edges a task: {ratio:.4f} ({seconds:.1f} s)")
                need(ratio <= (1.03 if n == 1000 else 1.06), f"{words[-1]}")
                need(seconds <= 60, f"{words[-1]}")
                need(out["lower_bound"] <= best + 1e-6, f"bound {out['lower_bound']} above the optimum {best}")
                held = {d["name"]: 0 for d in problem["devices"]}
                for t, device in out["assignment"].items():
                    held[device] += problem["classes"][int(t)]["bytes"]
                need(all(held[d["name"]] <= d["memory"] for d in problem["devices"]), f"{words[-1]}: over a device's memory")
                if n == 1000 and edges == 2:
                    again, _ = place(run, path, "--seed", 3)
                    need(again["assignment"] == out["assignment"] and again["objective"] == out["objective"],
                         f"{words[-1]}: another plan for the same seed")
        return "; ".join(words)

    @row("p5", "1,000 small problems equal to brute force, certified")
    def small(run):
        program = os.path.join(run.a.build, "tests", "test_makespan")
        need(os.path.exists(program), f"{program} is not built: ninja -C {run.a.build} tests/test_makespan")
        env = dict(os.environ, SN_SHARED=str(run.shared), CK_FORK="no")
        if not run.a.quick:
            env["SN_LONG"] = "1"
        r = subprocess.run([program], capture_output=True, text=True, env=env, timeout=1800)
        need(r.returncode == 0, (r.stdout + r.stderr).strip()[-400:])
        lines = [line for line in r.stdout.splitlines() if "equal to brute force" in line]
        need(lines and (run.a.quick or lines[0].startswith("1000 problems")), f"no count: {r.stdout[-200:]}")
        return lines[0]
