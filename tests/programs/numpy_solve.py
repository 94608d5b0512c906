# SPDX-License-Identifier: MIT
"""NumPy's solvers in its four types: solve, inv, det, cholesky. Prints whether the residuals are small, and
determinants in as many digits as every correct answer has."""
import numpy as np

for dtype in "fdFD":
    n, rng = 150, np.random.default_rng(7)
    i = 0 if dtype in "fd" else 1j
    a = (rng.integers(-9, 9, (n, n)) + i * rng.integers(-9, 9, (n, n)) + 60 * np.eye(n)).astype(dtype)
    b = (rng.integers(-9, 9, (n, 70)) + i * rng.integers(-9, 9, (n, 70))).astype(dtype)
    tolerance = n * np.finfo(a.dtype).eps * np.linalg.norm(a, 1)
    x, inverse = np.linalg.solve(a, b), np.linalg.inv(a)
    print(dtype, "solve", np.abs(a @ x - b).max() < tolerance * np.abs(x).max())
    print("one right-hand side", np.allclose(np.linalg.solve(a, b[:, 0]), x[:, 0], rtol=1e-3))
    print("inv", np.abs(a @ inverse - np.eye(n)).max() < tolerance * np.abs(inverse).max())
    sign, logarithm = np.linalg.slogdet(a)
    print("det", np.round(complex(sign), 2), f"{logarithm:.3f}", np.linalg.det(a / 99).dtype)
    s = a @ a.conj().T
    l = np.linalg.cholesky(s)
    print("cholesky", np.abs(l @ l.conj().T - s).max() < n * np.finfo(a.dtype).eps * np.linalg.norm(s, 1),
          not np.triu(l, 1).any())
    for what, bad in ("cholesky", s - 1e9 * np.eye(n, dtype=dtype)), ("solve", np.zeros_like(a)):
        try:
            getattr(np.linalg, what)(*(bad, b)[:1 + (what == "solve")])
            print(what, "of a matrix that has none: False")
        except np.linalg.LinAlgError as error:
            print(what, error)
