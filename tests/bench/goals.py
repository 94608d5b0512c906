#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The goals of the issues on kernels, on host memory and on being right, one line each: met or missed,
wanted, reached. They are read from the newest CSV of each mode of the bench, of test_accuracy and of the soak
in a folder. What was not measured is left out. The exit status is always 0, because a missed goal is a
finding and no fault.

Usage: goals.py [--missed] tests/bench/results/nvidia-h200"""

import sys

sys.dont_write_bytecode = True

from table import PLAIN, lies, mean, results, type_of, types_of, weighted

END_TO_END = {512: 0.12, 1024: 0.35, 2048: 0.95, 4096: 3.6, 8192: 13.5, 16384: 65}  # ms, beta = 0
SQUARES = {512: 1.2, 1024: 1.8, 2048: 2.8, 4096: 3.5, 8192: 3.9, 16384: 4.0}  # times cuBLAS, fp32
TFLOPS = {1024: 70, 2048: 140, 4096: 180, 8192: 200, 16384: 210}  # fp32, each of the four pairs
SQUARES_IEEE = {512: 1, 1024: 1, 2048: 1, 4096: 1.02, 8192: 1.02, 16384: 1.02}
TF32 = {4096: 0.9, 8192: 0.9}
NEIGHBOURS = {1022: 1024, 2044: 2048, 3135: 4096, 4097: 4096, 6132: 8192, 8176: 8192}  # of the odd sizes
# Issue 18. On the device: times cuBLAS, or of c TFLOP/s; odd sizes; the geometric mean of all other shapes
TYPE_SQUARES = {
    "d": {512: 1.1, 1024: 1.15, 2048: 1.05, 4096: 1.0, 8192: 1.2, 16384: 1.2},
    "c": {512: 1.3},
    "z": {512: 1.1, 1024: 1.05, 2048: 1.02, 4096: 1.5, 8192: 1.5, 16384: 1.5},
}
TYPE_TFLOPS = {"c": {1024: 95, 2048: 160, 4096: 190, 8192: 205, 16384: 205}}
TYPE_ODD = {"d": 1.3, "c": 3.3, "z": 1.2}
TYPE_SHAPES = {"d": 1.4, "c": 1.6, "z": 1.3}
TYPE_HOST = {  # ms
    "d": {512: 0.18, 1024: 0.6, 2048: 1.9, 4096: 7, 8192: 29, 16384: 182},
    "c": {512: 0.18, 1024: 0.6, 2048: 1.9, 4096: 7, 8192: 29, 16384: 190},
    "z": {512: 0.3, 1024: 1.1, 2048: 3.9, 4096: 15, 8192: 92, 16384: 660},
}
# Issue 19, from host memory: ms at 4096, 8192 and 16384
LEVEL3_HOST = {
    "s": {"syrk": (1.8, 7.0, 29), "syr2k": (3.5, 14, 58), "symm": (2.9, 11.5, 60), "trmm": (2.9, 11.5, 39),
          "trsm": (3.1, 12, 42)},
    "d": {"syrk": (3.6, 15, 93), "syr2k": (7.0, 30, 185), "symm": (5.8, 30, 200), "trmm": (5.7, 21, 116),
          "trsm": (6.0, 23, 122), "gemm": (7.0, 29, 182)},
    "c": {"syrk": (3.6, 15, 95), "syr2k": (7.0, 30, 190), "symm": (5.8, 30, 208), "trmm": (5.7, 21, 120),
          "trsm": (6.0, 23, 126), "gemm": (7.0, 29, 190)},
    "z": {"syrk": (7.6, 46, 330), "syr2k": (15, 92, 660), "symm": (15, 98, 715), "trmm": (11, 58, 385),
          "trsm": (11, 62, 400), "gemm": (15, 92, 660)},
}
# Issue 20, from host memory: ms in double
SOLVERS = {
    "getrf": {2048: 6, 4096: 15, 8192: 40, 16384: 115},
    "potrf": {2048: 2.5, 4096: 5, 8192: 14, 16384: 46},
    "gesv": {2048: 10, 4096: 24, 8192: 75, 16384: 280},
    "gesv1": {2048: 7, 4096: 16, 8192: 42, 16384: 120},
}
RANK_K = {"s": 2, "d": 1, "c": 2, "z": 1}  # times cuBLAS from 2048 on; all tall ones
SOAKED = 1800  # seconds, over any number of runs
counts = {"met": 0, "MISSED": 0}
missed_only = False


def goal(name, wanted, reached, at_most):
    word = "met" if (reached <= wanted if at_most else reached >= wanted) else "MISSED"
    counts[word] += 1
    if word == "MISSED" or not missed_only:
        print(f"{word:6s}  {name:84s} {'<=' if at_most else '>='} {wanted:<10.5g} {reached:.5g}")


def most(name, wanted, reached):
    goal(name, wanted, reached, True)


def least(name, wanted, reached):
    goal(name, wanted, reached, False)


def where(rows, **wanted):
    return [r for r in rows if all(r[key] == str(value) for key, value in wanted.items())]


def times_cublas(rows, **wanted):
    return [float(r["ratio"]) for r in where(rows, **wanted) if r["ratio"] != "nan"]


def squares(rows, mode, wanted):
    for n, ratio in wanted.items():
        mine = times_cublas(rows, suite="squares", mode=mode, n=n)
        if mine:
            least(f"on the device, {mode}, {n}: times cuBLAS, least of four pairs", ratio, min(mine))


def absolute(rows):
    for n, wanted in TFLOPS.items():
        mine = [float(r["tflops"]) for r in where(rows, suite="squares", mode="fp32", n=n)]
        if mine:
            least(f"on the device, fp32, {n}: TFLOP/s, least of four pairs", wanted, min(mine))


def other_data(rows):
    """No kind of data that people have is to be slower than cuBLAS, whatever the guards find in it."""
    for kind in dict.fromkeys(r["data"] for r in where(rows, suite="data", mode="fp32")):
        mine = times_cublas(rows, suite="data", mode="fp32", data=kind)
        if mine:
            least(f"on the device, fp32, {kind}: times cuBLAS, least", 1, min(mine))


def ratios(rows, suite, mode, lowest, average):
    mine = times_cublas(rows, suite=suite, mode=mode)
    if mine:
        least(f"on the device, {mode}, {suite}: times cuBLAS, least", lowest, min(mine))
        if average:
            least(f"on the device, {mode}, {suite}: times cuBLAS, geometric mean", average, mean(mine))


def device(rows):
    absolute(rows)
    squares(rows, "fp32", SQUARES)
    squares(rows, "ieee", SQUARES_IEEE)
    squares(rows, "tf32", TF32)
    for n, near in NEIGHBOURS.items():
        odd = [float(r["tflops"]) for r in where(rows, suite="odd", mode="fp32", n=n)]
        even = [float(r["tflops"]) for r in where(rows, suite="squares", mode="fp32", n=near)]
        if odd and even:
            name = f"on the device, fp32, {n}, odd ld, misaligned"
            least(f"{name}: TFLOP/s (the table's at {near} less 5 %)", 0.95 * TFLOPS[near], min(odd))
            least(f"{name}: of what is reached at {near}", 0.95, mean(odd) / mean(even))
    ratios(rows, "odd", "ieee", 1.05, None)
    for suite in ("shapes", "thin"):
        ratios(rows, suite, "fp32", 1, 1.5)
        ratios(rows, suite, "ieee", 0.97, None)
    ratios(rows, "batched", "fp32", 1, 1.3)
    ratios(rows, "batched", "ieee", 1, None)
    ratios(rows, "beta", "fp32", 1, None)
    other_data(rows)


def types(rows):
    for type_ in TYPE_SQUARES:
        name = f"{type_} on the device"
        mine = where(rows, type=type_, mode="fp32")
        for n, wanted in TYPE_SQUARES[type_].items():
            of = times_cublas(mine, suite="squares", n=n)
            if of:
                least(f"{name}, {n}: times cuBLAS, geometric mean of the pairs", wanted, mean(of))
        for n, wanted in TYPE_TFLOPS.get(type_, {}).items():
            of = [float(r["tflops"]) for r in where(mine, suite="squares", n=n)]
            if of:
                least(f"{name}, {n}: TFLOP/s, geometric mean of the pairs", wanted, mean(of))
        for n in (3135, 4097):
            of = times_cublas(mine, suite="odd", n=n)
            if of:
                least(f"{name}, {n}, odd ld, misaligned: times cuBLAS, mean", TYPE_ODD[type_], mean(of))
        others = [x for suite in ("shapes", "thin", "batched") for x in times_cublas(mine, suite=suite)]
        if others:
            least(f"{name}, all other shapes and batches: times cuBLAS, least", 1, min(others))
            least(f"{name}, the same: times cuBLAS, geometric mean", TYPE_SHAPES[type_], mean(others))


def types_host(rows):
    for type_ in TYPE_HOST:
        for r in where(rows, type=type_, contender="gpublas_auto"):
            wanted = TYPE_HOST[type_].get(int(r["n"]))
            if wanted and lies(r) == PLAIN:
                most(f"{type_} from host memory, {r['n']}: ms", wanted, float(r["ms_median"]))
        lying_otherwise(where(rows, type=type_), f"{type_} from host memory", f"{type_} from pinned memory")


def types_accuracy(rows):
    for type_ in dict.fromkeys(r["type"] for r in rows):
        mine = where(rows, type=type_, who="library")
        name = f"{type_} accuracy, the library's choice"
        most(f"{name}, any data: error of the bound, worst", 1, max(float(r["of_bound"]) for r in mine))
        most(f"{name}: sums of integers not exact", 0, sum(int(r["not_exact"]) for r in mine))
        beside = [r for r in where(mine, verdict="BOUNDED", parts_a=0, parts_b=0) if int(r["cublas_points"])]
        if beside:
            average = weighted(beside, "rms_to_cublas", "cublas_points")
            most(f"{name}: rms of cuBLAS's, geometric mean", 1, average)
            worst = max(float(r["worst_rms_to_cublas"]) for r in beside)
            most(f"{name}: rms of cuBLAS's, worst", 1.2, worst)


def regret(rows):
    """What was chosen against the best of the kernels that might have been, as it was timed when forced:
    reduce.py's two rows a shape."""

    def us(r):
        return float(r["us_median" if int(r["calls"]) > 1 else "us_least"])

    regrets = sorted(
        max(1, us(chosen) / us(best))
        for best, chosen in zip(where(rows, mode="forced"), where(rows, mode="fp32"))
    )
    if regrets:
        name = f"choice of kernel, {len(regrets)} random shapes: regret, per cent"
        most(f"{name}, geometric mean", 3, 100 * mean(regrets) - 100)
        most(f"{name}, 95th percentile", 10, 100 * regrets[len(regrets) * 95 // 100] - 100)


def accuracy(rows):
    """The library's own choices, as test_accuracy judges them."""
    mine = where(rows, who="library")
    judged = [r for r in mine if r["verdict"] not in ("LIMIT", "ROUNDING", "HOSTILE")]
    if not judged:
        return
    name = "accuracy, the library's choice"
    worst = lambda rows, column: max(float(r[column]) for r in rows)
    inexact = sum(int(r["not_exact"]) for r in where(mine, verdict="EXACT"))
    most(f"{name}, any data: error of the bound of k + 4 units, worst", 1, worst(mine, "of_bound"))
    most(f"{name}: rms of one chain of FMAs', worst", 1.02, worst(judged, "worst_rms_to_ffma"))
    most(f"{name}: largest error of one chain of FMAs', worst", 1.3, worst(judged, "worst_max_to_ffma"))
    most(f"{name}: entries not exact where FP32 is", 0, inexact)
    beside = [r for r in where(mine, verdict="BOUNDED") if int(r["cublas_points"])]
    if beside:
        rms = weighted(beside, "rms_to_cublas", "cublas_points")
        most(f"{name}: rms of cuBLAS's, geometric mean", 0.8, rms)
        most(f"{name}: rms of cuBLAS's, worst", 1.2, worst(beside, "worst_rms_to_cublas"))
        most(f"{name}: largest error of cuBLAS's, worst", 1.5, worst(beside, "worst_max_to_cublas"))


def rank_k(rows):
    for type_, wanted in RANK_K.items():
        mine = where(rows, type=type_)
        square = times_cublas([r for r in mine if r["n"] == r["k"] and int(r["n"]) >= 2048])
        tall = times_cublas([r for r in mine if int(r["k"]) > 10 * int(r["n"])])
        if square:
            least(f"{type_}{mine[0]['how']} on the device: times cuBLAS, least", wanted, min(square))
        if tall:
            least(f"{type_}{mine[0]['how']}, tall: times cuBLAS, least", 1, min(tall))


def routines(rows):
    """Of NVIDIA's: 1.0 in d and z, 2.0 in s and c, from 2048 on; TRSM 2.0; LU and Cholesky 1.0 from 4096
    on."""
    for name in dict.fromkeys(r["routine"] for r in rows):
        for type_ in "sdcz":
            factors = name in ("potrf", "getrf")
            from_n = 4096 if factors else 2048
            mine = [r for r in where(rows, type=type_, routine=name) if int(r["n"]) >= from_n]
            wanted = 1.0 if factors or (type_ in "dz" and name != "trsm") else 2.0
            if mine and name != "gemm":
                worst_of = min(mine, key=lambda r: float(r["ratio"]))
                text = f"{type_}{name} on the device: times NVIDIA's, least, at {worst_of['n']}"
                least(text, wanted, float(worst_of["ratio"]))


def solvers(rows):
    for name, wanted in SOLVERS.items():
        for n, ms in wanted.items():
            for r in where(rows, contender="ours", type="d", routine=name, n=n):
                most(f"d{name} from host memory, {n}: ms", ms, float(r["ms_median"]))
    for name in ("syrk", "syr2k", "symm", "trmm", "trsm"):
        for r in where(rows, contender="ours", type="d", routine=name, n=4096):
            if r["ratio"]:
                least(f"d{name} from host memory, 4096: times 16 cores", 15, float(r["ratio"]))
    for first, then in (("getrf", "gecon"), ("potrf", "pocon")):
        for name, wanted in ((then, 0.3), (f"{first}_{then}", 1.3)):
            for r in where(rows, contender="ours", type="d", routine=name):
                for factored in where(rows, contender="ours", type="d", routine=first, n=int(r["n"])):
                    share = float(r["ms_median"]) / float(factored["ms_median"])
                    most(f"d{name} from host memory, {r['n']}: of d{first}", wanted, share)
    slower = [float(r["ratio"]) for r in rows if r["contender"] == "ours" and r["ratio"]]
    if slower:
        least("solvers and Level 3 from host memory: times the host, least", 0.95, min(slower))


def level3_host(rows):
    for type_, of in LEVEL3_HOST.items():
        for name, wanted in of.items():
            for n, ms in zip((4096, 8192, 16384), wanted):
                for r in where(rows, contender="ours", type=type_, routine=name, n=n):
                    most(f"{type_}{name} from host memory, {n}: ms", ms, float(r["ms_median"]))
                    for rival in where(rows, contender="nvblas", type=type_, routine=name, n=n):
                        times = float(rival["ms_median"]) / float(r["ms_median"])
                        enough = 3 if n < 16384 else 1.5
                        least(f"{type_}{name} from host memory, {n}: times NVBLAS", enough, times)


def batches(rows):
    """Of TRSM: the orders of the goals alone, as many columns as rows."""
    ratios = [float(r["ratio"]) for r in rows if r["m"] == r["n"] and int(r["m"]) in (16, 64, 128)]
    if ratios:
        least("batches of 1000 TRSM of 16, 64, 128: times cuBLAS, geometric mean", 1.5, mean(ratios))
        least("batches of 1000 TRSM of 16, 64, 128: times cuBLAS, least", 1.0, min(ratios))


def soak(rows):
    """A line a run, of any session; one wrong answer spoils them all."""
    if rows:
        calls, commits = sum(int(r["calls"]) for r in rows), len({r["commit"] for r in rows})
        runs = f"soak, {len(rows)} runs, {calls} calls, {commits} commits"
        least(f"{runs}: seconds", SOAKED, sum(int(r["seconds"]) for r in rows))
        most(f"{runs}: wrong", 0, sum(int(r["wrong"]) for r in rows))


def lying(rows, *how):
    return {int(r["n"]): r for r in where(rows, contender="gpublas_auto") if lies(r) == how}


def lying_otherwise(rows, host, pinned):
    """Sub-matrices beside packed operands, pinned ones beside the ideal."""
    plain = lying(rows, *PLAIN)
    for n, r in lying(rows, "fresh", "column", "inside", "0", "0").items():
        if n in plain:
            times = float(r["ms_median"]) / float(plain[n]["ms_median"])
            most(f"{host}, {n}, ld = 2 rows: times the packed case", 1.15, times)
    for n, r in lying(rows, "pinned", "column", "packed", "0", "0").items():
        if n >= 4096:
            least(f"{pinned}, {n}: of the ideal", 0.9, float(r["of_ideal"]))


def end_to_end(rows):
    if not rows or "of_ideal" not in rows[0]:
        return
    plain = lying(rows, *PLAIN)
    for order in ("column", "row"):
        for beta in ("0", "1"):
            for n, r in lying(rows, "fresh", order, "packed", beta, "0").items():
                if n in END_TO_END and n in plain:  # beta = 1: as much more as the ideal is more
                    wanted = END_TO_END[n] * float(r["ideal_ms"]) / float(plain[n]["ideal_ms"])
                    most(f"host memory, {n}, {order}-major, beta {beta}: ms", wanted, float(r["ms_median"]))
    lying_otherwise(rows, "host memory", "pinned")
    for n, r in lying(rows, "fresh", "column", "packed", "0", "4").items():
        if n >= 2048:
            least(f"on 4 cores, {n}: of what 4 threads can stage", 0.8, float(r["of_ideal"]))


def of_type(type_):
    """How a goal's name begins that all types have."""
    return "" if type_ == "s" else f"{type_}: "


def out_of_core(rows):
    for r in where(rows, contender="gpublas_always"):
        shape = f"{of_type(type_of(r))}{r['m']} x {r['n']} x {r['k']}"
        name = f"{shape} with {r['device_memory']} of device memory"
        most(f"{name}: times the roofline", 1.35, 1 / float(r["of_ideal"]))


def never_slower(rows):
    setting = lambda r: (type_of(r), r["threads"], r["cores"])
    for type_, threads, cores in dict.fromkeys(map(setting, rows)):
        mine = [r for r in rows if setting(r) == (type_, threads, cores)]
        name = f"{of_type(type_)}never slower, {threads} host threads"
        name += f", {cores} cores" if cores != "0" else ""
        average = mean([float(r["of_best"]) for r in mine])
        most(f"{name}: of min(host, GPU) + 2 us, geometric mean", 1.05, average)
        lasting = [float(r["of_best"]) for r in mine if min(float(r["host_us"]), float(r["gpu_us"])) > 50]
        if lasting:
            most(f"{name}: the same of those over 50 us", 1.05, mean(lasting))
        most(f"{name}: the worst shape, of the host + 2 us", 1.25, max(float(r["of_host_2us"]) for r in mine))


def processes(rows):
    for r in rows:
        name = f"whole process {r['program']}: ms more than the host BLAS alone"
        most(name, 20 + 0.05 * float(r["host_ms"]), float(r["more_ms"]))


def programs(rows):
    for r in rows:
        if not r["goal"]:
            continue
        start = r["program"] == "start"
        what = "the start of the GPU, s" if start else "NumPy program, of the host's time"
        most(f"{what}: {r['program']}, {r['who']}", float(r["goal"]), float(r["ratio"] or r["s"]))


def callers(rows):
    for r in rows:
        if r["contender"] == "gpublas_always" and r["small"] == "0" and r["callers"] != "1":
            name = f"{of_type(type_of(r))}{r['callers']} callers of {r['n']}"
            least(f"{name}: of what one gets done", 0.9, float(r["of_one"]))
    for type_ in types_of(rows):
        pinned = max(float(r["pinned_mib"]) for r in rows if type_of(r) == type_)
        most(f"{of_type(type_)}page-locked memory, whatever calls at once: MiB", 128, pinned)


def overhead(rows):
    goals = {"never": 100, "possible": 100, "started": 100, "report": 1000, "trace": 2000}
    for r in rows:
        if r["state"] in goals:
            name = f"a call of {r['n']}^3 to the host, {r['state']}: ns more than directly"
            most(name, goals[r["state"]], float(r["overhead_ns"]))


def main(folder):
    for kind, judge in (
        ("device", device),
        ("types", types),
        ("end-to-end", end_to_end),
        ("types_host", types_host),
        ("rank_k", rank_k),
        ("routines", routines),
        ("solvers", solvers),
        ("level3_host", level3_host),
        ("batches", batches),
        ("out-of-core", out_of_core),
        ("types_outofcore", out_of_core),
        ("never-slower", never_slower),
        ("types_never", never_slower),
        ("processes", processes),
        ("programs", programs),
        ("callers", callers),
        ("types_callers", callers),
        ("overhead", overhead),
        ("regret", regret),
        ("accuracy", accuracy),
        ("types_accuracy", types_accuracy),
        ("soak", soak),
    ):
        judge(results(folder, kind)[1])
    print(f"{counts['met']} goals met, {counts['MISSED']} missed")


if __name__ == "__main__":
    missed_only = sys.argv[1:2] == ["--missed"]
    if len(sys.argv) != 2 + missed_only:
        sys.exit(__doc__)
    main(sys.argv[-1])
