"""What an analyst knows about rows, and known-normal rows to look at."""
