# SPDX-License-Identifier: MIT
"""gpublas.matmul with the tensors of PyTorch and the arrays of CuPy, on a real GPU: every type and layout in
place, work of other streams before it, every kernel forced, operands from both sides, and an error for what
cannot be. Prints `right` or `WRONG` and what; exits with 1 if anything is wrong. Elements are small whole
numbers, so that every product is exact. `--speed`: times them beside torch.matmul, at the end."""
import ctypes
import itertools
import os
import re
import sys
import tempfile
import time

import numpy

from gpublas import matmul, product

wrong = 0
layouts = ("rows", "columns", "part", "part of columns")


class Stats(ctypes.Structure):
    """The beginning of gpublas_stats_t."""
    _fields_ = [(name, ctypes.c_uint64) for name in ("calls", "gpu_calls", "host_calls", "failed_calls",
                                                     "bytes_to_gpu", "bytes_from_gpu")]


def check(what, good):
    global wrong
    wrong += not good
    print("right" if good else "WRONG", what, flush=True)


def stats():
    now = Stats()
    product.library().gpublas_stats(ctypes.byref(now), ctypes.c_size_t(ctypes.sizeof(now)))
    return now


def whole(shape, dtype, seed):
    numbers = numpy.random.default_rng(seed).integers(-4, 5, shape + (2,))
    x = numbers[..., 0] + 1j * numbers[..., 1] if "complex" in dtype else numbers[..., 0]
    return x.astype(dtype)


class Torch:
    name = "torch"

    def __init__(self):
        import torch
        self.module = torch

    def put(self, x, layout="rows"):
        """The matrix on the device in that layout, and all of the memory that it is a part of."""
        x = self.module.from_numpy(numpy.ascontiguousarray(x)).cuda()
        if layout == "rows":
            return x, x
        if layout == "columns":
            return x.t().contiguous().t(), x
        rows, columns = x.shape[0] + 3, x.shape[1] + 2
        room = self.module.full((columns, rows), 9, dtype=x.dtype, device="cuda").t() \
            if layout == "part of columns" else self.module.full((rows, columns), 9, dtype=x.dtype,
                                                                device="cuda")
        room[1:-2, 1:-1] = x
        return room[1:-2, 1:-1], room

    def home(self, x):
        return x.cpu().numpy()

    def address(self, x):
        return x.data_ptr()

    def beside(self, x, y):
        """x and y multiplied in a stream that has just begun to compute x."""
        stream = self.module.cuda.Stream()
        with self.module.cuda.stream(stream):
            late = self.module.zeros_like(x)
            self.module.cuda._sleep(200_000_000)
            late.copy_(x)
            return matmul(late, y)


class Cupy:
    name = "cupy"

    def __init__(self):
        import cupy
        self.module = cupy

    def put(self, x, layout="rows"):
        x = self.module.asarray(x)
        if layout == "rows":
            return x, x
        if layout == "columns":
            return self.module.asfortranarray(x), x
        room = self.module.full((x.shape[0] + 3, x.shape[1] + 2), 9, x.dtype,
                                order="F" if layout == "part of columns" else "C")
        room[1:-2, 1:-1] = x
        return room[1:-2, 1:-1], room

    def home(self, x):
        return self.module.asnumpy(x)

    def address(self, x):
        return x.data.ptr

    def beside(self, x, y):
        stream = self.module.cuda.Stream(non_blocking=True)
        large = self.module.ones((8192, 8192), "float32")
        with stream:
            late = self.module.zeros_like(x)
            for _ in range(4):
                large @ large
            late[...] = x
            return matmul(late, y)


def in_place(of, dtype, sizes):
    """Every layout of three matrices: the product, where it was to be, nothing beside it, nothing moved."""
    m, n, k = sizes
    a, b, bad = whole((m, k), dtype, 1), whole((k, n), dtype, 2), []
    right = a @ b
    for of_a, of_b, of_out in itertools.product(layouts, layouts, layouts + (None,)):
        x, y = of.put(a, of_a)[0], of.put(b, of_b)[0]
        z, room = (None, None) if of_out is None else of.put(numpy.full((m, n), 7, dtype), of_out)
        before, where = stats(), None if z is None else of.address(z)
        c = matmul(x, y, z)
        after = stats()
        good = numpy.array_equal(of.home(c), right) and (z is None or (c is z and of.address(c) == where))
        good &= type(c) is type(x)
        moved = after.bytes_to_gpu - before.bytes_to_gpu + after.bytes_from_gpu - before.bytes_from_gpu
        good &= moved == 0 and after.gpu_calls == before.gpu_calls + 1
        if room is not None and "part" in of_out:
            around = of.home(room).copy()
            around[1:-2, 1:-1] = 9
            good &= bool((around == 9).all())
        if not good:
            bad.append((of_a, of_b, of_out, moved))
    check(f"{of.name}, {dtype}, {m} x {n} x {k}: 80 layouts in place {bad[:3]}", not bad)


def of_producer(of):
    for dtype in product.NUMPY.values():
        for sizes in ((3, 5, 4), (1, 7, 1), (6, 1, 2), (130, 70, 200), (257, 300, 129)):
            in_place(of, dtype, sizes)
        a = whole((300, 300), dtype, 3)
        x = of.put(a)[0]
        check(f"{of.name}, {dtype}: a twice", numpy.array_equal(of.home(matmul(x, x)), a @ a))
        check(f"{of.name}, {dtype}: a and its transpose",
              numpy.array_equal(of.home(matmul(x, x.T)), a @ a.T))
        for m, n, k in ((0, 2, 3), (2, 3, 0)):
            x, y = of.put(whole((m, k), dtype, 1))[0], of.put(whole((k, n), dtype, 2))[0]
            check(f"{of.name}, {dtype}: {m} x {n} x {k}",
                  numpy.array_equal(of.home(matmul(x, y)), numpy.zeros((m, n), dtype)))
        a, b = whole((600, 600), dtype, 4), whole((600, 600), dtype, 5)
        for _ in range(3):
            c = of.beside(of.put(a)[0], of.put(b)[0])
            check(f"{of.name}, {dtype}: what its stream still computes comes first",
                  numpy.array_equal(of.home(c), a @ b))


class Trace:
    """What GPUBLAS_VERBOSE=1 prints meanwhile."""

    def __enter__(self):
        self.file, self.stderr = tempfile.TemporaryFile(), os.dup(2)
        os.dup2(self.file.fileno(), 2)
        self.before = product.option("VERBOSE", "1")
        return self

    def __exit__(self, *failure):
        os.dup2(self.stderr, 2)
        product.option("VERBOSE", self.before)
        os.close(self.stderr)
        self.file.seek(0)
        self.text = self.file.read().decode()


def forced(of):
    """Each kernel of each type, and whether the call was really its, by the trace."""
    for letter, kernel in sorted(product.kernels()):
        dtype = product.NUMPY[letter]
        a, b = whole((200, 150), dtype, 7), whole((150, 170), dtype, 8)
        x, y = of.put(a)[0], of.put(b)[0]
        with Trace() as trace:
            c = matmul(x, y, kernel=kernel)
        found = re.findall(r"route=(\S+) .* kernel=([a-z0-9_]+)", trace.text)
        check(f"{of.name}: kernel {letter}:{kernel} {found}",
              numpy.array_equal(of.home(c), a @ b) and found == [("gpu", kernel)])
    check(f"options afterwards: {product.option('KERNEL', '')!r}", product.option("KERNEL", "") == "")


def both_sides(torch, cupy):
    for dtype in product.NUMPY.values():
        a, b = whole((220, 130), dtype, 9), whole((130, 90), dtype, 10)
        tensor, pinned = torch.module.from_numpy(a), torch.module.from_numpy(a).pin_memory()
        x, y = torch.put(b)[0], cupy.put(b)[0] if cupy else None
        for what, left, right in (("NumPy's array", a, x), ("a tensor on the host", tensor, x),
                                  ("a pinned tensor", pinned, x), ("a tensor beside CuPy's array",
                                                                   torch.put(a)[0], y)):
            if right is None:
                continue
            out = torch.put(numpy.zeros((220, 90), dtype))[0]
            check(f"{dtype}: {what} times one on the device",
                  numpy.array_equal(torch.home(matmul(left, right, out)), a @ b))
        home = numpy.zeros((220, 90), dtype)
        matmul(torch.put(a)[0], x, home)
        check(f"{dtype}: tensors on the device into NumPy's array", numpy.array_equal(home, a @ b))
        if cupy:
            managed = cupy.module.ndarray(a.shape, dtype,
                                          cupy.module.cuda.malloc_managed(a.nbytes))
            managed[...] = cupy.module.asarray(a)
            check(f"{dtype}: managed memory", numpy.array_equal(cupy.home(matmul(managed, y)), a @ b))


def raises(what, error, *arguments, **named):
    try:
        matmul(*arguments, **named)
    except error as found:
        check(f"{what}: {type(found).__name__}: {found}", bool(str(found)))
    except Exception as found:  # noqa: BLE001: which it was is printed
        check(f"{what}: {type(found).__name__}: {found}", False)
    else:
        check(f"{what}: no error", False)


def errors(torch, cupy):
    t, x = torch.module, torch.put(whole((8, 8), "float32", 11))[0]
    z = torch.put(whole((8, 8), "complex64", 12))[0]
    raises("float16", TypeError, x.half(), x.half())
    raises("bfloat16", TypeError, x.bfloat16(), x.bfloat16())
    raises("whole numbers", TypeError, x.int(), x.int())
    raises("one dimension", ValueError, x[0], x)
    raises("a batch", ValueError, x.reshape(2, 4, 8), x)
    raises("sizes", ValueError, x, x[:4])
    raises("types", TypeError, x, x.double())
    raises("no neighbours", ValueError, x[::2, ::2], x[:4])
    raises("expanded", ValueError, x[:1].expand(8, 8), x)
    raises("needs a gradient", TypeError, x.clone().requires_grad_(), x)
    raises("conjugated, not yet computed", TypeError, z.conj(), z)
    raises("sparse", TypeError, x.to_sparse(), x)
    raises("out on the device is a", ValueError, x, x.clone(), x)
    raises("out of another size", ValueError, x, x, x[:4].clone())
    raises("no such kernel", ValueError, x, x, kernel="fastest")
    raises("a kernel of another type", ValueError, x, x, kernel="dmma")
    check("conjugated and computed", numpy.array_equal(torch.home(matmul(z.conj().resolve_conj(), z)),
                                                       torch.home(z).conj() @ torch.home(z)))
    with t.no_grad():
        y = x.clone().requires_grad_().detach()
        check("detached", numpy.array_equal(torch.home(matmul(y, x)), torch.home(x) @ torch.home(x)))
    if cupy:
        y = cupy.put(whole((8, 8), "float32", 11))[0]
        raises("CuPy, float16", TypeError, y.astype("float16"), y)
        raises("CuPy, backwards", ValueError, y[::-1], y)
        raises("CuPy, out is b", ValueError, y.copy(), y, y)


def tflops(compute, flops, synchronize):
    compute()
    synchronize()
    best = 1e9
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(4):
            compute()
        synchronize()
        best = min(best, (time.perf_counter() - begin) / 4)
    return 1e-12 * flops / best


def speed(torch, n=4096):
    t, synchronize = torch.module, torch.module.cuda.synchronize
    print(f"TFLOP/s, n = {n}, {t.cuda.get_device_name()}, torch {t.__version__}")
    for letter, dtype in product.NUMPY.items():
        x, y = (torch.put(whole((n, n), dtype, seed))[0] for seed in (13, 14))
        z, flops = t.empty_like(x), (8 if letter in "cz" else 2) * n**3
        print(f"  {dtype:10} torch.matmul {tflops(lambda: t.matmul(x, y, out=z), flops, synchronize):6.1f}"
              f"  gpublas.matmul {tflops(lambda: matmul(x, y, z), flops, synchronize):6.1f}")
    x, y = (torch.put(whole((2048, 2048), "float32", seed))[0] for seed in (13, 14))
    z = t.empty_like(x)
    for row in ladder():
        rate = tflops(lambda: matmul(x, y, z, kernel=row["name"]), 2 * 2048**3, synchronize)
        print(f"  step {row['step']:2} {row['name']:14} {rate:6.1f} (n = 2048)")


def ladder():
    from gpublas_program.library import describe
    rows = describe(product.LIBRARY)["kernels"]
    return sorted((row for row in rows if row["type"] == "s" and row.get("step", 99) <= 34),
                  key=lambda row: row["step"])


def main():
    producers = {}
    for kind in (Torch, Cupy):
        try:
            producers[kind.name] = kind()
        except ImportError as missing:
            print(f"missing: {missing}")
    torch, cupy = producers.get("torch"), producers.get("cupy")
    for of in producers.values():
        of_producer(of)
        forced(of)
    if torch:
        both_sides(torch, cupy)
        errors(torch, cupy)
    if torch and "--speed" in sys.argv:
        speed(torch)
    print(f"{wrong} wrong, with {' and '.join(producers) or 'nothing'}")
    return 1 if wrong or not producers else 0


if __name__ == "__main__":
    sys.exit(main())
