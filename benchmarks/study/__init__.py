"""The study behind `QMS22Ensemble`: the variants that were tried, and how one was chosen."""
