# SPDX-License-Identifier: MIT
"""SciPy's own BLAS wrappers in four types, with C given, beta, transposition and conjugation, and a symmetric
or Hermitian operand on both sides, with NaN in the triangle that is not stored. Operands are integers, or
have them as real and imaginary part, so any BLAS is exact."""
import numpy as np
from scipy.linalg import blas

def product(x, y):          # NumPy multiplies integers without a BLAS
    re, im = (lambda z: np.real(z).astype(int)), (lambda z: np.imag(z).astype(int))
    return re(x) @ re(y) - im(x) @ im(y) + 1j * (re(x) @ im(y) + im(x) @ re(y))

for letter, dtype in zip("sdcz", "fdFD"):
    gemm, syr2k, trmm = (getattr(blas, letter + name) for name in ("gemm", "syr2k", "trmm"))
    i = 0 if dtype in "fd" else 1j
    x = (np.arange(150 * 90) % 7 - 3).reshape(150, 90)
    y = (np.arange(90 * 130) % 5 - 2).reshape(90, 130)
    a, b = np.asfortranarray(x + i * x[::-1]).astype(dtype), np.asfortranarray(y - i * y).astype(dtype)
    # (x + i x') (y - i y), of integers that NumPy multiplies without a BLAS
    exact = x @ y + (i * (x[::-1] @ y - x @ y) + x[::-1] @ y if i else 0)
    print(dtype, np.array_equal(gemm(1.0, a, b), exact))
    ones = np.ones((150, 130), dtype, order="F")
    print("beta", np.array_equal(gemm(2.0, a, b.T, beta=-1.0, c=ones, trans_b=1), 2 * exact - 1))
    print("conjugated", np.array_equal(gemm(1.0, a.conj().T, b, trans_a=2), exact))
    other = np.asfortranarray(a[::-1] * 2)
    both = product(a, other.T) + product(other, a.T)
    print("two products", np.array_equal(np.triu(syr2k(1.0, a, other)), np.triu(both)))
    square = np.asfortranarray(both.real % 5 + i * (both.imag % 3)).astype(dtype)
    print("triangle", np.array_equal(trmm(1.0, square, a, lower=1), product(np.tril(square), a)))
    if i:
        half = product(a, other.conj().T) * 1j
        found = getattr(blas, letter + "her2k")(1j, a, other)
        print("Hermitian", np.array_equal(np.triu(found), np.triu(half + half.conj().T)))

for name, dtype in zip(("ssymm", "dsymm", "csymm", "zsymm", "chemm", "zhemm"), "fdFDFD"):
    x = np.arange(90 * 90).reshape(90, 90) % 11 - 5
    square = (x + (1j * x[::-1] if dtype in "FD" else 0)).astype(dtype)
    other = np.asfortranarray(np.arange(90 * 70).reshape(90, 70) % 3 - 1).astype(dtype)
    for lower in 0, 1:
        stored = (np.tril if lower else np.triu)(square)
        rest = stored.T.conj() if "hemm" in name else stored.T
        whole = stored + rest - np.diag(np.diag(rest))
        if "hemm" in name: np.fill_diagonal(whole, whole.diagonal().real)
        hidden = np.where((np.tri(90) if lower else np.tri(90).T) > 0, square, np.nan)
        a, b = np.asfortranarray(hidden.astype(dtype)), np.asfortranarray(other.T)
        multiply = getattr(blas, name)
        left = (whole[:, :, None] * other[None]).sum(1)
        print(name, lower, np.array_equal(multiply(1.0, a, other, lower=lower), left))
        right = (b[:, :, None] * whole[None]).sum(1)
        ones = np.ones((70, 90), dtype, order="F")
        both = multiply(2.0, a, b, beta=-1.0, c=ones, side=1, lower=lower)
        print("right", np.array_equal(both, 2 * right - 1))
