#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes golden_rnn.inc: an LSTM and a GRU of PyTorch, two directions, over ragged rows.

  python3 tests/ops/make_golden_rnn.py > tests/ops/golden_rnn.inc

Every row is run alone, so that no padding is involved. Weights, inputs and the gradient of the
output are drawn from a fixed seed; all is f32.
"""
import torch

LENGTHS = [3, 0, 6, 1, 6, 2]
FEATURES, UNITS = 3, 4


def emit(name, tensor):
    numbers = [float(x) for x in tensor.detach().flatten()]
    print(f"static const float {name}[] = {{")
    for i in range(0, len(numbers), 6):
        print("    " + " ".join(f"{x:.9g}f," if "." in f"{x:.9g}" or "e" in f"{x:.9g}" else f"{x:.9g}.0f," for x in numbers[i : i + 6]))
    print("};")


def main():
    torch.manual_seed(7)
    total = sum(LENGTHS)
    x = torch.randn(total, FEATURES)
    dy = torch.randn(total, 2 * UNITS)
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print(f"/* Made by make_golden_rnn.py with torch {torch.__version__.split('+')[0]}. */")
    print("enum { GOLDEN_FEATURES = %d, GOLDEN_UNITS = %d };" % (FEATURES, UNITS))
    print("static const int64_t golden_lengths[] = {%s};" % ", ".join(map(str, LENGTHS)))
    emit("golden_x", x)
    emit("golden_dy", dy)
    for kind, module in (("lstm", torch.nn.LSTM), ("gru", torch.nn.GRU)):
        m = module(FEATURES, UNITS, bidirectional=True, batch_first=True)
        for p in m.parameters():
            torch.nn.init.uniform_(p, -1, 1)
        leaf = x.clone().requires_grad_()
        rows, at = [], 0
        for length in LENGTHS:
            if length > 0:
                rows.append(m(leaf[at : at + length][None])[0][0])
            at += length
        y = torch.cat(rows)
        (y * dy).sum().backward()
        emit(f"{kind}_y", y)
        emit(f"{kind}_dx", leaf.grad)
        for d, suffix in enumerate(("", "_reverse")):
            for i, name in enumerate(("weight_ih", "weight_hh", "bias_ih", "bias_hh")):
                p = getattr(m, f"{name}_l0{suffix}")
                emit(f"{kind}_w{d}{i}", p)
                emit(f"{kind}_dw{d}{i}", p.grad)


main()
