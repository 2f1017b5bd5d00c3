#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data that must not train: each is one line that names what is wrong, exit 1, before step 1.

  bad_data.py SENNIT FOLDER
"""
import os
import shutil
import subprocess
import sys

import h5py
import numpy as np

MODEL = """
inputs:
  x: {kind: dense, path: /x, hidden: [8]}
  s: {kind: sequence, path: /s, encoder: gru, units: 8}
  p: {kind: set, path: /p, lengths: /n, phi: [8], rho: [8]}
outputs:
  y: {path: /y, task: classification}
  r: {path: /r, task: regression}
  m: {path: /m, task: multilabel}
train: {batch: 16, epochs: 1, valid_fraction: 0.2}
"""
ROWS = 40
sennit, folder = sys.argv[1:3]
os.makedirs(folder, exist_ok=True)


def sound():
    rng = np.random.default_rng(3)
    offsets = np.cumsum([0] + [i % 4 for i in range(ROWS)])
    return {"x": rng.normal(size=(ROWS, 3)), "s/values": rng.normal(size=(offsets[-1], 2)), "s/offsets": offsets,
            "p": rng.normal(size=(ROWS, 5, 2)), "n": np.arange(ROWS) % 6, "y": np.arange(ROWS) % 3, "r": rng.normal(size=(ROWS, 2)),
            "m": rng.integers(0, 2, size=(ROWS, 4)).astype("f4")}


def put(key, at, value):
    def change(d):
        d[key] = d[key].astype("f8") if isinstance(value, float) else d[key]
        d[key][at] = value
    return change


def to(key, f):
    return lambda d: d.__setitem__(key, f(d[key]))


def drop(key):
    return lambda d: d.pop(key)


CASES = (
    ("a label of 1.5", put("y", 7, 1.5), "/y: row 7: 1.5 is no class"),
    ("a label that is NaN", put("y", 7, float("nan")), "/y: row 7"),
    ("one-hot labels", to("y", lambda a: np.eye(3)[a]), "3 columns"),
    ("NaN", put("x", (5, 1), float("nan")), "/x: row 5, column 1: NaN"),
    ("infinity", put("x", (5, 1), float("inf")), "/x: row 5, column 1: infinite"),
    ("NaN in a sequence", put("s/values", (5, 1), float("nan")), "/s: row 3, element 2, column 1: NaN"),
    ("NaN in a target", put("r", (9, 0), float("nan")), "/r: row 9, column 0"),
    ("infinity in a target", put("r", (9, 0), float("-inf")), "/r: row 9, column 0"),
    ("a label 2 of many", put("m", (5, 1), 2.0), "/m: row 5, column 1 is 2"),
    ("a label 0.5 of many", put("m", (5, 1), 0.5), "/m: row 5, column 1 is 0.5"),
    ("a row too few", to("y", lambda a: a[:-1]), "39"),
    ("an offset too few", to("s/offsets", lambda a: a[:-1]), "39"),
    ("offsets that decrease", put("s/offsets", 5, 0), "/s/offsets: row 5"),
    ("an offset below 0", put("s/offsets", 0, -1), "/s/offsets: row 0"),
    ("an offset past the end", put("s/offsets", -1, 10**9), "past the"),
    ("a length past the steps", put("n", 4, 6), "/n: row 4: length 6"),
    ("a length below 0", put("n", 4, -2), "/n: row 4: length -2"),
    ("no dataset", drop("x"), "no dataset /x"),
    ("no values", drop("s/values"), "/s is a group without the dataset values"),
    ("no offsets", drop("s/offsets"), "no dataset /s/offsets"),
    ("no lengths", drop("n"), "no dataset /n"),
    ("no rows", lambda d: d.update({k: v[:0] for k, v in d.items() if k != "s/offsets"}, **{"s/offsets": np.zeros(1, "i8")}), "no rows"),
    ("text for numbers", to("x", lambda a: a.astype("S8")), "strings"),
    ("text for targets", to("r", lambda a: a.astype("S8")), "strings"),
    ("numbers beyond squares", to("x", lambda a: a * 1e300), "too large"),
    ("complex numbers", to("x", lambda a: a.astype("c16")), "compound"),
)


def check(name, words, *more, data="data.h5"):
    out = os.path.join(folder, "out")
    shutil.rmtree(out, ignore_errors=True)
    r = subprocess.run([sennit, "train", "--data", os.path.join(folder, data), "--config", os.path.join(folder, "model.yaml"), "--out", out,
                        *more], capture_output=True, text=True, timeout=60)
    lines = [x for x in r.stderr.strip().splitlines() if not x.startswith("warning: ")]
    assert r.returncode == 1 and len(lines) == 1 and words in lines[0], f"{name}: exit {r.returncode}: {r.stderr.strip()[-300:]} lacks '{words}'"
    assert not os.path.exists(os.path.join(out, "last.h5")), f"{name}: it trained"


def write(d, name="data.h5"):
    with h5py.File(os.path.join(folder, name), "w") as f:
        for k, v in d.items():
            f[k] = v


def pack_with(path, filter_id):
    """Stores a dataset anew as one chunk packed by a filter that libhdf5 here has not got."""
    with h5py.File(os.path.join(folder, "data.h5"), "r+") as f:
        a = f[path][:]
        del f[path]
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk(a.shape)
        plist.set_filter(filter_id, h5py.h5z.FLAG_OPTIONAL, (3,))
        d = h5py.h5d.create(f.id, path.encode(), h5py.h5t.py_create(a.dtype), h5py.h5s.create_simple(a.shape), plist)
        d.write_direct_chunk((0,) * a.ndim, a.tobytes()[:64], 0)


def main():
    with open(os.path.join(folder, "model.yaml"), "w") as f:
        f.write(MODEL)
    write(sound())
    shutil.rmtree(os.path.join(folder, "sound"), ignore_errors=True)
    subprocess.run([sennit, "train", "--data", os.path.join(folder, "data.h5"), "--config", os.path.join(folder, "model.yaml"), "--out",
                    os.path.join(folder, "sound")], check=True, capture_output=True)
    for name, change, words in CASES:
        d = sound()
        change(d)
        write(d)
        check(name, words)
    write(sound())
    d = sound()
    d["y"][3] = 9
    write(d, "other.h5")
    check("a class in validation never seen in training", "'9'", "--valid", os.path.join(folder, "other.h5"))
    for path in ("/x", "/s/values", "/y"):
        write(sound())
        pack_with(path, 32015)
        check(f"a filter that is not there: {path}", f"dataset {path} is compressed with")
    write(sound())
    pack_with("/x", 299)
    check("a filter that nobody knows", "299")
    write(sound())
    check("a label out of range", "'2'", "--set", "outputs.y.labels=[0, 1]")
    d = sound()
    d["x"] = d["x"][:, :2]
    write(d, "other.h5")
    check("other columns in --test", "/x", "--test", os.path.join(folder, "other.h5"))
    check("other columns in a second file", "/x", "--data", os.path.join(folder, "other.h5"))
    print(f"{len(CASES) + 8} kinds of bad data: exit 1")


main()
