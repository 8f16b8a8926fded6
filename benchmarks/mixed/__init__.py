"""Recall of injected anomalies in mixed tables, against other detectors."""
