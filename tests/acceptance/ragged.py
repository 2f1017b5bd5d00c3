#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predictions of a row are its own: alone, among long ones, in another order, with its set's elements permuted.

  ragged.py SENNIT FOLDER
"""
import os
import subprocess
import sys

import h5py
import numpy as np

MODEL = """
inputs:
  x: {kind: dense, path: /x, hidden: [16]}
  s: {kind: sequence, path: /s, encoder: %s, units: 16, bidirectional: true, pool: %s}
  p: {kind: set, path: /p, phi: [16, 16], pool: %s, rho: [16], norm: layer}
outputs:
  y: {path: /y, task: classification}
  r: {path: /r, task: regression, weight: 0.5}
trunk: {hidden: [24]}
train: {batch: 16, epochs: 3, valid_fraction: 0}
"""
LONGEST = 40
sennit, folder = sys.argv[1:3]
os.makedirs(folder, exist_ok=True)


def run(*args):
    r = subprocess.run([sennit, *args], capture_output=True, text=True, timeout=300)
    assert r.returncode == 0, f"sennit {' '.join(args)}: exit {r.returncode}: {r.stderr[-300:]}"
    return r


def make(n, rng):
    rows = []
    for i in range(n):
        lengths = [(0, 1, LONGEST)[(i + k) % 3] if i % 2 else rng.integers(0, LONGEST + 1) for k in (0, 1)]
        rows.append({"x": rng.normal(size=3), "s": rng.normal(size=(lengths[0], 4)), "p": rng.normal(size=(lengths[1], 2)),
                     "y": i % 3, "r": rng.normal(size=2)})
    return rows


def write(name, rows):
    path = os.path.join(folder, name + ".h5")
    with h5py.File(path, "w") as f:
        for k in ("x", "y", "r"):
            f[k] = np.array([r[k] for r in rows], dtype="i8" if k == "y" else "f4")
        for k in ("s", "p"):
            f[k + "/values"] = np.concatenate([r[k] for r in rows]).astype("f4")
            f[k + "/offsets"] = np.cumsum([0] + [len(r[k]) for r in rows])
    return path


def predict(checkpoint, name, rows, *more):
    out = os.path.join(folder, "pred.h5")
    run("predict", "--checkpoint", checkpoint, "--data", write(name, rows), "--out", out, *more)
    found = {}
    with h5py.File(out) as f:
        f.visititems(lambda n, d: found.__setitem__(n, d[:]) if isinstance(d, h5py.Dataset) and d.dtype.kind == "f" else None)
    assert len(found) >= 2 and all(len(v) == len(rows) for v in found.values()), sorted(found)
    assert all(np.isfinite(v).all() for v in found.values()), f"{name}: not finite"
    return found


def same(a, b, what, close=0.0):
    worst = max(float(np.max(np.abs(a[k] - b[k]), initial=0)) for k in a)
    bits = all(a[k].tobytes() == b[k].tobytes() for k in a)
    assert bits or worst < close, f"{what}: off by {worst}"
    return worst


def check_gradients(config, data):
    """A step of a whole batch of empties, and one of all rows: nothing is NaN."""
    out = os.path.join(folder, "step.h5")
    for name, path, n in data:
        run("debug", "--data", path, "--config", config, "--rows", f"0:{n}", "--out", out)
        with h5py.File(out) as f:
            bad = []

            def look(key, d):
                if not isinstance(d, h5py.Dataset) or d.dtype.kind != "f":
                    return
                if not np.isfinite(d[()]).all():
                    bad.append(key)

            f.visititems(look)
            assert not bad, f"{name}: not finite: {bad[:3]}"
            assert len(f["gradients"]) > 3, "no gradients"


def main():
    rng = np.random.default_rng(7)
    rows = make(61, rng)
    train = write("train", rows)
    empties = [{**r, "s": r["s"][:0], "p": r["p"][:0]} for r in rows[:16]]
    half = write("half", empties + rows[16:])
    checked, permuted = 0, 0.0
    for encoder, pool, set_pool in (("lstm", "mean", "mean"), ("gru", "max", "max"), ("lstm", "last", "sum"), ("gru", "attention", "attention")):
        config = os.path.join(folder, "model.yaml")
        with open(config, "w") as f:
            f.write(MODEL % (encoder, pool, set_pool))
        checkpoint = os.path.join(folder, f"run_{encoder}_{pool}")
        run("train", "--data", train, "--config", config, "--out", checkpoint)
        whole = predict(checkpoint, "all", rows)
        part = lambda index: {k: v[index] for k, v in whole.items()}
        same(part(slice(None, None, -1)), predict(checkpoint, "reversed", rows[::-1]), "reversed")
        order = rng.permutation(len(rows))
        same(part(order), predict(checkpoint, "shuffled", [rows[i] for i in order]), "shuffled")
        same(whole, predict(checkpoint, "all", rows, "--devices", "cpu*3", "--threads", "3"), "three devices")
        for i in (0, 1, 2, 3, 4, 5):
            same(part(slice(i, i + 1)), predict(checkpoint, "alone", [rows[i]]), f"row {i} alone")
            longest = {**rows[i], "s": rng.normal(size=(LONGEST, 4)), "p": rng.normal(size=(LONGEST, 2))}
            among = predict(checkpoint, "among", [longest] * 9 + [rows[i]] + [longest] * 5)
            same(part(slice(i, i + 1)), {k: v[9:10] for k, v in among.items()}, f"row {i} among long ones")
            checked += 2
        # A whole batch of empties, where the branches give zeros: only x tells rows apart.
        none = predict(checkpoint, "empties", empties)
        twins = predict(checkpoint, "twins", [{**empties[0], "x": empties[1]["x"]}, empties[1]])
        same({k: v[:1] for k, v in twins.items()}, {k: v[1:] for k, v in twins.items()}, "two empty rows")
        same({k: v[1:2] for k, v in none.items()}, {k: v[:1] for k, v in twins.items()}, "an empty row in other company")
        shuffled = [{**r, "p": rng.permutation(r["p"])} for r in rows]
        permuted = max(permuted, same(whole, predict(checkpoint, "permuted", shuffled), "permuted set elements", 1e-5))
        check_gradients(config, (("a batch of empties", half, 16), ("all rows", train, len(rows))))
    print(f"4 models, {checked} rows alone or among long ones, reordered, on 3 devices: the same bits; permuted sets within {permuted:.1e}; "
          "batches of empties finite, forward and backward")


main()
