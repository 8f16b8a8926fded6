"""Small random QMS tasks, and ways to solve them that tests compare."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from reference import ReferenceSolver

from qms22._cpm.members import MemberFunctions
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.sweeps import Fit, FitState
from qms22._cpm.task import Task, classification_task, detection_task


def integer_rows(rng: np.random.RandomState, n: int, p: int, reach: int = 255) -> np.ndarray:
    return rng.randint(-reach, reach + 1, size=(n, p)).astype(float)


def random_task(
    kind: str, n_members: int, n_features: int, seed: int, n_rows: int = 60, reach: int = 255
) -> Task:
    """A task of integer-valued rows; kind is "detection", "classes" or "weighted classes"."""
    rng = np.random.RandomState(seed)
    X = integer_rows(rng, n_rows, n_features, reach)
    if kind == "detection":
        return detection_task(X, n_rows // 3, n_members, rng)
    labels = rng.permutation(np.arange(n_rows) % n_members).astype(np.int32)
    X += 20 * labels[:, None]  # classes with something to tell them apart
    weights = rng.randint(0, 5, size=n_rows).astype(float) if kind == "weighted classes" else None
    return classification_task(X, labels, n_members, weights)


def task_with_exact_hits(seed: int) -> tuple[Task, SolverOptions]:
    """A task of categories in which steps take member values to exactly 0."""
    rng = np.random.RandomState(seed)
    n_rows, n_levels, n_classes = rng.randint(20, 60), rng.randint(2, 5), rng.randint(2, 4)
    X = np.eye(n_levels)[rng.randint(n_levels, size=n_rows)]
    if seed % 2:
        X = np.hstack([X, np.eye(3)[rng.randint(3, size=n_rows)]])
    labels = rng.randint(n_classes, size=n_rows).astype(np.int32)
    labels[:n_classes] = range(n_classes)
    options = SolverOptions(
        n_components=int(rng.randint(1, 3)),
        alpha=float(rng.choice([0.0, 0.1, 0.5])),
        max_iter=6,
        step_b=1.0,
        init_b=float(rng.choice([2.0, 4.0])),
    )
    return classification_task(X, labels, n_classes), options


KINDS = ["detection", "classes", "weighted classes"]


@st.composite
def tasks_and_options(draw: st.DrawFn) -> tuple[Task, SolverOptions]:
    """Tasks over the whole range of the parameters, small enough for the reference."""
    task = random_task(
        draw(st.sampled_from(KINDS)),
        n_members=draw(st.integers(2, 10)),
        n_features=draw(st.integers(1, 6)),
        seed=draw(st.integers(0, 2**31 - 1)),
        n_rows=draw(st.integers(30, 90)),
        reach=draw(st.sampled_from([1, 3, 255])),
    )
    options = SolverOptions(
        n_components=draw(st.integers(1, 20)),
        alpha=draw(st.sampled_from([0.0, 0.1, 0.5, 0.8, 0.95])),
        max_iter=2,
        step_b=draw(st.sampled_from([1.0, 255.0])),
        init_b=draw(st.sampled_from([2.0, 100.0, 25500.0])),
    )
    return task, options


def by_reference(task: Task, options: SolverOptions) -> FitState:
    fit = Fit.of(task, options)
    solver, losses, accepted = ReferenceSolver(fit, options), [*fit.state.losses], 1
    while accepted and len(losses) <= options.max_iter:
        change, accepted = solver.sweep()
        losses.append(losses[-1] + change)
    members = MemberFunctions(solver.A, solver.b, options.floor)
    return FitState(members, losses, accepted)


def assert_same_members(found: FitState, expected: FitState) -> None:
    np.testing.assert_array_equal(found.members.A, expected.members.A)
    np.testing.assert_array_equal(found.members.b, expected.members.b)
