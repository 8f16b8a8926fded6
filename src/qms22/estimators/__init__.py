"""The estimators: `QMS22`, `QMS22Ensemble`, `QMSClassifier`, their decisions and reasons.

- `qms22`, `ensemble`, `classifier`: the estimators. `base`, `batch_detector`: what they share.
- `views`, `learning`: how each view of the ensemble scores, and how it learns. `weights`: how
  much each counts.
- `forest`, `nearest`, `cuda`: trees that tell the batch from T, distances, both on a GPU.
- `held_out`: the common scale of views, and out-of-bag scores by the values of rows.
- `flags`, `suspicious_normal`: flags and bounds of a detector, scores of its known-normal rows.
- `marks`, `explain`, `saved_ensemble`: rows someone has looked at, reasons, model files.
"""
