# SPDX-License-Identifier: Apache-2.0
"""Row 5 of the main table: every op's gradient by central differences and by PyTorch's vectors (the test programs), whole steps
and 100 steps of H3-S and the digits beside PyTorch from the same weights (tests/tools/torch_debug.py)."""
import os, re, subprocess

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = ("ops", "golden", "images", "recurrent", "sync_norm")  # what each checks is said in its first comment


def programs(run, need):
    said = []
    for name in PROGRAMS:
        exe = os.path.join(run.a.build, "tests", "test_" + name)
        need(os.path.exists(exe), f"test_{name} is not built")
        r = subprocess.run([exe], capture_output=True, text=True, timeout=900)
        m = re.search(r"(\d+)%: Checks: (\d+), Failures: (\d+), Errors: (\d+)", r.stdout)
        need(r.returncode == 0 and m and m[3] == m[4] == "0", f"test_{name}: {(r.stdout + r.stderr).strip()[-300:]}")
        said.append(f"`test_{name}` {m[2]}")
    return ", ".join(said)


def beside_torch(run, need):
    """What torch_debug.py prints, held to the table's limits once more."""
    version = subprocess.run([run.a.torch, "-c", "import torch; print(torch.__version__.split('+')[0])"], capture_output=True, text=True)
    need(version.returncode == 0, f"{run.a.torch} has no torch")
    command = [run.a.torch, os.path.join(TOP, "tests/tools/torch_debug.py"), "--sennit", run.sennit, "--peers",
               os.path.join(run.shared, "peers"), "--work", os.path.join(run.dir, "torch")]
    os.makedirs(command[-1])
    r = subprocess.run(command + (["--one-step"] if run.a.quick else []), capture_output=True, text=True, timeout=3600)
    need(r.returncode == 0, f"torch_debug.py: {(r.stdout + r.stderr).strip()[-400:]}")
    steps = re.findall(r"(?m)^(\S+), one step .*?; (\d+) gradients, worst (\S+) \(.*?\); updated variables, worst (\S+) \(", r.stdout)
    runs = re.findall(r"(?m)^(\S+), 100 steps .* at most (\S+) apart", r.stdout)
    need({name for name, *_ in steps} == {"h3", "digits"}, f"torch_debug.py says nothing of a step: {r.stdout[-300:]}")
    need(run.a.quick or {name for name, _ in runs} == {"h3", "digits"}, f"torch_debug.py says nothing of 100 steps: {r.stdout[-300:]}")
    for name, _, gradient, variable in steps:
        need(float(gradient) <= 1e-5 and float(variable) <= 1e-5, f"{name}: gradient {gradient}, updated variable {variable} off")
    for name, loss in runs:
        need(float(loss) <= 1e-4, f"{name}: losses {loss} apart within 100 steps")
    said = [f"{n}: worst gradient {g} over {k} tensors, updated variables {v}" for n, k, g, v in steps]
    said += [f"{n}: losses over 100 steps at most {loss} apart" for n, loss in runs]
    return f"PyTorch {version.stdout.strip()}, " + "; ".join(said)


def register(row, need, Failed):
    @row(5, "right gradients")
    def gradients(run):
        need(run.a.torch, "needs --torch PYTHON")
        counts = programs(run, need)
        return (f"{beside_torch(run, need)}. Every op: central differences in f64 within 1e-6, PyTorch's vectors, k micro-batches "
                f"of a synchronised norm against one batch (checks: {counts})")
