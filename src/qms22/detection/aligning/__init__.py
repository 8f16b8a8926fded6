"""Columns of two tables: which belong together, are written alike, or only say when."""
