#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures of random predictions as scikit-learn gives them, for test_metrics.c.

    python3 tests/tools/make_metrics.py > tests/tools/metrics.inc
"""
import numpy as np
import sklearn
from sklearn import metrics as M

rng = np.random.default_rng(20)


def softmax(z):
    e = np.exp(z.astype(np.float64) - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def c_list(a, fmt):
    flat = [fmt(x) for x in np.asarray(a).ravel()]
    lines = [", ".join(flat[i:i + 8]) for i in range(0, len(flat), 8)]
    return "{" + ",\n     ".join(lines) + "}"


def f32(x):
    return f"{float(np.float32(x))!r}f".replace("nanf", "NAN").replace("inff", "INFINITY")


def case(name, kind, width, predictions, labels, known, want, mean=None, deviation=None):
    rows = len(predictions)
    integer = kind in ("METRIC_CLASSES", "METRIC_NEXT")
    print(f"static const float {name}_predictions[] =\n    {c_list(predictions, f32)};")
    print(f"static const {'int32_t' if integer else 'float'} {name}_labels[] =\n    "
          f"{c_list(labels, (lambda x: str(int(x))) if integer else f32)};")
    print(f"static const float {name}_weights[] =\n    {c_list(known, f32)};")
    for what, a in (("mean", mean), ("deviation", deviation)):
        if a is not None:
            print(f"static const double {name}_{what}[] = {c_list(a, lambda x: repr(float(x)))};")
    values = ", ".join(f'{{"{k}", {v!r}}}' for k, v in want)
    print(f"static const metric_value {name}_want[] = {{{values}}};")
    cases.append(f"    {{\"{name}\", {kind}, {width}, {rows}, {name}_predictions, {name}_labels, "
                 f"{name}_weights, {name + '_mean' if mean is not None else 'NULL'}, "
                 f"{name + '_deviation' if deviation is not None else 'NULL'}, {name}_want, {len(want)}}},")


def classes(name, rows, k, absent=()):
    allowed = [c for c in range(k) if c not in absent]
    y = rng.choice(allowed, rows)
    z = rng.normal(size=(rows, k)).astype(np.float32)
    z[np.arange(rows), y] += 1
    if k == 2:  # ties
        z[:, 0] = 0
        z = (np.round(z * 8) / 8).astype(np.float32)
    known = (rng.random(rows) < 0.8).astype(np.float32) * rng.choice([1, 2.5], rows)
    s = known > 0
    t, p, g = y[s], softmax(z[s]), z[s].argmax(1)
    if k == 2:
        auc = M.roc_auc_score(t, p[:, 1])
    else:
        there = [c for c in range(k) if 0 < (t == c).sum() < len(t)]
        auc = float(np.mean([M.roc_auc_score(t == c, p[:, c]) for c in there]))
        if not absent:
            assert abs(auc - M.roc_auc_score(t, p, multi_class="ovr", average="macro")) < 1e-12
    case(name, "METRIC_CLASSES", k, z, y, known, [
        ("accuracy", float(M.accuracy_score(t, g))),
        ("balanced_accuracy", float(M.balanced_accuracy_score(t, g))),
        ("f1", float(M.f1_score(t, g, average="macro", zero_division=0))),
        ("auc", float(auc)),
        ("log_loss", float(M.log_loss(t, p, labels=list(range(k)))))])


def multilabel(name, rows, k):
    y = (rng.random((rows, k)) < 0.4).astype(np.float32)
    z = (rng.normal(size=(rows, k)) + 1.5 * (y - 0.5)).astype(np.float32)
    known = (rng.random(rows) < 0.7).astype(np.float32)
    s = known > 0
    t, p, g = y[s], 1 / (1 + np.exp(-z[s].astype(np.float64))), z[s] > 0
    log_loss = float(np.mean([M.log_loss(t[:, c], p[:, c], labels=[0, 1]) for c in range(k)]))
    case(name, "METRIC_MULTILABEL", k, z, y, known, [
        ("accuracy", float(M.accuracy_score(t, g))),
        ("f1", float(M.f1_score(t, g, average="macro", zero_division=0))),
        ("auc", float(M.roc_auc_score(t, p, average="macro"))),
        ("log_loss", log_loss)])


def values(name, rows, d, constant=False):
    y = rng.normal(size=(rows, d)).astype(np.float32)
    if constant:
        y[:, 0] = 0.25
    z = (y + 0.3 * rng.normal(size=(rows, d))).astype(np.float32)
    mean, deviation = rng.normal(size=d) * 10, rng.random(d) + 0.5
    if constant:
        mean[0], deviation[0] = 0, 1
    known = (rng.random(rows) < 0.8).astype(np.float32)
    y[known == 0] = np.nan
    s = known > 0
    t, g = y[s].astype(np.float64) * deviation + mean, z[s].astype(np.float64) * deviation + mean
    rmse = float(np.mean(np.sqrt(M.mean_squared_error(t, g, multioutput="raw_values"))))
    case(name, "METRIC_VALUES", d, z, y, known, [
        ("r2", float(M.r2_score(t, g))), ("mae", float(M.mean_absolute_error(t, g))),
        ("rmse", rmse)], mean, deviation)


def following(name, rows, k):
    y = rng.integers(0, k, rows)
    z = rng.normal(size=(rows, k)).astype(np.float32)
    known = np.ones(rows, np.float32)
    case(name, "METRIC_NEXT", k, z, y, known, [
        ("nats", float(M.log_loss(y, softmax(z), labels=list(range(k))))),
        ("accuracy", float(M.accuracy_score(y, z.argmax(1))))])


cases = []
print("/* SPDX-License-Identifier: Apache-2.0 */")
print(f"/* Made by make_metrics.py with scikit-learn {sklearn.__version__}. */")
print("/* clang-format off */")
classes("two", 60, 2)
classes("five", 80, 5)
classes("absent", 50, 4, absent=(2,))
multilabel("labels", 50, 3)
values("one", 40, 1)
values("three", 40, 3)
values("constant", 30, 2, constant=True)
following("following", 40, 7)
print("static const metric_case cases[] = {")
print("\n".join(cases))
print("};")
print("/* clang-format on */")
