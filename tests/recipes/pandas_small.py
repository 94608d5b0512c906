# SPDX-License-Identifier: MIT
import numpy as np
import pandas as pd

x = pd.DataFrame(np.arange(90000.0).reshape(300, 300) * 7919 % 19, columns=[f"x{i}" for i in range(300)])
print((x.T @ x).iloc[0, 1], x.dot(x.to_numpy()).to_numpy().sum())
