#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/cli.md against the command as it is built.

  check_cli.py --sennit build/tools/sennit --docs docs/cli.md --digits models/digits

Every command has a section and every section a command; every option of a --help stands in its command's section or among those that
mean the same everywhere, and a section names no option that its command lacks; the keys of each --json object are listed. In a list of keys
a word in capitals is any name: train.OUTPUT.METRIC."""
import argparse, json, os, re, subprocess, sys, tempfile

FREE = {"For every command", "The model file"}


def sections(text):
    parts = re.split(r"(?m)^## (.*)$", text)
    return dict(zip(parts[1::2], parts[2::2]))


def options(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text))


def paths(value, at=""):
    if isinstance(value, dict):
        return {p for k, v in value.items() for p in paths(v, f"{at}\0{k}" if at else k)}
    if isinstance(value, list):
        return {p for v in value for p in paths(v, at + "[]")} or {at + "[]"}
    return {at}


def listed(path, patterns):
    """Keys may hold dots themselves ("cpu:0/v1.5"), so a path's parts stay apart."""
    parts = path.split("\0")
    for p in patterns:
        want = p.split(".")
        if len(want) == len(parts) and all(w == q or w.isupper() for w, q in zip(want, parts)):
            return True
    return False


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--sennit", "--docs", "--digits"):
        a.add_argument(name, required=True)
    a = a.parse_args()
    doc, mistakes = sections(open(a.docs).read()), []

    def run(*args):
        r = subprocess.run([a.sennit, *map(str, args)], capture_output=True, text=True, timeout=120)
        if r.returncode != 0:
            sys.exit(f"sennit {' '.join(map(str, args))}: exit {r.returncode}: {r.stderr.strip()}")
        return r.stdout

    commands = re.findall(r"(?m)^  ([a-z]+) {2,}", run("--help"))
    if len(commands) < 5:
        sys.exit(f"sennit --help lists {commands}")
    for name in sorted(set(commands) ^ (set(doc) - FREE)):
        mistakes.append(f"{name}: {'no section' if name in commands else 'no such command'}")
    shared = options(doc["For every command"])
    for name in commands:
        own, real = options(doc.get(name, "")), options(run(name, "--help"))
        for o in sorted(real - own - {"--help"}):
            if not (o == "--data" or o == "--config") or o not in shared:
                mistakes.append(f"{name}: {o} is not in its section")
        for o in sorted(own - real):
            mistakes.append(f"{name}: it has no {o}")
        if "--json" not in real and re.search(r"(?m)^JSON", doc.get(name, "")):
            mistakes.append(f"{name}: has no --json")

    with tempfile.TemporaryDirectory() as work:
        train, test, config = (os.path.join(a.digits, f) for f in ("digits_train.h5", "digits_test.h5", "digits.yaml"))
        out, tiny = os.path.join(work, "run"), os.path.join(work, "tiny.csv")
        with open(tiny, "w") as f:
            f.write("id,lower,upper,size\n0,0,4,8\n1,2,6,8\n2,5,9,8\n")
        for args in (("train", "--data", train, "--config", config, "--out", out, "--epochs", 1, "--valid-fraction", 0.2, "--test", test,
                      "--devices", "cpu*2", "--objective", "spread", "--micro-batches", 2, "--pipeline", "gpipe"),
                     ("eval", "--checkpoint", out, "--data", test), ("inspect", train), ("inspect", os.path.join(out, "last.h5")),
                     ("plan", "--data", train, "--config", config, "--devices", "cpu*2", "--objective", "spread"), ("place", tiny),
                     ("bench", "h3", "--size", "S", "--steps", 1), ("devices", "--devices", "cpu*2")):
            try:
                said = json.loads(run(*args, "--json"))
            except json.JSONDecodeError as e:
                mistakes.append(f"{args[0]} --json: {e}")
                continue
            patterns = re.findall(r"`([\w.\[\]]+)`", doc.get(args[0], ""))
            missing = sorted(p.replace("\0", ".") for p in paths(said) if not listed(p, patterns))
            if missing:
                mistakes.append(f"{args[0]} --json: not listed: {' '.join(missing)}")
    for m in mistakes:
        print(f"{a.docs}: {m}")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
