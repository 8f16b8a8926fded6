"""The whole job on two tables: encode, fit, rank, decide, explain."""
