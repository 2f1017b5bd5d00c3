#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads what `sennit plan --json` says and holds it to what placement promises.

  check_placement.py PLAN.json...                    files, or - for standard input
  check_placement.py --sennit SENNIT --data D --config M [--all]
                                                     makes plans itself: spread over 1 to 4 devices, pinnings of the modules
                                                     over 2 (a few; with --all every one), random ones over 4

For every plan: each node has a device and a cause; each node's inputs were made on its device, but for copies, whose input
was made where they say; a variable's gradient, slots and update are on its device; no value is copied twice to one device;
what the copies list says is what the nodes say. With --sennit, it then breaks a plan in each of these ways and expects to
be told. Standard library only.
"""
import argparse, copy, itertools, json, os, random, subprocess, sys

PHASES = ("forward", "backward", "update")


def check(plan):
    """What is wrong with a plan, as a list of lines."""
    wrong = []
    devices = {d["name"] for d in plan["devices"]}
    home, named = {}, {}
    for n in plan["nodes"]:
        if n["device"] not in devices:
            wrong.append(f"node {n['name']} is on '{n['device']}', which is no device of the plan")
        if not n.get("cause"):
            wrong.append(f"node {n['name']} has no cause")
        if n["phase"] not in PHASES:
            wrong.append(f"node {n['name']} is of phase '{n['phase']}'")
        if n["id"] in named:
            wrong.append(f"two nodes have the id {n['id']}")
        named[n["id"]] = n
        for v in n["outputs"]:
            if v in home:
                wrong.append(f"value {v} is made twice")
            home[v] = n["device"]
    copies = {c["id"]: c for c in plan["copies"]}
    for n in plan["nodes"]:
        missing = [v for v in n["inputs"] if v not in home]
        if missing:
            wrong.append(f"node {n['name']} reads values {missing} that nobody makes")
            continue
        places = {home[v] for v in n["inputs"]}
        if n["op"] == "copy":
            if n["runs"] and (n["id"] not in copies or places != {copies[n["id"]]["from"]} or copies[n["id"]]["to"] != n["device"]):
                wrong.append(f"copy {n['name']} is not what the list of copies says")
        elif places - {n["device"]}:
            wrong.append(f"node {n['name']} on {n['device']} reads from {', '.join(sorted(places - {n['device']}))} without a copy")
    seen = set()
    for c in plan["copies"]:
        key = (c["value"], c["to"])
        if key in seen:
            wrong.append(f"value {c['value']} is copied to {c['to']} twice")
        seen.add(key)
        if c["from"] == c["to"] or named.get(c["id"], {}).get("op") != "copy" or c["ms"] < 0 or c["bytes"] < 0:
            wrong.append(f"copy of {c['value']} makes no sense")
    for v in plan["variables"]:
        parts = [("its gradient", v["gradient_device"]), ("its update", v["update_device"])]
        parts += [("a slot", d) for d in v["slot_devices"]]
        for what, device in parts:
            if device is not None and device != v["device"]:
                wrong.append(f"variable {v['name']} is on {v['device']} and {what} on {device}")
        if (v["gradient_device"] is None) != (v["update_device"] is None):
            wrong.append(f"variable {v['name']} has a gradient or an update alone")
    if not any(v["update_device"] for v in plan["variables"]):
        wrong.append("no variable is ever updated")
    return wrong


def breakages(plan):
    """A sound plan broken in one way after another: (what was done, plan). It must have copies."""
    def other(device):
        return next(d["name"] for d in plan["devices"] if d["name"] != device)

    def broken(f):
        p = copy.deepcopy(plan)
        f(p)
        return p

    trained = next(i for i, v in enumerate(plan["variables"]) if v["update_device"])
    reader = next(i for i, n in enumerate(plan["nodes"]) if n["inputs"] and n["op"] != "copy")
    for key in ("gradient_device", "update_device"):
        yield key, broken(lambda p: p["variables"][trained].update({key: other(p["variables"][trained]["device"])}))
    yield "slot_devices", broken(lambda p: p["variables"][trained]["slot_devices"].append(other(p["variables"][trained]["device"])))
    yield "no cause", broken(lambda p: p["nodes"][reader].update({"cause": ""}))
    yield "a node on another device", broken(lambda p: p["nodes"][reader].update({"device": other(p["nodes"][reader]["device"])}))
    yield "no device", broken(lambda p: p["nodes"][reader].update({"device": "cpu:99"}))
    yield "a copy twice", broken(lambda p: p["copies"].append(dict(p["copies"][0])))
    yield "a copy left out", broken(lambda p: p["copies"].pop())
    yield "a value of nobody", broken(lambda p: p["nodes"][reader]["inputs"].append(1 << 30))


def plan_of(a, *args):
    r = subprocess.run([a.sennit, "plan", "--data", a.data, "--config", a.config, "--json", *args], capture_output=True, text=True)
    if r.returncode:
        sys.exit(f"sennit plan {' '.join(args)}: exit {r.returncode}: {r.stderr}")
    return json.loads(r.stdout)


def ways(a, modules):
    yield ["--devices", "cpu:0"]
    for n in (2, 3, 4):
        yield ["--devices", f"cpu*{n}", "--objective", "spread"]
    draw = random.Random(7)
    over_two = list(itertools.product((0, 1), repeat=len(modules)))
    for homes in over_two if a.all else draw.sample(over_two, 4):
        yield ["--devices", "cpu*2", *pins(modules, homes)]
    for _ in range(10 if a.all else 3):
        yield ["--devices", "cpu*4", *pins(modules, [draw.randrange(4) for _ in modules])]
    yield ["--devices", "null*3", "--objective", "spread"]


def pins(modules, homes):
    return [w for m, h in zip(modules, homes) for w in ("--set", f"placement.{m}=cpu:{h}")]


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("plans", nargs="*")
    a.add_argument("--sennit")
    a.add_argument("--data")
    a.add_argument("--config")
    a.add_argument("--all", action="store_true")
    a = a.parse_args()
    plans = [(p, json.load(sys.stdin if p == "-" else open(p))) for p in a.plans]
    if a.sennit:
        first = plan_of(a, "--devices", "cpu:0")
        modules = sorted({n["module"].split("/")[0] for n in first["nodes"] if n["module"]})
        plans += [(" ".join(w), plan_of(a, *w)) for w in ways(a, modules)]
    failed = False
    for words, plan in plans:
        for line in check(plan):
            print(f"{words}: {line}")
            failed = True
    if a.sennit and not failed:
        sound = next(p for _, p in plans if p["copies"])
        for words, plan in breakages(sound):
            if not check(plan):
                print(f"broken by '{words}' and not noticed")
                failed = True
    count = {k: sum(len(p[k]) for _, p in plans) for k in ("nodes", "variables", "copies")}
    print(f"{len(plans)} plans: {count['nodes']} nodes with a cause and their inputs at hand, {count['variables']} variables with all that is "
          f"theirs at home, {count['copies']} copies, none twice" if not failed else "NOT as promised")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
