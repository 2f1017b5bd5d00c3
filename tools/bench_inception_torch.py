#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The work of `sennit bench inception` in PyTorch, eager, both ways of laying images out; the faster one counts.

  bench_inception_torch.py --size S|M|L [--threads N] [--steps N]

Medians of the wall clock after warming up, with fresh random images every step, as the command does it.
"""
import argparse
import statistics
import time

import torch
from torch import nn

SIZES = {"S": (16, 3, 64, 64, 8, 1, 10), "M": (28, 3, 128, 128, 16, 1, 10), "L": (28, 3, 256, 256, 32, 2, 100)}


class Block(nn.Module):
    def __init__(self, channels, path, reduce):
        super().__init__()
        conv = lambda i, o, k: nn.Sequential(nn.Conv2d(i, o, k, padding=k // 2), nn.ReLU(inplace=True))
        self.paths = nn.ModuleList([conv(channels, path, 1),
                                    nn.Sequential(conv(channels, reduce, 1), conv(reduce, path, 3)),
                                    nn.Sequential(conv(channels, reduce, 1), conv(reduce, path, 5)),
                                    nn.Sequential(nn.MaxPool2d(3, 1, 1), conv(channels, path, 1))])

    def forward(self, x):
        return torch.cat([p(x) for p in self.paths], 1)


p = argparse.ArgumentParser()
p.add_argument("--size", choices=SIZES, required=True)
p.add_argument("--threads", type=int, default=1)
p.add_argument("--steps", type=int, default=20)
a = p.parse_args()
torch.set_num_threads(a.threads)
side, channels, stem, filters, reduce, blocks, classes = SIZES[a.size]


def step_ms(form):
    layers = [nn.Conv2d(channels, stem, 3, padding=1), nn.ReLU(inplace=True)]
    layers += [Block(stem if i == 0 else filters, filters // 4, reduce) for i in range(blocks)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(filters, classes)).to(memory_format=form)
    adam, times = torch.optim.Adam(model.parameters(), lr=1e-3), []
    for _ in range(a.steps + 8):
        x, y = torch.randn(32, channels, side, side).to(memory_format=form), torch.randint(classes, (32,))
        began = time.perf_counter()
        adam.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        adam.step()
        times.append(time.perf_counter() - began)
    return statistics.median(times[8:]) * 1e3, sum(v.numel() for v in model.parameters())


found = [step_ms(f) for f in (torch.contiguous_format, torch.channels_last)]
print(f"inception {a.size}, {a.threads} threads: {found[0][0]:.2f} ms contiguous, {found[1][0]:.2f} ms channels last; {found[0][1]} parameters")
