# SPDX-License-Identifier: MIT
"""NumPy's products: @, dot of transposed views, einsum, a batch. The operands are integers, so any BLAS is
exact."""
import numpy as np

a = (np.arange(150 * 90) % 7 - 3).reshape(150, 90).astype(np.float32)
b = (np.arange(90 * 130) % 5 - 2).reshape(90, 130).astype(np.float32)
c = a @ b
print("product", c[3, 4], c.sum(dtype=np.float64), np.array_equal(c, (a.astype(int) @ b.astype(int))))
print("transposed", np.array_equal(np.dot(b.T, a.T), c.T))
exact = a[::2, :64].astype(int) @ b[:64, ::-1].astype(int)
print("strided", np.array_equal(a[::2, :64] @ b[:64, ::-1], exact))
print("einsum", np.array_equal(np.einsum("ij,jk->ik", a, b, optimize=True), c))
print("stack", np.array_equal(np.stack([a, a + 1]) @ b, np.stack([c, (a + 1) @ b])))
