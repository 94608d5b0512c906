# SPDX-License-Identifier: MIT
import numpy as np
import statsmodels.api as sm

x = sm.add_constant(np.random.default_rng(1).standard_normal((400, 60)))
y = x @ np.arange(61.0) + np.sin(np.arange(400))
print(sm.OLS(y, x).fit().params[:3].round(6))
print(sm.GLS(y, x, np.eye(400)).fit().params[:3].round(6))
