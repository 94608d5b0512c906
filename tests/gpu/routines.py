#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long Level 3, LU and Cholesky take of square matrices on the GPU, and cuBLAS's and cuSOLVER's routines,
by turns. Whether they are right is for tests/programs and netlib's testers; here a block of what both compute
is compared. Needs NumPy, libcudart, libcublas, libcusolver. Writes CSV; of_gemm is the rate over that of our
product of this size.

Usage: routines.py LIBRARY [--seconds S] [--types d,s,c,z] [--only NAME,...] [--sizes N,...]"""
import argparse
import ctypes
import itertools
import sys
import time

import numpy

from cuda import TYPES, Cuda, integer, median_ms, pointer

# Operations of real numbers in n^3; of complex ones four times as many.
FLOPS = {"gemm": 2, "syrk": 1, "herk": 1, "syr2k": 2, "her2k": 2, "symm": 2, "hemm": 2, "trmm": 1, "trsm": 1,
         "potrf": 1 / 3, "getrf": 2 / 3}
COMPLEX_ONLY = ("herk", "her2k", "hemm")
SIZES = (1024, 2048, 4096, 8192, 16384)
LARGEST = {"s": 16384, "d": 16384, "c": 8192, "z": 8192}
WIDE = 64                                                 # columns that are compared
LEAST_CALLS, MOST_CALLS = 5, 21
# cuBLAS's words: 0 for N, lower is 0, left is 0, no unit diagonal is 0.
NONE, ADJOINT = 0, 2
CUDA_TYPES = {"s": 0, "d": 1, "c": 4, "z": 5}


class Operands:
    """t: numbers of 1/n and 2 on the diagonal, good for a triangle and as the half of a positive definite
    matrix. a, b: random numbers. c, theirs: what the calls write to."""

    def __init__(self, cuda, letter, n):
        self.cuda, self.letter, self.n = cuda, letter, n
        random, real = numpy.random.default_rng(n), TYPES["s" if letter in "sc" else "d"]

        def values():
            x = numpy.empty((n, n * (2 if letter in "cz" else 1)), real)
            random.random(out=x, dtype=real)
            x -= real(0.5)
            return x.view(TYPES[letter])

        b = values()
        t = b / real(n)
        t[range(n), range(n)] = 2
        self.bytes = t.nbytes
        self.t, self.b, self.a = cuda.put(t), cuda.put(b), cuda.put(values())
        self.c, self.theirs = cuda.room(t.nbytes), cuda.room(t.nbytes)
        self.one, self.zero = numpy.ones(1, t.dtype), numpy.zeros(1, t.dtype)
        self.ipiv, self.info = numpy.zeros(n, numpy.int32), numpy.zeros(1, numpy.int32)

    def free(self):
        self.cuda.free(self.t, self.a, self.b, self.c, self.theirs)

    def block(self, at):
        """Rows and columns from the middle, of the lower triangle."""
        first = self.n // 2
        each = self.bytes // self.n
        x = numpy.empty((WIDE, self.n), TYPES[self.letter])
        return self.cuda.get(x, at + first * each)[:, first + WIDE:]

    def source(self, name):
        """What a routine that works in place begins with."""
        return {"trmm": self.b, "trsm": self.b, "potrf": self.t, "getrf": self.b}.get(name)

    def ours(self, library, name):
        function = getattr(library, f"{self.letter}{name}_")
        n, one, zero = integer(self.n), pointer(self.one), pointer(self.zero)
        t, a, b, c = map(pointer, (self.t, self.a, self.b, self.c))
        words = {
            "gemm": (b"N", b"N", n, n, n, one, a, n, b, n, zero, c, n),
            "syrk": (b"L", b"N", n, n, one, b, n, zero, c, n),
            "syr2k": (b"L", b"N", n, n, one, a, n, b, n, zero, c, n),
            "symm": (b"L", b"L", n, n, one, a, n, b, n, zero, c, n),
            "trmm": (b"L", b"L", b"N", b"N", n, n, one, t, n, c, n),
            "trsm": (b"L", b"L", b"N", b"N", n, n, one, t, n, c, n),
            "potrf": (b"L", n, c, n, pointer(self.info)),
            "getrf": (n, n, c, n, pointer(self.ipiv), pointer(self.info)),
        }[name.replace("he", "sy")]
        return lambda: function(*words)

    def cublas(self, name):
        cuda, n = self.cuda, self.n
        function = getattr(cuda.blas, f"cublas{self.letter.upper()}{name}_v2")
        one, zero = pointer(self.one), pointer(self.zero)
        t, a, b, c, h = *map(pointer, (self.t, self.a, self.b, self.theirs)), cuda.handle
        words = {
            "gemm": (h, NONE, NONE, n, n, n, one, a, n, b, n, zero, c, n),
            "syrk": (h, 0, NONE, n, n, one, b, n, zero, c, n),
            "syr2k": (h, 0, NONE, n, n, one, a, n, b, n, zero, c, n),
            "symm": (h, 0, 0, n, n, one, a, n, b, n, zero, c, n),
            "trmm": (h, 0, 0, NONE, 0, n, n, one, t, n, c, n, c, n),
            "trsm": (h, 0, 0, NONE, 0, n, n, one, t, n, c, n),
        }[name.replace("he", "sy")]

        def call():
            assert function(*words) == 0
            cuda.wait()
        return [call]

    def cusolver(self, name, solver):
        """The routine of the type, and the generic one."""
        cuda, n, c, h = self.cuda, self.n, pointer(self.theirs), solver.handle
        prefix, kind = f"cusolverDn{self.letter.upper()}{name}", CUDA_TYPES[self.letter]
        info = cuda.room(8)
        pivots = pointer(cuda.room(8 * n))
        count, device, host = ctypes.c_int(), ctypes.c_size_t(), ctypes.c_size_t()
        plain = getattr(solver.library, prefix)
        generic = getattr(solver.library, f"cusolverDnX{name}")
        if name == "potrf":
            assert getattr(solver.library, prefix + "_bufferSize")(h, 0, n, c, n, ctypes.byref(count)) == 0
            front, back = (h, solver.parameters, 0, ctypes.c_int64(n), kind, c, ctypes.c_int64(n)), (kind,)
        else:
            assert getattr(solver.library, prefix + "_bufferSize")(h, n, n, c, n, ctypes.byref(count)) == 0
            front = (h, solver.parameters, ctypes.c_int64(n), ctypes.c_int64(n), kind, c, ctypes.c_int64(n))
            back = (kind,)
        size = getattr(solver.library, f"cusolverDnX{name}_bufferSize")
        assert size(*front, *back, ctypes.byref(device), ctypes.byref(host)) == 0
        work = cuda.room(max(count.value * self.one.nbytes, device.value, 8))
        memory = numpy.empty(max(host.value, 1), numpy.uint8)
        middle = (pivots,) if name == "getrf" else ()
        rest = (pointer(work), device, pointer(memory), host, pointer(info))
        if name == "potrf":
            words = (h, 0, n, c, n, pointer(work), count, pointer(info))
        else:
            words = (h, n, n, c, n, pointer(work), pivots, pointer(info))

        def call():
            assert plain(*words) == 0
            cuda.wait()

        def call_generic():
            assert generic(*front, *middle, *back, *rest) == 0
            cuda.wait()
        return [call, call_generic], (info, pivots.value, work)


class Solver:
    def __init__(self):
        self.library = ctypes.CDLL("libcusolver.so")
        self.handle, self.parameters = ctypes.c_void_p(), ctypes.c_void_p()
        assert self.library.cusolverDnCreate(ctypes.byref(self.handle)) == 0
        assert self.library.cusolverDnCreateParams(ctypes.byref(self.parameters)) == 0


def measure(library, cuda, solver, operands, name, seconds):
    """Medians in ms of ours and the best rival's, and how far the results lie apart in units of eps."""
    rivals, extra = operands.cublas(name) if name not in ("potrf", "getrf") else None, ()
    if rivals is None:
        rivals, extra = operands.cusolver(name, solver)
    ours, source = operands.ours(library, name), operands.source(name)

    def begin():
        for to in (operands.c, operands.theirs):
            if source:
                cuda.copy(to, source, operands.bytes)
        cuda.wait()

    begin()
    ours()
    rivals[0]()
    x, y = operands.block(operands.c), operands.block(operands.theirs)
    eps = numpy.finfo(x.dtype).eps
    difference = float(numpy.max(abs(x - y)) / numpy.max(abs(y))) / eps
    begin()
    rivals[-1]()
    ms, *theirs = median_ms([ours] + rivals, MOST_CALLS, seconds, LEAST_CALLS, begin if source else None)
    cuda.free(*extra)
    return ms, min(theirs), difference


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--types", default="d,s,c,z")
    parser.add_argument("--only", default="")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    arguments = parser.parse_args()
    library = ctypes.CDLL(arguments.library, mode=ctypes.RTLD_GLOBAL)
    cuda, solver, end, wrong = Cuda(), Solver(), time.monotonic() + arguments.seconds, 0
    names = arguments.only.split(",") if arguments.only else list(FLOPS)
    sizes, types = map(int, arguments.sizes.split(",")), arguments.types.split(",")
    print("routine,type,n,ms,rival_ms,ratio,tflops,of_gemm,difference_u")
    for n, letter in itertools.product(sizes, types):
        if n > LARGEST[letter] or time.monotonic() > end:
            print(f"# left out: {letter} {n}")
            continue
        operands, gemm = Operands(cuda, letter, n), None
        for name in names:
            if name in COMPLEX_ONLY and letter not in "cz":
                continue
            ms, rival_ms, difference = measure(library, cuda, solver, operands, name, 0.3)
            rate = FLOPS[name] * (4 if letter in "cz" else 1) * n**3 / ms / 1e9
            gemm = rate if name == "gemm" else gemm
            # Pivots may differ where two numbers are nearly equal: single precision at 16384 has some.
            bad = not difference < n and not (name == "getrf" and letter in "sc")
            wrong += bad
            print(f"{name},{letter},{n},{ms:.4f},{rival_ms:.4f},{rival_ms / ms:.3f},{rate:.2f},"
                  + (f"{rate / gemm:.3f}" if gemm else "") + f",{difference:.1f}"
                  + (" # WRONG" if bad else ""), flush=True)
        operands.free()
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
