#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reduces large CSVs to what the tables and goals.py need. The tree keeps the result, not the source.

Usage: reduce.py accuracy raw.csv accuracy.csv   test_accuracy --csv: one row a kind of data and kernel, the
                                                 worst and the means of its points
       reduce.py types_accuracy raw.csv types_accuracy.csv   the same of test_accuracy_types --csv
       reduce.py regret raw.csv regret.csv       bench --fit: of each shape the fastest kernel that FP32 may
                                                 use, and the library's choice"""

import csv
import os
import re
import sys

sys.dont_write_bytecode = True

from table import mean, read

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def table_of(path, pattern):
    with open(os.path.join(ROOT, path)) as file:
        return dict(re.findall(pattern, file.read(), re.M))


def ratios(pairs):
    """Geometric mean and worst of pairs of errors; pairs with an exact side say nothing."""
    values = [a / b for a, b in pairs if a > 0 and b > 0]
    return (f"{mean(values):.6g}", f"{max(values):.6g}", len(values)) if values else ("1", "0", 0)


def accuracy(rows):
    verdict = table_of("tests/gpu/accuracy_data.def", r"^DATA\( *(\w+),.*, *(\w+) *\)")
    point = lambda r: (r["data"], r["m"], r["n"], r["k"])
    errors = {
        who: {point(r): (float(r["rms_u"]), float(r["max_u"])) for r in rows if r["who"] == who}
        for who in ("ffma", "cublas")
    }
    groups = {}
    for r in rows:
        if r["data"] in verdict and r["who"] != "fp16x1":           # TF32's accuracy has a bound of its own
            groups.setdefault((r["data"], r["who"]), []).append(r)
    # of_bound: not where products underflow, and FMAs miss the bound too
    for (data, who), mine in groups.items():
        fma = [errors["ffma"].get(point(r), (0, 0)) for r in mine]
        theirs = [errors["cublas"].get(point(r), (0, 0)) for r in mine]
        rms, most = ([float(r[x]) for r in mine] for x in ("rms_u", "max_u"))
        to_fma, to_cublas = (ratios([(a, b[0]) for a, b in zip(rms, other)]) for other in (fma, theirs))
        small = [e / (int(r['k']) + 4) for e, r, f in zip(most, mine, fma) if f[1] <= int(r['k']) + 4]
        yield {
            "data": data,
            "verdict": verdict[data],
            "who": who,
            "points": len(mine),
            "of_bound": f"{max(small, default=0):.4f}",
            "rms_u": f"{max(rms):.5g}",
            "max_u": f"{max(most):.5g}",
            "rms_to_ffma": to_fma[0],
            "worst_rms_to_ffma": max((r["rms_to_ffma"] for r in mine), key=float),
            "worst_max_to_ffma": max((r["max_to_ffma"] for r in mine), key=float),
            "not_exact": sum(int(r["not_exact"]) for r in mine),
            "cublas_points": to_cublas[2],
            "rms_to_cublas": to_cublas[0],
            "worst_rms_to_cublas": to_cublas[1],
            "worst_max_to_cublas": ratios([(a, b[1]) for a, b in zip(most, theirs) if b[0] > 0])[1],
        }


def types_accuracy(rows):
    """A row a type, kind of data, ratio of imaginary to real parts and contender."""
    verdict = table_of("tests/gpu/accuracy_data.def", r"^DATA\( *(\w+),.*, *(\w+) *\)")
    groups = {}
    for r in rows:
        groups.setdefault(tuple(r[x] for x in ("type", "data", "parts_a", "parts_b", "who")), []).append(r)
    for (type_, data, a, b, who), mine in groups.items():
        of = lambda column: [float(r[column]) for r in mine if r[column]]
        to_cublas = [x for x in of("rms_to_cublas") if 0 < x < float("inf")]
        yield {
            "type": type_,
            "data": data,
            "verdict": verdict[data],
            "parts_a": a,
            "parts_b": b,
            "who": who,
            "points": len(mine),
            "of_bound": f"{max(of('of_bound')):.4f}",
            "rms_u": f"{max(of('rms_u')):.5g}",
            "max_u": f"{max(of('max_u')):.5g}",
            "not_exact": sum(int(r["not_exact"]) for r in mine),
            "worst_rms_to_ffma": f"{max(of('rms_to_ffma')):.4f}" if of("rms_to_ffma") else "",
            "cublas_points": len(to_cublas),
            "rms_to_cublas": f"{mean(to_cublas):.4f}" if to_cublas else "",
            "worst_rms_to_cublas": f"{max(to_cublas):.4f}" if to_cublas else "",
        }


def regret(rows):
    math_of = table_of("kernels/gemm.def", r"^KERNEL\( *\d+, *(\w, *\w+), *\w+, *(\w+)")
    math_of = {tuple(re.split(", *", kernel)): math_ for kernel, math_ in math_of.items()}
    best, chosen = {}, {}
    for r in rows:
        type_ = r.get("type", "s")
        shape = (type_,) + tuple(r[x] for x in "m n k ta tb lda ldb ldc shift batch".split())
        us = float(r["us_median" if int(r["calls"]) > 1 else "us_least"])
        if (
            r["mode"] == "forced"
            and math_of.get((type_, r["kernel"])) not in (None, "TF32")
            and us < best.get(shape, (us + 1,))[0]
        ):
            best[shape] = us, r
        if r["mode"] == "fp32":
            chosen[shape] = r
    for shape in best:
        if shape in chosen:
            yield from (best[shape][1], chosen[shape])


def main(kind, source, target):
    rows, header = read(source)
    kept = list({"accuracy": accuracy, "types_accuracy": types_accuracy, "regret": regret}[kind](rows))
    with open(target, "w", newline="") as file:
        file.write(f"# {header}; reduced by tests/bench/reduce.py\n")
        writer = csv.DictWriter(file, kept[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
