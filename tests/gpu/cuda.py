# SPDX-License-Identifier: MIT
"""What the scripts here share: CUDA's runtime and NVIDIA's libraries by ctypes, calls timed by turns."""
import ctypes
import statistics
import time

import numpy

TYPES = {"s": numpy.float32, "d": numpy.float64, "c": numpy.complex64, "z": numpy.complex128}


def pointer(x):
    """Of an array of NumPy's, or of a number that is an address on the device."""
    return ctypes.c_void_p(x.ctypes.data if isinstance(x, numpy.ndarray) else x)


def integer(x):
    return ctypes.byref(ctypes.c_int(x))


class Cuda:
    def __init__(self):
        self.runtime = ctypes.CDLL("libcudart.so")
        self.blas = ctypes.CDLL("libcublas.so")
        self.handle = ctypes.c_void_p()
        assert self.blas.cublasCreate_v2(ctypes.byref(self.handle)) == 0

    def room(self, size):
        at = ctypes.c_void_p()
        assert self.runtime.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(size)) == 0
        return at.value

    def copy(self, to, of, size):
        assert self.runtime.cudaMemcpy(pointer(to), pointer(of), ctypes.c_size_t(size), 4) == 0

    def put(self, x):
        at = self.room(x.nbytes)
        self.copy(at, x, x.nbytes)
        return at

    def get(self, like, at):
        x = numpy.empty_like(like)
        self.copy(x, at, x.nbytes)
        return x

    def wait(self):
        assert self.runtime.cudaDeviceSynchronize() == 0

    def free(self, *places):
        for at in places:
            assert self.runtime.cudaFree(pointer(at)) == 0


def median_ms(calls, most, seconds=None, least=3, before=None):
    """Medians of the calls' wall times, by turns: that many, or at least so many once the seconds are over.
    before is called before each of them, and not timed."""
    took, end = [[] for _ in calls], time.perf_counter() + seconds if seconds else None
    while len(took[0]) < most and (end is None or len(took[0]) < least or time.perf_counter() < end):
        for call, times in zip(calls, took):
            if before:
                before()
            begin = time.perf_counter()
            call()
            times.append(time.perf_counter() - begin)
    return [1e3 * statistics.median(times) for times in took]
