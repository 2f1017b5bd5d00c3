#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes reports/*.bin, seeds of fuzz_h5_report: u32 length, a scan's report, the file scanned.

  make_reports.py SENNIT-H5SCAN
"""
import os
import struct
import subprocess
import sys
import tempfile

import h5py
import numpy as np

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reports")


def plain(f, r):
    f.create_dataset("x", data=r.normal(size=(6, 3)).astype("f4"))
    f.create_dataset("y", data=np.arange(6))
    f.create_dataset("s", data=np.array([b"ab", b"c", b""] * 2))


def chunks(f, r):
    f.create_dataset("x", data=r.integers(0, 5, (9, 4)).astype(">i2"), chunks=(4, 3), compression="gzip",
                     shuffle=True, fletcher32=True)
    f.create_dataset("z", data=np.arange(40.0), chunks=(8,), compression="lzf")


def other(f, r):
    f.create_dataset("b", data=np.array([True, False]))
    f.create_dataset("e", (3,), dtype=h5py.enum_dtype({"A": 0, "B": 5}))
    v = f.create_dataset("v", (2,), dtype=h5py.vlen_dtype("i4"))
    v[0] = [1, 2]
    f["soft"], f["nowhere"], f["hard"] = h5py.SoftLink("/b"), h5py.SoftLink("/no"), f["b"]
    f["b"].attrs["unit"] = "m"
    f.create_dataset("c", data=np.zeros(2, dtype=[("a", "i4"), ("b", "f4")]))
    g = f.create_group("g")
    g["values"], g["offsets"] = np.ones((3, 2)), np.array([0, 1, 3])


for make in (plain, chunks, other):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.h5")
        with h5py.File(path, "w") as f:
            make(f, np.random.default_rng(0))
        out, end = os.pipe()
        subprocess.run([sys.argv[1], str(end), "-1", "2048", "10", path], pass_fds=[end], check=True)
        os.close(end)
        report = b"".join(iter(lambda: os.read(out, 65536), b""))
        with open(os.path.join(HERE, make.__name__ + ".bin"), "wb") as o:
            o.write(struct.pack("<I", len(report)) + report + open(path, "rb").read())
