"""
Old shells
==========

One of the paper's data sets: abalones of a rare age among common ones, from KEEL. The first column,
the sex, is a category; ``qms22_bench.datasets`` encodes it.
"""

import matplotlib.pyplot as plt
import numpy as np

from qms22.metrics import roc
from qms22_bench.datasets import load_keel, paper_table1
from qms22_bench.registry import get_detector, outlier_scores

dataset = load_keel("abalone-17_vs_7-8-9-10")
print(f"{dataset.n_rows} shells, {dataset.n_outliers} of them rare; folds: {dataset.folds_source}")

# %%
# Five folds, as in the paper: outliers of the training part are removed; the task is to find those
# of the test part.

names = ["QMS22", "BRM", "kNN", "IsolationForest", "OneClassSVM"]
aucs = {name: [] for name in names}
for fold in dataset.folds():
    for name in names:
        detector = get_detector(name).build(0)
        scores = outlier_scores(detector, fold.normal, fold.unlabeled)
        aucs[name].append(roc(fold.is_outlier, scores).auc)

_, axes = plt.subplots(figsize=(7, 3.5))
axes.boxplot(list(aucs.values()), orientation="horizontal", tick_labels=names)
in_print = paper_table1()[dataset.name].auc
axes.axvline(in_print, color="tab:red", linestyle="--", label=f"QMS22 in print: {in_print}")
axes.set(xlabel="AUC of the five folds")
axes.legend()
plt.tight_layout()
plt.show()
print({name: round(float(np.mean(values)), 3) for name, values in aucs.items()})
