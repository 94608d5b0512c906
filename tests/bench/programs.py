#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whole NumPy programs from start to exit, each a process of its own: by the host BLAS alone, and with the
library preloaded, by turns. `first`: nothing is known of machine or program. `third`: the same command has
run twice before. `always`, for comparison: every call waits for the GPU. Seconds are medians; ratio is to the
host alone in the same run. The rows `start` have what the start costs, in seconds: the host's work lost while
the GPU starts, the time from the beginning of the call that starts it to the beginning of the first on the
GPU, and how much longer than on the host a program takes that ends at the worst moment.

Usage: programs.py --library LIBGPUBLAS [--csv FILE] [--seconds S] [--only NAME,NAME] [--smoke]
The programs themselves: programs.py --be NAME [--smoke]"""

import argparse
import ctypes
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

# The goals, of the host's time: a first run ever, and the third of the same command. None: none was set.
PROGRAMS = {
    "1 of 4096": (1.05, 1.0),
    "2 of 4096": (None, None),
    "5 of 4096": (0.95, 0.70),
    "20 of 4096": (0.35, 0.30),
    "100 of 4096": (0.12, 0.10),
    "30 of 2048": (1.05, 0.95),
    "300 of 2048": (0.25, 0.20),
    "1000 of 1024": (0.55, 0.45),
    "3000 of 512": (0.9, 0.75),
    "20000 of 128": (1.0, 1.0),
    "layers": (0.75, 0.65),
    "layers with CUDA": (0.55, 0.5),
    "distances": (None, None),
    "pca": (None, None),
    "k-means": (None, None),
    "growing": (None, None),
    "pauses": (None, None),
    "cholesky": (None, None),
    "OpenMP": (None, None),
    "import": (None, None),
    "threads": (None, None),
}
SMOKE = 24  # --smoke: no side is larger
STOPS_S = 45  # for the rows `start`
LONG_S = 4


# ---- the programs


def use_cuda():
    """What torch.zeros(1, device="cuda") does first: a primary context of the program's own."""
    cuda, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
    for code in (
        cuda.cuInit(0),
        cuda.cuDeviceGet(ctypes.byref(device), 0),
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
        cuda.cuCtxSetCurrent(context),
    ):
        if code:
            sys.exit(f"CUDA failed: {code}")


def check(a, b, c):
    """Some elements of C's last row against FP64: few, because the check is a part of what is timed."""
    import numpy as np

    some = np.ascontiguousarray(b[:, :: max(1, b.shape[1] // 16)]).astype(np.float64)
    row = a[-1].astype(np.float64)
    wrong = np.abs(c[-1, :: max(1, b.shape[1] // 16)] - row @ some)
    if not np.all(wrong <= (a.shape[1] + 4) * 2.0**-24 * (np.abs(row) @ np.abs(some))):
        sys.exit("a product is wrong")


def be(name, largest):
    import numpy as np

    # Random numbers take longer to make than a product, so the same ones come again, at an odd distance.
    random = np.random.default_rng(1).standard_normal(65521, np.float32)
    cut = lambda n: min(n, largest)
    make = lambda m, n: np.resize(random, (cut(m), cut(n)))
    counted = re.fullmatch(r"(\d+) of (\d+)", name)
    if name == "layers with CUDA":
        use_cuda()
    if counted:
        n = int(counted[2])
        a, b = make(n, n), make(n, n)
        for _ in range(int(counted[1]) if cut(n) == n else 5):
            c = a @ b
        check(a, b, c)
    elif name.startswith("layers"):
        weights, x = [make(4096, 4096) / 64 for _ in range(4)], make(256, 4096)
        for _ in range(40):
            y = x
            for w in weights:
                before, y = y, np.maximum(y @ w, 0)
        check(before, weights[-1], before @ weights[-1])
    elif name == "distances":
        x, y = make(2000, 128), make(100000, 128)
        for _ in range(5):
            d = (x * x).sum(1)[:, None] - 2 * (x @ y.T) + (y * y).sum(1)
        check(x, y.T, x @ y.T)
    elif name == "pca":
        x = make(100000, 512)
        for _ in range(20):
            c = x.T @ x
        check(np.ascontiguousarray(x.T), x, c)
    elif name == "k-means":
        x, centres = make(50000, 256), make(500, 256)
        for _ in range(8):
            nearest = (x @ centres.T).argmax(1)
            centres = np.stack(
                [x[nearest == i].mean(0) if (nearest == i).any() else centres[i] for i in range(len(centres))]
            )
        check(x, centres.T, x @ centres.T)
    elif name == "growing":
        for n in range(64, 3001, 64):
            a = make(n, n)
            c = a @ a
        check(a, a, c)
    elif name == "pauses":
        a = make(3000, 3000)
        for _ in range(10):
            c = a @ a
            time.sleep(0.05)
        check(a, a, c)
    elif name == "cholesky":
        a = make(2000, 2000).astype(np.float64)
        for _ in range(5):
            np.linalg.cholesky(a @ a.T + len(a) * np.eye(len(a)))
    elif name == "threads":
        a = make(2048, 2048)
        work = lambda: [a @ a for _ in range(20)]
        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    elif name == "OpenMP":
        # As PyTorch does between two products: its threads then look for work on a core each.
        team = ctypes.CDLL("libgomp.so.1").GOMP_parallel
        a = make(2048, 2048)
        for _ in range(100):
            team(ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p), None, os.cpu_count(), 0)
            c = a @ a
        check(a, a, c)
    elif name != "import":
        sys.exit(f"no program is called {name}")
    if "gpublas" in os.environ.get("LD_PRELOAD", ""):
        stats, words = ctypes.CDLL(None).gpublas_stats, (ctypes.c_uint64 * 64)()
        stats(words, ctypes.c_size_t(ctypes.sizeof(words)))
        print(json.dumps({"calls": words[0], "gpu_calls": words[1]}))


# ---- the parent


class Bench:
    def __init__(self, arguments):
        self.arguments, self.faults, self.folder = arguments, 0, tempfile.mkdtemp()

    def run(self, name, offload, calibration, verbose=False):
        """One process: seconds, its calls on the GPU, and when each line of its trace came."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GPUBLAS_")}
        if offload:
            environment |= {
                "LD_PRELOAD": self.arguments.library,
                "GPUBLAS_OFFLOAD": offload,
                "GPUBLAS_CALIBRATION": calibration,
                "GPUBLAS_VERBOSE": "1" if verbose else "0",
            }
        command = [sys.executable, "-B", os.path.abspath(__file__), "--be", name]
        command += ["--smoke"] if self.arguments.smoke else []
        begin, lines = time.monotonic(), []
        child = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for line in child.stderr:
            lines.append((time.monotonic(), line))
        said = child.stdout.read()
        child.wait()
        seconds = time.monotonic() - begin
        counted = json.loads(said) if said else {"gpu_calls": 0}
        if child.returncode or (offload and name != "import" and not said):
            self.faults += 1
            print(f"{name}, {offload or 'host'}: exit {child.returncode}", *(x[1] for x in lines[-3:]))
        return seconds, counted["gpu_calls"], lines

    def fresh(self):
        return os.path.join(tempfile.mkdtemp(dir=self.folder), "calibration")

    def one(self, name, until):
        """Rounds by turns until the time is up; three at least, or two if one takes long. The first run ever
        of a calibration counts as such; its second prepares the third."""
        seconds = {who: [] for who in ("host", "first", "third", "always")}
        on_gpu = dict.fromkeys(seconds, 0)
        kept = self.fresh()

        def add(who, offload, calibration):
            took, on_gpu[who], _ = self.run(name, offload, calibration)
            seconds[who].append(took)

        add("first", "auto", kept)
        self.run(name, "auto", kept)
        least, most = (1, 1) if self.arguments.smoke else (3, 9)
        while len(seconds["host"]) < least or (time.monotonic() < until and len(seconds["host"]) < most):
            add("host", None, None)
            if len(seconds["first"]) <= len(seconds["third"]):
                add("first", "auto", self.fresh())
            add("third", "auto", kept)
            if not seconds["always"] or time.monotonic() < until:
                add("always", "always", kept)
            if seconds["host"][0] > LONG_S:
                least = 2
        return seconds, on_gpu

    def stop(self, until):
        """Programs that end beside the start: the most seconds that one of them takes longer than on the
        host, as a first and as a third run. One that ends a call before is never started."""
        worst = dict.fromkeys(("first", "third"), -1.0)
        for calls in (9, 11, 13, 17, 23):
            seconds, _ = self.one(f"{calls} of 2048", 0)
            for who in worst:
                more = statistics.median(seconds[who]) - statistics.median(seconds["host"])
                worst[who] = max(worst[who], more)
            if time.monotonic() > until:
                break
        return worst

    def start(self):
        """The start behind 100 products of 4096, by the trace."""
        _, _, lines = self.run("100 of 4096", "auto", self.fresh(), verbose=True)
        calls = []
        for came, line in lines:
            found = re.search(r' route=(\w+).* why="([^"]*)".* ms=([0-9.]+)', line)
            if found:
                calls.append((came - float(found[3]) / 1e3, found[1], found[2], float(found[3])))
        before = [c[3] for c in calls if c[2].startswith("too little work")]
        during = [c for c in calls if c[2] == "starting the GPU"]
        after = [c for c in calls if c[1] == "gpu"]
        if not (before and during and after):
            return None
        lost = sum(c[3] - statistics.median(before) for c in during)
        return lost / 1e3, after[0][0] - during[0][0]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--library")
    parser.add_argument("--csv")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--only", default="")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--be")
    arguments = parser.parse_args()
    if arguments.be:
        return be(arguments.be, SMOKE if arguments.smoke else 1 << 20)
    arguments.library = os.path.abspath(arguments.library)
    bench, begin = Bench(arguments), time.monotonic()
    names = arguments.only.split(",") if arguments.only else list(PROGRAMS)
    csv = open(arguments.csv or os.devnull, "w", encoding="utf-8")
    if os.environ.get("GPB_BENCH_HEADER"):
        csv.write(os.environ["GPB_BENCH_HEADER"] + "\n")
    csv.write("program,who,rounds,s,least_s,most_s,ratio,goal,gpu_calls\n")
    for i, name in enumerate(names):
        left = arguments.seconds - (time.monotonic() - begin) - (0 if arguments.only else STOPS_S)
        until = time.monotonic() + left / (len(names) - i)
        seconds, on_gpu = bench.one(name, until)
        host = statistics.median(seconds["host"])
        goals = dict(zip(("first", "third"), PROGRAMS[name]))
        for who, all_s in seconds.items():
            median, least, most = statistics.median(all_s), min(all_s), max(all_s)
            ratio, goal = median / host, goals.get(who)
            row = (
                f'"{name}"',
                who,
                len(all_s),
                f"{median:.4f}",
                f"{least:.4f}",
                f"{most:.4f}",
                f"{ratio:.4f}",
            )
            csv.write(",".join(map(str, row + (goal or "", on_gpu[who]))) + "\n")
            wanted = f", goal {goal}" if goal else ""
            print(f"{name:16s} {who:7s} {median:8.3f} s ({least:.3f}..{most:.3f}), ", end="")
            print(f"{ratio:.3f} of the host{wanted}; {on_gpu[who]} calls on the GPU", flush=True)
    whole = not arguments.only and not arguments.smoke
    start = bench.start() if whole else None
    if start:
        worst = bench.stop(begin + arguments.seconds)
        for what, value, goal in (
            ("lost", start[0], 0.04),
            ("until the GPU computes", start[1], 0.35),
            ("ends at the worst moment, first run", worst["first"], 0.2),
            ("ends at the worst moment, third run", worst["third"], 0.02),
        ):
            csv.write(f"start,\"{what}\",1,{value:.4f},,,,{goal},\n")
            print(f"start: {what} {value:.3f} s, goal {goal}")
    csv.close()
    print(f"{time.monotonic() - begin:.0f} s, {bench.faults} faults")
    return bench.faults != 0


if __name__ == "__main__":
    sys.exit(main())
