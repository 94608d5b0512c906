#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The recipes of recipes.txt. Usage: recipes.py page | keys | <make|how|doors> KEY"""

import pathlib
import sys

HEAD = """# Recipes

<!-- by tests/recipes/recipes.py from recipes.txt, whose commands tests/abi/test_recipes.sh runs -->

How programs come to the GPU. Each command here is run by a test, in front of a software GPU, and what it
prints is compared with what it prints without us. `LD_PRELOAD=libgpublas.so` finds an installed library; of
a build say `LD_PRELOAD=/path/of/build/libgpublas.so`. `gpublas run PROGRAM ...` does the same, and reports
at the end. The programs themselves are in [tests/recipes](../tests/recipes).
"""
TAIL = """
Elsewhere: Debian's alternatives, for which the package registers `libblas.so.3` and `liblapack.so.3`
([how](../src/package/README.md)); MPI, ScaLAPACK, ELPA, Dask, joblib, Ray, Spark and R's pools
([Many processes](README.md#many-processes)).
"""


def entries():
    text = pathlib.Path(__file__).with_name("recipes.txt").read_text()
    for block in text.split("\n\n")[1:]:
        title, *lines = block.strip().splitlines()
        entry = {"title": title}
        for line in lines:
            if line.startswith(" "):
                entry[key] += " " + line.strip()
            else:
                key, _, entry_value = line.partition(": ")
                entry[key] = entry_value
        yield entry


def table():
    rows = ["", "| program | how | routines | tested with | measured |", "|---|---|---|---|---|"]
    for entry in entries():
        how = ("preloaded" if "LD_PRELOAD" in entry["how"] else
               "opened by name" if "$GPUBLAS" in entry["how"] else "linked")
        doors = " ".join(f"`{name}`" for name in entry["doors"].split())
        rows.append(f"| [{entry['title']}](#{anchor(entry['title'])}) | {how} | {doors} | {entry['tested']} "
                    f"| {entry.get('speed', 'no')} |")
    return "\n".join(rows) + "\n"


def anchor(title):
    """As GitHub and others make it of a heading."""
    return "".join(x if x.isalnum() or x in "-_" else "-" if x == " " else "" for x in title.lower())


def page():
    parts = [HEAD, table()]
    for entry in entries():
        parts.append(f"\n## {entry['title']}\n\n")
        if "note" in entry:
            parts.append(entry["note"] + "\n\n")
        for what in ("make", "how"):
            parts.extend(f"    {line}\n" for line in entry.get(what, "").splitlines())
        names = ", ".join(f"`{name}`" for name in entry["doors"].split())
        parts.append(f"\nIt calls {names} here. Tested with {entry['tested']}.\n")
    return "".join(parts) + TAIL


def main():
    match sys.argv[1:]:
        case ["page"]:
            print(page(), end="")
        case ["keys"]:
            print("\n".join(entry["key"] for entry in entries()))
        case [("make" | "how" | "doors") as what, key]:
            print(next(entry.get(what, "") for entry in entries() if entry["key"] == key))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
