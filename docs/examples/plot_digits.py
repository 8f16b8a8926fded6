"""
Strange digits
==============

The normal rows are handwritten threes. The batch holds 90 more of them and ten other digits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from qms22 import QMS22
from qms22.metrics import roc

digits = load_digits()
rng = np.random.RandomState(0)
threes = rng.permutation(np.flatnonzero(digits.target == 3))
others = rng.permutation(np.flatnonzero(digits.target != 3))[:10]
rows = np.concatenate([threes[:90], others])
normal, batch = digits.data[threes[90:]], digits.data[rows]

detector = QMS22(scaling="standard", max_iter=20, n_restarts=3, random_state=0)
detector.fit(normal, unlabeled=batch)
is_stranger = digits.target[rows] != 3
print(f"AUC {roc(is_stranger, detector.unlabeled_scores_).auc:.3f}")

# %%
# The 16 most suspicious images, with their scores.

figure, axes = plt.subplots(2, 8, figsize=(10, 3.2))
for ax, position in zip(axes.flat, detector.top_k(16), strict=True):
    ax.imshow(batch[position].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{detector.unlabeled_scores_[position]:.2f}", fontsize=9)
    ax.set_axis_off()
plt.show()
