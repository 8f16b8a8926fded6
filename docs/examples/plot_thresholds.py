"""
Flagging with a guarantee
=========================

How many rows of a batch deserve a look, and how many of those will be false alarms? The
breast-cancer data again: 297 benign patients are known, and the batch has the other 60 benign ones
and 15 with a malignant tumor. :doc:`The guide </thresholds>` says more about what is done here.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from qms22 import QMS22Ensemble

X, y = load_breast_cancer(return_X_y=True)
is_malignant = np.arange(75) >= 60


def draw(seed):
    """Return known-normal rows and a batch; the last 15 rows of the batch are malignant."""
    rng = np.random.RandomState(seed)
    benign = rng.permutation(np.flatnonzero(y == 1))
    malignant = rng.permutation(np.flatnonzero(y == 0))[:15]
    return X[benign[:297]], X[np.concatenate([benign[297:], malignant])]


normal, batch = draw(seed=0)
detector = QMS22Ensemble(random_state=0).fit(normal, unlabeled=batch)
flagged = detector.flag(fdr=0.1)
print(flagged.sum(), "flagged,", (flagged & ~is_malignant).sum(), "of them false alarms")
print("at most", detector.false_at_most(flagged.sum()), "of them are false alarms (90 % sure)")

# %%
# The p-values. Those of normal rows are spread evenly, up to chance, for any data (dashed line);
# those of outliers are near 0. Flagging needs no more than that.


def draw_p_values(p_values, axes):
    """Draw p-values as a histogram."""
    parts = [p_values[~is_malignant], p_values[is_malignant]]
    axes.hist(parts, bins=np.linspace(0, 1, 11), stacked=True, label=["benign", "malignant"])
    axes.axhline(6, color="black", lw=1, ls="--", label="60 normal rows, on average")
    axes.set(xlabel="p-value", ylabel="patients")


_, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
draw_p_values(detector.p_values(), axes)
axes.legend()
plt.show()

# %%
# How many of the first rows may be normal? The bounds hold for all numbers of rows at once, with a
# confidence of 90 %: look at the rows first, and stop where you like. In one batch of ten they may
# be too low, and here they are.

ranking = detector.top_k(75)
_, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.step(np.arange(1, 76), detector.false_at_most(), where="post", label="at most (90 % sure)")
axes.step(np.arange(1, 76), np.cumsum(~is_malignant[ranking]), where="post", label="in truth")
axes.axvline(flagged.sum(), color="black", lw=1, ls="--", label="flagged at 0.1")
axes.set(xlabel="first rows of the ranking", ylabel="benign patients among them")
axes.legend()
plt.show()

# %%
# The guarantee holds on average. These are forty batches of the same patients, one dot each: in
# some of them the share of false alarms is above the level, but not on average (the bar). The batch
# above is one of the two worst.

levels = (0.05, 0.1, 0.2)
shares = np.zeros((40, 3))
for seed in range(40):
    known, other = draw(seed)
    each = QMS22Ensemble(random_state=seed).fit(known, unlabeled=other)
    for at, fdr in enumerate(levels):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some batches have nothing to flag
            flagged = each.flag(fdr)
        shares[seed, at] = (flagged & ~is_malignant).sum() / max(1, flagged.sum())

_, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for at, fdr in enumerate(levels):
    axes.plot(at + np.linspace(-0.3, 0.3, 40), np.sort(shares[:, at]), ".", color=f"C{at}")
    axes.hlines(shares[:, at].mean(), at - 0.35, at + 0.35, color=f"C{at}", lw=3)
    axes.hlines(fdr, at - 0.35, at + 0.35, color="black", ls="--", lw=1)
axes.set(xticks=range(3), xticklabels=levels, xlabel="fdr (dashed line)", ylabel="false alarms")
plt.show()

# %%
# And this breaks it: another machine, with which every measurement of the batch is a tenth higher.
# Normal rows of the batch no longer have the distribution of the known-normal ones. No single
# p-value shows that, but together they do: hardly any is above one half. The verdict says so.

drifted = QMS22Ensemble(random_state=0).fit(normal, unlabeled=1.1 * batch)
flagged = drifted.flag(fdr=0.1)
print(flagged.sum(), "flagged,", (flagged & ~is_malignant).sum(), "of them false alarms")
print(drifted.verdict())

_, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
draw_p_values(drifted.p_values(), axes)
axes.legend()
plt.show()
