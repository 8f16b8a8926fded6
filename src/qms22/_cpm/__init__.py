"""The coordinate perturbation method: tasks, member functions, sweeps, and the backends."""
