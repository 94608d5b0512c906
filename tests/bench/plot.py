#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the CSV of `bench`: TFLOP/s of every kernel and cuBLAS against n, and a bar each at n = 4096.

Usage: plot.py ladder.csv ladder.png"""
import csv
import sys

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt

BAR_SIZE = 4096


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def main(source, picture):
    rows = rows_of(source)
    squares = [r for r in rows if r["m"] == r["n"] == r["k"]]
    if not squares:
        sys.exit(f"{source}: no square shapes")
    kernels = list(dict.fromkeys((int(r["step"]), r["kernel"]) for r in squares if r["kernel"] != "cublas_events"))
    figure, (lines, bars) = plt.subplots(1, 2, figsize=(17, 8), width_ratios=(3, 2), layout="constrained")
    colours = plt.get_cmap("turbo")
    last_step = max(step for step, _ in kernels) or 1

    sizes = sorted({int(r["n"]) for r in squares})
    bar = BAR_SIZE if BAR_SIZE in sizes else sizes[-1]
    for place, (step, kernel) in enumerate(kernels):
        colour = colours(step / (last_step + 1)) if step else "black"
        rate = {int(r["n"]): float(r["gflops"]) / 1000 for r in squares if r["kernel"] == kernel}
        label = f"{step} {kernel}" if step else "cuBLAS"
        here = sorted(rate)
        lines.plot(here, [rate[n] for n in here], "o-" if step else "s--", color=colour, markersize=3, label=label)
        if bar in rate:
            bars.barh(place, rate[bar], color=colour)
            bars.text(rate[bar], place, f" {rate[bar]:.1f}", va="center", fontsize=8)
    lines.set_xscale("log", base=2)
    lines.set_xticks([n for n in sizes if n & (n - 1) == 0], [n for n in sizes if n & (n - 1) == 0])
    lines.set(xlabel="n (n x n x n)", ylabel="TFLOP/s", title=f"{rows[0]['gpu']}: SGEMM, operands on the device, one call")
    lines.grid(alpha=0.3)
    lines.legend(fontsize=8)
    bars.set_yticks(range(len(kernels)), [f"{step} {kernel}" if step else "cuBLAS" for step, kernel in kernels], fontsize=8)
    bars.invert_yaxis()
    bars.set(xlabel="TFLOP/s", title=f"n = {bar}")
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
