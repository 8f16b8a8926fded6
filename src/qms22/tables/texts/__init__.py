"""What texts mean: numbers, units, dates and words."""
