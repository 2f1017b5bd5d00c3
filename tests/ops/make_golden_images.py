#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes golden_images.inc: convolutions and pools of PyTorch in f64, as channels-last numbers. Run it by hand."""
import os
import torch
import torch.nn.functional as F

torch.manual_seed(3)
D = torch.float64
lines = ["/* SPDX-License-Identifier: Apache-2.0 */", f"/* Made by make_golden_images.py with PyTorch {torch.__version__.split('+')[0]}; do not edit. */"]


def put(name, x):
    numbers = ", ".join("%.9g" % v for v in x.detach().reshape(-1).tolist())
    lines.append(f"static const double {name}[] = {{{numbers}}};")


def drawn(*shape):
    return torch.randn(*shape).to(D).requires_grad_()


def last(x):
    return x.permute(0, 2, 3, 1)


def gradients(name, y, *inputs):
    """Of sum(y * r); kernels [Cout, Cin, KH, KW] as [KH, KW, Cin, Cout]."""
    r = torch.randn(y.shape).to(D)
    put("y_" + name, last(y))
    put("r_" + name, last(r))
    for letter, v, g in zip("xkb", inputs, torch.autograd.grad(y, inputs, r)):
        put(f"d{letter}_{name}", g if g.dim() == 1 else last(g) if letter == "x" else g.permute(2, 3, 1, 0))


x = drawn(2, 3, 7, 6)
put("image_x", last(x))
b = drawn(4)
put("image_b", b)
for name, kernel, stride, padding in [("same", (3, 3), (1, 1), (1, 1)), ("stride", (3, 2), (2, 3), (1, 0)),
                                      ("point", (1, 1), (1, 1), (0, 0)), ("wide", (5, 5), (1, 2), (4, 2))]:
    k = drawn(4, 3, *kernel)
    put("k_" + name, k.permute(2, 3, 1, 0))
    gradients(name, F.conv2d(x, k, b, stride, padding), x, k, b)
for name, kernel, stride, padding in [("halves", (2, 2), (2, 2), (0, 0)), ("over", (3, 3), (1, 1), (1, 1)),
                                      ("odd", (3, 2), (2, 1), (1, 1))]:
    gradients("max_" + name, F.max_pool2d(x, kernel, stride, padding), x)
    gradients("avg_" + name, F.avg_pool2d(x, kernel, stride, padding, count_include_pad=False), x)
    gradients("avg_pad_" + name, F.avg_pool2d(x, kernel, stride, padding, count_include_pad=True), x)

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden_images.inc"), "w") as out:
    out.write("\n".join(lines) + "\n")
