# SPDX-License-Identifier: MIT
"""matmul: a product of matrices of whatever library, by libgpublas."""
import ctypes
import functools
import sys
import threading

from gpublas import LIBRARY

INT = ctypes.c_int64
ROW_MAJOR, COLUMN_MAJOR, NO_TRANS, TRANS = 101, 102, 111, 112
# By BLAS's letter of the type: formats of the buffer protocol, DLPack's code and bits, bytes, the real type.
TYPES = {"s": ("f", (2, 32), 4, ctypes.c_float), "d": ("d", (2, 64), 8, ctypes.c_double),
         "c": ("Zf", (5, 64), 8, ctypes.c_float), "z": ("Zd", (5, 128), 16, ctypes.c_double)}
NUMPY = {"s": "float32", "d": "float64", "c": "complex64", "z": "complex128"}
HOSTS = (1, 3)                              # DLPack's kinds of device: CPU, pinned memory
DEVICES = (2, 13)                           # CUDA, managed memory
LEGACY_STREAM = 1                           # of CUDA, as DLPack numbers streams
kernels_exchanged = threading.Lock()


class Tensor(ctypes.Structure):
    """DLTensor of DLPack's dlpack.h, with which a DLManagedTensor begins."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Buffer(ctypes.Structure):
    """Py_buffer of CPython, as far as a memoryview does not tell: where the first element is."""
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t),
                ("rest", ctypes.c_byte * 128)]


class Matrix:
    """Where a matrix lies: letter of its type, address, rows, columns, and strides in elements."""

    def __init__(self, name, owner):
        self.name, self.owner, self.keep, self.on_device = name, owner, None, False
        try:
            view = memoryview(owner)
        except (TypeError, ValueError, BufferError):
            self._of_dlpack()
        else:
            self._of_buffer(view)
        if self.rows < 0 or self.columns < 0:
            raise ValueError(f"{name} is too large")

    def _check(self, ndim, letter, what):
        if ndim != 2:
            raise ValueError(f"{self.name} has {ndim} dimensions, not 2")
        if letter is None:
            raise TypeError(f"{self.name} is of {what}, not of float32, float64, complex64 or complex128")
        self.type = letter

    def _of_buffer(self, view):
        letter = next((x for x, row in TYPES.items() if view.format.lstrip("<=@") == row[0]), None)
        self._check(view.ndim, letter, f"format {view.format}")
        size = TYPES[letter][2]
        if any(stride % size for stride in view.strides):
            raise ValueError(f"{self.name}: its strides are no whole elements")
        raw = Buffer()
        full = 0x011C                       # PyBUF_FULL_RO: any strides, and read-only if need be
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(raw), full)
        self.address, self.readonly = raw.buf or 0, view.readonly
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(raw))
        self.keep = view
        (self.rows, self.columns), strides = view.shape, view.strides
        self.strides = tuple(stride // size for stride in strides)

    def _of_dlpack(self):
        if not hasattr(self.owner, "__dlpack__"):
            raise TypeError(f"{self.name} is a {type(self.owner).__name__}, which has neither the buffer "
                            "protocol nor DLPack")
        try:
            kind = int(self.owner.__dlpack_device__()[0])
            if kind not in HOSTS + DEVICES:
                raise TypeError(f"{self.name} is neither on a device of CUDA nor on the host (DLPack's "
                                f"{kind})")
            self.on_device = kind in DEVICES
            # The producer makes its work on the tensor come before what is queued on that stream next. The
            # library follows the legacy stream, and returns when the product is there.
            self.keep = (self.owner.__dlpack__(stream=LEGACY_STREAM) if self.on_device
                         else self.owner.__dlpack__())
        except (BufferError, RuntimeError) as refused:
            raise TypeError(f"{self.name} cannot be lent: {refused}") from None
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        tensor = Tensor.from_address(pointer(self.keep, b"dltensor"))
        letter = next((x for x, row in TYPES.items() if row[1] == (tensor.code, tensor.bits)), None)
        self._check(tensor.ndim, letter if tensor.lanes == 1 else None,
                    f"DLPack's type {tensor.code} of {tensor.bits} bits")
        self.rows, self.columns = tensor.shape[0], tensor.shape[1]
        self.strides = (tensor.strides[0], tensor.strides[1]) if tensor.strides else (self.columns, 1)
        self.address, self.readonly = (tensor.data or 0) + tensor.byte_offset, False

    def leading(self, along):
        """The leading dimension if elements are neighbours along that dimension, else None."""
        extents = self.rows, self.columns
        stride, other = self.strides[along], self.strides[1 - along]
        least = max(extents[along], 1)
        if 0 in extents:
            return least
        if extents[along] > 1 and stride != 1:
            return None
        if extents[1 - along] <= 1:
            return least
        return other if other >= least else None

    def span(self):
        """The first byte, and the one behind the last. Empty for no elements."""
        if not self.rows or not self.columns:
            return self.address, self.address
        size = TYPES[self.type][2]
        ends = [(extent - 1) * stride * size
                for extent, stride in zip((self.rows, self.columns), self.strides)]
        return (self.address + sum(min(end, 0) for end in ends),
                self.address + sum(max(end, 0) for end in ends) + size)

    def order(self, column_major):
        """How BLAS reads it in that order: (transposed or not, leading dimension)."""
        straight, across = (0, 1) if column_major else (1, 0)
        ld = self.leading(straight)
        if ld is not None:
            return NO_TRANS, ld
        ld = self.leading(across)
        if ld is not None:
            return TRANS, ld
        raise ValueError(f"{self.name}: neither its rows nor its columns are contiguous; copy it first")


@functools.lru_cache(maxsize=None)
def library():
    return ctypes.CDLL(LIBRARY)


@functools.lru_cache(maxsize=None)
def kernels():
    from gpublas_program.library import describe
    return {(row["type"], row["name"]) for row in describe(LIBRARY)["kernels"]}


def empty_like(a, m, n):
    """An m x n result of the library that a is of."""
    home = type(a.owner).__module__.partition(".")[0]
    if home == "torch":
        return a.owner.new_empty((m, n))
    if a.on_device and home == "cupy":
        return sys.modules["cupy"].empty((m, n), NUMPY[a.type])
    if a.on_device:
        raise TypeError(f"no result can be made of a {type(a.owner).__name__}; give one by out=")
    try:
        import numpy
    except ImportError:
        if a.type in "cz":
            raise TypeError("without NumPy there is no complex result; give one by out=") from None
        made = memoryview((TYPES[a.type][3] * n * m)())
        return made.cast("B").cast(TYPES[a.type][0], (m, n)) if m and n else made
    return numpy.empty((m, n), NUMPY[a.type])


def option(name, value):
    """Sets one of the library's options, and returns what it was."""
    before = ctypes.create_string_buffer(4096)
    library().gpublas_get_option(name.encode(), before, ctypes.c_size_t(len(before)))
    if library().gpublas_set_option(name.encode(), value.encode()):
        raise ValueError(f"the library does not take {name}={value}")
    return before.value.decode()


def multiply(a, b, out):
    column_major = out.leading(1) is None
    order = COLUMN_MAJOR if column_major else ROW_MAJOR
    trans_out, ldc = out.order(column_major)
    if trans_out != NO_TRANS:
        raise ValueError(f"{out.name} cannot be written in place")
    (transa, lda), (transb, ldb) = a.order(column_major), b.order(column_major)
    real = TYPES[a.type][3]
    if a.type in "sd":
        alpha, beta = real(1), real(0)
    else:
        alpha, beta = ((real * 2)(value, 0) for value in (1, 0))
    pointer = ctypes.c_void_p
    function = getattr(library(), f"cblas_{a.type}gemm64_")
    function.restype = None
    function(ctypes.c_int(order), ctypes.c_int(transa), ctypes.c_int(transb), INT(out.rows), INT(out.columns),
             INT(a.columns), alpha, pointer(a.address), INT(lda), pointer(b.address), INT(ldb), beta,
             pointer(out.address), INT(ldc))


def matmul(a, b, out=None, kernel=None):
    """The product of an m x k and a k x n matrix, m x n.

    a, b, out: matrices of one type, float32, float64, complex64 or complex128, of any library that speaks the
        buffer protocol (NumPy, memoryview, array) or DLPack (PyTorch, CuPy and others; tensors of CUDA are
        multiplied where they are). Rows or columns must be contiguous, as BLAS has them; what is neither is
        refused, not copied. a and b may be the same.
    out: where the result is written, and what is returned; it may not share memory with a or b. None: a new
        matrix of a's library. A tensor of CUDA is complete when matmul returns.
    kernel: the one kernel to compute with, by a name that `python -m gpublas info --all` lists for the type:
        each step of the ladder can be tried. Other threads' products use it too until the call returns, and
        two calls with kernel= wait for each other. Without a GPU the host computes all the same.

    Raises TypeError for what is no such matrix, ValueError for sizes, strides or names that do not fit.
    """
    a, b = Matrix("a", a), Matrix("b", b)
    if a.type != b.type:
        raise TypeError(f"a is {NUMPY[a.type]}, b is {NUMPY[b.type]}")
    if a.columns != b.rows:
        raise ValueError(f"a is {a.rows} x {a.columns}, b is {b.rows} x {b.columns}")
    if kernel is not None and (a.type, kernel) not in kernels():
        raise ValueError(f"no kernel for {NUMPY[a.type]} is called {kernel}: python -m gpublas info --all "
                         "lists them")
    out = Matrix("out", empty_like(a, a.rows, b.columns) if out is None else out)
    if (out.rows, out.columns) != (a.rows, b.columns) or out.type != a.type:
        raise ValueError(f"out is {NUMPY[out.type]}, {out.rows} x {out.columns}, and not {NUMPY[a.type]}, "
                         f"{a.rows} x {b.columns}")
    if out.readonly:
        raise ValueError("out is read-only")
    begin, end = out.span()
    for x in (a, b):
        if x.span()[0] < end and begin < x.span()[1]:
            raise ValueError(f"out shares memory with {x.name}")
    if kernel is None:
        multiply(a, b, out)
        return out.owner
    with kernels_exchanged:
        before = {name: option(name, value) for name, value in (("OFFLOAD", "always"), ("KERNEL", kernel))}
        try:
            multiply(a, b, out)
        finally:
            for name, value in before.items():
                option(name, value)
    return out.owner
