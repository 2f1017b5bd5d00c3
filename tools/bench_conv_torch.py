#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch on the shapes of bench_conv, beside it: one thread (or --threads N), medians, run after run in one sitting.

  bench_conv_torch.py BENCH_CONV [--threads N] [--runs N]

Both memory formats of PyTorch are timed and the faster one counts. Prints a table for docs/performance.md.
"""
import argparse
import json
import statistics
import subprocess
import time

p = argparse.ArgumentParser()
p.add_argument("bench")
p.add_argument("--threads", type=int, default=1)
p.add_argument("--runs", type=int, default=21)
a = p.parse_args()

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

torch.set_num_threads(a.threads)
SHAPES = [(32, 28, 64, 96, 3, 1), (32, 28, 192, 64, 1, 1), (32, 28, 16, 32, 5, 1), (32, 28, 96, 128, 3, 1),
          (32, 56, 64, 64, 3, 2), (64, 8, 1, 32, 3, 1), (32, 28, 64, 0, 3, 1)]


def median(f):
    times = []
    for r in range(a.runs + 2):
        began = time.perf_counter()
        f()
        times.append(time.perf_counter() - began)
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


theirs = []
ours = [json.loads(line) for line in subprocess.run(
    [a.bench, "--threads", str(a.threads), "--runs", str(a.runs), "--json"], check=True, capture_output=True, text=True).stdout.splitlines()]
for n, side, cin, cout, k, stride in SHAPES:
    both = [conv(n, side, cin, cout, k, stride, f) if cout else pool(n, side, cin, k, stride, f)
            for f in (torch.contiguous_format, torch.channels_last)]
    theirs += [min(b[key] for b in both) for key in both[0]]
print("| shape | what | ms | GFLOP/s | PyTorch ms | PyTorch GFLOP/s | ratio |\n|---|---|---|---|---|---|---|")
for o, t in zip(ours, theirs):
    print(f"| {o['shape']} | {o['what']} | {o['ms']:.2f} | {o['gflops']:.1f} | {t:.2f} | {o['gflops'] * o['ms'] / t:.1f} | {t / o['ms']:.2f} |")
