#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Batches of TRSM and SYRK with operands on the GPU: right in all variants, and how long they take against
cuBLAS. Needs CuPy. batches.py LIBRARY [right|time|host]"""
import ctypes
import itertools
import math
import sys
import time

import cupy
import numpy

LIBRARY = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
TYPES = {"s": numpy.float32, "d": numpy.float64, "c": numpy.complex64, "z": numpy.complex128}
UNIT = {"s": 2.0 ** -24, "c": 2.0 ** -24, "d": 2.0 ** -53, "z": 2.0 ** -53}
random = numpy.random.default_rng(1)


def integer(x):
    return ctypes.byref(ctypes.c_int(x))


def scalar(letter, x):
    return numpy.array([x], TYPES[letter])


def values(letter, *shape):
    x = random.uniform(-1, 1, shape)
    if letter in "cz":
        x = x + 1j * random.uniform(-1, 1, shape)
    return x.astype(TYPES[letter])


def address(x):
    return ctypes.c_void_p(x.ctypes.data if isinstance(x, numpy.ndarray) else x.data.ptr)


def op(x, trans):
    return x if trans == "N" else x.swapaxes(-1, -2) if trans == "T" else x.conj().swapaxes(-1, -2)


class Batch:
    """Members of order x order and m x n, columns `ld` apart, in one allocation (host order: member, column,
    row), as triangles of which the other half is NaN."""

    def __init__(self, letter, side, uplo, diag, m, n, members, pad=1):
        order = m if side == "L" else n
        self.order, self.m, self.n, self.members = order, m, n, members
        self.a = numpy.full((members, order, order + pad), numpy.nan, TYPES[letter])
        full = values(letter, members, order, order) / 4
        full[:, range(order), range(order)] = 2 + values(letter, members, order)
        kept = numpy.tril(full) if uplo == "L" else numpy.triu(full)
        stored = numpy.where(kept == 0, numpy.nan, kept)
        if diag == "U":
            stored[:, range(order), range(order)] = numpy.nan
            kept[:, range(order), range(order)] = 1
        self.a[:, :, :order] = stored.swapaxes(1, 2)
        self.kept = kept
        self.b = values(letter, members, n, m + pad)
        self.lda, self.ldb = order + pad, m + pad


def strided(letter, side, uplo, trans, diag, batch, alpha, a, b):
    name = getattr(LIBRARY, f"{letter}trsm_batch_strided_")
    alpha = scalar(letter, alpha)
    name(side.encode(), uplo.encode(), trans.encode(), diag.encode(), integer(batch.m), integer(batch.n),
         address(alpha), address(a), integer(batch.lda), integer(batch.order * batch.lda), address(b),
         integer(batch.ldb), integer(batch.n * batch.ldb), integer(batch.members))


def pointers(x, order):
    base, stride = x.data.ptr, x[0].nbytes
    return numpy.array([base + i * stride for i in order], numpy.uint64)


def grouped(letter, side, uplo, trans, diag, batch, alpha, a, b):
    """The members in an order of no stride."""
    order = list(range(0, batch.members, 2)) + list(range(1, batch.members, 2))
    name = getattr(LIBRARY, f"{letter}trsm_batch_")
    alpha, of_a, of_b = scalar(letter, alpha), pointers(a, order), pointers(b, order)
    name(side.encode(), uplo.encode(), trans.encode(), diag.encode(), integer(batch.m), integer(batch.n),
         address(alpha), address(of_a), integer(batch.lda), address(of_b), integer(batch.ldb), integer(1),
         integer(batch.members))


def solved(letter, side, uplo, trans, diag, m, n, members, alpha, how):
    """The largest residual, in units of the last place and of (order + 8) |op(A)| |X|."""
    batch = Batch(letter, side, uplo, diag, m, n, members)
    a, b = cupy.asarray(batch.a), cupy.asarray(batch.b)
    how(letter, side, uplo, trans, diag, batch, alpha, a, b)
    wide = numpy.complex128 if letter in "cz" else numpy.float64
    got = b.get()
    if not numpy.array_equal(a.get(), batch.a, equal_nan=True) or not numpy.array_equal(
            got[:, :, m:], batch.b[:, :, m:]):
        return math.inf
    x = got[:, :, :m].swapaxes(1, 2).astype(wide)
    old = wide(scalar(letter, alpha)[0]) * batch.b[:, :, :m].swapaxes(1, 2).astype(wide)
    of_a = op(batch.kept.astype(wide), trans)
    product = of_a @ x if side == "L" else x @ of_a
    size = abs(of_a) @ abs(x) if side == "L" else abs(x) @ abs(of_a)
    error = abs(product - old) / (UNIT[letter] * (batch.order + 8) * (size + abs(old)))
    worst = float(numpy.max(numpy.nan_to_num(error, nan=math.inf)))
    # NumPy's product has an error of its own where it is no wider.
    return worst / ((2 if letter in "cz" else 1) * (2 if letter in "dz" else 1))


def check():
    worst, wrong, count = 0, 0, 0
    for letter in "sdcz":
        for side, uplo, trans, diag in itertools.product("LR", "UL", "NTC", "NU"):
            for m, n, members in ((1, 1, 3), (7, 5, 9), (16, 16, 21), (17, 33, 6), (64, 64, 5), (65, 70, 4),
                                  (130, 129, 3), (20, 200, 3), (200, 20, 3)):
                for how in (strided, grouped):
                    error = solved(letter, side, uplo, trans, diag, m, n, members, 1 if m % 2 else -0.5, how)
                    worst, count = max(worst, error), count + 1
                    if not error <= 1:
                        wrong += 1
                        if wrong < 20:
                            print("WRONG", letter, side, uplo, trans, diag, m, n, how.__name__, error)
    print(f"trsm: {count} variants, {wrong} wrong, the largest residual {worst:.3g} of the bound")
    return wrong + check_zero() + check_rank_k()


def check_zero():
    """alpha = 0 reads neither A nor B."""
    wrong = 0
    for letter in "sdcz":
        batch = Batch(letter, "L", "U", "N", 20, 30, 7)
        batch.a[:] = numpy.nan
        batch.b[:, :, :20] = numpy.nan
        a, b = cupy.asarray(batch.a), cupy.asarray(batch.b)
        strided(letter, "L", "U", "N", "N", batch, 0, a, b)
        wrong += bool(numpy.any(b.get()[:, :, :20]))
    print(f"alpha = 0: {wrong} wrong")
    return wrong


def check_rank_k():
    wrong, worst = 0, 0
    for letter in "sdcz":
        for uplo, trans in itertools.product("UL", "NT"):
            for n, k, members in ((5, 3, 9), (16, 16, 20), (64, 40, 7), (129, 65, 3)):
                rows, cols = (n, k) if trans == "N" else (k, n)
                a, c = values(letter, members, cols, rows), values(letter, members, n, n)
                at, out = cupy.asarray(a), cupy.asarray(c)
                alpha, beta = scalar(letter, -0.5), scalar(letter, 2)
                getattr(LIBRARY, f"{letter}syrk_batch_strided_")(
                    uplo.encode(), trans.encode(), integer(n), integer(k), address(alpha), address(at),
                    integer(rows), integer(rows * cols), address(beta), address(out), integer(n),
                    integer(n * n), integer(members))
                m = op(a.swapaxes(1, 2), trans).astype(numpy.complex128)
                old, got = c.swapaxes(1, 2), out.get().swapaxes(1, 2)
                want = -0.5 * (m @ m.swapaxes(1, 2)) + 2 * old
                bound = UNIT[letter] * (4 * k + 8) * (abs(m) @ abs(m).swapaxes(1, 2) + 2 * abs(old))
                inside = numpy.tril(numpy.ones((n, n), bool)) if uplo == "L" else numpy.triu(
                    numpy.ones((n, n), bool))
                ratio = float(numpy.max(numpy.where(inside, abs(got - want) / bound, got != old)))
                worst = max(worst, ratio)
                if not ratio <= 1:
                    wrong += 1
                    print("WRONG syrk", letter, uplo, trans, n, k, ratio)
    print(f"syrk: {wrong} wrong, the largest error {worst:.3g} of the bound")
    return wrong


def cublas():
    handle = cupy.cuda.device.get_cublas_handle()
    for line in open("/proc/self/maps"):
        if "libcublas.so" in line:
            return ctypes.CDLL(line.split()[-1]), ctypes.c_void_p(handle)
    raise OSError("no libcublas")


def milliseconds(call, count=30):
    """The median wall time of a call that ends when the GPU does."""
    took = []
    for _ in range(count):
        begin = time.perf_counter()
        call()
        took.append(time.perf_counter() - begin)
    return 1e3 * sorted(took)[count // 2]


def host_times():
    """From host memory: run it with GPUBLAS_OFFLOAD=never, too."""
    print("order  type  members    ms")
    for order, letter, members in itertools.product((16, 64, 128), "sdz", (50, 1000)):
        batch = Batch(letter, "L", "L", "N", order, order, members, pad=0)
        kept = batch.b.copy()

        def call():
            strided(letter, "L", "L", "N", "N", batch, 1, batch.a, batch.b)
        for _ in range(5):
            call()
        numpy.copyto(batch.b, kept)
        print(f"{order:5} {letter:>5} {members:8} {milliseconds(call, 10):9.3f}", flush=True)


def times():
    library, handle = cublas()
    ratios = []
    print("order  type  ours strided, grouped (ms)  cuBLAS (ms)  strided's speed / cuBLAS's")
    for order, letter in itertools.product((16, 32, 64, 128, 256), "sdcz"):
        members = 1000
        batch = Batch(letter, "L", "L", "N", order, order, members, pad=0)
        batch.a = numpy.nan_to_num(batch.a)
        a, b = cupy.asarray(batch.a), cupy.asarray(batch.b)
        alpha = scalar(letter, 1)
        on_gpu = [cupy.asarray(pointers(x, range(members))) for x in (a, b)]
        name = getattr(library, f"cublas{letter.upper()}trsmBatched")
        stream = cupy.cuda.get_current_stream()

        def rival():
            name(handle, 0, 0, 0, 0, order, order, address(alpha), ctypes.c_void_p(on_gpu[0].data.ptr), order,
                 ctypes.c_void_p(on_gpu[1].data.ptr), order, members)
            stream.synchronize()
        cupy.cuda.runtime.deviceSynchronize()
        mine = milliseconds(lambda: strided(letter, "L", "L", "N", "N", batch, 1, a, b))
        scattered = milliseconds(lambda: grouped(letter, "L", "L", "N", "N", batch, 1, a, b))
        theirs = milliseconds(rival)
        if order in (16, 64, 128):
            ratios.append(theirs / mine)
        print(f"{order:5} {letter:>5} {mine:12.4f} {scattered:9.4f} {theirs:12.4f} {theirs / mine:8.2f}")
    print(f"geometric mean of 16, 64, 128: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")


if __name__ == "__main__":
    what = sys.argv[2:] or ["right", "time", "host"]
    failed = check() if "right" in what else 0
    if "time" in what:
        times()
    if "host" in what:
        host_times()
    sys.exit(failed > 0)
