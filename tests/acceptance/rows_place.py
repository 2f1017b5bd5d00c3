# SPDX-License-Identifier: Apache-2.0
"""Public placement instances: contiguous splits, the whole search, hostile input."""
import json, os, time

# Instance -> contiguous optimum (None: too many downsets for those who published it), best known.
KNOWN = {
    "LayerGraphs/bert24_inference": (17.7899, 17.7147),
    "LayerGraphs/bert24_training": (41.7458, 39.7895),
    "LayerGraphs/gnmt_inference": (32.9107, 31.6873),
    "LayerGraphs/resnet50_inference": (33.7747, 33.7614),
    "LayerGraphs/resnet50_training": (78.6318, 78.1843),
    "LayerGraphs/inceptionv3_inference": (None, 52.1319),
    "LayerGraphs/inceptionv3_training": (None, 119.0658),
    "OperatorGraphs/bert_l-3_inference": (27.9186, 21.9084),
    "OperatorGraphs/bert_l-3_training": (65.3031, 54.2074),
    "OperatorGraphs/bert_l-6_inference": (29.5795, 29.3827),
    "OperatorGraphs/bert_l-12_inference": (147.478, 142.4718),
    "OperatorGraphs/bert_L-12_training": (437.998, 437.998),
    "OperatorGraphs/resnet50_inference": (124.349, 124.349),
}


def printed(value, like):
    """`value` to the digits that the table prints."""
    digits = len(str(like).split(".")[1])
    return round(value, digits)


def register(row, need, Failed):
    def instance(run, name):
        path = os.path.join(run.shared, "placement-instances/dnn-partitioning/throughput", name + ".json")
        need(os.path.exists(path), f"{path} is not there; the instances lie in ../shared")
        return path

    def solve(run, name, *more):
        before = os.times()
        d = run.json("place", instance(run, name), *more)
        after = os.times()
        return d, after.children_user - before.children_user + after.children_system - before.children_system

    @row("p1", "contiguous splits of public instances")
    def contiguous(run):
        slowest, n = 0, 0
        for name, (optimum, _) in KNOWN.items():
            if optimum is None: continue
            d, seconds = solve(run, name, "--contiguous")
            need(printed(d["objective"], optimum) == optimum, f"{name}: {d['objective']}, the optimum is {optimum}")
            need(d["certified"], f"{name}: not certified")
            need(seconds <= 30, f"{name}: {seconds:.1f} s")
            slowest, n = max(slowest, seconds), n + 1
        return f"{n} of {n} optima to the printed digits, slowest {slowest:.2f} s of CPU"

    @row("p2", "the whole search on public instances")
    def search(run):
        said, short, below, slowest = [], [], 0, 0
        for name, (optimum, best) in KNOWN.items():
            if run.a.quick and "bert24" not in name: continue
            d, seconds = solve(run, name)
            got = d["objective"]
            said.append(f"{name.split('/')[1]} {got:.4f} (best known {best}, bound {d['lower_bound']:.2f}, {seconds:.0f} s)")
            slowest = max(slowest, seconds)
            below += optimum is not None and got < optimum - 5e-4
            if got > best * 1.01: short.append(f"{name}: {got} is above {best} by more than 1 %")
            if optimum is not None and printed(got, optimum) > optimum: short.append(f"{name}: {got} is above the contiguous {optimum}")
            if seconds > 60: short.append(f"{name}: {seconds:.0f} s of CPU")
        if below < 6 and not run.a.quick: short.append(f"below the contiguous optimum on {below} only")
        need(not short, "; ".join(short) + " — " + "; ".join(said))
        return f"below the contiguous optimum on {below}, slowest {slowest:.0f} s; " + "; ".join(said)

    @row("p11", "hostile placement problems")
    def hostile(run):
        def dnn(nodes, edges, **more):
            return {"maxSizePerFPGA": 100.0, "maxFPGAs": 2, "maxCPUs": 1, "nodes": nodes, "edges": edges, **more}

        def node(i, cost=1.0, **more):
            return {"id": int(i), "supportedOnFpga": True, "cpuLatency": cost * 10, "fpgaLatency": cost, "isBackwardNode": False, "size": 1.0, **more}

        def edge(a, b, cost=0.5):
            return {"sourceId": int(a), "destId": int(b), "cost": cost}

        chain = [edge(str(i), str(i + 1)) for i in range(3)]
        four = [node(str(i)) for i in range(4)]
        large = 100_000 if not run.a.quick else 10_000
        # Name, problem or text, whether it is a mistake.
        cases = [
            ("cyclic", dnn(four, chain + [edge("3", "0")]), True),
            ("an edge to itself", dnn(four, [edge("1", "1")]), True),
            ("no nodes", dnn([], []), True),
            ("no nodes at all", "{}", True),
            ("an empty file", "", True),
            ("not JSON", "{\"nodes\": [", True),
            ("nested deeply", "[" * 100_000, True),
            ("two of one id", dnn([node("0"), node("0")], []), True),
            ("an edge to nowhere", dnn(four, [edge("0", "9")]), True),
            ("a negative cost", dnn([node("0", -1.0)], []), True),
            ("a negative copy", dnn(four, [edge("0", "1", -0.5)]), True),
            ("a cost beyond counting", dnn([node("0", 1e300)], []), True),
            ("one node too large", dnn([node("0", size=1e6), node("1")], [], maxCPUs=0), True),
            ("disconnected", dnn(four, []), False),
            ("zero costs", dnn([node(str(i), 0.0) for i in range(4)], [edge("0", "1", 0.0)]), False),
            ("one node", dnn([node("0")], []), False),
            (f"{large} nodes in a chain", dnn([node(str(i), size=0.0) for i in range(large)],
                                              [edge(str(i), str(i + 1)) for i in range(large - 1)]), False),
            (f"{large} nodes, no edges", dnn([node(str(i), size=0.0) for i in range(large)], []), False),
        ]
        slowest = 0
        for name, problem, wrong in cases:
            path = os.path.join(run.dir, "hostile.json")
            with open(path, "w") as f:
                f.write(problem if isinstance(problem, str) else json.dumps(problem))
            began = time.time()
            r = run.call("place", path, "--json", timeout=120)
            slowest = max(slowest, time.time() - began)
            if wrong:
                need(r.returncode == 1 and r.stderr.count("\n") == 1, f"{name}: exit {r.returncode}, {r.stderr.strip()[:300]}")
            else:
                need(r.returncode == 0, f"{name}: exit {r.returncode}, {r.stderr.strip()[:300]}")
                d = json.loads(r.stdout)
                need(d["objective"] >= d["lower_bound"], f"{name}: {d['objective']} is below its bound {d['lower_bound']}")
        return f"{len(cases)} cases: right or one line, slowest {slowest:.1f} s"
