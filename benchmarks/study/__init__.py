"""The study behind `QMS22Ensemble`: every variant that was tried, and how one was chosen."""
