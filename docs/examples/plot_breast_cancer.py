"""
Tumors among patients
=====================

Half of the benign patients of scikit-learn's breast-cancer data are known. Which of the others have
a malignant tumor?
"""

# %%
# The known patients are T; the other benign ones and all malignant ones are the batch S.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import IsolationForest

from qms22 import QMS22
from qms22.plotting import plot_roc

X, y = load_breast_cancer(return_X_y=True)
benign = np.random.RandomState(0).permutation(np.flatnonzero(y == 1))
malignant = np.flatnonzero(y == 0)
normal = X[benign[:178]]
batch_rows = np.concatenate([benign[178:], malignant])
batch, is_malignant = X[batch_rows], y[batch_rows] == 0

detector = QMS22(random_state=0).fit(normal, unlabeled=batch)
print("malignant among the 20 most suspicious:", is_malignant[detector.top_k(20)].sum())

# %%
# For comparison: Isolation Forest, which does not learn from the batch.

forest = IsolationForest(random_state=0).fit(normal)
_, axes = plt.subplots(figsize=(6, 6))
plot_roc(is_malignant, detector.unlabeled_scores_, k=200, label="QMS22", ax=axes)
plot_roc(is_malignant, -forest.score_samples(batch), label="Isolation Forest", ax=axes)
plt.show()
