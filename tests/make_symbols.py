#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a C program that takes the address of everything the public headers declare with SN_API, having included
sennit.h alone; it links against the shared library only when all of that is defined, visible and in sennit.h.

  make_symbols.py OUT.c HEADER...
"""
import re, sys

names = {}
for path in sys.argv[2:]:
    text = re.sub(r"/\*.*?\*/", " ", open(path).read(), flags=re.S)
    text = re.sub(r"(?m)^\s*#.*(?:\\\n.*)*$", "", text)
    for m in re.finditer(r"\bSN_API\b([^;{]*?)\b(sn_[a-z0-9]\w*)\s*(\(|;)", text):
        if "typedef" not in m[1]:
            names[m[2]] = path
assert len(names) > 200, f"only {len(names)} declarations found"
with open(sys.argv[1], "w") as out:
    out.write('#include "sennit.h"\n#include <stdio.h>\n\nstatic const struct {\n  const char *name;\n  uintptr_t at;\n} all[] = {\n')
    for n in sorted(names):
        out.write(f'  {{"{n}", (uintptr_t)&{n}}}, /* {names[n]} */\n')
    out.write("};\n\nint main(void) {\n  size_t n = sizeof all / sizeof *all;\n"
              "  for (size_t i = 0; i < n; i++)\n    if (all[i].at == 0) return 1;\n"
              '  printf("%zu functions and tables\\n", n);\n  return 0;\n}\n')
