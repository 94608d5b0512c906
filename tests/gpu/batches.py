#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long batches of TRSM take, operands on the GPU, and cuBLAS's batched TRSM, which takes addresses alone,
by turns. Whether they are right is for tests/programs/batches.c; here what both compute is compared. Needs
NumPy, libcudart and libcublas. Writes CSV.

Usage: batches.py LIBRARY"""
import ctypes
import itertools
import math
import statistics
import sys
import time

import numpy

TYPES = {"s": numpy.float32, "d": numpy.float64, "c": numpy.complex64, "z": numpy.complex128}
MEMBERS, CALLS = 1000, 31
# (rows, columns, side): of what the triangle divides.
SHAPES = [(n, n, "L") for n in (8, 16, 24, 32, 48, 64, 100, 128, 256)] + [
    (64, 64, "R"), (16, 1, "L"), (64, 1, "L"), (64, 200, "L"), (200, 64, "L"), (500, 16, "R")]
GOAL = [(n, n, "L") for n in (16, 64, 128)]
random = numpy.random.default_rng(1)


def integer(x):
    return ctypes.byref(ctypes.c_int(x))


class Batch:
    """A's and B's of a lower triangle, columns one behind the other, in an array each."""

    def __init__(self, letter, m, n, side, members):
        def values(*shape):
            x = random.uniform(-1, 1, shape)
            return (x + 1j * random.uniform(-1, 1, shape) if letter in "cz" else x).astype(TYPES[letter])

        self.letter, self.m, self.n, self.side, self.members = letter, m, n, side, members
        self.order = m if side == "L" else n
        self.a = values(members, self.order, self.order) / self.order
        self.a[:, range(self.order), range(self.order)] += 2
        self.b = values(members, n, m)
        self.one = numpy.ones(1, TYPES[letter])

    def strided(self, library, a, b):
        """The call, whose arguments are made once: for 1000 small systems they would count."""
        name = getattr(library, f"{self.letter}trsm_batch_strided_")
        words = (self.side.encode(), b"L", b"N", b"N", integer(self.m), integer(self.n),
                 ctypes.c_void_p(self.one.ctypes.data), ctypes.c_void_p(a), integer(self.order),
                 integer(self.order**2), ctypes.c_void_p(b), integer(self.m), integer(self.m * self.n),
                 integer(self.members))
        return lambda: name(*words)

    def grouped(self, library, a_at, b_at):
        name = getattr(library, f"{self.letter}trsm_batch_")
        words = (self.side.encode(), b"L", b"N", b"N", integer(self.m), integer(self.n),
                 ctypes.c_void_p(self.one.ctypes.data), ctypes.c_void_p(a_at.ctypes.data),
                 integer(self.order), ctypes.c_void_p(b_at.ctypes.data), integer(self.m), integer(1),
                 integer(self.members))
        return lambda: name(*words)


def median_ms(calls):
    """Medians of the calls' wall times, by turns."""
    took = [[] for _ in calls]
    for _ in range(CALLS):
        for call, times in zip(calls, took):
            begin = time.perf_counter()
            call()
            times.append(time.perf_counter() - begin)
    return [1e3 * statistics.median(times) for times in took]


class Cuda:
    def __init__(self):
        self.runtime = ctypes.CDLL("libcudart.so")
        self.blas = ctypes.CDLL("libcublas.so")
        self.handle = ctypes.c_void_p()
        assert self.blas.cublasCreate_v2(ctypes.byref(self.handle)) == 0

    def put(self, x):
        at = ctypes.c_void_p()
        assert self.runtime.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(x.nbytes)) == 0
        assert self.runtime.cudaMemcpy(at, ctypes.c_void_p(x.ctypes.data), ctypes.c_size_t(x.nbytes), 1) == 0
        return at.value

    def get(self, like, at):
        x = numpy.empty_like(like)
        copied = self.runtime.cudaMemcpy(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(at),
                                         ctypes.c_size_t(x.nbytes), 2)
        assert copied == 0
        return x

    def solve(self, batch, a_at, b_at):
        name = getattr(self.blas, f"cublas{batch.letter.upper()}trsmBatched")
        side = 0 if batch.side == "L" else 1
        words = (self.handle, side, 0, 0, 0, batch.m, batch.n, ctypes.c_void_p(batch.one.ctypes.data),
                 ctypes.c_void_p(a_at), batch.order, ctypes.c_void_p(b_at), batch.m, batch.members)

        def call():
            assert name(*words) == 0
            self.runtime.cudaDeviceSynchronize()
        return call


def on_the_device(library):
    cuda, ratios, of_goal, wrong = Cuda(), [], [], 0
    print("type,side,m,n,members,ms_strided,ms_scattered,cublas_ms,ratio,difference_u")
    for letter, shape in itertools.product("sdcz", SHAPES):
        batch = Batch(letter, *shape, MEMBERS)
        order = list(range(0, MEMBERS, 2)) + list(range(1, MEMBERS, 2))
        a, b, theirs = cuda.put(batch.a), cuda.put(batch.b), cuda.put(batch.b)
        at = [numpy.array([x + l * each for l in range(MEMBERS)], numpy.uint64)
              for x, each in ((a, batch.a[0].nbytes), (b, batch.b[0].nbytes), (theirs, batch.b[0].nbytes))]
        listed = [cuda.put(at[0]), cuda.put(at[2])]
        ours, rival = batch.strided(library, a, b), cuda.solve(batch, *listed)
        of_a, of_b = at[0][order], at[1][order]
        ours()
        rival()
        x, y = cuda.get(batch.b, b), cuda.get(batch.b, theirs)
        difference = float(numpy.max(abs(x - y)) / numpy.max(abs(y))) / numpy.finfo(x.dtype).eps
        wrong += not difference < 8 * batch.order
        ms, rival_ms, scattered_ms = median_ms([ours, rival, batch.grouped(library, of_a, of_b)])
        ratios.append(rival_ms / ms)
        if shape in GOAL:
            of_goal.append(rival_ms / ms)
        print(f"{letter},{shape[2]},{shape[0]},{shape[1]},{MEMBERS},{ms:.4f},{scattered_ms:.4f},"
              f"{rival_ms:.4f},{rival_ms / ms:.2f},{difference:.1f}", flush=True)
        for x in [a, b, theirs] + listed:
            cuda.runtime.cudaFree(ctypes.c_void_p(x))
    for what, of in (("all", ratios), ("16, 64, 128", of_goal)):
        mean = math.exp(statistics.fmean(map(math.log, of)))
        print(f"# {what}: times cuBLAS, geometric mean {mean:.2f}, least {min(of):.2f}")
    return wrong


if __name__ == "__main__":
    sys.exit(on_the_device(ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)) > 0)
