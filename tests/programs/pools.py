# SPDX-License-Identifier: MIT
"""Six products of 300 x 300 by a pool of two workers. pools.py threads|processes: Dask's schedulers;
pools.py loky|multiprocessing|threading: joblib's backends. Prints the sum, a whole number."""
import sys

import numpy


def product(i):
    a = (numpy.arange(300 * 300).reshape(300, 300) + i) % 7.0
    return float((a @ a[::-1].T.copy()).sum())


if __name__ == "__main__":
    how = sys.argv[1]
    if how in ("threads", "processes"):
        import dask
        done = dask.compute(*[dask.delayed(product)(i) for i in range(6)], scheduler=how, num_workers=2)
    else:
        import joblib
        done = joblib.Parallel(n_jobs=2, backend=how)(joblib.delayed(product)(i) for i in range(6))
    print(sum(done))
