"""The estimators: `QMS22`, `QMS22Ensemble`, `QMSClassifier`, their decisions and reasons."""
