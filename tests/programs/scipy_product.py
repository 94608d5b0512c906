# SPDX-License-Identifier: MIT
"""SciPy's own BLAS wrappers in four types, with C given, beta, transposition and conjugation. Operands are
integers, or have them as real and imaginary part, so any BLAS is exact."""
import numpy as np
from scipy.linalg import blas

for gemm, dtype in zip((blas.sgemm, blas.dgemm, blas.cgemm, blas.zgemm), "fdFD"):
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
