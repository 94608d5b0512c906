# SPDX-License-Identifier: MIT
"""GPUBLAS_TRACE on a real GPU: spans.py <libgpublas.so>. What the GPU did lies within its call; spans of a
stream do not overlap; bytes are those of the calls; a large product's kernels take about as long as its call.
Then what the trace costs a call. Device memory is PyTorch's; without it operands are the host's alone."""
import collections
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy

try:
    import torch
except ImportError:
    torch = None
INT = ctypes.c_int
wrong = 0


def check(what, good):
    global wrong
    wrong += not good
    print("right" if good else "WRONG", what, flush=True)


def gemm(library, letter, n, place):
    """A call of n x n x n as a function, and what it holds."""
    kind = {"s": ctypes.c_float, "d": ctypes.c_double}[letter]
    if place == "host":
        x = [numpy.ones((n, n), {"s": "float32", "d": "float64"}[letter]) for _ in range(3)]
        at = [ctypes.c_void_p(a.ctypes.data) for a in x]
    else:
        x = [torch.ones((n, n), dtype={"s": torch.float32, "d": torch.float64}[letter], device="cuda")
             for _ in range(3)]
        at = [ctypes.c_void_p(a.data_ptr()) for a in x]
    function, size = getattr(library, f"cblas_{letter}gemm"), INT(n)
    function.restype = None

    def call(keep=x):
        function(INT(102), INT(111), INT(111), size, size, size, kind(1), at[0], size, at[1], size, kind(0),
                 at[2], size)
    return call


def work(library):
    for letter, n, place in (("s", 4096, "host"), ("d", 3000, "host"), ("s", 4096, "device"),
                             ("s", 300, "device"), ("d", 500, "device")):
        if place == "host" or torch:
            call = gemm(library, letter, n, place)
            for _ in range(5):
                call()
    a, pivots, info, n = numpy.eye(2000) + numpy.ones((2000, 2000)), (INT * 2000)(), INT(0), INT(2000)
    library.dgetrf_(ctypes.byref(n), ctypes.byref(n), a.ctypes.data_as(ctypes.c_void_p), ctypes.byref(n),
                    pivots, ctypes.byref(info))


def cost(library):
    for place, n in (("device", 256), ("host", 512)):
        if place == "device" and not torch:
            continue
        call, best = gemm(library, "s", n, place), 1e9
        for _ in range(20):
            begin = time.perf_counter()
            for _ in range(200):
                call()
            best = min(best, (time.perf_counter() - begin) / 200)
        print(f"{place} {n} {1e6 * best:.2f}")


def run(mode, path, **more):
    environment = dict(os.environ, GPUBLAS_OFFLOAD="always", **more)
    done = subprocess.run([sys.executable, __file__, path, mode], env=environment, stdout=subprocess.PIPE,
                          check=True)
    return done.stdout.decode().split("\n")


def overlaps(spans):
    """Microseconds for which spans of a track lie over each other, at most."""
    worst, end = 0, 0
    for x in sorted(spans, key=lambda x: x["ts"]):
        worst, end = max(worst, end - x["ts"]), max(end, x["ts"] + x["dur"])
    return worst


def look(events):
    names = {x["tid"]: x["args"]["name"] for x in events if x["name"] == "thread_name"}
    spans = [x for x in events if x["ph"] == "X"]
    calls = [x for x in spans if x["cat"] in ("gpu", "host")]
    done = [x for x in spans if x["cat"] in ("kernel", "link")]
    print(collections.Counter((names[x["tid"]], x["name"]) for x in done).most_common(12))
    check("kernels and copies", {x["cat"] for x in done} == {"kernel", "link"})
    inside = {id(x): [c for c in calls if c["ts"] <= x["ts"] and x["ts"] + x["dur"] <= c["ts"] + c["dur"] + 1]
              for x in done}
    check("all of them within one call", all(len(of) == 1 for of in inside.values()))
    for track in {x["tid"] for x in done}:
        over = overlaps(x for x in done if x["tid"] == track)
        check(f"{names[track]}: one after the other ({over:.1f} us)", over < 2)
    share = 0
    for call in calls:
        own = [x for x in done if inside[id(x)] == [call]]
        kernels, link = (sum(x["dur"] for x in own if x["cat"] == kind) for kind in ("kernel", "link"))
        up, down = (sum(x["args"]["bytes"] for x in own if x["name"] == name)
                    for name in ("to the GPU", "from the GPU"))
        args = call["args"]
        print(f"{call['name']:12} {args['m']:5} {args['kernel']:16} call {call['dur']:9.1f} us, kernels "
              f"{kernels:9.1f}, copies {link:9.1f}, from the first to the last "
              f"{max(x['ts'] + x['dur'] for x in own) - min(x['ts'] for x in own):9.1f}")
        if call["name"].endswith("gemm"):
            check("bytes of its copies", (up, down) == (args["bytes_to_gpu"], args["bytes_from_gpu"]))
        if args["m"] == 4096 and not args["bytes_to_gpu"]:
            share = max(share, kernels / call["dur"])
    if torch:
        check(f"kernels take {share:.3f} of a call on the device", 0.9 < share < 1)


def main(path):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "t.json")
        run("work", path, GPUBLAS_TRACE=file)
        with open(file, encoding="ascii") as trace:
            look(json.load(trace))
        plain, traced = (run("cost", path, GPUBLAS_TRACE=to) for to in ("", file))
    for x, y in zip(plain, traced):
        if x:
            place, n, before = x.split()
            after = y.split()[2]
            more = float(after) - float(before)
            print(f"{place}, n = {n}: {before} us a call, traced {after}: {more:.2f} us")
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) == 2:
        sys.exit(main(sys.argv[1]))
    {"work": work, "cost": cost}[sys.argv[2]](ctypes.CDLL(sys.argv[1]))
