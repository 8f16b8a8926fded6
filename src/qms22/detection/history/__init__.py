"""Batches of the past: the file of a history, its entries and rows, and what a person has said."""
