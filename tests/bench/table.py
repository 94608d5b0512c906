#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tables in Markdown, made from the CSVs in a folder of tests/bench/results. What is not there is left out.

Usage: table.py tests/bench/results/nvidia-h200           all of them: tests/bench/results/README.md
       table.py --speed tests/bench/results/nvidia-h200   the small one: README.md"""

import csv
import math
import os
import re
import sys

MODES = {"fp32": "ours, `fp32` (the default)", "ieee": "ours, `ieee` (FP32 FMA)", "tf32": "ours, `tf32`"}
SUITES = {
    "squares": "squares, 512 to 16384, four transposition pairs",
    "odd": "odd sizes, odd ld, bases at 4 bytes, four pairs",
    "shapes": "deep, skinny and small products, four pairs",
    "thin": "m or n in 1, 2, 3, 4, 8, 16, four pairs",
    "batched": "batches of 64^3, 128^3, 512^3, strided, by pointers, by pointers in no order",
    "beta": "squares of 512 to 8192 and short products, beta = 1",
}
DATA = {
    "continuous": "normal, rounded from doubles",
    "one_small": "the same, one element 2^34 below its row's largest",
    "wide_row": "one row in 128 over forty powers of two",
    "one_nan": "one NaN",
    "half_zeros": "half zeros (ReLU)",
    "bf16_weights": "B of bf16 numbers",
    "integers": "integers of 16 bits",
}
HOSTS = {
    "gpublas_auto": "ours, `auto`",
    "gpublas_always": "ours, always offloaded",
    "nvblas": "NVBLAS as it comes",
    "nvblas_autopin": "NVBLAS, autopin",
    "nvblas_tuned": "NVBLAS, autopin, tile 4096",
    "copy_cublas": "copy, cuBLAS, copy",
    "host": "the host's OpenBLAS, all cores",
}
# memory, order, layout, beta, cores: how the operands of an end-to-end row lie
PLAIN = ("fresh", "column", "packed", "0", "0")
LYING = {
    ("fresh", "column", "packed", "1", "0"): "beta = 1",
    ("fresh", "row", "packed", "0", "0"): "row-major",
    ("fresh", "row", "packed", "1", "0"): "row-major, beta = 1",
    ("again", "column", "packed", "0", "0"): "the same operands again",
    ("fresh", "column", "inside", "0", "0"): "sub-matrices, ld = 2 rows",
    ("fresh", "column", "inside", "1", "0"): "sub-matrices, beta = 1",
    ("pinned", "column", "packed", "0", "0"): "pinned",
    ("pinned", "column", "packed", "1", "0"): "pinned, beta = 1",
    ("fresh", "column", "packed", "0", "4"): "on 4 cores (of what 4 threads can stage)",
}
PROGRAMS = {
    "one_2048": "one SGEMM of 2048",
    "many_64": "10,000 of 64",
    "many_256": "1,000 of 256",
    "training": "a perceptron's training, 200 steps",
    "no_sgemm": "linked with a BLAS, no SGEMM",
    "true": "`/bin/true`",
}
RANKS = {
    "pdgemm": "ScaLAPACK's PDGEMM",
    "hpl": "HPL",
    "stardgemm": "hpcc's DGEMM, all ranks at once: a rank",
    "singledgemm": "hpcc's DGEMM, one rank",
    "ptrans": "hpcc's PTRANS",
}
STATES = {
    "never": "`GPUBLAS_OFFLOAD=never`",
    "possible": "`auto`, GPU not started",
    "started": "`auto`, GPU started",
    "report": "`GPUBLAS_REPORT`, `never`",
    "trace": "`GPUBLAS_TRACE`, `never`",
    "verbose": "`GPUBLAS_VERBOSE=1`, `never`",
}


def read(path):
    with open(path, newline="") as file:
        lines = file.read().splitlines()
    header = next((x[2:] for x in lines if x.startswith("# ") and not x.startswith("# peak")), "")
    others = ("# HPL of ", "# Rows of ")
    later = [x[2:].replace(", the rows below", "") for x in lines if x.startswith(others)]
    header = ". ".join([header] + later)
    return list(csv.DictReader(x for x in lines if not x.startswith("#"))), header


def results(folder, kind):
    """Path, rows and header of the CSV of a kind. What --device measured of other data, and on end, may lie
    in a file of its own."""
    path = os.path.join(folder, kind + ".csv")
    rows, header = read(path) if os.path.exists(path) else ([], "")
    beside = os.path.join(folder, "data.csv")
    if kind == "device" and rows and os.path.exists(beside):
        rows += read(beside)[0]
    return path, rows, header


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def rate(rows, mode, n, column):
    """Geometric mean over the transposition pairs."""
    values = [float(r[column]) for r in rows if r["mode"] == mode and int(r["n"]) == n]
    return f"{mean(values):.1f}" if values and not any(map(math.isnan, values)) else "-"


def line(cells):
    return "| " + " | ".join(cells) + " |"


def head(cells):
    """The first two lines of a table."""
    return [line(cells), "|" + "---|" * len(cells)]


def sizes_table(rows, title):
    sizes = sorted({int(r["n"]) for r in rows})
    lines = head([title] + [str(n) for n in sizes])
    for mode, name in MODES.items():
        if any(r["mode"] == mode for r in rows):
            lines.append(line([name] + [rate(rows, mode, n, "tflops") for n in sizes]))
    for mode, name in (("ieee", "cuBLAS, FP32"), ("tf32", "cuBLAS, TF32")):
        if mode == "ieee" and not any(r["mode"] == mode for r in rows):
            mode = "fp32"
        if any(r["mode"] == mode for r in rows):
            lines.append(line([name] + [rate(rows, mode, n, "cublas_tflops") for n in sizes]))
    return lines + [""]


def sustained_table(rows):
    """Two seconds on end beside calls by turns: pair NN of the squares, with the clock and power of each."""
    on_end = {int(r["n"]): r for r in rows if r["suite"] == "sustained" and r["mode"] == "fp32"}
    burst = {
        int(r["n"]): r
        for r in rows
        if (r["suite"], r["mode"], r["ta"] + r["tb"]) == ("squares", "fp32", "NN")
    }
    if not on_end:
        return []
    sizes = sorted(on_end)

    def cells(of, rate, clock, watts):
        whole = lambda value: f"{float(value):.0f}" if value else "-"
        return [
            f"{float(of[n][rate]):.1f} ({whole(of[n][clock])}, {whole(of[n][watts])})" if n in of else "-"
            for n in sizes
        ]

    ours = ("tflops", "sm_mhz", "watts")
    theirs = ("cublas_tflops", "cublas_sm_mhz", "cublas_watts")
    return head(["TFLOP/s (SM clock in MHz, watts), NN"] + [str(n) for n in sizes]) + [
        line(["ours, `fp32`, by turns with cuBLAS"] + cells(burst, *ours)),
        line(["ours, `fp32`, two seconds on end"] + cells(on_end, *ours)),
        line(["cuBLAS, two seconds on end"] + cells(on_end, *theirs)),
        "",
    ]


def data_table(rows):
    rows = [r for r in rows if r["suite"] == "data" and r["mode"] == "fp32"]
    if not rows:
        return []
    shapes = sorted({(int(r["m"]), int(r["k"])) for r in rows}, key=lambda x: (x[0] != x[1], x))
    lines = head(["other data, `fp32`, TFLOP/s (times cuBLAS)"] + [f"{m} x {m} x {k}" for m, k in shapes])
    for kind in dict.fromkeys(r["data"] for r in rows):
        mine = {
            (int(r["m"]), int(r["k"])): f"{float(r['tflops']):.1f} ({float(r['ratio']):.2f}x)"
            for r in rows
            if r["data"] == kind
        }
        lines.append(line([DATA[kind]] + [mine.get(shape, "-") for shape in shapes]))
    return lines + [""]


def ratios_table(rows):
    modes = [m for m in MODES if any(r["mode"] == m for r in rows)]
    lines = head(["of cuBLAS's speed: geometric mean (least)"] + [f"`{m}`" for m in modes])
    for suite, name in SUITES.items():
        cells = []
        for mode in modes:
            values = [
                float(r["ratio"])
                for r in rows
                if r["suite"] == suite and r["mode"] == mode and r["ratio"] != "nan"
            ]
            cells.append(f"{mean(values):.2f}x ({min(values):.2f}x)" if values else "-")
        if set(cells) != {"-"}:
            lines.append(line([name] + cells))
    return lines + [""]


def lies(r):
    keys = ("memory", "order", "layout", "beta", "cores")
    return tuple(r.get(key, default) for key, default in zip(keys, PLAIN))


def milliseconds(value):
    digits = 3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{digits}f}"


def host_table(rows):
    rows = [r for r in rows if lies(r) == PLAIN]
    sizes = sorted({int(r["n"]) for r in rows})
    lines = head(["ordinary host memory, ms a call"] + [str(n) for n in sizes])
    for who, name in HOSTS.items():
        mine = {int(r["n"]): float(r["ms_median"]) for r in rows if r["contender"] == who}
        if mine:
            lines.append(line([name] + [milliseconds(mine[n]) if n in mine else "-" for n in sizes]))
    ideals = {int(r["n"]): float(r["ideal_ms"]) for r in rows if "ideal_ms" in r}
    if ideals:
        best = [milliseconds(ideals[n]) for n in sizes]
        lines.append(line(["the link and the tensor cores, at their best"] + best))
    return lines + [""]


def lying_table(rows):
    """Ours, always offloaded: ms, and the share of the ideal reached."""
    rows = [r for r in rows if r["contender"] == "gpublas_always" and lies(r) in LYING]
    sizes = sorted({int(r["n"]) for r in rows})
    if not sizes:
        return []
    lines = head(["ours, operands otherwise: ms (of the ideal)"] + [str(n) for n in sizes])
    for how, name in LYING.items():
        mine = {
            int(r["n"]): f"{milliseconds(float(r['ms_median']))} ({100 * float(r['of_ideal']):.0f} %)"
            for r in rows
            if lies(r) == how
        }
        if mine:
            lines.append(line([name] + [mine.get(n, "-") for n in sizes]))
    return lines + [""]


def type_of(r):
    """CSVs that were made when there was one type have no column of it."""
    return r.get("type", "s")


def types_of(rows):
    return sorted({type_of(r) for r in rows}, key="sdcz".index)


def named(r):
    """How a row of a type begins: SGEMM needs no name."""
    return "" if type_of(r) == "s" else f"`{type_of(r)}gemm`, "


def out_of_core(rows):
    lines = []
    for type_ in types_of(rows):
        mine = [r for r in rows if type_of(r) == type_]
        first = mine[0]
        what = f"{named(first)}{first['m']} x {first['n']} x {first['k']}, ours with "
        what += f"`GPUBLAS_MEMORY={first['device_memory']}`"
        lines += head([what, "ms", "times the ideal"])
        for who, name in HOSTS.items():
            lines += [
                line([name, milliseconds(float(r["ms_median"])), f"{1 / float(r['of_ideal']):.2f}"])
                for r in mine
                if r["contender"] == who
            ]
        ideal = milliseconds(float(first["ideal_ms"]))
        lines += [line(["the link and the tensor cores, at their best", ideal, "1"]), ""]
    return lines


def never_slower(rows):
    setting = lambda r: (type_of(r), r["threads"], r["cores"])
    lines = head([
        "never slower: random shapes by the library's choice",
        "shapes",
        "of min(host, GPU) + 2 us, geometric mean",
        "those over 50 us",
        "first pass",
        "worst, of the host + 2 us",
        "worst, of the host",
        "above 1.25 x (host + 2 us)",
    ])
    for type_, threads, cores in sorted(dict.fromkeys(map(setting, rows)), key=lambda x: "sdcz".index(x[0])):
        mine = [r for r in rows if setting(r) == (type_, threads, cores)]
        column = {
            name: [float(r[name]) for r in mine]
            for name in ("of_best", "first_of_best", "of_host_2us", "of_host")
        }
        lasting = [float(r["of_best"]) for r in mine if min(float(r["host_us"]), float(r["gpu_us"])) > 50]
        lines.append(line([
            f"{named(mine[0])}{threads} host threads" + (f", {cores} cores" if cores != "0" else ""),
            str(len(mine)),
            f"{mean(column['of_best']):.3f}",
            f"{mean(lasting):.3f} ({len(lasting)})" if lasting else "-",
            f"{mean(column['first_of_best']):.3f}",
            f"{max(column['of_host_2us']):.2f}",
            f"{max(column['of_host']):.2f}",
            str(sum(x > 1.25 for x in column["of_host_2us"])),
        ]))
    return lines + [""]


def processes(rows):
    lines = head([
        "whole processes, start to exit, ms", "host BLAS alone", "library preloaded", "ratio", "more, ms"
    ])
    for r in rows:
        ratio, more = float(r["ratio"]), float(r["more_ms"])
        lines.append(line(
            [PROGRAMS[r["program"]], r["host_ms"], r["gpublas_ms"], f"{ratio:.3f}", f"{more:+.2f}"]
        ))
    return lines + [""]


def programs(rows):
    """Whole NumPy programs, of the host's time; and what the start costs."""
    lines = head([
        "NumPy program, start to exit",
        "host BLAS alone, s",
        "first run ever",
        "third run",
        "every call waits for the GPU",
    ])
    for name in dict.fromkeys(r["program"] for r in rows if r["program"] != "start"):
        mine = {r["who"]: r for r in rows if r["program"] == name}
        ratios = [f"{float(mine[who]['ratio']):.2f}" for who in ("first", "third", "always")]
        lines.append(line([name, f"{float(mine['host']['s']):.2f}"] + ratios))
    lines.append("")
    for r in rows:
        if r["program"] == "start":
            lines.append(f"The start of the GPU: {r['who']} {1e3 * float(r['s']):.0f} ms.\n")
    return lines


def ranks(rows):
    """Programs of many ranks: GFLOP/s, seconds, and where the calls went."""
    titles = ["program", "ranks", "n", "block", "who", "GFLOP/s", "s", "of the best host's time"]
    lines = head(titles + ["calls on the GPU"])
    key = lambda r: (r["program"], r["n"], r["nb"])
    of_host = lambda r: r["contender"].startswith("host")
    hosts = {}
    for r in rows:
        if of_host(r) and r["seconds"]:
            hosts[key(r)] = min(r["seconds"], hosts.get(key(r), r["seconds"]), key=float)
    place = list(RANKS).index
    order = lambda r: (place(r["program"]), -int(r["n"]), int(r["nb"]), not of_host(r))
    for r in sorted(rows, key=order):
        host, mine = hosts.get(key(r)), r["seconds"]
        lines.append(line([
            RANKS[r["program"]],
            r["ranks"],
            r["n"],
            r["nb"] if r["nb"] != "0" else "-",
            {"host": "the host alone", "gpublas": "ours", "gpublas_1024": "ours, `PBLAS_BLOCK=1024`"}[
                r["contender"].removesuffix("_depth1")
            ] + (", DEPTH = 1" if r["contender"].endswith("_depth1") else ""),
            r["gflops"] or "-",
            mine or r["right"],
            f"{float(mine) / float(host):.2f}" if mine and host and float(host) else "-",
            f"{r['gpu_calls']} of {r['calls']}" if r["calls"] else "-",
        ]))
    return lines + [""]


def callers(rows):
    counts = sorted({int(r["callers"]) for r in rows if r["small"] == "0"})
    lines = head(["callers at once: of what one gets done"] + [str(x) for x in counts])
    case = lambda r: (named(r) + HOSTS[r["contender"]], r["n"])
    for who, n in dict.fromkeys(case(r) for r in rows if r["small"] == "0"):
        mine = {
            int(r["callers"]): float(r["of_one"])
            for r in rows
            if (case(r), r["small"]) == ((who, n), "0")
        }
        shares = [f"{mine[x]:.2f}" if x in mine else "-" for x in counts]
        lines.append(line([f"{who}, n = {n}"] + shares))
    lines.append("")
    for r in rows:
        if r["small"] != "0" and r["callers"] != "0":
            lines.append(
                f"One caller of {r['small']} beside {r['callers']} of {r['n']} ({case(r)[0]}): "
                f"{milliseconds(float(r['small_ms_median']))} ms, "
                f"p95 {milliseconds(float(r['small_ms_p95']))}, "
                f"{float(r['small_of_alone']):.1f} times what it takes alone.\n"
            )
    return lines


def overhead(rows):
    sizes = sorted({int(r["n"]) for r in rows if r["state"] in STATES})
    lines = head(["nanoseconds more than a direct call, n"] + [str(n) for n in sizes])
    for state, name in STATES.items():
        mine = {int(r["n"]): float(r["overhead_ns"]) for r in rows if r["state"] == state}
        if mine:
            lines.append(line([name] + [f"{mine[n]:.0f}" if n in mine else "-" for n in sizes]))
    plans = [
        f"{float(r['overhead_ns']):.0f} ({r['n']}, {r['libcuda']})" for r in rows if r["state"] == "plan_host"
    ]
    return lines + [
        "",
        "A plan alone, operands in host memory, ns (n, decision): " + ", ".join(plans) + ".\n",
    ]


def device(rows):
    how = ", by turns and by itself: the better of the two" if "cublas_alone_ms" in rows[0] else ""
    measured = (
        "Random data, one completed call of `cblas_sgemm` at a time, medians; cuBLAS alike, in the same "
        f"run{how}.\n"
    )
    return (
        [measured]
        + sizes_table([r for r in rows if r["suite"] == "squares"], "n, square, TFLOP/s")
        + sustained_table(rows)
        + sizes_table([r for r in rows if r["suite"] == "odd"], "n, odd ld, misaligned")
        + ratios_table(rows)
        + data_table(rows)
    )


def types(rows):
    """d, c and z on the device: squares, odd sizes, and each suite against cuBLAS."""
    lines = []
    for suite, title in (("squares", "n, square, TFLOP/s"), ("odd", "n, odd ld, misaligned")):
        mine = [r for r in rows if r["suite"] == suite]
        sizes = sorted({int(r["n"]) for r in mine})
        if not mine:
            continue
        lines += head([title] + [str(n) for n in sizes])
        for type_ in types_of(mine):
            of = [r for r in mine if r["type"] == type_]
            for name, column in ((f"`{type_}gemm`", "tflops"), (f"cuBLAS's {type_}", "cublas_tflops")):
                lines.append(line([name] + [rate(of, "fp32", n, column) for n in sizes]))
        lines.append("")
    title = "of cuBLAS's speed: geometric mean (least; how many are slower)"
    lines += head([title] + [f"`{type_}`" for type_ in types_of(rows)])
    for suite, name in SUITES.items():
        cells = []
        for type_ in types_of(rows):
            ratios = [
                float(r["ratio"])
                for r in rows
                if (r["type"], r["suite"]) == (type_, suite) and r["ratio"] != "nan"
            ]
            slower = f"{sum(x < 1 for x in ratios)} of {len(ratios)}"
            cells.append(f"{mean(ratios):.2f}x ({min(ratios):.2f}x; {slower})" if ratios else "-")
        if set(cells) != {"-"}:
            name = re.sub(", four( transposition)? pairs", "", name)
            name = name.replace("bases at 4 bytes", "bases at a real number's bytes")
            lines.append(line([name] + cells))
    return lines + [""]


def types_host(rows):
    """d, c and z in ordinary host memory, and ours where operands lie otherwise."""
    lines = []
    for type_ in types_of(rows):
        mine = [r for r in rows if r["type"] == type_]
        table = host_table(mine)
        table[0] = table[0].replace("ordinary", f"`{type_}gemm`, ordinary")
        lines += table
        table = lying_table(mine)
        if table:
            table[0] = table[0].replace("ours", f"`{type_}gemm`, ours")
        lines += table
    return lines


def types_accuracy(rows):
    """By type and contender. Imaginary parts far from the real ones in size: by the bound alone."""
    lines = head([
        "type, kernel",
        "points",
        "worst error, of the bound",
        "the same of hostile data and of parts of different size",
        "integers not exact",
        "rms of one FMA chain's, worst",
        "rms of cuBLAS's: geometric mean (worst)",
    ])
    for type_, who in dict.fromkeys((r["type"], r["who"]) for r in rows if r["who"] != "cublas"):
        mine = [r for r in rows if (r["type"], r["who"]) == (type_, who)]
        plain = [r for r in mine if r["parts_a"] == r["parts_b"] == "0" and r["verdict"] != "HOSTILE"]
        other = [r for r in mine if r not in plain]
        judged = [r for r in plain if r["verdict"] in ("BOUNDED", "FEW") and r["worst_rms_to_ffma"]]
        beside = [r for r in plain if r["verdict"] == "BOUNDED" and int(r["cublas_points"])]
        worst = lambda rows, column: f"{max(float(r[column]) for r in rows):.2f}" if rows else "-"
        to_cublas = f"{weighted(beside, 'rms_to_cublas', 'cublas_points'):.2f} " if beside else ""
        lines.append(line([
            f"{type_}, {who}",
            str(sum(int(r["points"]) for r in mine)),
            worst(plain, "of_bound"),
            worst(other, "of_bound"),
            str(sum(int(r["not_exact"]) for r in mine)),
            worst(judged, "worst_rms_to_ffma"),
            f"{to_cublas}({worst(beside, 'worst_rms_to_cublas')})" if beside else "-",
        ]))
    return lines + [""]


def ladder(rows):
    """Every kernel by itself, in the order of the kernel table."""
    sizes = [str(n) for n in (256, 512, 1024, 2048, 4096)]
    lines = head(["kernel, n x n x n, NN, TFLOP/s"] + sizes)
    for kernel in dict.fromkeys(r["kernel"] for r in rows if r["kernel"] != "cublas_events"):
        mine = {r["n"]: float(r["gflops"]) / 1e3 for r in rows if r["kernel"] == kernel}
        name = "cuBLAS, FP32" if kernel == "cublas" else kernel
        lines.append(line([name] + [f"{mine[n]:.1f}" if n in mine else "-" for n in sizes]))
    return lines + [""]


def accuracy(rows):
    """By kernel: the worst error over all data, as a share of k + 4 units, and errors against one chain of
    FMAs over the data that are judged by that."""
    lines = head([
        "kernel",
        "points",
        "worst error, of k + 4 units",
        "rms of one FMA chain's: geometric mean (worst)",
        "largest error of its: worst",
        "hostile data: rms (largest) of its, worst",
        "rms of cuBLAS's: geometric mean (worst)",
    ])
    for who in dict.fromkeys(r["who"] for r in rows if r["who"] not in ("ffma", "cublas")):
        mine = [r for r in rows if r["who"] == who]
        judged = [r for r in mine if r["verdict"] in ("BOUNDED", "FEW", "EXACT")]
        hostile = [r for r in mine if r["verdict"] == "HOSTILE"]
        beside = [r for r in mine if r["verdict"] == "BOUNDED" and int(r["cublas_points"])]
        worst = lambda rows, column: f"{max(float(r[column]) for r in rows):.2f}" if rows else "-"
        to_ffma = weighted(judged, "rms_to_ffma", "points")
        to_cublas = weighted(beside, "rms_to_cublas", "cublas_points")
        lines.append(line([
            who,
            str(sum(int(r["points"]) for r in mine)),
            worst(mine, "of_bound"),
            f"{to_ffma:.2f} ({worst(judged, 'worst_rms_to_ffma')})",
            worst(judged, "worst_max_to_ffma"),
            f"{worst(hostile, 'worst_rms_to_ffma')} ({worst(hostile, 'worst_max_to_ffma')})",
            f"{to_cublas:.2f} ({worst(beside, 'worst_rms_to_cublas')})",
        ]))
    return lines + [""]


def rank_k(rows):
    """SYRK, HERK: own operations, a triangle's."""
    lines = head(["routine", "n x k", "A, A^H", "ours, TFLOP/s", "cuBLAS", "of cuBLAS"])
    for r in rows:
        cells = [r["type"] + r["how"], f"{r['n']} x {r['k']}", r["ta"] + r["tb"]]
        lines.append(line(cells + [f"{float(r[x]):.3g}" for x in ("tflops", "cublas_tflops", "ratio")]))
    return lines + [""]


def solvers(rows):
    """A table a type: ours, and in parentheses the times by which it is faster."""
    lines = []
    for type_ in types_of(rows):
        mine = [r for r in rows if (r["type"], r["contender"]) == (type_, "ours")]
        sizes = sorted({int(r["n"]) for r in mine})
        against = " (times as fast as the host's 16 cores)" if any(r["ratio"] for r in mine) else ""
        lines += head([f"`{type_}`: ms{against}"] + [str(n) for n in sizes])
        for name in dict.fromkeys(r["routine"] for r in mine):
            of = {int(r["n"]): r for r in mine if r["routine"] == name}
            cells = [
                milliseconds(float(of[n]["ms_median"]))
                + (f" ({float(of[n]['ratio']):.2g})" if of[n]["ratio"] else "")
                if n in of
                else "-"
                for n in sizes
            ]
            lines.append(line([f"`{name}`"] + cells))
        for rival, called in (("cusolver", "cuSOLVER between copies"), ("nvblas", "NVBLAS preloaded")):
            theirs = [r for r in rows if (r["type"], r["contender"]) == (type_, rival)]
            for name in dict.fromkeys(r["routine"] for r in theirs):
                of = {int(r["n"]): float(r["ms_median"]) for r in theirs if r["routine"] == name}
                cells = [milliseconds(of[n]) if n in of else "-" for n in sizes]
                lines.append(line([f"`{name}`, {called}"] + cells))
        lines.append("")
    return lines


def batches(rows):
    """1000 triangles each: microseconds, one after the other in memory and scattered."""
    lines = head(["TRSM, side", "m x n", "ours, us", "by pointers", "cuBLAS", "of cuBLAS"])
    for r in rows:
        us = [f"{1000 * float(r[x]):.3g}" for x in ("ms_strided", "ms_scattered", "cublas_ms")]
        lines.append(line([f"{r['type']}, {r['side']}", f"{r['m']} x {r['n']}", *us, r["ratio"]]))
    return lines + [""]


def routines(rows):
    """The speed of cuBLAS's or cuSOLVER's routine, and in parentheses of our own GEMM's rate."""
    lines = []
    for type_ in types_of(rows):
        mine = [r for r in rows if r["type"] == type_]
        sizes = sorted({int(r["n"]) for r in mine})
        title = f"`{type_}`: times NVIDIA's (of our GEMM's rate)"
        lines += head([title] + [str(n) for n in sizes])
        for name in dict.fromkeys(r["routine"] for r in mine):
            of = {int(r["n"]): r for r in mine if r["routine"] == name}
            cells = [f"{float(of[n]['ratio']):.2f} ({float(of[n]['of_gemm']):.2f})" for n in sizes]
            lines.append(line([f"`{name}`"] + cells))
        lines.append("")
    return lines


def weighted(rows, column, count):
    """The geometric mean over points, of rows that each hold the geometric mean of some."""
    points = sum(int(r[count]) for r in rows)
    if not points:
        return math.nan
    return math.exp(sum(int(r[count]) * math.log(float(r[column])) for r in rows) / points)


def soak(rows):
    columns = "date commit seconds calls gpu_calls failed_calls wrong".split()
    lines = head(["soak: date", "commit", "seconds", "calls", "on the GPU", "failed there", "wrong"])
    return lines + [line([r[x] for x in columns]) for r in rows] + [""]


SECTIONS = {
    "device": ("Operands on the GPU", device),
    "types": ("Double and complex precision, operands on the GPU", types),
    "end-to-end": ("Operands in host memory", lambda rows: host_table(rows) + lying_table(rows)),
    "types_host": ("Double and complex precision, operands in host memory", types_host),
    "rank_k": ("SYRK and HERK, operands on the GPU", rank_k),
    "routines": ("Level 3, LU and Cholesky, operands on the GPU", routines),
    "solvers": ("LAPACK's solvers and Level 3, operands in host memory", solvers),
    "level3_host": ("Level 3 of large orders, operands in host memory", solvers),
    "batches": ("Batches of 1000 triangular systems, operands on the GPU", batches),
    "out-of-core": ("More operands than device memory", out_of_core),
    "types_outofcore": ("More operands than device memory, other types", out_of_core),
    "never-slower": ("The choice of host or GPU", never_slower),
    "types_never": ("The choice of host or GPU, other types", never_slower),
    "processes": ("Whole processes", processes),
    "programs": ("NumPy programs", programs),
    "ranks": ("MPI programs", ranks),
    "callers": ("Callers at once", callers),
    "types_callers": ("Callers at once, other types", callers),
    "overhead": ("What a call to the host pays", overhead),
    "ladder": ("Each kernel by itself", ladder),
    "accuracy": ("Accuracy", accuracy),
    "types_accuracy": ("Accuracy of d, c and z", types_accuracy),
    "soak": ("Short of device memory, by the minute", soak),
}


def everything(folder):
    text = []
    for kind, (title, section) in SECTIONS.items():
        path, rows, header = results(folder, kind)
        if rows:
            text += [
                f"## {title}\n",
                (f"{header}.\n" if header else "")
                + f"From [{kind}.csv]({os.path.relpath(path, os.path.dirname(folder))}).\n",
            ]
            text += section(rows)
    return text


SPEED = (1024, 4096, 8192)


def other_types(folder):
    """Rows of README.md's table for d, c and z: ours, and in parentheses the rival's."""
    hosts, rows = results(folder, "types_host")[1], results(folder, "types")[1]
    times, rates = {}, {}
    for r in hosts:
        if lies(r) == PLAIN:
            times[r["type"], r["contender"], int(r["n"])] = float(r["ms_median"])
    for type_ in types_of(rows):
        for n in SPEED:
            mine = [r for r in rows if (r["type"], r["suite"], r["n"]) == (type_, "squares", str(n))]
            for who, column in (("gpublas", "tflops"), ("cublas", "cublas_tflops")):
                if mine:
                    rates[type_, who, n] = mean([float(r[column]) for r in mine])

    def row(type_, of, ours, theirs, form):
        cells = []
        for n in SPEED:
            both = of.get((type_, ours, n)), of.get((type_, theirs, n))
            cells.append(f"{form(both[0])} ({form(both[1]) if both[1] else '-'})" if both[0] else "-")
        return line([f"`{type_}gemm`"] + cells)

    whole = lambda value: f"{value:.0f}"
    return (
        [line(["**other types in host memory: ms (OpenBLAS's)**"] + [""] * len(SPEED))]
        + [row(x, times, "gpublas_auto", "host", milliseconds) for x in types_of(hosts)]
        + [line(["**other types on the GPU: TFLOP/s (cuBLAS's)**"] + [""] * len(SPEED))]
        + [row(x, rates, "gpublas", "cublas", whole) for x in types_of(rows)]
    )


def when(header):
    """The date and commit of a CSV, and of rows of other runs in it, without the codes' checksums."""
    of_all, *others = [x.split(", code")[0] for x in header.split("; ")]
    return ", ".join(of_all.split(", ")[-2:]) + (f" ({'; '.join(others)})" if others else "")


def speed(folder):
    """The table of README.md, and where its figures come from."""

    def cells(name, values, form):
        return line([name] + [form(values[n]) if n in values else "-" for n in SPEED])

    def host(who):
        return {
            int(r["n"]): float(r["ms_median"]) for r in hosts if r["contender"] == who and lies(r) == PLAIN
        }

    def rates(mode, column):
        return {
            n: mean([float(r[column]) for r in squares if r["mode"] == mode and int(r["n"]) == n])
            for n in SPEED
        }

    _, hosts, said = results(folder, "end-to-end")
    _, rows, header = results(folder, "device")
    squares = [r for r in rows if r["suite"] == "squares"]
    whole = lambda value: f"{value:.0f}"
    lines = head(["n x n x n"] + [str(n) for n in SPEED])
    lines += [line(["**SGEMM, operands in host memory: ms a call**"] + [""] * len(SPEED))]
    cores = re.search(r"(\d+) CPU cores", said)[1]
    for who, name in {
        "gpublas_auto": "libgpublas",
        "nvblas_tuned": "NVBLAS, autopin, tile 4096",
        "host": f"OpenBLAS on {cores} cores",
    }.items():
        lines.append(cells(name, host(who), milliseconds))
    lines += [
        line(["**SGEMM, operands on the GPU: TFLOP/s**"] + [""] * len(SPEED)),
        cells("libgpublas, `fp32` (the default)", rates("fp32", "tflops"), whole),
        cells("libgpublas, `ieee` (FP32 FMA alone)", rates("ieee", "tflops"), whole),
        cells("cuBLAS, FP32", rates("ieee", "cublas_tflops"), whole),
    ]
    whole_programs = results(folder, "programs")[1]
    for who, name in {
        "first": "**NumPy, 1000 products of 1024 or 20 of 4096: of the host's time, first run ever**",
        "third": "from the third run on",
    }.items():
        ratios = {
            int(r["program"].split(" of ")[1]): float(r["ratio"])
            for r in whole_programs
            if r["who"] == who and r["program"] in ("1000 of 1024", "20 of 4096")
        }
        if ratios:
            lines.append(cells(name, ratios, "{:.2f}".format))
    lines += other_types(folder) + [""]
    gpu, driver, *_, cuda, _, _, _ = said.split(", ")
    types_said, types_host_said = (results(folder, kind)[2] for kind in ("types", "types_host"))
    return lines + [
        f"{gpu}, {driver}, {cuda}. Host memory: {when(said)} (s), {when(types_host_said)}; "
        f"on the GPU: {when(header)} (s), {when(types_said)}.\n"
    ]


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or len(sys.argv) == 3 and sys.argv[1] != "--speed":
        sys.exit(__doc__)
    print("\n".join((speed if len(sys.argv) == 3 else everything)(sys.argv[-1].rstrip("/"))), end="")
