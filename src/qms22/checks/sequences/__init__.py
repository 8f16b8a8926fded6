"""Rows that belong together, in the order of time: what some of them say about the others.

- `in_time`: which date puts rows in order, and which columns say what belongs together.
- `in_order`: rows of an entity in order, and the columns that are derived from them.
- `repetition`: values that are stuck, rows that repeat the one before, bursts.
- `steps`: counters and gaps. `series`: numbers unlike those before and after.
- `limits`: many numbers just below a limit; products beyond one.
"""
