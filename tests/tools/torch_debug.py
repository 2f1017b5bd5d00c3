#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One step and 100 steps of sennit against PyTorch, from the same weights and the same rows.

  torch_debug.py --sennit build/tools/sennit --peers ../shared/peers [--work DIR]
  torch_debug.py --sennit build/tools/sennit --one-step --digits tests/tools/digits_step.yaml --golden tests/tools/torch_step.inc

For H3-S and the digits (without dropout): `sennit debug` writes a step; PyTorch takes its /variables and /inputs and must
give the same loss, the same gradient of every variable and the same updated variables: ||a - b|| / ||b|| <= 1e-5 per
tensor. Then both train 100 steps (H3 on fresh rows, the digits in the order of the file); losses must agree within 1e-4.
--golden writes what PyTorch gave for the step, so that a test can check it where there is no PyTorch.
Needs PyTorch, h5py and numpy: run by hand, never in CI. Exit code 0 when all holds.
"""
import argparse, json, os, re, subprocess, sys, tempfile

import h5py
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIMIT, LOSS_LIMIT = 1e-5, 1e-4

# our module -> the peer's, in h3_torch.py
H3 = {"dense/dense": "dense.0", "dense/dense_1": "dense.2", "sequence/lstm": "lstm", "set/phi": "phi.0", "set/phi_1": "phi.2",
      "set/rho": "rho.0", "trunk/dense": "trunk.0", "outcome/out": "trunk.2"}
ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "tanh": torch.tanh}


def keys_of(config, name):
    """The keys of one input (or of the trunk) in a model file that has each in braces of its own."""
    body = re.search(r"(?m)^\s*%s:\s*\{(.*?)\}" % name, config, re.S)[1]
    return {k: v for k, v in re.findall(r"(\w+): (\[[^\]]*\]|[^,\s]+)", body)}


class Digits:
    """The digits' model as the model file has it, on parameters of our names: a dense, a sequence and a set branch, a trunk."""

    def __init__(self, config, variables):
        self.keys = {n: keys_of(config, n) for n in ("profile", "strokes", "pixels", "trunk")}
        self.params = {n: torch.nn.Parameter(torch.from_numpy(v)) for n, v in variables.items()}
        units = int(self.keys["strokes"]["units"])
        self.lstm = nn.LSTM(variables["strokes/lstm/weight_ih_l0"].shape[1], units, batch_first=True, bidirectional=True)
        for n, parameter in self.lstm.named_parameters():
            parameter.data = self.params["strokes/lstm/" + n].data
            self.params["strokes/lstm/" + n] = parameter

    def stack(self, x, module, name, widths, norms=0):
        """Dense layers `name`, `name`_1..; behind each a layer norm where the model has one, then the activation."""
        p, keys = self.params, self.keys[module]
        for i in range(widths):
            part = f"{module}/{name}" + (f"_{i}" if i else "")
            x = F.linear(x, p[part + "/weight"], p[part + "/bias"])
            norm = f"{module}/layer_norm" + (f"_{norms + i}" if norms + i else "")
            if keys.get("norm") == "layer":
                x = F.layer_norm(x, x.shape[1:], p[norm + "/weight"], p[norm + "/bias"])
            x = ACTIVATIONS[keys.get("activation", "relu")](x)
        return x

    def double(self):
        self.lstm.double()
        for p in self.params.values():
            p.data = p.data.double()

    def pool(self, rows, how):
        """The gradient of a maximum goes to one element, as it does here: amax would share it among equal ones."""
        return torch.stack([r.mean(0) if how == "mean" else r.max(0).values for r in rows])

    def __call__(self, dense, padded, length, points, row, size):
        count = {m: {k: v.count(",") + 1 for k, v in keys.items() if v.startswith("[")} for m, keys in self.keys.items()}
        d = self.stack(dense, "profile", "dense", count["profile"]["hidden"])
        y, _ = self.lstm(nn.utils.rnn.pack_padded_sequence(padded, length, batch_first=True, enforce_sorted=False))
        y, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=True)
        s = self.pool([y[r, :n] for r, n in enumerate(length.tolist())], self.keys["strokes"]["pool"])
        e = self.stack(points, "pixels", "phi", count["pixels"]["phi"])
        e = self.pool(torch.split(e, size.tolist()), self.keys["pixels"]["pool"])
        e = self.stack(e, "pixels", "rho", count["pixels"]["rho"], count["pixels"]["phi"])
        z = self.stack(torch.cat([d, s, e], 1), "trunk", "dense", count["trunk"]["hidden"])
        return F.linear(z, self.params["digit/out/weight"], self.params["digit/out/bias"])


class Peer:
    """h3_torch.py's own module, its parameters under our names."""

    def __init__(self, h3, variables):
        self.model = h3.H3(h3.SIZES["S"])
        own = dict(self.model.named_parameters())
        self.params = {n: own.pop(H3[n.rsplit("/", 1)[0]] + "." + n.rsplit("/", 1)[1]) for n in variables}
        assert not own, f"variables that we do not have: {list(own)}"
        for n, v in variables.items():
            self.params[n].data.copy_(torch.from_numpy(v))

    def __call__(self, *args):
        return self.model(*args)

    def double(self):
        self.model.double()


class Work:
    """A model with its data, and the options that both train with."""

    def __init__(self, name, data, config, inputs, label, rate, batch, more):
        self.name, self.data, self.config = name, data, config
        self.inputs, self.label, self.rate, self.batch, self.more = inputs, label, rate, batch, more

    def sennit(self, a, command, *args):
        words = [a.sennit, command, "--data", self.data, "--config", self.config, *self.more, *map(str, args)]
        r = subprocess.run(words, capture_output=True, text=True)
        if r.returncode:
            sys.exit(f"{' '.join(words)}: exit {r.returncode}: {r.stderr}")
        return r.stdout

    def step(self, a, rows):
        path = os.path.join(a.work, f"{self.name}_{rows}.h5")
        self.sennit(a, "debug", "--rows", f"0:{rows}", "--out", path)
        return h5py.File(path)

    def peer(self, h3, f):
        variables = {}
        f["variables"].visititems(lambda n, o: variables.__setitem__(n, o[()]) if isinstance(o, h5py.Dataset) else None)
        return Peer(h3, variables) if self.name == "h3" else Digits(open(self.config).read(), variables)


def batch_of(f, work, a, b):
    """Rows a to before b as the peer takes them: the sequence padded, the set packed."""
    i, (dense, sequence, points) = f["inputs"], work.inputs
    so, eo = i[sequence]["offsets"][()], i[points]["offsets"][()]
    sv, ev = i[sequence]["values"][()], i[points]["values"][()]
    length = so[a + 1:b + 1] - so[a:b]
    padded = np.zeros((b - a, length.max(), sv.shape[1]), np.float32)
    for r in range(b - a):
        padded[r, :length[r]] = sv[so[a + r]:so[a + r + 1]]
    size = torch.from_numpy(eo[a + 1:b + 1] - eo[a:b])
    args = (torch.from_numpy(i[dense][a:b]), torch.from_numpy(padded), torch.from_numpy(length), torch.from_numpy(ev[eo[a]:eo[b]]),
            torch.repeat_interleave(torch.arange(b - a), size), size)
    return args, torch.from_numpy(i[work.label][a:b].astype(np.int64))


def distance(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30)


def one_step(a, h3, work, golden):
    f = work.step(a, work.batch)
    model = work.peer(h3, f)
    optimizer = torch.optim.Adam(model.params.values(), lr=work.rate)
    args, y = batch_of(f, work, 0, work.batch)
    loss = F.cross_entropy(model(*args), y)
    loss.backward()
    gradients = {n: p.grad.detach().numpy().copy() for n, p in model.params.items()}
    optimizer.step()
    worst = {"gradient": (0, ""), "variable": (0, "")}
    for name, p in model.params.items():
        after = p.detach().numpy()
        worst["gradient"] = max(worst["gradient"], (distance(f["gradients"][name][()], gradients[name]), name))
        worst["variable"] = max(worst["variable"], (distance(f["updated"][name][()], after), name))
        golden.append((work.name, name, np.linalg.norm(gradients[name].astype(np.float64)), gradients[name].astype(np.float64).sum(),
                       np.linalg.norm(after.astype(np.float64))))
    ours = float(f["loss"][work.label.split(".")[0]][()])
    golden.append((work.name, "", loss.item(), 0, 0))
    ok = abs(ours - loss.item()) <= LIMIT * abs(loss.item()) and worst["gradient"][0] <= LIMIT and worst["variable"][0] <= LIMIT
    print(f"{work.name}, one step of {work.batch} rows: loss {ours:.8f} against {loss.item():.8f}; {len(gradients)} gradients, worst "
          f"{worst['gradient'][0]:.2e} ({worst['gradient'][1]}); updated variables, worst {worst['variable'][0]:.2e} "
          f"({worst['variable'][1]}): {'ok' if ok else 'TOO FAR'}")
    return ok


def peer_losses(h3, work, f, batches, steps, dtype):
    model = work.peer(h3, f)
    if dtype == torch.float64:
        model.double()
    optimizer = torch.optim.Adam(model.params.values(), lr=work.rate)
    out = []
    for i in range(steps):
        args, y = batches[i % len(batches)]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(*[x.to(dtype) if x.is_floating_point() else x for x in args]), y)
        loss.backward()
        optimizer.step()
        out.append(loss.item())
    return out


def many_steps(a, h3, work, steps):
    """The loss of each step. `train` says the last one's, so it is ended and resumed after every step."""
    rows = h5py.File(work.data)[work.label.split(".")[0]].shape[0]
    f = work.step(a, rows)
    batches = [batch_of(f, work, r, min(r + work.batch, rows)) for r in range(0, min(rows, steps * work.batch), work.batch)]
    theirs = peer_losses(h3, work, f, batches, steps, torch.float32)
    exact = peer_losses(h3, work, f, batches, steps, torch.float64)

    ours = []
    for k in range(1, steps + 1):
        said = json.loads(work.sennit(a, "train", "--out", os.path.join(a.work, work.name + "_run"), "--steps", k, "--batch", work.batch,
                                      "--epochs", 50, "--no-shuffle", "--valid-fraction", 0, "--threads", 1, "--json",
                                      *(["--resume"] if k > 1 else [])))
        assert said["steps"] == k, f"{said['steps']} steps, not {k}"
        ours.append(said["loss"])
    far = [max(abs(x - y) for x, y in zip(p, q)) for p, q in ((ours, theirs), (ours, exact), (theirs, exact))]
    ok = far[0] <= LOSS_LIMIT
    print(f"{work.name}, {steps} steps of {work.batch} rows: loss {ours[0]:.6f} to {ours[-1]:.6f} against {theirs[-1]:.6f}, at most {far[0]:.2e} "
          f"apart (from the same in f64: ours {far[1]:.2e}, PyTorch's f32 {far[2]:.2e}): {'ok' if ok else 'TOO FAR'}")
    return ok


def fresh_h3(path, s, rows):
    """H3's data as the peer draws it: nothing is seen twice."""
    _, d, _, si, _, ml, ei, _, ms, _, c = s
    r = np.random.default_rng(3)
    with h5py.File(path, "w") as f:
        f["dense"] = r.standard_normal((rows, d), np.float32)
        for name, width, most in (("sequence", si, ml), ("set", ei, ms)):
            offsets = np.concatenate([[0], np.cumsum(r.integers(1, most + 1, rows))])
            f[name + "/offsets"] = offsets.astype(np.int64)
            f[name + "/values"] = r.standard_normal((offsets[-1], width), np.float32)
        f["outcome"] = r.integers(0, c, rows)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--sennit", required=True)
    a.add_argument("--peers", default=os.path.join(TOP, "..", "shared", "peers"))
    a.add_argument("--digits", default=os.path.join(TOP, "models/digits/digits.yaml"), help="the digits' model file")
    a.add_argument("--golden")
    a.add_argument("--work")
    a.add_argument("--one-step", action="store_true", help="leave out the 100 steps")
    a = a.parse_args()
    a.work = a.work or tempfile.mkdtemp(prefix="sennit_torch_")
    sys.path.insert(0, a.peers)
    import h3_torch as h3
    torch.set_num_threads(1)  # a spinning team on a busy machine takes minutes for what one thread does in seconds
    torch.manual_seed(0)
    subprocess.run([a.sennit, "bench", "h3", "--size", "S", "--write", os.path.join(a.work, "h3")], check=True, stdout=subprocess.DEVNULL)
    works = [Work("h3", os.path.join(a.work, "h3/data.h5"), os.path.join(a.work, "h3/model.yaml"), ("dense", "sequence", "set"),
                  "outcome.label", 0.001, 32, []),
             Work("digits", os.path.join(TOP, "models/digits/digits_train.h5"), a.digits, ("profile", "strokes", "pixels"),
                  "digit.label", 0.001, 64,
                  [w for k in ("trunk.dropout=0", "train.schedule=constant", "train.learning_rate=0.001", "train.ema=0", "train.monitor=train.loss",
                               "train.patience=0", "train.batch=64") for w in ("--set", k)])]
    golden, ok = [], True
    for w in works:
        ok = one_step(a, h3, w, golden) and ok
        if a.one_step:
            continue
        if w.name == "h3":
            w.data = os.path.join(a.work, "fresh.h5")
            fresh_h3(w.data, h3.SIZES["S"], 100 * w.batch)
        ok = many_steps(a, h3, w, 100) and ok
    if a.golden:
        with open(a.golden, "w") as f:
            f.write("/* SPDX-License-Identifier: Apache-2.0 */\n/* PyTorch " + torch.__version__ + "'s step, by torch_debug.py: work, variable, "
                    "norm and sum of its gradient, norm\n * of the updated variable; variable \"\": the loss. */\n")
            f.writelines('{"%s", "%s", %.9g, %.9g, %.9g},\n' % row for row in golden)
    print("all within the limits" if ok else "NOT within the limits")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
