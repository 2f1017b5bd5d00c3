#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes golden.tsv: what h5py reads from every public file under DATA.

  make_golden.py DATA > golden.tsv

One line a dataset: file, path, form, elements, CRC-32. Form i: little-endian int64 (uint64 wraps);
f: float64, every NaN the same one; s: each string's bytes and a NUL; v: int64 lengths, then the values as
i or f. At most the first 1,000,000 elements, by whole rows. h5py runs in a process of its own for each file:
some files crash or hang libhdf5.
"""
import os
import subprocess
import sys
import zlib

MOST = 1_000_000


def numbers(a):
    import numpy as np
    if a.dtype.kind in "iub":
        return "i", a.astype("<i8", casting="unsafe").tobytes()
    if a.dtype.kind == "f":
        f = a.astype("<f8")
        f[np.isnan(f)] = np.nan
        return "f", np.where(np.isnan(f), np.float64("nan"), f).astype("<f8").tobytes()
    return None, None


def texts(a):
    import numpy as np
    out = b""
    for x in np.asarray(a, dtype=object).ravel():
        out += (x if isinstance(x, bytes) else x.encode() if isinstance(x, str) else b"") + b"\0"
    return out


def ragged(a):
    import numpy as np
    rows = [np.asarray(x) for x in np.asarray(a).ravel()]
    lengths = np.array([len(x) for x in rows], dtype="<i8").tobytes()
    form, values = numbers(np.concatenate(rows))
    return None if form is None else lengths + values


def dataset(d):
    import h5py
    import numpy as np
    if d.shape is None:
        return None
    rows = d.shape[0] if d.shape else 1
    width = int(np.prod(d.shape[1:])) if d.shape else 1
    rows = min(rows, MOST // max(width, 1))
    a = np.asarray(d[:rows]) if d.shape else np.asarray(d[()])
    if h5py.check_string_dtype(d.dtype) is not None:
        return "s", rows * width, texts(a)
    if h5py.check_vlen_dtype(d.dtype) is not None:
        out = ragged(a)
        return None if out is None else ("v", rows * width, out)
    form, out = numbers(a)
    return None if form is None else (form, a.size, out)


def one(path, name):
    import h5py
    with h5py.File(path, "r") as f:
        def visit(p, o):
            if isinstance(o, h5py.Dataset):
                try:
                    got = dataset(o)
                except Exception as e:  # what h5py cannot read is no golden value
                    print(f"{name} /{p}: {e}", file=sys.stderr)
                    return
                if got is not None:
                    form, count, data = got
                    print(f"{name}\t/{p}\t{form}\t{count}\t{zlib.crc32(data):08x}", flush=True)
        f.visititems(visit)


def main():
    if len(sys.argv) == 4:
        return one(sys.argv[2], sys.argv[3])
    root = sys.argv[1]
    for folder, _, files in sorted(os.walk(root)):
        for file in sorted(files):
            path = os.path.join(folder, file)
            name = os.path.relpath(path, root)
            if os.sep not in name:
                continue
            try:
                r = subprocess.run([sys.executable, __file__, "-", path, name], capture_output=True, timeout=20)
            except subprocess.TimeoutExpired:
                continue
            sys.stdout.write(r.stdout.decode())
            sys.stderr.write(r.stderr.decode()[-300:])


main()
