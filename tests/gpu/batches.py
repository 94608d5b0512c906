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

import numpy

from cuda import TYPES, Cuda, integer, median_ms, pointer

MEMBERS, CALLS = 1000, 31
# (rows, columns, side): of what the triangle divides.
SHAPES = [(n, n, "L") for n in (8, 16, 24, 32, 48, 64, 100, 128, 256)] + [
    (64, 64, "R"), (16, 1, "L"), (64, 1, "L"), (64, 200, "L"), (200, 64, "L"), (500, 16, "R")]
GOAL = [(n, n, "L") for n in (16, 64, 128)]
random = numpy.random.default_rng(1)


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
                 pointer(self.one), pointer(a), integer(self.order),
                 integer(self.order**2), pointer(b), integer(self.m), integer(self.m * self.n),
                 integer(self.members))
        return lambda: name(*words)

    def grouped(self, library, a_at, b_at):
        name = getattr(library, f"{self.letter}trsm_batch_")
        words = (self.side.encode(), b"L", b"N", b"N", integer(self.m), integer(self.n),
                 pointer(self.one), pointer(a_at),
                 integer(self.order), pointer(b_at), integer(self.m), integer(1),
                 integer(self.members))
        return lambda: name(*words)


def solve(cuda, batch, a_at, b_at):
    name = getattr(cuda.blas, f"cublas{batch.letter.upper()}trsmBatched")
    side = 0 if batch.side == "L" else 1
    words = (cuda.handle, side, 0, 0, 0, batch.m, batch.n, pointer(batch.one), pointer(a_at), batch.order,
             pointer(b_at), batch.m, batch.members)

    def call():
        assert name(*words) == 0
        cuda.wait()
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
        ours, rival = batch.strided(library, a, b), solve(cuda, batch, *listed)
        of_a, of_b = at[0][order], at[1][order]
        ours()
        rival()
        x, y = cuda.get(batch.b, b), cuda.get(batch.b, theirs)
        difference = float(numpy.max(abs(x - y)) / numpy.max(abs(y))) / numpy.finfo(x.dtype).eps
        wrong += not difference < 8 * batch.order
        ms, rival_ms, scattered_ms = median_ms([ours, rival, batch.grouped(library, of_a, of_b)], CALLS)
        ratios.append(rival_ms / ms)
        if shape in GOAL:
            of_goal.append(rival_ms / ms)
        print(f"{letter},{shape[2]},{shape[0]},{shape[1]},{MEMBERS},{ms:.4f},{scattered_ms:.4f},"
              f"{rival_ms:.4f},{rival_ms / ms:.2f},{difference:.1f}", flush=True)
        cuda.free(a, b, theirs, *listed)
    for what, of in (("all", ratios), ("16, 64, 128", of_goal)):
        mean = math.exp(statistics.fmean(map(math.log, of)))
        print(f"# {what}: times cuBLAS, geometric mean {mean:.2f}, least {min(of):.2f}")
    return wrong


if __name__ == "__main__":
    sys.exit(on_the_device(ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)) > 0)
