"""The estimators: `QMS22`, `QMS22Ensemble`, `QMSClassifier`, and what decides and explains."""
