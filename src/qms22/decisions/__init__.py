"""What scores mean: p-values, flags, bounds on false discoveries, and the verdict on a batch.

Nothing here learns. Scores come from a detector that has scored every known-normal row as if it had
not learned from it, on the scale of the batch.

- `ruler`, `comparison`: ranks, p-values and flags. `curve`, `beta_binomial`: how many of the first
  rows may be normal.
- `verdict`: fine, anomalies or drift. `moved_columns`, `change_text`: columns that have moved, and
  words for it.
- `over_time`, `batch_profile`: a batch among those of a history, and the budget of false alarms.
"""
