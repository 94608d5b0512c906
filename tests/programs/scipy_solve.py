# SPDX-License-Identifier: MIT
"""SciPy's solvers in four types: LU and Cholesky factors kept and used, inv, triangular systems. Prints
whether the residuals are small."""
import numpy as np
from scipy import linalg

def small(residual, *factors):
    return bool(np.abs(residual).max() < residual.shape[0] * np.finfo(residual.dtype).eps
                * np.prod([np.linalg.norm(x, 1) for x in factors]))

for dtype in "fdFD":
    n, rng = 150, np.random.default_rng(8)
    i = 0 if dtype in "fd" else 1j
    a = (rng.integers(-9, 9, (n, n)) + i * rng.integers(-9, 9, (n, n)) + 60 * np.eye(n)).astype(dtype)
    b = (rng.integers(-9, 9, (n, 70)) + i * rng.integers(-9, 9, (n, 70))).astype(dtype)
    lu = linalg.lu_factor(a)
    for trans, op in (0, a), (1, a.T), (2, a.conj().T):
        x = linalg.lu_solve(lu, b, trans=trans)
        print(dtype, "lu_solve", trans, small(op @ x - b, op, x))
    p, l, u = linalg.lu(a)
    print("lu", small(p @ l @ u - a, a))
    inverse = linalg.inv(a)
    print("inv", small(a @ inverse - np.eye(n, dtype=dtype), a, inverse))
    s = a @ a.conj().T
    for lower in False, True:
        factor = linalg.cho_factor(s, lower=lower)
        x = linalg.cho_solve(factor, b)
        print("cho_solve", "LU"[not lower], small(s @ x - b, s, x))
        t = np.tril(a) if lower else np.triu(a)
        x = linalg.solve_triangular(a, b, lower=lower)
        print("solve_triangular", "LU"[not lower], small(t @ x - b, t, x))
