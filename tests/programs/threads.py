# SPDX-License-Identifier: MIT
"""Eight threads multiply at once, each its own A and B, and get the same bits as one after another. Equal
operands would hide a shared buffer."""
from concurrent.futures import ThreadPoolExecutor
import numpy as np


def operands(thread, round):
    draw = np.random.default_rng(1000 * thread + round)
    m, n, k = draw.integers(40, 260, 3)
    return draw.standard_normal((m, k), np.float32), draw.standard_normal((k, n), np.float32)


def products(thread):
    return [a @ b for a, b in (operands(thread, round) for round in range(40))]


serial = [products(thread) for thread in range(8)]
with ThreadPoolExecutor(8) as pool:
    parallel = list(pool.map(products, range(8)))
different = sum(not np.array_equal(x, y) for s, p in zip(serial, parallel) for x, y in zip(s, p))
print("products that differ:", different)
raise SystemExit(different > 0)
