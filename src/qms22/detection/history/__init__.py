"""Batches of the past: the file of a history, and searches with it."""
