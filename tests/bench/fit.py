#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fits the cost model of dispatch/ to the CSV of `bench --fit`, and says how good its choices are. Each type
of elements in the CSV is fitted by itself; the rows of others stay as they are.

Usage: fit.py fit.csv...            the regret of the model as it is: its choices against the best measured
       fit.py --write fit.csv...    fits, and writes dispatch/tuned.def: that GPU's generation as measured,
                                    others that nobody measured by analogy
       fit.py --again ROUNDS fit.csv...  fits the rows of d, c and z that there are, from where they are; what
                                    would be chosen wrongly weighs three times as much in the next round
       fit.py --only NAME,... fit.csv...  fits these kernels alone (d:NAME of another type than s),
                                    and writes their rows beside the others of that GPU's generation
       --worst                      lists the worst choices too
Needs only a C compiler. The model itself is dispatch/cost.c, compiled and loaded. Here are only a search and
averages.
"""

import csv
import ctypes
import math
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TUNED = os.path.join(ROOT, "dispatch", "tuned.def")
SOURCES = ["tests/bench/fit/model.c"] + ["dispatch/" + name for name in (
    "cost.c", "generation.c", "kernel_pick.c", "kernel_table.c", "learn.c", "packing.c", "streamk.c")]
TYPES = "sdcz"
STRIDED, SLICED, RESIDUES = 0, 3, 5
FFMA, TF32, FP16X3 = 0, 1, 2
MODES = {"fp32": 0, "ieee": 1, "tf32": 2}
ALLOWED = {"fp32": (FFMA, FP16X3), "ieee": (FFMA,), "tf32": (FFMA, TF32, FP16X3)}
LEAST_SLICED_K = 64
# a kernel is worth a row if it makes calls this much faster, on average
ENOUGH = 0.0004


class Row(ctypes.Structure):
    _fields_ = [(x, ctypes.c_int64) for x in "m n k lda ldb ldc ta tb shift batch kernel splits".split()] + [
        ("seconds", ctypes.c_double), ("weight", ctypes.c_double)]


class Constants(ctypes.Structure):
    NAMES = "blocks share alone tile_us fixed_us join_us load store ta tb misaligned misaligned_c".split()
    _fields_ = [(x, ctypes.c_double) for x in NAMES]


class Gpu(ctypes.Structure):
    _fields_ = [(x, ctypes.c_double)
                for x in "arch sms fma_per_sm ghz memory_gbs launch_us pass_ call_us".split()]


# Where a constant's search begins, and its bounds.
START = {
    "share": (0.6, 0.01, 16),
    "alone": (0.4, 0.005, 16),
    "tile_us": (2, 0.05, 60),
    "fixed_us": (0.5, 0.01, 60),
    "join_us": (3, 0.05, 60),
    "load": (0.7, 0.02, 1.2),
    "store": (0.7, 0.02, 1.2),
    "ta": (1, 0.7, 8),
    "tb": (1, 0.7, 8),
    "misaligned": (1, 1, 6),
    "misaligned_c": (1, 1, 6),
}
GLOBAL = {"memory_gbs": (4000, 100, 20000), "launch_us": (3, 0.5, 10), "pass_": (0.6, 0.05, 1.2)}


def model():
    path = os.path.join(tempfile.mkdtemp(prefix="gpb-fit-"), "model.so")
    compiler = [os.environ.get("CC", "cc"), "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-shared", "-fPIC"]
    sources = [os.path.join(ROOT, x) for x in SOURCES]
    subprocess.run(compiler + ["-I" + ROOT, "-o", path] + sources + ["-lm"], check=True)
    library = ctypes.CDLL(path)
    library.fit_predict.restype = library.fit_loss.restype = ctypes.c_double
    library.fit_kernel.restype = ctypes.c_char_p
    names = []                                                     # (type, name)
    while library.fit_kernel(len(names)):
        names.append((chr(library.fit_type(len(names))), library.fit_kernel(len(names)).decode()))
    return library, names


def slices(library, kernel):
    """Chosen from LEAST_SLICED_K on: below, all of C would be the fallback's, or FMAs'."""
    return library.fit_form(kernel) == SLICED or library.fit_math(kernel) == FP16X3


def read(library, paths, names):
    """{shape: {(kernel, splits): row}}, the shapes' times of what was chosen and of cuBLAS, the GPU."""
    shapes, others, gpu = {}, {}, None
    for path in paths:
        with open(path, newline="") as file:
            lines = file.read().splitlines()
        for line in lines:
            found = re.match(r"# (.*), arch (\d+), (\d+) SMs", line)
            if found:
                gpu = (found[1], int(found[2]), int(found[3]))
        for r in csv.DictReader(x for x in lines if not x.startswith("#")):
            type_ = r.get("type") or "s"
            shape = (path, type_) + tuple(
                r.get(x, "1") for x in "m n k ta tb lda ldb ldc shift batch".split())
            us = float(r["us_median"]) if int(r["calls"]) > 1 else float(r["us_least"])
            if r["mode"] != "forced":
                others.setdefault(shape, {})[r["mode"]] = (r["kernel"], us * 1e-6)
            elif (type_, r["kernel"]) in names:
                kernel = names.index((type_, r["kernel"]))
                if slices(library, kernel) and int(r["k"]) < LEAST_SLICED_K:
                    continue
                row = Row(
                    *(int(r[x]) for x in "m n k lda ldb ldc".split()),
                    ord(r["ta"]),
                    ord(r["tb"]),
                    int(r["shift"]),
                    int(r.get("batch", 1)),
                    kernel,
                    int(r["splits"]),
                    us * 1e-6,
                    1,
                )
                shapes.setdefault(shape, {})[kernel, int(r["splits"])] = row
    for rows in shapes.values():
        best = min(r.seconds for r in rows.values())
        for r in rows.values():
            r.weight = (best / r.seconds) ** 1.5
    return shapes, others, gpu


def search(value, start, loss, rounds=60):
    """Coordinate search by factors on the fields of a structure."""
    best, step = loss(), {x: 0.3 for x in start}
    for _ in range(rounds):
        for x, (_, least, most) in start.items():
            old = getattr(value, x)
            for factor in (1 + step[x], 1 / (1 + step[x])):
                setattr(value, x, min(most, max(least, old * factor)))
                now = loss()
                if now < best:
                    best, step[x] = now, min(0.5, step[x] * 1.3)
                    break
                setattr(value, x, old)
            else:
                step[x] = max(1e-4, step[x] / 2)
    return best


def fit_kernel(library, rows, gpu, form, before):
    count, array, best = len(rows), (Row * len(rows))(*rows), None
    for blocks in (1,) if form == SLICED else (before.blocks,) if before else (1, 2, 3, 4, 6, 8):
        c = Constants(blocks, *(getattr(before, x) if before else START[x][0] for x in Constants.NAMES[1:]))
        if not before:
            c.alone = 1.5 * c.share / (blocks + 0.5)
        loss = search(c, START, lambda: library.fit_loss(array, count, ctypes.byref(c), ctypes.byref(gpu)))
        if best is None or loss < 0.99 * best[0]:
            best = (loss, c)
    return best


def rows_of(shapes):
    rows = {}
    for trials in shapes.values():
        for (kernel, _), row in trials.items():
            rows.setdefault(kernel, []).append(row)
    return rows


def call_us(rows):
    return 0.85e6 * min(r.seconds for x in rows.values() for r in x)


def fit(library, shapes, found):
    """The kernels of single precision and the constants of the GPU, by turns."""
    name, arch, sms = found
    text = open(TUNED).read()
    fma_per_sm, ghz = gpu_row(text, arch)[:2]
    rows = rows_of(shapes)
    gpu = Gpu(arch, sms, int(fma_per_sm), float(ghz), *(GLOBAL[x][0] for x in GLOBAL), call_us(rows))
    kernels = {}
    for turn in range(3):
        for kernel, mine in rows.items():
            kernels[kernel] = fit_kernel(
                library, mine, gpu, library.fit_form(kernel), kernels[kernel][1] if turn else None
            )
        arrays = [((Row * len(rows[k]))(*rows[k]), len(rows[k]), kernels[k][1]) for k in rows]
        total = search(
            gpu,
            GLOBAL,
            lambda: sum(library.fit_loss(a, n, ctypes.byref(c), ctypes.byref(gpu)) for a, n, c in arrays),
            12,
        )
        print(f"turn {turn}: loss {total:.2f}", file=sys.stderr)
    return gpu, kernels


def fit_beside(library, shapes, found):
    """The kernels of another type, with the constants of the GPU as tuned.def has them."""
    rows = rows_of(shapes)
    gpu = gpu_of(open(TUNED).read(), found, rows)
    return {k: fit_kernel(library, mine, gpu, library.fit_form(k), None) for k, mine in rows.items()}


def gpu_of(text, found, rows):
    constants = gpu_row(text, found[1])[:5]
    return Gpu(found[1], found[2], *map(float, constants), call_us(rows))


def gpu_row(text, arch):
    """The columns of a row GPU after the first."""
    return [x.strip() for x in re.search(r"^GPU\( *%d, *([^)]*)\)" % arch, text, re.M)[1].split(",")]


def worth(library, shapes, factors, arch):
    """As few kernels as do nearly as well as all: the one that gains most over those already there, until
    none gains enough. For every mode, and for calls that have no memory beside the operands. factors: how
    much faster kernels of a kind are than measured; none: not there."""
    cases = []
    for trials in shapes.values():
        for maths, forms in [(m, range(5)) for m in ALLOWED.values()] + [((FFMA,), (STRIDED,))]:
            times = {}
            for (k, splits), r in trials.items():
                factor = factors.get(library.fit_math(k), 0) if library.fit_runs(k, arch) else 0
                if (
                    factor
                    and library.fit_math(k) in maths
                    and library.fit_form(k) in forms
                    and (splits == 1 or len(forms) > 1)
                ):
                    times[k] = min(r.seconds / factor, times.get(k, math.inf))
            if times:
                cases.append(times)
    kept, now = set(), [3.0] * len(cases)                          # log of how far from the best
    logs = [{k: math.log(t / min(times.values())) for k, t in times.items()} for times in cases]
    while True:
        gains = {
            k: sum(max(0, old - each[k]) for old, each in zip(now, logs) if k in each)
            for k in set().union(*logs) - kept
        }
        best = max(gains, key=gains.get, default=None)
        if best is None or gains[best] < ENOUGH * len(cases):
            return kept
        kept.add(best)
        now = [min(old, each.get(best, old)) for old, each in zip(now, logs)]


# Generations that nobody has measured: how kernels of a kind there compare with the measured ones, as shares
# of the FMA peak. By the vendor's rates, TF32 and FP16 tensor cores do 8 and 16 times the FMA peak on 80, 1
# and 2 times on GeForce cards of 86, 89 and 120, and 7 and 15 times or more on 90 and 100. FP16X3 is the
# default where that is a gain beyond doubt: on 80.
GEFORCE = {FFMA: 1, TF32: 0.45}
PREDICTED = {
    75: {FFMA: 1},
    80: {FFMA: 1, TF32: 2, FP16X3: 1.3},
    86: GEFORCE,
    89: GEFORCE,
    100: {FFMA: 1, TF32: 1},
    120: GEFORCE,
}


def tuned_line(name, arch, c, note=""):
    return (
        f"TUNED( {name[0]}, {name[1] + ',':15} {arch}, {int(c.blocks)}, {c.share:7.4f}, {c.alone:7.4f}, "
        f"{c.tile_us:5.2f}, {c.fixed_us:5.2f}, "
        f"{c.join_us:6.2f}, {c.load:.3f}, {c.store:.3f}, {c.ta:.3f}, {c.tb:.3f}, "
        f"{c.misaligned:.3f}, {c.misaligned_c:.3f} ){note}"
    )


def name_of(line):
    return re.match(r"TUNED\( *(\w), *(\w+)", line).groups()


def order(line):
    """Type by type, the fastest first."""
    return TYPES.index(name_of(line)[0]), -float(line.split(",")[4])


def section(text, arch):
    """Where a generation's section begins and ends: from its heading to the end of the last line."""
    end = f"/* ---- end of {arch} ---- */\n"
    begin = text.index(f"/* ---- {arch}, ")
    return begin, text.index(end, begin) + len(end)


def replaced(text, arch, types, lines, word=None, gpu=None):
    """The text with those types' rows of a generation replaced by these lines. word: what its heading says
    from now on; gpu: its row GPU."""
    begin, end = section(text, arch)
    heading, *old, last = text[begin:end].splitlines()
    kept = [x for x in old if x.startswith("TUNED(") and name_of(x)[0] not in types]
    other = [x for x in old if not x.startswith("TUNED(")]
    if gpu:
        other = [gpu if x.startswith("GPU(") else x for x in other]
    if word:
        heading = f"/* ---- {arch}, {word} ---- */"
    body = [heading] + other + sorted(kept + lines, key=order) + [last]
    return text[:begin] + "\n".join(body) + "\n" + text[end:]


def measured_lines(library, names, kernels, shapes, arch):
    rows = rows_of(shapes)
    for k in worth(library, shapes, {math_: 1 for math_ in range(4)}, arch):
        off = math.sqrt(kernels[k][0] / sum(r.weight for r in rows[k]))
        yield tuned_line(names[k], arch, kernels[k][1], f"  /* off by {100 * off:.0f} % */")


def write_single(library, names, shapes, found, said):
    """All of a generation's constants for single precision, and what follows from them for others."""
    gpu, kernels = fit(library, shapes, found)
    arch, text = found[1], open(TUNED).read()
    columns = gpu_row(text, arch)
    columns[2:5] = f"{gpu.memory_gbs:.0f}", f"{gpu.launch_us:.2f}", f"{gpu.pass_:.3f}"
    row = f"GPU( {arch}, {', '.join(columns)} )"
    lines = list(measured_lines(library, names, kernels, shapes, arch))
    text = replaced(text, arch, "s", lines, said, row)
    for other, factors in PREDICTED.items():
        if re.search(rf"/\* ---- {other}, measured", text):
            continue
        lines = []
        for k in worth(library, shapes, factors, other):
            factor, c = factors[library.fit_math(k)], kernels[k][1]
            like = Constants(
                c.blocks, c.share * factor, c.alone * factor, *(getattr(c, x) for x in Constants.NAMES[3:])
            )
            lines.append(tuned_line(names[k], other, like))
        text = replaced(text, other, "s", lines, f"predicted from {arch}, not measured")
    return text


def write(library, names, shapes, found, paths):
    sources = ", ".join(os.path.basename(p) for p in paths)
    said = f"measured on one {found[0]}; written by tests/bench/fit.py from {sources}"
    for type_ in TYPES:
        mine = {shape: trials for shape, trials in shapes.items() if shape[1] == type_}
        if not mine:
            continue
        if type_ == "s":
            text = write_single(library, names, mine, found, said)
        else:
            kernels = fit_beside(library, mine, found)
            lines = list(measured_lines(library, names, kernels, mine, found[1]))
            text = replaced(open(TUNED).read(), found[1], type_, lines)
        with open(TUNED, "w") as file:
            file.write(text)


def write_only(library, names, shapes, found, wanted):
    arch, text = found[1], open(TUNED).read()
    begin, end = section(text, arch)
    lines = {name_of(x): x for x in text[begin:end].splitlines() if x.startswith("TUNED(")}
    rows = rows_of(shapes)
    gpu = gpu_of(text, found, rows)
    for name in wanted:
        kernel = names.index(name)
        loss, c = fit_kernel(library, rows[kernel], gpu, library.fit_form(kernel), None)
        off = math.sqrt(loss / sum(r.weight for r in rows[kernel]))
        lines[name] = tuned_line(name, arch, c, f"  /* off by {100 * off:.0f} %; by itself, later */")
    with open(TUNED, "w") as file:
        file.write(replaced(text, arch, TYPES, list(lines.values())))


def constants_of(line):
    return Constants(*map(float, re.search(r"TUNED\((.*?)\)", line)[1].split(",")[3:]))


def sayable(library, names, kernel, rows):
    """Those that the model can say something of. A block of a kernel for short k passes over rows of its tall
    tile that are not there, which the model does not know. Of residues there are few points at random."""
    if library.fit_form(kernel) == RESIDUES:
        return []
    return [r for r in rows if r.m >= 256] if names[kernel][1].startswith("short") else rows


WRONG, HEAVIER, HEAVIEST = 1.03, 3, 60                             # slower than the best by so much; weights


def write_again(library, names, shapes, found, rounds):
    arch, text = found[1], open(TUNED).read()
    begin, end = section(text, arch)
    lines = {name_of(x): x for x in text[begin:end].splitlines() if x.startswith("TUNED(")}
    for type_ in TYPES[1:]:
        mine = {shape: trials for shape, trials in shapes.items() if shape[1] == type_}
        rows = {k: x for k, x in rows_of(mine).items() if names[k] in lines}
        gpu = gpu_of(text, found, rows) if rows else None
        now = {k: constants_of(lines[names[k]]) for k in rows}
        for _ in range(rounds):
            for k in rows:
                said = sayable(library, names, k, rows[k])
                if said:
                    now[k] = fit_kernel(library, said, gpu, library.fit_form(k), now[k])[1]
            for trials in mine.values():
                foreseen = {
                    x: library.fit_predict(ctypes.byref(r), ctypes.byref(now[x[0]]), ctypes.byref(gpu))
                    for x, r in trials.items()
                    if x[0] in now
                }
                if not foreseen:
                    continue
                chosen = trials[min(foreseen, key=foreseen.get)]
                best = min((trials[x] for x in foreseen), key=lambda r: r.seconds)
                if chosen.seconds > WRONG * best.seconds:
                    chosen.weight = min(HEAVIEST, HEAVIER * max(chosen.weight, 0.3))
                    best.weight = min(HEAVIEST, 2 * best.weight)
        for k, c in now.items():
            if library.fit_form(k) != RESIDUES:
                lines[names[k]] = tuned_line(names[k], arch, c, "  /* again, by random shapes */")
    with open(TUNED, "w") as file:
        file.write(replaced(text, arch, TYPES, list(lines.values())))


def percent(regrets, share):
    return 100 * (sorted(regrets)[min(len(regrets) - 1, int(share * len(regrets)))] - 1)


def regret(library, names, shapes, others, found, verbose):
    """Of one type's shapes; but for single precision only in modes that allow other kernels than the last."""
    gpu = Gpu(found[1], found[2], *[0] * 5, 10)
    type_, maths, before = next(iter(shapes))[1], {library.fit_math(k) for k in rows_of(shapes)}, None
    for mode, math_ in MODES.items():
        if type_ != "s" and maths & set(ALLOWED[mode]) == before:
            continue
        before = maths & set(ALLOWED[mode])
        regrets, worst, against, unmeasured = [], [], [], 0
        for shape, trials in shapes.items():
            one, splits = next(iter(trials.values())), ctypes.c_int()
            fits = {
                x: r.seconds
                for x, r in trials.items()
                if library.fit_math(x[0]) in ALLOWED[mode]
                and (not slices(library, x[0]) or one.k >= LEAST_SLICED_K)
            }
            if not fits:
                continue
            kernel = library.fit_choose(ctypes.byref(one), ctypes.byref(gpu), math_, ctypes.byref(splits))
            chosen = kernel, splits.value
            best = min(fits, key=fits.get)
            if chosen not in fits:
                unmeasured += 1
                near = [s for k, s in fits if k == chosen[0]]
                if not near:
                    continue
                chosen = chosen[0], min(near, key=lambda s: abs(s - splits.value))
            regrets.append(fits[chosen] / fits[best])
            if "cublas" in others.get(shape, {}):
                against.append(others[shape]["cublas"][1] / fits[chosen])
            worst.append((regrets[-1], shape[1:], chosen, best, fits[best]))
        if not regrets:
            continue
        mean = lambda values: math.exp(sum(map(math.log, values)) / len(values))
        said = (
            f"{type_ + ' ' if type_ != 's' else ''}{mode}: {len(regrets)} shapes, "
            f"regret: geometric mean {100 * mean(regrets) - 100:.2f} %, "
            f"median {percent(regrets, 0.5):.1f} %, 95th percentile {percent(regrets, 0.95):.1f} %, "
            f"worst {percent(regrets, 1):.1f} %"
        )
        if against:
            said += f"; {mean(against):.2f}x cuBLAS, below it on {sum(x < 1 for x in against)}"
        if unmeasured:
            said += f"; {unmeasured} choices not among the trials"
        print(said)
        for times, shape, chosen, best, seconds in sorted(worst, reverse=True)[:verbose]:
            print(
                f"    {100 * times - 100:6.1f} %  {' '.join(shape)}: {names[chosen[0]][1]}/{chosen[1]}, "
                f"best {names[best[0]][1]}/{best[1]} {1e6 * seconds:.1f} us"
            )


def main(arguments):
    only = arguments[1].split(",") if arguments and arguments[0] == "--only" and len(arguments) > 1 else []
    only = [tuple(x.split(":")) if ":" in x else ("s", x) for x in only]
    rounds = int(arguments[1]) if arguments and arguments[0] == "--again" and len(arguments) > 1 else 0
    paths = [x for x in arguments[2 if only or rounds else 0:] if not x.startswith("-")]
    if not paths:
        sys.exit(__doc__)
    library, names = model()
    shapes, others, found = read(library, paths, names)
    if "--write" in arguments:
        write(library, names, shapes, found, paths)
        library, names = model()
    elif only:
        write_only(library, names, shapes, found, only)
        library, names = model()
    elif rounds:
        write_again(library, names, shapes, found, rounds)
        library, names = model()
    for type_ in TYPES:
        mine = {shape: trials for shape, trials in shapes.items() if shape[1] == type_}
        if mine:
            regret(library, names, mine, others, found, 10 if "--worst" in arguments else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
