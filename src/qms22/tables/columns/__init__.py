"""Columns of any table in one form, what they are, and how they become a matrix."""
