"""The coordinate perturbation method: tasks, member functions, sweeps, and the backends.

- `task`, `members`, `scaling`, `solver_options`: what is solved. `sweeps`, `restarts`: how.
- `backends`: the choice of `native` (compiled) or `cuda`.
- `fit_log`, `checkpoint`: what is written meanwhile.
"""
