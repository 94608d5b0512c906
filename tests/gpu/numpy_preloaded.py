# SPDX-License-Identifier: MIT
"""NumPy as its wheel came, with libgpublas preloaded: the answers are right, and the GPU computed them."""
import ctypes
import sys

import numpy


class Stats(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64)
                for name in ("calls", "gpu_calls", "host_calls", "failed_calls", "to_gpu", "from_gpu")]
    _fields_ += [("gpu_seconds", ctypes.c_double), ("gpu_flops", ctypes.c_double)]


def stats():
    counters = Stats()
    if ctypes.CDLL(None).gpublas_stats(ctypes.byref(counters), ctypes.c_size_t(ctypes.sizeof(counters))):
        sys.exit("gpublas_stats failed")
    return counters


def check(what, result, exact, magnitude, k):
    error = numpy.abs(result - exact)
    worst = (error / ((k + 4) * 2.0**-24 * magnitude)).max()
    print(f"{what}: worst error {worst:.3f} of the bound")
    if not worst <= 1:
        sys.exit(f"{what}: wrong")


def main():
    random = numpy.random.default_rng(1)
    for m, n, k in ((3000, 3000, 3000), (4097, 2001, 1003)):
        a = random.uniform(-1, 1, (m, k)).astype(numpy.float32)
        b = random.uniform(-1, 1, (n, k)).astype(numpy.float32)
        exact = a.astype(float) @ b.T.astype(float)
        magnitude = numpy.abs(a).astype(float) @ numpy.abs(b.T).astype(float)
        result = a @ b.T
        for repeat in range(100):     # the GPU starts once that would have paid
            if stats().gpu_calls:
                break
            result = a @ b.T
        check(f"{m} x {n} x {k}", result, exact, magnitude, k)
        check("the same in Fortran order", numpy.dot(numpy.asfortranarray(a), b.T), exact, magnitude, k)
    seen = stats()
    print(f"NumPy {numpy.__version__}: {seen.calls} calls reached our door, {seen.gpu_calls} ran on the GPU")
    if seen.gpu_calls < 2 or seen.failed_calls:
        sys.exit("the GPU was not used, or failed")


main()
