#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The README's performance section, from the newest CSVs of `bench --device` and `bench --end-to-end` in a folder of tests/bench/results.

Usage: table.py tests/bench/results/nvidia-h200"""
import csv
import glob
import math
import os
import sys

MODES = {"fp32": "ours, `fp32` (the default)", "ieee": "ours, `ieee` (FP32 FMA)", "tf32": "ours, `tf32`"}
SUITES = {"squares": "squares, 512 to 16384, four transposition pairs", "odd": "odd sizes, odd ld, bases at 4 bytes, four pairs",
          "shapes": "deep, skinny and small products, four pairs", "thin": "m or n in 1, 2, 3, 4, 8, 16, four pairs",
          "batched": "batches of 64^3, 128^3, 512^3, strided and by pointers"}
HOSTS = {"gpublas_auto": "ours, `auto`", "gpublas_always": "ours, always offloaded", "nvblas": "NVBLAS as it comes",
         "nvblas_autopin": "NVBLAS, autopin", "host": "the host's OpenBLAS, all cores"}


def read(path):
    with open(path, newline="") as file:
        lines = file.read().splitlines()
    return list(csv.DictReader(x for x in lines if not x.startswith("#"))), next((x[2:] for x in lines if x.startswith("# ") and not x.startswith("# peak")), "")


def newest(folder, kind):
    paths = sorted(glob.glob(os.path.join(folder, f"*-{kind}.csv")))
    return paths[-1] if paths else None


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def rate(rows, mode, n, column):
    """Geometric mean over the transposition pairs."""
    values = [float(r[column]) for r in rows if r["mode"] == mode and int(r["n"]) == n]
    return f"{mean(values):.1f}" if values and not any(map(math.isnan, values)) else "-"


def line(cells):
    return "| " + " | ".join(cells) + " |"


def sizes_table(rows, title):
    sizes = sorted({int(r["n"]) for r in rows})
    lines = [line([title] + [str(n) for n in sizes]), "|" + "---|" * (len(sizes) + 1)]
    for mode, name in MODES.items():
        if any(r["mode"] == mode for r in rows):
            lines.append(line([name] + [rate(rows, mode, n, "tflops") for n in sizes]))
    for mode, name in (("ieee", "cuBLAS, FP32"), ("tf32", "cuBLAS, TF32")):
        if mode == "ieee" and not any(r["mode"] == mode for r in rows):
            mode = "fp32"
        if any(r["mode"] == mode for r in rows):
            lines.append(line([name] + [rate(rows, mode, n, "cublas_tflops") for n in sizes]))
    return lines + [""]


def ratios_table(rows):
    modes = [m for m in MODES if any(r["mode"] == m for r in rows)]
    lines = [line(["of cuBLAS's speed: geometric mean (least)"] + [f"`{m}`" for m in modes]), "|" + "---|" * (len(modes) + 1)]
    for suite, name in SUITES.items():
        cells = []
        for mode in modes:
            values = [float(r["ratio"]) for r in rows if r["suite"] == suite and r["mode"] == mode and r["ratio"] != "nan"]
            cells.append(f"{mean(values):.2f}x ({min(values):.2f}x)" if values else "-")
        if set(cells) != {"-"}:
            lines.append(line([name] + cells))
    return lines + [""]


def host_table(rows):
    sizes = sorted({int(r["n"]) for r in rows})
    lines = [line(["ordinary host memory, GFLOP/s"] + [str(n) for n in sizes]), "|" + "---|" * (len(sizes) + 1)]
    for who, name in HOSTS.items():
        rates = {int(r["n"]): float(r["gflops"]) for r in rows if r[next(iter(r))] == who}
        if rates:
            lines.append(line([name] + [f"{rates[n]:.0f}" if n in rates else "-" for n in sizes]))
    return lines + [""]


def main(folder):
    device, host = newest(folder, "device"), newest(folder, "end-to-end")
    if device:
        rows, header = read(device)
        print(f"{header or rows[0]['gpu']}. All of it: `{device}`.\n")
        print("Operands on the GPU, random data, one completed call of `cblas_sgemm` at a time, medians; cuBLAS alike, in the same run.\n")
        print("\n".join(sizes_table([r for r in rows if r["suite"] == "squares"], "n, square, TFLOP/s")))
        print("\n".join(sizes_table([r for r in rows if r["suite"] == "odd"], "n, odd ld, misaligned")))
        print("\n".join(ratios_table(rows)))
    if host:
        rows, _ = read(host)
        print("\n".join(host_table(rows)), end="")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
