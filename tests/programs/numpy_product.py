# SPDX-License-Identifier: MIT
"""NumPy's products in its four types: @, dot of transposed views, of a matrix with itself, einsum, a batch.
The operands are integers, or have them as real and imaginary part, so any BLAS is exact."""
import numpy as np

def integers(rows, columns, modulus, dtype):
    x = (np.arange(rows * columns) % modulus - modulus // 2).reshape(rows, columns)
    return x if dtype in "fd" else x + 1j * x[::-1]

def exact(x, y):            # NumPy multiplies integers without a BLAS
    re, im = (lambda z: np.real(z).astype(int)), (lambda z: np.imag(z).astype(int))
    return re(x) @ re(y) - im(x) @ im(y) + 1j * (re(x) @ im(y) + im(x) @ re(y))

for dtype in "fdFD":
    a, b = integers(150, 90, 7, dtype).astype(dtype), integers(90, 130, 5, dtype).astype(dtype)
    c = a @ b
    print(dtype, "product", c[3, 4], c.sum(dtype=complex), np.array_equal(c, exact(a, b)))
    print("transposed", np.array_equal(np.dot(b.T, a.T), c.T))
    print("conjugated", np.array_equal(b.conj().T @ a.conj().T, c.conj().T))
    print("own transpose", np.array_equal(a @ a.T, exact(a, a.T)), np.array_equal(a.T @ a, exact(a.T, a)))
    print("strided", np.array_equal(a[::2, :64] @ b[:64, ::-1], exact(a[::2, :64], b[:64, ::-1])))
    print("einsum", np.array_equal(np.einsum("ij,jk->ik", a, b, optimize=True), c))
    print("stack", np.array_equal(np.stack([a, a + 1]) @ b, np.stack([c, (a + 1) @ b])))
