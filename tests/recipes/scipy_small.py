# SPDX-License-Identifier: MIT
import numpy as np
from scipy import linalg

a = np.asfortranarray(np.arange(40000.0).reshape(200, 200) * 7919 % 19 + 60 * np.eye(200))
s = linalg.blas.dgemm(1, a, a, trans_b=True)
print(s.sum())
print(abs(s @ linalg.cho_solve(linalg.cho_factor(s), a) - a).max() < 1e-7)
print(abs(a @ linalg.lu_solve(linalg.lu_factor(a), s) - s).max() < 1e-7)
