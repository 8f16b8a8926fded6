"""The package as a whole: names, interrupts, whole files."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

import qms22


def test_names() -> None:
    assert {*dir(qms22), "__version__"} == set(qms22.__all__)
    for name in qms22.__all__:
        assert getattr(qms22, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        qms22.nothing  # noqa: B018


LONG_FIT = """
import numpy as np
from qms22 import QMS22
rng = np.random.RandomState(0)
rows = rng.normal(size=({n_rows}, 20))
print("ready", flush=True)
try:
    QMS22(max_iter=100_000, {parameters}).fit(rows, unlabeled=rows[:100] + 1)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize(
    ("n_rows", "parameters"),
    [(200_000, ""), (400_000, "n_jobs=2"), (200_000, "n_restarts=4, n_jobs=2")],
)
def test_ctrl_c_ends_a_fit(n_rows: int, parameters: str) -> None:
    code = LONG_FIT.format(n_rows=n_rows, parameters=parameters)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as fit:
        assert fit.stdout is not None
        assert fit.stdout.readline().strip() == "ready"
        time.sleep(1.0)
        fit.send_signal(signal.SIGINT)
        try:
            output, _ = fit.communicate(timeout=300)
        finally:
            fit.kill()
    assert output.strip() == "interrupted"
    assert fit.returncode == 0


def test_a_callback_can_end_a_fit() -> None:
    from tasks import random_task

    from qms22._cpm.backends import solve
    from qms22._cpm.solver_options import SolverOptions
    from qms22._cpm.sweeps import FitState

    seen: list[tuple[int, float]] = []

    def on_sweep(state: FitState, seconds: float) -> None:
        seen.append((state.n_iter, state.loss))
        if state.n_iter == 3:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        solve(random_task("detection", 4, 3, seed=0), SolverOptions(), on_sweep)
    assert [n_iter for n_iter, _ in seen] == [1, 2, 3]
    assert seen[0][1] > seen[2][1]
