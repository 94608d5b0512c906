#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws a CSV of `bench`. The ladder: TFLOP/s of every kernel and cuBLAS against n, and a bar each at n =
4096. --device: ours in each mode against cuBLAS by size, with the GPU's peaks, and the ratio on every other
shape. --end-to-end: milliseconds against n with the ideal, and the share of it by how operands lie.
--never-slower: how far the library's choice is from the better of host and GPU, and from the host.

Usage: plot.py bench.csv [more.csv ...] picture.png"""

import csv
import re
import sys

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt

BAR_SIZE = 4096
COLOURS = {"fp32": "tab:blue", "ieee": "tab:orange", "tf32": "tab:green"}


def read(path):
    with open(path, newline="") as file:
        lines = file.read().splitlines()
    peaks = [(m[1], float(m[2])) for m in (re.match(r"# peak (.*): ([\d.]+) TFLOP/s", x) for x in lines) if m]
    return list(csv.DictReader(x for x in lines if not x.startswith("#"))), peaks


def powers(axis, sizes):
    ticks = [n for n in sizes if n & (n - 1) == 0]
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks, ticks)
    axis.grid(alpha=0.3)


def ladder(rows, figure):
    lines, bars = figure.subplots(1, 2, width_ratios=(3, 2))
    squares = [r for r in rows if r["m"] == r["n"] == r["k"]]
    kernels = list(
        dict.fromkeys((int(r["step"]), r["kernel"]) for r in squares if r["kernel"] != "cublas_events")
    )
    colours = plt.get_cmap("turbo")
    last_step = max(step for step, _ in kernels) or 1
    sizes = sorted({int(r["n"]) for r in squares})
    bar = BAR_SIZE if BAR_SIZE in sizes else sizes[-1]
    for place, (step, kernel) in enumerate(kernels):
        colour = colours(step / (last_step + 1)) if step else "black"
        rate = {int(r["n"]): float(r["gflops"]) / 1000 for r in squares if r["kernel"] == kernel}
        label = f"{step} {kernel}" if step else "cuBLAS"
        here = sorted(rate)
        lines.plot(
            here, [rate[n] for n in here], "o-" if step else "s--", color=colour, markersize=3, label=label
        )
        if bar in rate:
            bars.barh(place, rate[bar], color=colour)
            bars.text(rate[bar], place, f" {rate[bar]:.1f}", va="center", fontsize=8)
    powers(lines, sizes)
    lines.set(
        xlabel="n (n x n x n)",
        ylabel="TFLOP/s",
        title=f"{rows[0]['gpu']}: SGEMM, operands on the device, one call",
    )
    lines.legend(fontsize=8)
    bars.set_yticks(
        range(len(kernels)),
        [f"{step} {kernel}" if step else "cuBLAS" for step, kernel in kernels],
        fontsize=8,
    )
    bars.invert_yaxis()
    bars.set(xlabel="TFLOP/s", title=f"n = {bar}")


def band(axis, rows, column, mode, colour, label, style):
    """Least, mean and most of the transposition pairs against n."""
    rates = {}
    for r in rows:
        if r["mode"] == mode and r[column] != "nan":
            rates.setdefault(int(r["n"]), []).append(float(r[column]))
    sizes = sorted(rates)
    if not sizes:
        return
    axis.fill_between(
        sizes, [min(rates[n]) for n in sizes], [max(rates[n]) for n in sizes], color=colour, alpha=0.2
    )
    axis.plot(
        sizes, [sum(rates[n]) / len(rates[n]) for n in sizes], style, color=colour, markersize=4, label=label
    )


def device(rows, peaks, figure):
    lines, ratios = figure.subplots(1, 2, width_ratios=(3, 2))
    modes = [m for m in COLOURS if any(r["mode"] == m for r in rows)]
    for suite, style, what in (
        ("squares", "o-", ""),
        ("odd", "x:", ", odd sizes"),
        ("sustained", "*--", ", two seconds on end"),
    ):
        mine = [r for r in rows if r["suite"] == suite]
        for mode in modes:
            band(lines, mine, "tflops", mode, COLOURS[mode], f"{mode}{what}", style)
        band(lines, mine, "cublas_tflops", modes[0], "black", f"cuBLAS FP32{what}", style)
        if "tf32" in modes:
            band(lines, mine, "cublas_tflops", "tf32", "grey", f"cuBLAS TF32{what}", style)
    for name, rate in peaks:
        lines.axhline(rate, color="red", linewidth=0.8, linestyle="--")
        lines.text(512, rate, name, color="red", fontsize=8, va="bottom")
    powers(lines, sorted({int(r["n"]) for r in rows if r["suite"] in ("squares", "sustained")}))
    lines.set(xlabel="n (n x n x n); bands: the four transposition pairs", ylabel="TFLOP/s",
              title=f"{rows[0]['gpu']}: cblas_sgemm, operands on the device, one completed call")
    lines.legend(fontsize=8)
    place = 0
    for suite in dict.fromkeys(r["suite"] for r in rows):
        for mode in modes:
            mine = sorted(
                float(r["ratio"])
                for r in rows
                if r["suite"] == suite and r["mode"] == mode and r["ratio"] != "nan"
            )
            if mine:
                ratios.plot(
                    mine,
                    [place - 0.3 + 0.6 * i / len(mine) for i in range(len(mine))],
                    ".",
                    color=COLOURS[mode],
                )
                ratios.text(0.21, place, f"{suite}, {mode}", fontsize=8, va="center")
                place += 1
    ratios.axvline(1, color="black", linewidth=0.8)
    ratios.set_xscale("log", base=2)
    ratios.set(
        xlabel="times cuBLAS's speed, every shape", title="against cuBLAS", yticks=[], xlim=(0.2, None)
    )
    ratios.invert_yaxis()
    ratios.grid(alpha=0.3)


PLAIN = {"memory": "fresh", "order": "column", "layout": "packed", "beta": "0", "cores": "0"}


def end_to_end(rows, figure):
    times, shares = figure.subplots(1, 2, width_ratios=(3, 2))
    plain = [r for r in rows if all(r[key] == value for key, value in PLAIN.items())]
    for who in dict.fromkeys(r["contender"] for r in plain):
        mine = sorted((int(r["n"]), float(r["ms_median"]), float(r["ms_least"]), float(r["ms_most"]))
                      for r in plain if r["contender"] == who)
        sizes, middle, least, most = zip(*mine)
        times.fill_between(sizes, least, most, alpha=0.2)
        times.plot(sizes, middle, "o-" if who.startswith("gpublas") else "s--", markersize=4, label=who)
    ideal = sorted({(int(r["n"]), float(r["ideal_ms"])) for r in plain})
    times.plot(
        *zip(*ideal),
        color="red",
        linewidth=0.8,
        linestyle="--",
        label="link at 50 GB/s each way, 200 TFLOP/s",
    )
    powers(times, [n for n, _ in ideal])
    times.set_yscale("log")
    times.set(xlabel="n (n x n x n)", ylabel="ms a call; bands: least to most",
              title="SGEMM on pageable host memory, never seen before, beta 0")
    times.legend(fontsize=8)
    for how in dict.fromkeys(tuple(r[key] for key in PLAIN) for r in rows):
        mine = sorted((int(r["n"]), float(r["of_ideal"])) for r in rows
                      if r["contender"] == "gpublas_always" and tuple(r[key] for key in PLAIN) == how)
        if mine:
            memory, order, layout, beta, cores = how
            label = f"{memory}, {order}, {layout}, beta {beta}" + (f", {cores} cores" if cores != "0" else "")
            shares.plot(*zip(*mine), "o-", markersize=3, label=label)
    powers(shares, [n for n, _ in ideal])
    shares.set(xlabel="n", ylabel="of the ideal", title="gpublas_always: ideal / achieved", ylim=(0, None))
    shares.legend(fontsize=8)


def never_slower(rows, figure):
    regrets, ratios = figure.subplots(1, 2)
    setting = lambda r: (r.get("type", "s"), r["threads"], r["cores"])
    for type_, threads, cores in dict.fromkeys(map(setting, rows)):
        mine = [r for r in rows if setting(r) == (type_, threads, cores)]
        label = f"{type_}gemm, {threads} host threads" + (f", {cores} cores" if cores != "0" else "")
        regrets.hist(
            [min(float(r["of_best"]), 3) for r in mine],
            bins=[x / 20 for x in range(61)],
            histtype="step",
            label=label,
        )
        flops = [2.0 * int(r["m"]) * int(r["n"]) * int(r["k"]) for r in mine]
        ratios.plot(flops, [float(r["of_host_2us"]) for r in mine], ".", markersize=4, label=label)
    for axis, goal in ((regrets.axvline, 1.05), (ratios.axhline, 1.25)):
        axis(goal, color="red", linewidth=0.8, linestyle="--")
    regrets.set(
        xlabel="times min(host, GPU) + 2 us (3: more)",
        ylabel="shapes",
        title="the library's choice on random shapes",
    )
    ratios.set(xlabel="floating-point operations", ylabel="times the host + 2 us", xscale="log", yscale="log",
               title="against the host BLAS")
    for axis in (regrets, ratios):
        axis.legend(fontsize=8)
        axis.grid(alpha=0.3)


def main(picture, *sources):
    rows, peaks = [], []
    for source in sources:
        some, peaks = read(source)
        rows += some
    figure = plt.figure(figsize=(17, 8), layout="constrained")
    if "suite" in rows[0]:
        device(rows, peaks, figure)
    elif "of_ideal" in rows[0]:
        end_to_end(rows, figure)
    elif "of_best" in rows[0]:
        never_slower(rows, figure)
    else:
        ladder(rows, figure)
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[-1], *sys.argv[1:-1])
