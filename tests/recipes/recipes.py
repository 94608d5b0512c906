#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The recipes of recipes.txt. Usage: recipes.py page | keys | <make|how|doors> KEY
keys: of those that tests/abi/test_recipes.sh runs"""

import csv
import pathlib
import re
import sys

RESULTS = "tests/bench/results/"
CONTENDERS, SECONDS = ("contender", "who"), ("ms_median", "seconds", "s")  # columns of its CSVs

HEAD = """# Recipes

<!-- by tests/recipes/recipes.py from recipes.txt, whose commands tests/abi/test_recipes.sh runs -->

How programs come to the GPU. A test runs each command here in front of a software GPU, and compares what it
prints with what it prints without us; a section says so where another test shows it, or where that was done
by hand. The last column has how many times as fast a program was as with the host's BLAS alone, on the cores
of the same machine, where a CSV has it. `LD_PRELOAD=libgpublas.so` finds an installed library; of
a build say `LD_PRELOAD=/path/of/build/libgpublas.so`. `gpublas run PROGRAM ...` does the same, and reports
at the end. The programs themselves are in [tests/recipes](../tests/recipes), those of many processes in
[tests/programs](../tests/programs); [Many processes](README.md#many-processes) says which GPU each one gets.
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


def measured(speed):
    """The text of `speed`, with figures, GPU and CSV."""
    parts = []
    for part in speed.split("|"):
        name, text = part.strip().split(": ", 1)
        header, *lines = (pathlib.Path(__file__).parents[2] / RESULTS / name).read_text().splitlines()
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
        text = re.sub(r"{(.*?)}", lambda found: times(rows, found[1]), text)
        gpu, cores = re.match(r"# (.*?),.* (\d+ CPU cores)", header).groups()
        parts.append(f"{text} ({gpu}, {cores}, [{name.split('/')[-1]}](../{RESULTS}{name}))")
    return "; ".join(parts)


def times(rows, chosen):
    """The host's time divided by that of the row that is chosen by `column=value ...`."""
    who = next(column for column in CONTENDERS if column in rows[0])
    seconds = next(column for column in SECONDS if column in rows[0])
    wanted = dict(re.findall(r"(\w+)=(.*?)(?= \w+=|$)", chosen))
    ours, host = ([float(row[seconds]) for row in rows if all(row[x] == y for x, y in choice.items())]
                  for choice in (wanted, wanted | {who: "host"}))
    if len(ours) != 1 or len(host) != 1:
        sys.exit(f"recipes.py: not one row, but {len(ours)} and {len(host)} of the host: {chosen}")
    ratio = host[0] / ours[0]
    return f"{ratio:.2f}" if ratio < 1.1 else f"{ratio:.1f}"


def way(entry):
    how = entry.get("how", "")
    return ("preloaded" if "LD_PRELOAD" in how else "opened by name" if "$GPUBLAS" in how else
            "linked" if how else "as libblas.so.3")


def doors(entry, separator):
    names = entry["doors"].split()
    return separator.join(f"`{name}`" for name in names) if names[-1] != "routines" else entry["doors"]


def table():
    rows = ["", "| program | how | routines | tested with | times as fast as the host |",
            "|---|---|---|---|---|"]
    for entry in entries():
        speed = measured(entry["speed"]) if "speed" in entry else "not measured"
        tested = entry["tested"] + (f", {entry['shown']}" if "by hand" in entry.get("shown", "") else "")
        rows.append(f"| [{entry['title']}](#{anchor(entry['title'])}) | {way(entry)} | {doors(entry, ' ')} "
                    f"| {tested} | {speed} |")
    return "\n".join(rows) + "\n"


def anchor(title):
    """As GitHub and others make it of a heading."""
    return "".join(x if x.isalnum() or x in "-_" else "-" if x == " " else "" for x in title.lower())


def page():
    parts = [HEAD, table()]
    for entry in entries():
        parts.append(f"\n## {entry['title']}\n")
        if "note" in entry:
            parts.append("\n" + entry["note"] + "\n")
        commands = [entry[what] for what in ("make", "how") if what in entry]
        parts.append("\n" * bool(commands) + "".join(f"    {line}\n" for line in commands))
        shown = entry.get("shown", "")
        by = (f" by [{shown}](../tests/abi/{shown})" if shown.endswith(".sh") else
              f" {shown}," if shown else "")
        parts.append(f"\nIt calls {doors(entry, ', ')} here. Tested{by} with {entry['tested']}.\n")
    return "".join(parts)


def main():
    match sys.argv[1:]:
        case ["page"]:
            print(page(), end="")
        case ["keys"]:
            print("\n".join(entry["key"] for entry in entries() if "shown" not in entry))
        case [("make" | "how" | "doors") as what, key]:
            print(next(entry.get(what, "") for entry in entries() if entry["key"] == key))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
