"""
Quadratic multiform separation as a classifier
==============================================

Three kinds of wine by 13 chemical measurements.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import cross_val_predict

from qms22 import QMSClassifier

X, y = load_wine(return_X_y=True)
classifier = QMSClassifier(scaling="standard")
predicted = cross_val_predict(classifier, X, y, cv=10)
print(f"accuracy in 10-fold cross-validation: {(predicted == y).mean():.3f}")

# %%
# The loss falls from sweep to sweep, quickly at first.

classifier.fit(X, y)
_, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
left.semilogy(classifier.loss_)
left.set(xlabel="sweep", ylabel="loss Φ")
ConfusionMatrixDisplay.from_predictions(y, predicted, ax=right, colorbar=False)
plt.tight_layout()
plt.show()
