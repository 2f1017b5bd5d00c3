# SPDX-License-Identifier: Apache-2.0
"""Writes golden.inc: ten steps of each optimizer and twelve rates of each schedule, from PyTorch in
double. Run: python tests/optim/make_golden.py > tests/optim/golden.inc"""
import torch

STEPS, LENGTH = 10, 4
torch.set_default_dtype(torch.float64)


def start():
    a = torch.tensor([0.5, -1.25, 2.0, 0.03125], requires_grad=True)
    b = torch.tensor([-0.75, 0.0, 1.5, -3.0], requires_grad=True)
    return [a, b]


def gradient(step, k):
    """Multiples of 1/64, large and small, with zeros: exact in any float."""
    return torch.tensor([((step * 37 + k * 11 + i * 23) % 129 - 64) / 64.0 * (4.0 if k else 0.25)
                         for i in range(LENGTH)])


def show(name, rows):
    print(f'    {{"{name}",\n     {{')
    for row in rows:
        print("      {" + ", ".join(x.hex() for x in row) + "},")
    print("     }},")


def run(name, make, clip=None, schedule=None, ema=None):
    w = start()
    optimizer = make(w)
    scheduler = schedule(optimizer) if schedule else None
    average = [p.detach().clone() for p in w]
    rows = []
    for step in range(STEPS):
        for k, p in enumerate(w):
            p.grad = gradient(step, k)
        if clip:
            clip(w)
        optimizer.step()
        if scheduler:
            scheduler.step()
        if ema:
            torch.optim.swa_utils.get_ema_multi_avg_fn(ema)(average, [p.detach() for p in w], step)
        shown = average if ema else w
        rows.append([float(x) for p in shown for x in p.detach()])
    show(name, rows)


O = torch.optim
S = torch.optim.lr_scheduler
print("/* SPDX-License-Identifier: Apache-2.0 */")
print(f"/* Written by make_golden.py with PyTorch {torch.__version__.split('+')[0]}. */")
print("static const golden_run golden_runs[] = {")
run("sgd", lambda w: O.SGD(w, lr=0.1))
run("sgd momentum", lambda w: O.SGD(w, lr=0.1, momentum=0.9))
run("sgd nesterov decay", lambda w: O.SGD(w, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.02))
run("adam", lambda w: O.Adam(w))
run("adam decay", lambda w: O.Adam(w, lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1))
run("adamw", lambda w: O.AdamW(w))
run("adamw decay", lambda w: O.AdamW(w, lr=0.05, weight_decay=0.3))
run("adamw no_decay", lambda w: O.AdamW([{"params": w[:1]}, {"params": w[1:], "weight_decay": 0.0}],
                                        lr=0.05, weight_decay=0.3))
run("rmsprop", lambda w: O.RMSprop(w))
run("rmsprop momentum decay",
    lambda w: O.RMSprop(w, lr=0.02, alpha=0.9, eps=1e-4, momentum=0.7, weight_decay=0.05))
run("adagrad", lambda w: O.Adagrad(w))
run("adagrad decay", lambda w: O.Adagrad(w, lr=0.3, weight_decay=0.05))
run("adam clip_norm", lambda w: O.Adam(w, lr=0.05),
    clip=lambda w: torch.nn.utils.clip_grad_norm_(w, 1.5))
run("sgd clip_value", lambda w: O.SGD(w, lr=0.1),
    clip=lambda w: torch.nn.utils.clip_grad_value_(w, 0.5))
run("adam cosine", lambda w: O.Adam(w, lr=0.05),
    schedule=lambda o: S.CosineAnnealingLR(o, T_max=8, eta_min=0.001))
run("sgd ema", lambda w: O.SGD(w, lr=0.1), ema=0.75)
print("};\n")


def rates(name, make):
    optimizer = O.SGD(start(), lr=0.4)
    scheduler = make(optimizer)
    row = []
    for _ in range(12):
        row.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if len(row) < 12:
            scheduler.step()
    print(f'    {{"{name}", {{' + ", ".join(float(x).hex() for x in row) + "}},")


print("static const golden_schedule golden_schedules[] = {")
rates("step", lambda o: S.StepLR(o, step_size=5, gamma=0.3))
rates("exponential", lambda o: S.ExponentialLR(o, gamma=0.8))
rates("cosine", lambda o: S.CosineAnnealingLR(o, T_max=11, eta_min=0.05))
rates("one_cycle", lambda o: S.OneCycleLR(o, max_lr=0.4, total_steps=12))
rates("warmup cosine", lambda o: S.SequentialLR(
    o, [S.LinearLR(o, start_factor=1 / 3, total_iters=2), S.CosineAnnealingLR(o, T_max=8)], [3]))
print("};")
