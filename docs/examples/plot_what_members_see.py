"""
What the member functions see
=============================

Two measurements of iris flowers: 30 setosas are known to be normal, the batch holds 20 more of them
and 6 flowers of another species.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from qms22 import QMS22

X, y = load_iris(return_X_y=True)
X = X[:, :2]
setosa = np.random.RandomState(1).permutation(np.flatnonzero(y == 0))
strangers = np.flatnonzero(y == 2)[:6]
normal, batch = X[setosa[:30]], X[np.concatenate([setosa[30:], strangers])]
detector = QMS22(random_state=0, max_iter=20).fit(normal, unlabeled=batch)

# %%
# The first member function represents both tables, the others represent parts of the normal one. η
# is 0 where they agree; rows are suspicious where only the first is small.

sepal_length, sepal_width = np.meshgrid(np.linspace(4, 8.2, 200), np.linspace(2, 4.8, 200))
grid = np.column_stack([sepal_length.ravel(), sepal_width.ravel()])
eta = -detector.score_samples(grid).reshape(sepal_length.shape)

_, axes = plt.subplots(figsize=(7, 5))
filled = axes.contourf(sepal_length, sepal_width, np.log1p(eta), levels=12, cmap="Reds")
plt.colorbar(filled, ax=axes, label="log(1 + η)")
axes.plot(*normal.T, "o", color="0.4", label="known normal (T)")
axes.plot(*batch.T, "s", mfc="none", color="tab:blue", label="batch (S)")
axes.plot(*batch[detector.top_k(6)].T, "x", color="black", label="top 6")
axes.set(xlabel="sepal length (cm)", ylabel="sepal width (cm)")
axes.legend()
plt.show()
