# SPDX-License-Identifier: MIT
import numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import euclidean_distances

x = np.random.default_rng(1).standard_normal((400, 60))
y = x @ np.arange(60.0)
print(Ridge(solver="cholesky").fit(x, y).coef_[:2].round(6))
print(euclidean_distances(x, x + 1).sum().round(3))
print(round(float(KMeans(3, n_init=1, random_state=0).fit(x).inertia_), 3))
