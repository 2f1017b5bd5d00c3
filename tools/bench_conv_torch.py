#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch on the shapes of bench_conv, beside it: one thread (or --threads N), medians, shape after shape in one sitting.

  bench_conv_torch.py BENCH_CONV [--threads N] [--runs N]

With one thread the processor's time is taken, with more the wall clock's. Both memory formats of PyTorch are timed and
the faster one counts. Each shape is run --rounds times, ours and theirs in turns; the best round of each counts.
Prints a table for docs/performance.md.
"""
import argparse
import json
import statistics
import subprocess
import time

p = argparse.ArgumentParser()
p.add_argument("bench")
p.add_argument("--threads", type=int, default=1)
p.add_argument("--runs", type=int, default=11)
p.add_argument("--rounds", type=int, default=3)
a = p.parse_args()

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

torch.set_num_threads(a.threads)
clock = time.process_time if a.threads == 1 else time.perf_counter
SHAPES = [(32, 28, 64, 96, 3, 1), (32, 28, 192, 64, 1, 1), (32, 28, 16, 32, 5, 1), (32, 28, 96, 128, 3, 1),
          (32, 56, 64, 64, 3, 2), (64, 8, 1, 32, 3, 1), (32, 28, 64, 0, 3, 1)]


def median(f):
    times = []
    for r in range(a.runs + 2):
        began = clock()
        f()
        times.append(clock() - began)
    return statistics.median(times[2:]) * 1e3


def conv(n, side, cin, cout, k, stride, form):
    x = torch.randn(n, cin, side, side).to(memory_format=form)
    w = torch.randn(cout, cin, k, k).to(memory_format=form)
    y = F.conv2d(x, w, None, stride, k // 2)
    dy = torch.randn_like(y).to(memory_format=form)

    def back(mask):
        return lambda: torch.ops.aten.convolution_backward(dy, x, w, None, [stride] * 2, [k // 2] * 2, [1, 1], False, [0, 0], 1, mask)

    with torch.no_grad():
        return {"forward": median(lambda: F.conv2d(x, w, None, stride, k // 2)),
                "input grad": median(back([True, False, False])), "weight grad": median(back([False, True, False]))}


def pool(n, side, c, k, stride, form):
    out = {}
    for name, f in [("max", F.max_pool2d), ("avg", lambda *v: F.avg_pool2d(*v, count_include_pad=False))]:
        x = torch.randn(n, c, side, side).to(memory_format=form).requires_grad_()
        y = f(x, k, stride, k // 2)
        dy = torch.randn_like(y)
        with torch.no_grad():
            out[name] = median(lambda: f(x, k, stride, k // 2))
        out[name + " grad"] = median(lambda: torch.autograd.grad(y, x, dy, retain_graph=True))
    return out


def ours(index):
    r = subprocess.run([a.bench, "--threads", str(a.threads), "--runs", str(a.runs), "--only", str(index), "--json"],
                       check=True, capture_output=True, text=True)
    return [json.loads(line) for line in r.stdout.splitlines()]


print("| shape | what | ms | GFLOP/s | PyTorch ms | PyTorch GFLOP/s | ratio |\n|---|---|---|---|---|---|---|")
for i, (n, side, cin, cout, k, stride) in enumerate(SHAPES):
    mine, theirs = [], []
    for _ in range(a.rounds):
        mine.append(ours(i))
        for f in (torch.contiguous_format, torch.channels_last):
            theirs.append(conv(n, side, cin, cout, k, stride, f) if cout else pool(n, side, cin, k, stride, f))
    for j, o in enumerate(mine[0]):
        us, them = min(m[j]["ms"] for m in mine), min(t[o["what"]] for t in theirs)
        work = o["gflops"] * o["ms"]
        print(f"| {o['shape']} | {o['what']} | {us:.2f} | {work / us:.1f} | {them:.2f} | {work / them:.1f} | {them / us:.2f} |", flush=True)
