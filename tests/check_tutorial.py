#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tutorial's code blocks are the marked sections of its program, and the program runs and learns.

  check_tutorial.py TUTORIAL.md PROGRAM.c EXECUTABLE
"""
import re, subprocess, sys

md, c, exe = open(sys.argv[1]).read(), open(sys.argv[2]).read(), sys.argv[3]
for name in ("model", "data", "train"):
    section = re.search(rf"/\* \[{name}\] \*/\n(.*?)/\* \[{name}\] \*/", c, re.S)[1]
    if f"```c\n{section}```" not in md:
        sys.exit(f"docs/tutorial.md: the code of section '{name}' is not that of the program")
out = subprocess.run([exe], capture_output=True, text=True, timeout=120)
losses = [float(x) for x in re.findall(r"loss ([0-9.]+)", out.stdout)]
if out.returncode or len(losses) != 3 or not losses[2] < losses[0] < 0.7:
    sys.exit(f"the program did not learn (exit {out.returncode}): {out.stdout}{out.stderr}")
print(out.stdout)
