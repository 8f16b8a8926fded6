"""Flagged rows that have something in common."""
