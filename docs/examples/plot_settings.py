"""
Sweeps, scaling and shuffles
============================

How settings change the result on the breast-cancer data: the mean AUC over ten splits. One data set
proves little; the :doc:`evaluation </evaluation>` has 95.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from qms22 import QMS22
from qms22.metrics import roc

X, y = load_breast_cancer(return_X_y=True)


def mean_auc(**settings):
    """Return the mean over splits in which one row in ten of the batch is malignant."""
    aucs = []
    for seed in range(10):
        rng = np.random.RandomState(seed)
        benign = rng.permutation(np.flatnonzero(y == 1))
        malignant = rng.permutation(np.flatnonzero(y == 0))[:20]
        rows = np.concatenate([benign[178:], malignant])
        detector = QMS22(random_state=seed, **settings).fit(X[benign[:178]], unlabeled=X[rows])
        aucs.append(roc(y[rows] == 0, detector.unlabeled_scores_).auc)
    return np.mean(aucs)


# %%
# Each curve is one kind of scaling, once with a single shuffle of T and once averaged over three.

sweeps = [5, 10, 20, 40, 60]
_, axes = plt.subplots(figsize=(7, 4.5))
for scaling in ("maxabs", "standard"):
    for n_restarts, style in ((1, "o--"), (3, "o-")):
        aucs = [mean_auc(scaling=scaling, max_iter=n, n_restarts=n_restarts) for n in sweeps]
        axes.plot(sweeps, aucs, style, label=f"{scaling}, {n_restarts} shuffle(s)")
axes.set(xlabel="sweeps", ylabel="mean AUC")
axes.legend()
plt.show()
