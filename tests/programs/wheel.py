# SPDX-License-Identifier: MIT
"""gpublas.matmul against NumPy, in all types and layouts, and its errors. Prints a line a check, `right` or
`WRONG`. Elements are small whole numbers, so that every product is exact. Device memory is that of the
software libcuda, which this program must have."""
import array
import ctypes
import itertools

import numpy

import gpublas
from gpublas import matmul, product

driver = ctypes.CDLL("libcuda.so.1")


def check(what, good):
    print("right" if good else "WRONG", what)


def whole(shape, dtype, seed):
    numbers = numpy.random.default_rng(seed).integers(-4, 5, shape + (2,))
    x = numbers[..., 0] + 1j * numbers[..., 1] if "complex" in dtype else numbers[..., 0]
    return x.astype(dtype)


def laid(x, layout):
    """The same matrix, in another layout."""
    if layout == "rows":
        return numpy.ascontiguousarray(x)
    if layout == "columns":
        return numpy.asfortranarray(x)
    room = numpy.full((x.shape[0] + 3, x.shape[1] + 2), numpy.nan, x.dtype)     # "part", "part of columns"
    if layout == "part of columns":
        room = numpy.asfortranarray(room)
    part = room[1:-2, 1:-1]
    part[...] = x
    return part


layouts = ("rows", "columns", "part", "part of columns")
for dtype in product.NUMPY.values():
    wrong = []
    for m, n, k in ((3, 5, 4), (1, 7, 1), (6, 1, 2), (1, 1, 1), (0, 2, 3), (2, 3, 0), (65, 33, 70)):
        a, b = whole((m, k), dtype, 1), whole((k, n), dtype, 2)
        for of_a, of_b, of_out in itertools.product(layouts, layouts, layouts + (None,)):
            room = None if of_out is None else laid(numpy.full((m, n), 7, dtype), of_out)
            c = matmul(laid(a, of_a), laid(b, of_b), room)
            if not numpy.array_equal(c, a @ b) or (room is not None and c is not room):
                wrong.append((m, n, k, of_a, of_b, of_out))
    check(f"{dtype}: all layouts {wrong[:3]}", not wrong)
    a = whole((40, 40), dtype, 3)
    check(f"{dtype}: a twice", numpy.array_equal(matmul(a, a), a @ a))
    check(f"{dtype}: a and its transpose", numpy.array_equal(matmul(a, a.T), a @ a.T))

# ---- without NumPy's arrays
flat = memoryview(array.array("d", range(6))).cast("B").cast("d", (2, 3))
tall = memoryview(array.array("d", range(6))).cast("B").cast("d", (3, 2))
check("memoryviews", matmul(flat, tall).tolist() == [[10.0, 13.0], [28.0, 40.0]])


# ---- DLPack: memory of the software GPU, and of the host
class Managed(ctypes.Structure):
    _fields_ = [("tensor", product.Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Tensor:
    def __init__(self, x, kind, strides=True):
        self.kind, self.streams = kind, []
        self.shape, self.steps = x.shape, [step // x.itemsize for step in x.strides]
        self.strides, self.dtype, self.bytes = strides, x.dtype, x.nbytes
        self.address = ctypes.c_void_p(x.ctypes.data)
        self.x = x
        if kind == 2:
            assert driver.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(max(x.nbytes, 1))) == 0
            assert driver.cuMemcpyHtoD_v2(self.address, x.ctypes.data_as(ctypes.c_void_p),
                                          ctypes.c_size_t(x.nbytes)) == 0

    def __dlpack_device__(self):
        return self.kind, 0

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        code = 5 if self.dtype.kind == "c" else 2
        self.sizes, self.steps_c = (ctypes.c_int64 * 2)(*self.shape), (ctypes.c_int64 * 2)(*self.steps)
        self.managed = Managed(product.Tensor(
            data=self.address.value - 8, device_type=self.kind, device_id=0, ndim=len(self.shape), code=code,
            bits=8 * self.dtype.itemsize, lanes=1, shape=self.sizes,
            strides=self.steps_c if self.strides else None, byte_offset=8))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.name = b"dltensor"
        return new(ctypes.addressof(self.managed), self.name, None)

    def back(self):
        home = numpy.empty(self.shape, self.dtype)
        if self.kind != 2:
            return self.x
        driver.cuMemcpyDtoH_v2(home.ctypes.data_as(ctypes.c_void_p), self.address,
                               ctypes.c_size_t(home.nbytes))
        return home


def context():
    made = ctypes.c_void_p()
    assert driver.cuInit(0) == 0 and driver.cuDevicePrimaryCtxRetain(ctypes.byref(made), 0) == 0
    assert driver.cuCtxSetCurrent(made) == 0


context()
for dtype, kind, strides in itertools.product(product.NUMPY.values(), (1, 2), (True, False)):
    a, b = whole((30, 20), dtype, 4), whole((20, 25), dtype, 5)
    x, y, z = (Tensor(of, kind, strides) for of in (a, b, whole((30, 25), dtype, 6)))
    good = matmul(x, y, out=z) is z and numpy.array_equal(z.back(), a @ b)
    check(f"{dtype}: DLPack of kind {kind}", good and set(x.streams) == {1 if kind == 2 else None})

# ---- kernels: each of its type, forced
a = {letter: whole((70, 70), dtype, 7) for letter, dtype in product.NUMPY.items()}
for letter, kernel in sorted(product.kernels()):
    x = a[letter]
    check(f"kernel {letter}:{kernel}", numpy.array_equal(matmul(x, x, kernel=kernel), x @ x))
options = [product.option(name, "") for name in ("KERNEL", "OFFLOAD")]
check(f"options afterwards: {options}", options[0] == "")


# ---- errors
def raises(what, error, *arguments, **named):
    try:
        matmul(*arguments, **named)
    except error as found:
        check(f"{what}: {found}", True)
    else:
        check(what, False)


x = numpy.ones((4, 4))
frozen = numpy.ones((4, 4))
frozen.flags.writeable = False
raises("sizes", ValueError, x, numpy.ones((5, 4)))
raises("types", TypeError, x, numpy.ones((4, 4), "float32"))
raises("integers", TypeError, x.astype(int), x.astype(int))
raises("one dimension", ValueError, x[0], x)
raises("three dimensions", ValueError, numpy.ones((2, 2, 2)), x)
raises("no matrix", TypeError, [[1.0]], x)
raises("no neighbours", ValueError, numpy.ones((8, 8))[::2, ::2], x)
raises("backwards", ValueError, x[::-1], x)
raises("rows over each other", ValueError, numpy.lib.stride_tricks.as_strided(x, (4, 4), (8, 8)), x)
raises("out of another size", ValueError, x, x, numpy.ones((4, 5)))
raises("out of another type", ValueError, x, x, numpy.ones((4, 4), "float32"))
raises("out that is read-only", ValueError, x, x, frozen)
raises("out is a", ValueError, x, frozen, x)
both = numpy.ones((8, 4))
raises("out overlaps b", ValueError, x, both[:4], both[3:7])
raises("no such kernel", ValueError, x, x, kernel="fastest")
raises("a kernel of another type", ValueError, x, x, kernel="wmma_tf32")
raises("another device", TypeError, Tensor(x, 10), x)


class Refuses(Tensor):
    def __dlpack__(self, stream=None):
        raise BufferError("it requires a gradient")


raises("a tensor that is not lent", TypeError, x, Refuses(x, 1))
check("a read-only operand", numpy.array_equal(matmul(frozen, x), frozen @ x))
print("library", gpublas.LIBRARY)
