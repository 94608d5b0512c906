#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""LAPACK's solvers and Level 3 from host memory, without and with the library preloaded. Each contender is a
process of its own; they are asked by turns, case by case, so that both are timed in the same minute. The host
BLAS of both is the OpenBLAS in NumPy's wheel. The names that begin with np_ go through NumPy's own functions.
--rivals: cusolver, between copies from and to ordinary memory (the device's is there beforehand), and nvblas,
NVIDIA's drop-in in front of another OpenBLAS, for factorisations (that LAPACK calls nothing that a drop-in
for BLAS sees) and Level 3.
mixed1 is dsgesv, or zcgesv, with one column.
A residual is in units of eps times the Frobenius norms of what was multiplied: below 10 is right.

Usage: solvers.py --library LIBGPUBLAS [--csv FILE] [--seconds S] [--largest N] [--sizes N,N]
                  [--only NAME,NAME] [--types d,s,c,z] [--smoke] [--rivals cusolver,nvblas] [--nvblas LIBRARY]
                  [--plain-blas LIBRARY] [--without-host]
Exit code 1: a residual is 10 or more, a child ended, or a call did not come back in time."""

import argparse
import concurrent.futures
import ctypes
import glob
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

# The routines, and their floating-point operations in n^3 for real numbers. Complex ones: four times that.
# Those of gecon and pocon grow with n^2 alone. Two names: a factorisation and at once what programs do with
# its factors, which the GPU may have kept.
LAPACK = {"getrf": 2 / 3, "potrf": 1 / 3, "gesv": 8 / 3, "gesv1": 2 / 3, "getri": 4 / 3, "potri": 2 / 3,
          "mixed1": 2 / 3, "gecon": 0, "pocon": 0, "getrf_gecon": 2 / 3, "potrf_pocon": 1 / 3,
          "getrf_getri": 2}
LEVEL3 = {"syrk": 1, "syr2k": 2, "symm": 2, "trmm": 1, "trsm": 1, "gemm": 2}
NUMPY = {"np_solve": 8 / 3, "np_inv": 2, "np_cholesky": 1 / 3, "np_det": 2 / 3, "np_aat": 1}
FLOPS = LAPACK | LEVEL3 | NUMPY
SIZES = (512, 1024, 2048, 4096, 8192)
OTHER_SIZES = (1024, 2048, 4096)  # of s, c and z
NUMPY_SIZES = (2048, 4096, 8192)
SMOKE_SIZES = (64, 129, 300)
LATE = 2048  # no larger size begins when two thirds of the time are used
RIVALS = ("cusolver", "nvblas")
FACTORISATIONS = ("getrf", "potrf", "gesv", "gesv1")  # what rivals are asked for, and NVBLAS for Level 3
NVBLAS_LARGEST = 4096  # of those: as slow as the host alone
CALLS, LONG_S = 3, 3
START_S = 3  # the GPU starts in the background
PAUSE_S = 0.3  # OpenBLAS's threads spin for 0.15 s after a call, on the other contender's cores
WRONG = 10
STRIP = 64
COLUMNS = "contender,routine,type,n,calls,ms_median,ms_least,ms_most,gflops,residual,gpu_calls,ratio"


# ---- the child


class Stats(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_double if name in ("gpu_seconds", "gpu_flops") else ctypes.c_uint64)
        for name in (
            "calls gpu_calls host_calls failed_calls bytes_to_gpu bytes_from_gpu gpu_seconds gpu_flops "
            "wrong_calls"
        ).split()
    ]


def multiply(a, w, part="full", transposed=False):
    """A w, A^H w if transposed, in double precision; of A only the part counts: U, L, L1 (with ones on the
    diagonal). By blocks of columns, because a copy of A in double precision or of a triangle is large."""
    import numpy as np

    n, wide = len(a), 512
    y = np.zeros(n, w.dtype)
    for j in range(0, n, wide):
        end = min(n, j + wide)
        first, last = (0, end) if part == "U" else (j if part[0] == "L" else 0, n)
        block = a[first:last, j:end].astype(w.dtype)
        if part == "U":
            block = np.triu(block, -first - j)
        elif part[0] == "L":
            block = np.tril(block, -1 if part == "L1" else 0)
        if part == "L1":
            block[np.arange(end - j), np.arange(end - j)] = 1
        if transposed:
            y[j:end] += block.conj().T @ w[first:last]
        else:
            y[first:last] += block @ w[j:end]
    return y


def symmetric(a, w, part, hermitian):
    """A w where only one triangle of A is stored."""
    import numpy as np

    if hermitian:
        mirrored = multiply(a, w, part, True)
        return multiply(a, w, part) + mirrored - np.diagonal(a).conj() * w
    return multiply(a, w, part) + multiply(a, w.conj(), part, True).conj() - np.diagonal(a) * w


class Child:
    def __init__(self, arguments):
        import numpy as np

        self.np, self.smoke = np, arguments.smoke
        self.made, self.which = {}, None
        self.ours = arguments.child == "ours"
        self.integers, self.names = np.int64, "scipy_{}_64_"
        if arguments.child == "nvblas":
            self.integers, self.names = np.int32, "{}_"
            self.behind = ctypes.CDLL(arguments.plain_blas, mode=ctypes.RTLD_GLOBAL)
            self.blas = ctypes.CDLL(None)  # what is preloaded comes first
            return
        wheel = os.path.dirname(os.path.dirname(os.path.abspath(np.__file__)))
        found = glob.glob(os.path.join(wheel, "numpy.libs", "libscipy_openblas64_-*.so"))
        if not found:
            sys.exit("NumPy has no OpenBLAS beside it: this is not the wheel")
        self.blas = ctypes.CDLL(arguments.library if self.ours else found[0])
        if self.ours:
            self.start()

    def start(self):
        n = 256 if self.smoke else 2048
        a, begin = self.np.ones((n, n), order="F"), time.monotonic()
        c = a.copy(order="F")
        one, zero = self.np.array([1.0]), self.np.array([0.0])
        while self.gpu_calls() == 0 and time.monotonic() - begin < START_S:
            self.prepare("d", "gemm", "NN", n, n, n, one, a, n, a, n, zero, c, n)()

    def gpu_calls(self):
        if not self.ours:
            return 0
        stats = Stats()
        self.blas.gpublas_stats(ctypes.byref(stats), ctypes.c_size_t(ctypes.sizeof(stats)))
        return stats.gpu_calls

    def prepare(self, kind, name, letters, *values):
        """The call as Fortran makes it: all by reference, the strings' lengths last. Conversions are done
        here, so that they are not timed."""
        function = getattr(self.blas, self.names.format(kind + name))
        function.restype = None
        kept = [ctypes.c_char(letter.encode()) for letter in letters]
        kept += [ctypes.c_int64(value) if isinstance(value, int) else value for value in values]
        pointers = [
            ctypes.c_void_p(value.ctypes.data) if isinstance(value, self.np.ndarray) else ctypes.byref(value)
            for value in kept
        ]
        pointers += [ctypes.c_size_t(1) for _ in letters]

        def call():
            assert kept
            function(*pointers)

        return call

    def get(self, name):
        """A matrix, made when it is first wanted at this size, the same ones in both processes."""
        if name not in self.made:
            self.made[name] = self.make(name)
        return self.made[name]

    def random(self, seed):
        """By strips of columns, on all cores: 16384 in complex double takes one of them 20 s."""
        np, (kind, n) = self.np, self.which
        real = np.float32 if kind in "sc" else np.float64
        x = np.empty((n, n), self.dtype)
        numbers = x.view(real)

        def fill(first):
            strip = numbers[first : first + STRIP]
            strip[:] = np.random.default_rng([seed, n, first]).standard_normal(strip.shape, real)

        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as cores:
            list(cores.map(fill, range(0, n, STRIP)))
        return x.T  # Fortran order

    def make(self, name):
        np, (kind, n) = self.np, self.which
        if name in ("a", "b"):
            return self.random(1 if name == "a" else 2)
        if name == "b1":
            return np.asfortranarray(self.get("b")[:, :1])
        if name == "t":
            t = self.get("a") / self.dtype.type(n)
            t[np.arange(n), np.arange(n)] = 1 + np.abs(np.diagonal(self.get("a")))
            return t
        if name == "p":
            g = self.get("a")
            p = g @ g.conj().T
            p /= self.dtype.type(n)
            p[np.arange(n), np.arange(n)] = np.diagonal(p).real + 1
            return np.asfortranarray(p)
        if name in ("lu", "chol"):
            x = self.get("a" if name == "lu" else "p").copy(order="F")
            info = ctypes.c_int64()
            if name == "lu":
                pivots = self.made["pivots"] = np.zeros(n, self.integers)
                self.prepare(kind, "getrf", "", n, n, x, n, pivots, info)()
            else:
                self.prepare(kind, "potrf", "L", n, x, n, info)()
            return x
        if name == "known":
            # The determinant of a normal matrix is too large a number. This one's is -1 for an even n, 1 for
            # an odd one: two reflections, a diagonal whose product is 1, and all rows moved by one, so that
            # every column has its pivot elsewhere.
            random = np.random.default_rng(n)
            u, v, d = random.standard_normal((3, n))
            u, v, d = u / np.linalg.norm(u), v / np.linalg.norm(v), np.exp((d - d.mean()) / 2)
            x = np.outer(-2 * u, u * d - 2 * (u @ (d * v)) * v) - np.outer(2 * d * v, v)
            x[np.arange(n), np.arange(n)] += d
            return np.roll(x, 1, axis=0)
        return np.empty((n, n), self.dtype, order="F")  # c and x: what the calls write to

    def through_numpy(self, name):
        np, linalg = self.np, self.np.linalg
        a = self.get({"np_cholesky": "p", "np_det": "known"}.get(name, "a"))
        if name == "np_solve":
            b = self.get("b")
            return lambda: linalg.solve(a, b)
        if name == "np_aat":
            return lambda: a @ a.T
        return lambda: getattr(linalg, name[3:])(a)

    def through_blas(self, name, factors=None):
        """What puts the operands in place, the call, and the matrix that it writes to. factors: where a
        factorisation will leave them."""
        np, (kind, n) = self.np, self.which
        if "_" in name:
            first, then = name.split("_")
            copies, factor, factors = self.through_blas(first)
            _, follow, x = self.through_blas(then, factors)
            return copies, lambda: (factor(), follow()), x
        info = self.info = ctypes.c_int64()
        one, zero = np.ones(1, self.dtype), np.zeros(1, self.dtype)
        a, b = (self.get("a"), self.get("b")) if name not in ("potrf", "potri", "pocon") else (None, None)
        x = self.get("x")
        copies, call = [], None
        if name == "getrf":
            pivots = self.pivots = np.zeros(n, self.integers)
            copies = [(x, a)]
            call = self.prepare(kind, name, "", n, n, x, n, pivots, info)
        elif name in ("potrf", "potri"):
            copies = [(x, self.get("p" if name == "potrf" else "chol"))]
            call = self.prepare(kind, name, "L", n, x, n, info)
        elif name in ("gesv", "gesv1"):
            c = self.get("c") if name == "gesv" else np.empty((n, 1), self.dtype, order="F")
            copies = [(x, a), (c, b if name == "gesv" else self.get("b1"))]
            pivots = np.zeros(n, self.integers)
            call = self.prepare(kind, "gesv", "", n, c.shape[1], x, n, pivots, c, n, info)
            x = c
        elif name == "mixed1":
            c, copies = np.empty((n, 1), self.dtype, order="F"), [(x, a)]
            work, other = np.zeros(n, self.dtype), np.zeros(n * (n + 1), self.dtype)
            more = (np.zeros(n),) if kind == "z" else ()
            letter, iterations = "s" if kind == "d" else "c", ctypes.c_int64()
            words = (n, 1, x, n, np.zeros(n, self.integers), self.get("b1"), n, c, n, work, other, *more)
            call = self.prepare(kind, letter + "gesv", "", *words, iterations, info)
            x = c
        elif name == "getri":
            copies = [(x, self.get("lu"))] if factors is None else []
            pivots = self.made["pivots"] if factors is None else self.pivots
            work = np.zeros(n * 64, self.dtype)
            call = self.prepare(kind, name, "", n, x, n, pivots, work, n * 64, info)
        elif name in ("gecon", "pocon"):
            real = np.float32 if kind in "sc" else np.float64
            if factors is None:
                factors = self.get("lu" if name == "gecon" else "chol")
            of = self.get("a" if name == "gecon" else "p")
            self.norm = np.array([np.abs(of).sum(0).max()], real)
            x = self.rcond = np.zeros(1, real)
            work, other = np.zeros(4 * n, self.dtype), np.zeros(2 * n, np.float64)
            letter = "1" if name == "gecon" else "L"
            call = self.prepare(kind, name, letter, n, factors, n, self.norm, x, work, other, info)
        elif name in ("trmm", "trsm"):
            copies = [(x, b)]
            call = self.prepare(kind, name, "LLNN", n, n, one, self.get("t"), n, x, n)
        else:
            copies = [(x, self.dtype.type(3))]  # beta is 0: a call that writes nothing shall be found out
            if name == "syrk":
                call = self.prepare(kind, name, "UN", n, n, one, a, n, zero, x, n)
            elif name == "syr2k":
                call = self.prepare(kind, name, "UN", n, n, one, a, n, b, n, zero, x, n)
            elif name == "symm":
                call = self.prepare(kind, name, "LU", n, n, one, a, n, b, n, zero, x, n)
            else:
                call = self.prepare(kind, name, "NN", n, n, n, one, a, n, b, n, zero, x, n)
        return copies, call, x

    def missed(self, name):
        """What a vector at random shows of the inverse's norm, over what was estimated."""
        np, (kind, n) = self.np, self.which
        y, info = self.random(7)[:, 0].copy(), ctypes.c_int64()
        before = np.abs(y).sum()
        if name == "gecon":
            self.prepare(kind, "getrs", "N", n, 1, self.get("lu"), n, self.made["pivots"], y, n, info)()
        else:
            self.prepare(kind, "potrs", "L", n, 1, self.get("chol"), n, y, n, info)()
        estimated = 1 / (float(self.rcond[0]) * float(self.norm[0])) if 0 < self.rcond[0] <= 1 else 0
        return float(np.abs(y).sum() / before) / estimated if estimated else float("inf")

    def residual(self, name, x):
        np, (kind, n) = self.np, self.which
        name = name if name.startswith("np_") else name.split("_")[-1]
        eps = float(np.finfo(self.dtype).eps)
        if name == "np_det":
            known = -1 if n % 2 == 0 else 1
            return abs(float(x) - known) / (n * eps)
        if not name.startswith("np_") and self.info.value:
            return float("inf")
        if name in ("gecon", "pocon"):
            return self.missed(name)
        random = np.random.default_rng(3)
        w = random.standard_normal(n)
        if kind in "cz":
            w = w + 1j * random.standard_normal(n)
        norm = lambda m: float(np.linalg.norm(m))
        t = lambda m, v: multiply(m, v.conj(), transposed=True).conj()  # without the conjugation
        same = {"np_solve": "gesv", "mixed1": "gesv1", "np_inv": "getri", "np_cholesky": "potrf"}
        what = same.get(name, name)
        a = self.get("p" if what in ("potrf", "potri") else "t" if what in ("trmm", "trsm") else "a")
        b = self.get("b") if what not in ("potrf", "potri") else None
        scale = norm(a)
        if what == "getrf":
            wrong = multiply(a, w)
            for i, p in enumerate(self.pivots.tolist()):
                wrong[i], wrong[p - 1] = wrong[p - 1], wrong[i]
            wrong -= multiply(x, multiply(x, w, "U"), "L1")
        elif what == "potrf":
            wrong = multiply(a, w) - multiply(x, multiply(x, w, "L", True), "L")
        elif what == "gesv":
            wrong = multiply(a, multiply(x, w)) - multiply(b, w)
            scale *= norm(x)
        elif what == "gesv1":
            wrong = multiply(a, x[:, 0].astype(w.dtype)) - b[:, 0]
            w, scale = np.ones(1), scale * norm(x)
        elif what == "getri":
            # LAPACK's inverse is a good one from the left, gesv's from the right.
            product = multiply(a, multiply(x, w)) if name == "np_inv" else multiply(x, multiply(a, w))
            wrong = product - w
            scale *= norm(x)
        elif what == "potri":
            wrong = multiply(a, symmetric(x, w, "L", True)) - w
            scale *= norm(np.tril(x))
        elif what == "syrk":
            wrong = symmetric(x, w, "U", False) - multiply(a, t(a, w))
            scale *= norm(a)
        elif what == "syr2k":
            wrong = symmetric(x, w, "U", False) - multiply(a, t(b, w)) - multiply(b, t(a, w))
            scale *= 2 * norm(b)
        elif what == "symm":
            wrong = multiply(x, w) - symmetric(a, multiply(b, w), "U", False)
            scale *= norm(b)
        elif what == "trmm":
            wrong = multiply(x, w) - multiply(a, multiply(b, w), "L")
            scale *= norm(b)
        elif what == "trsm":
            wrong = multiply(a, multiply(x, w), "L") - multiply(b, w)
            scale *= norm(x)
        elif what == "np_aat":
            wrong = multiply(x, w) - multiply(a, t(a, w))
            scale *= norm(a)
        else:
            wrong = multiply(x, w) - multiply(a, multiply(b, w))
            scale *= norm(b)
        # Not times n: Frobenius norms already grow so much faster than the result that with it, in single
        # precision at 4096, a result of zeros would be right.
        if what in ("getrf", "gesv1"):
            scale *= n**0.5  # U grows with pivoting: measured as the root of n, for OpenBLAS too
        return norm(wrong) / (scale * norm(w) * eps)

    def at(self, kind, n):
        if self.which != (kind, n):
            self.made, self.which = {}, (kind, n)
            self.dtype = self.np.dtype({"s": "f4", "d": "f8", "c": "c8", "z": "c16"}[kind])

    def case(self, name, until):
        if name.startswith("np_"):
            copies, call, x = [], self.through_numpy(name), None
        else:
            copies, call, x = self.through_blas(name)

        def timed():
            for to, source in copies:
                self.np.copyto(to, source)
            begin = time.perf_counter()
            result = call()
            return time.perf_counter() - begin, result

        took, result = timed()
        before, seconds = self.gpu_calls(), []
        while not seconds or (
            len(seconds) < CALLS and max(seconds[0], took) <= LONG_S and time.monotonic() + took < until
        ):
            del result  # as a program that keeps one result at a time
            took, result = timed()
            seconds.append(took)
        gpu_calls = self.gpu_calls() - before
        residual = self.residual(name, result if x is None else x)
        return {"seconds": seconds, "gpu_calls": gpu_calls, "residual": residual}

    def serve(self):
        print(json.dumps({"ready": True}), flush=True)
        for line in sys.stdin:
            asked = json.loads(line)
            self.at(asked["type"], asked["n"])
            if "make" in asked:
                for name in asked["make"]:
                    self.get(name)
                answer = {}
            else:
                answer = self.case(asked["routine"], asked["until"])
            print(json.dumps(answer), flush=True)


class CusolverChild(Child):
    """A factorisation, and solves, between copies. The device's memory is there before the first call."""

    def __init__(self, arguments):
        super().__init__(arguments)
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gpu"))
        from cuda import Cuda

        self.cuda, self.solver, self.handle = Cuda(), ctypes.CDLL("libcusolver.so"), ctypes.c_void_p()
        assert self.solver.cusolverDnCreate(ctypes.byref(self.handle)) == 0
        self.rooms = []

    def at(self, kind, n):
        if self.which != (kind, n):
            self.cuda.free(*self.rooms)
            self.rooms = []
        super().at(kind, n)

    def room(self, size):
        self.rooms.append(self.cuda.room(size))
        return self.rooms[-1]

    def through_blas(self, name, factors=None):
        from cuda import pointer

        np, (kind, n) = self.np, self.which
        copies, _, x = super().through_blas(name)
        matrix, self.info = copies[0][0], ctypes.c_int64()
        pivots = getattr(self, "pivots", None) if name == "getrf" else np.zeros(n, np.int64)
        narrow, count = np.zeros(n, np.int32), ctypes.c_int()
        a, b, ipiv, info = (self.room(size) for size in (matrix.nbytes, x.nbytes, 4 * n, 4))
        prefix = f"cusolverDn{kind.upper()}"
        routine = "potrf" if name == "potrf" else "getrf"
        shape = (0, n) if routine == "potrf" else (n, n)
        size = getattr(self.solver, f"{prefix}{routine}_bufferSize")
        assert size(self.handle, *shape, pointer(a), n, ctypes.byref(count)) == 0
        work = self.room(max(1, count.value) * matrix.itemsize)
        factor, solve = getattr(self.solver, prefix + routine), getattr(self.solver, prefix + "getrs")
        last = (pointer(info),) if routine == "potrf" else (pointer(ipiv), pointer(info))
        words = (self.handle, *shape, pointer(a), n, pointer(work), *last)
        if routine == "potrf":
            words = (self.handle, *shape, pointer(a), n, pointer(work), count, *last)
        copy = self.cuda.copy

        def call():
            copy(a, matrix, matrix.nbytes)
            assert factor(*words) == 0
            if name.startswith("gesv"):
                copy(b, x, x.nbytes)
                assert solve(self.handle, 0, n, x.shape[1], pointer(a), n, pointer(ipiv), pointer(b), n,
                             pointer(info)) == 0
                copy(x, b, x.nbytes)
            copy(matrix, a, matrix.nbytes)
            if routine == "getrf":
                copy(narrow, ipiv, narrow.nbytes)
                pivots[:] = narrow

        return copies, call, x


# ---- the parent


class Contender:
    def __init__(self, who, arguments):
        self.who = who
        environment = {k: v for k, v in os.environ.items() if k not in ("GPUBLAS_HOST_BLAS", "LD_PRELOAD")}
        if who == "ours":
            environment["LD_PRELOAD"] = arguments.library
            if arguments.smoke:
                environment["GPUBLAS_OFFLOAD"] = "always"
        if who == "nvblas":
            # As worker.c has it: autopin, and tiles of 4096.
            self.configuration = tempfile.NamedTemporaryFile("w", suffix=".conf")
            self.configuration.write(
                f"NVBLAS_LOGFILE /dev/null\nNVBLAS_CPU_BLAS_LIB {arguments.plain_blas}\n"
                "NVBLAS_GPU_LIST ALL\nNVBLAS_TILE_DIM 4096\nNVBLAS_AUTOPIN_MEM_ENABLED\n"
            )
            self.configuration.flush()
            environment |= {"LD_PRELOAD": arguments.nvblas, "NVBLAS_CONFIG_FILE": self.configuration.name}
        command = [sys.executable, "-B", os.path.abspath(__file__), "--child", who]
        command += ["--library", arguments.library] + (["--smoke"] if arguments.smoke else [])
        command += ["--plain-blas", arguments.plain_blas]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def takes(self, name, n):
        if self.who == "nvblas" and name in LEVEL3:
            return True
        rival = self.who in RIVALS
        return not rival or (name in FACTORISATIONS and (self.who != "nvblas" or n <= NVBLAS_LARGEST))

    def ask(self, **asked):
        try:
            self.process.stdin.write(json.dumps(asked) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # answer() says so

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise EOFError(f"{self.who} ended, exit {self.process.wait()}")
        return json.loads(line)


def plan(arguments):
    """(type, n, names) in the order of the work."""
    for kind in arguments.types.split(","):
        sizes = SMOKE_SIZES if arguments.smoke else SIZES if kind == "d" else OTHER_SIZES
        for n in map(int, arguments.sizes.split(",")) if arguments.sizes else sizes:
            names = arguments.only.split(",") if arguments.only else list(FLOPS)
            through_numpy = kind == "d" and n in (SMOKE_SIZES[-1:] if arguments.smoke else NUMPY_SIZES)
            names = [name for name in names if name not in NUMPY or through_numpy]
            names = [name for name in names if name != "mixed1" or kind in "dz"]
            if n <= arguments.largest and names:
                yield kind, n, names


def operands(names):
    """What both make beforehand, at the same time: none of it is timed."""
    made = ["a", "b", "x"]
    made += ["p"] if any("po" in name or name == "np_cholesky" for name in names) else []
    return made + (["t"] if any(name in ("trmm", "trsm") for name in names) else [])


def bench(contenders, arguments, begin, csv):
    wrong, spent, skipped, ready = 0, {}, [], time.monotonic()
    for kind, n, names in plan(arguments):
        made = False
        for name in names:
            now = time.monotonic() - begin
            # Of the size before, times 8 or more for each doubling; a case that does not fit is not begun.
            before = [(m, s) for (k, r, m), s in spent.items() if (k, r) == (kind, name) and m < n]
            expected = max(before)[1] * (n / max(before)[0]) ** 3 if before else 1
            expected += 0 if made else n * n * 1e-7
            late = now > arguments.seconds * 2 / 3 and n > LATE and not arguments.sizes
            if late or now + 1.2 * expected + 2 * PAUSE_S > arguments.seconds:
                skipped.append(f"{kind}{name} {n}")
                continue
            if not made:
                taking = [one for one in contenders if any(one.takes(name, n) for name in names)]
                for one in taking:
                    one.ask(type=kind, n=n, make=operands(names))
                for one in taking:
                    one.answer()
                made = True
            asked = time.monotonic()
            flops = FLOPS[name] * n**3 * (4 if kind in "cz" else 1)
            host = math.nan
            for one in contenders:
                if not one.takes(name, n):
                    continue
                time.sleep(0 if arguments.smoke else PAUSE_S)
                half = (begin + arguments.seconds - time.monotonic()) / (1 if one.who == "ours" else 2)
                one.ask(type=kind, n=n, routine=name, until=time.monotonic() + half * 0.9)
                got = one.answer()
                ms = [s * 1e3 for s in got["seconds"]]
                median = statistics.median(ms)
                host = median if one.who == "host" else host
                ratio = f"{host / median:.3f}" if one.who == "ours" and host == host else ""
                row = [one.who, name, kind, n, len(ms)]
                row += [f"{median:.4f}", f"{min(ms):.4f}", f"{max(ms):.4f}", f"{flops / median / 1e6:.2f}"]
                row += [f"{got['residual']:.3g}", got["gpu_calls"], ratio]
                csv.write(",".join(map(str, row)) + "\n")
                csv.flush()
                bad = not got["residual"] < WRONG  # a NaN is wrong too
                wrong += bad
                print(
                    f"{one.who:8s} {kind} {name:12s} {n:5d} {median:10.3f} ms ({min(ms):.3f}..{max(ms):.3f})"
                    f" {flops / median / 1e6:9.1f} GFLOP/s, residual {got['residual']:.2g}"
                    f"{' WRONG' if bad else ''}"
                    + (f", {got['gpu_calls']} on the GPU" if one.who == "ours" else "")
                    + (f", {ratio} times the host" if ratio else ""),
                    flush=True,
                )
            spent[kind, name, n] = time.monotonic() - asked
    if skipped:
        print(f"no time for {len(skipped)}: {', '.join(skipped)}")
    return wrong


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--library", required=True)
    parser.add_argument("--csv")
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--largest", type=int, default=16384)
    parser.add_argument("--sizes", default="")
    parser.add_argument("--without-host", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--types", default="d,s,c,z")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--rivals", default="")
    parser.add_argument("--nvblas", default="libnvblas.so")
    parser.add_argument("--plain-blas", default="libopenblas.so.0")
    parser.add_argument("--child", choices=("ours", "host") + RIVALS)
    arguments = parser.parse_args()
    arguments.library = os.path.abspath(arguments.library)
    if arguments.child:
        return (CusolverChild if arguments.child == "cusolver" else Child)(arguments).serve()
    rivals = list(filter(None, arguments.rivals.split(",")))
    unknown = set(filter(None, arguments.only.split(","))) - set(FLOPS)
    unknown |= set(rivals) - set(RIVALS) | set(arguments.types.split(",")) - set("dscz")
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    begin, wrong, cut = time.monotonic(), 0, threading.Event()
    contenders = [Contender(who, arguments) for who in ["host"][arguments.without_host :] + ["ours"] + rivals]

    def stop():
        cut.set()
        for one in contenders:
            one.process.kill()

    watch = threading.Timer(arguments.seconds, stop)
    watch.daemon = True
    watch.start()
    with open(arguments.csv or os.devnull, "w", encoding="utf-8") as csv:
        if os.environ.get("GPB_BENCH_HEADER"):
            csv.write(os.environ["GPB_BENCH_HEADER"] + "\n")
        csv.write(COLUMNS + "\n")
        try:
            for one in contenders:
                one.answer()
            wrong = bench(contenders, arguments, begin, csv)
        except EOFError as error:
            wrong += 1
            print("stopped: the time is up" if cut.is_set() else error)
        finally:
            watch.cancel()
            for one in contenders:
                one.process.kill()
                one.process.wait()
    print(f"{time.monotonic() - begin:.0f} s, {wrong} wrong")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
