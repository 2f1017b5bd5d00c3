# SPDX-License-Identifier: Apache-2.0
"""Writes golden.inc: what PyTorch computes in f64, for tests/ops/test_golden.c. Run it by hand."""
import os
import torch
import torch.nn.functional as F

torch.manual_seed(1)
D = torch.float64
lines = ["/* Made by make_golden.py with PyTorch; do not edit. */"]


def put(name, x):
    numbers = ", ".join("%.17g" % v for v in x.detach().reshape(-1).tolist())
    lines.append(f"static const double {name}[] = {{{numbers}}};")


# Numbers that f32 holds exactly, so that both sides see the same input.
x = torch.cat([torch.linspace(-12, 12, 97), torch.tensor([-87.5, -30, -0.65, -1e-4, 0, 1e-6, 0.6499, 30, 80])])
x = x.to(torch.float32).to(D)
put("unary_x", x)
for name, f in [("exp", torch.exp), ("tanh", torch.tanh), ("sigmoid", torch.sigmoid), ("relu", F.relu),
                ("leaky_relu", lambda v: F.leaky_relu(v, 0.2)), ("gelu", F.gelu),
                ("gelu_tanh", lambda v: F.gelu(v, approximate="tanh")), ("silu", F.silu), ("softplus", lambda v: F.softplus(v, threshold=1e9)),
                ("softsign", F.softsign)]:
    a = x.clone().requires_grad_()
    y = f(a)
    y.sum().backward()
    put("y_" + name, y)
    put("d_" + name, a.grad)
p = torch.cat([torch.logspace(-40, 38, 79), torch.linspace(0.5, 2, 61)]).to(torch.float32).to(D)
put("log_x", p)
put("y_log", torch.log(p))

z = (3 * torch.randn(4, 21)).to(torch.float32).to(D).requires_grad_()
r = torch.randn(4, 21).to(torch.float32).to(D)
put("rows_x", z)
put("rows_r", r)
for name, f in [("softmax", lambda v: F.softmax(v, -1)), ("log_softmax", lambda v: F.log_softmax(v, -1))]:
    z.grad = None
    y = f(z)
    (y * r).sum().backward()
    put("y_" + name, y)
    put("d_" + name, z.grad)

labels = torch.tensor([3, 20, 0, 7])
target = torch.sigmoid(r).to(torch.float32).to(D)
put("rows_labels", labels.to(D))
put("rows_target", target)
row = lambda v: v.mean(-1).sum()
for name, f in [("softmax_cross_entropy", lambda v: F.cross_entropy(v, labels, reduction="sum")),
                ("sigmoid_cross_entropy", lambda v: row(F.binary_cross_entropy_with_logits(v, target, reduction="none"))),
                ("squared_loss", lambda v: row(F.mse_loss(v, target, reduction="none"))),
                ("absolute_loss", lambda v: row(F.l1_loss(v, target, reduction="none"))),
                ("huber_loss", lambda v: row(F.huber_loss(v, target, reduction="none", delta=1.0)))]:
    z.grad = None
    y = f(z)
    y.backward()
    put("y_" + name, y)
    put("d_" + name, z.grad)

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.inc"), "w") as out:
    out.write("\n".join(lines) + "\n")
