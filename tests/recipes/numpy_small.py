# SPDX-License-Identifier: MIT
import numpy as np

a = np.arange(40000.0).reshape(200, 200) * 7919 % 19 + 60 * np.eye(200)
s = a @ a.T
print((a @ (a + 1)).sum(), s.sum())
print(abs(a @ np.linalg.solve(a, s) - s).max() < 1e-7)
print(abs(np.linalg.cholesky(s)[0, 0] ** 2 - s[0, 0]) < 1e-9)
