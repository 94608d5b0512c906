# SPDX-License-Identifier: MIT
"""SciPy's own BLAS wrappers, with C given, beta and transposition. The operands are integers, so any BLAS
is exact."""
import numpy as np
from scipy.linalg import blas

a = np.asfortranarray((np.arange(150 * 90) % 7 - 3).reshape(150, 90), dtype=np.float32)
b = np.asfortranarray((np.arange(90 * 130) % 5 - 2).reshape(90, 130), dtype=np.float32)
exact = a.astype(int) @ b.astype(int)
print("sgemm", np.array_equal(blas.sgemm(1.0, a, b), exact))
ones = np.ones((150, 130), np.float32, order="F")
print("beta", np.array_equal(blas.sgemm(2.0, a, b.T, beta=-1.0, c=ones, trans_b=1), 2 * exact - 1))
print("dgemm", np.array_equal(blas.dgemm(1.0, a, b), exact))
