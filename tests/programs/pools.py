# SPDX-License-Identifier: MIT
"""Six products of 300 x 300 by a pool of two workers. pools.py threads|processes: Dask's schedulers;
pools.py loky|multiprocessing|threading: joblib's backends; ray; spark: MLlib's block matrices, in Java.
Prints the sum, a whole number."""
import os
import sys
import time

import numpy


def product(i):
    a = (numpy.arange(300 * 300).reshape(300, 300) + i) % 7.0
    return float((a @ a[::-1].T.copy()).sum())


def by_ray():
    import ray
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR")
    done = ray.get([ray.remote(product).remote(i) for i in range(6)])
    time.sleep(2)                           # for what its workers said to arrive
    return done


def by_spark():
    """Row i of blocks times one column of them: six products."""
    from pyspark.mllib.linalg import Matrices
    from pyspark.mllib.linalg.distributed import BlockMatrix
    from pyspark.sql import SparkSession
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    blocks = [(numpy.arange(300 * 300) + i) % 7.0 for i in range(6)]

    def matrix(of):
        return BlockMatrix(spark.sparkContext.parallelize(
            [(at, Matrices.dense(300, 300, x)) for at, x in of], 2), 300, 300)
    left = matrix([((i, 0), x) for i, x in enumerate(blocks)])
    done = left.multiply(matrix([((0, 0), blocks[0])])).toLocalMatrix().toArray()
    spark.stop()
    return [float(done.sum())]


if __name__ == "__main__":
    how = sys.argv[1]
    if how in ("ray", "spark"):
        done = {"ray": by_ray, "spark": by_spark}[how]()
    elif how in ("threads", "processes"):
        import dask
        done = dask.compute(*[dask.delayed(product)(i) for i in range(6)], scheduler=how, num_workers=2)
    else:
        import joblib
        done = joblib.Parallel(n_jobs=2, backend=how)(joblib.delayed(product)(i) for i in range(6))
    print(sum(done))
