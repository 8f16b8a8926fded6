"""The state of a long fit in a file, so that a killed one goes on where it stood."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from qms22 import __version__
from qms22._cpm.options import SolverOptions
from qms22._cpm.sweeps import FitState
from qms22._runtime.files import written_whole

# At least so many seconds pass between two writes, and many more than a write takes.
_SECONDS_BETWEEN = 1.0
_TIMES_BETWEEN = 20.0

_GO_ON = "delete it to start anew, or name another file"


def parameters_of(n_members: int, options: SolverOptions) -> dict[str, Any]:
    """Give the part of a fingerprint that does not depend on rows."""
    parameters = asdict(options)
    del parameters["n_threads"]
    return {"version of qms22": __version__, "n_members": n_members, **parameters}


class Checkpoint:
    """A file with the states of several fits of one problem; use it from one thread at a time.

    Parameters
    ----------
    path : Path
        Read where there is one. It is written whole or not at all, and right away: a place that
        cannot be written to is found before the work.
    fingerprint : mapping
        What the result depends on, by name, in the values of JSON. A file with another one is
        refused.
    n_fits : int

    Attributes
    ----------
    states : list of FitState or None
        Where each fit stands; None before its first sweep.
    """

    def __init__(self, path: Path, fingerprint: Mapping[str, Any], n_fits: int) -> None:
        self._path = path
        self._fingerprint = dict(fingerprint)
        self.states: list[FitState | None] = [None] * n_fits
        if not path.parent.is_dir():
            raise FileNotFoundError(
                f"the folder {str(path.parent)!r} of the checkpoint does not exist; make it first"
            )
        if path.exists():
            self._read()
        self.write()

    def update(self, number: int, state: FitState) -> None:
        """Take note of where a fit stands, and write when it is time to."""
        self.states[number] = replace(state, losses=[*state.losses])
        if time.monotonic() >= self._due:
            self.write()

    def write(self) -> None:
        """Write the states of all fits."""
        begin = time.monotonic()
        arrays: dict[str, Any] = {"fingerprint": json.dumps(self._fingerprint)}
        for number, state in enumerate(self.states):
            if state is not None:
                arrays |= {f"{name}{number}": value for name, value in vars(state).items()}
        buffer = BytesIO()
        np.savez(buffer, **arrays)
        try:
            with written_whole(self._path) as temporary, temporary.open("wb") as file:
                file.write(buffer.getbuffer())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OSError(
                f"{error}; the checkpoint is as it was before, and the same fit goes on from it "
                "once it can be written"
            ) from error
        end = time.monotonic()
        self._due = end + max(_SECONDS_BETWEEN, _TIMES_BETWEEN * (end - begin))

    def _read(self) -> None:
        try:
            with self._path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                theirs = json.loads(str(archive["fingerprint"]))
                numbers = range(len(self.states))
                self.states = [_state(archive, n) if f"A{n}" in archive else None for n in numbers]
        except Exception as error:  # a foreign file makes NumPy, zipfile and json raise anything
            raise ValueError(
                f"{str(self._path)!r} is not a checkpoint of a fit, or a damaged one; {_GO_ON}"
            ) from error
        others = [name for name, own in self._fingerprint.items() if theirs.get(name) != own]
        if others:
            raise ValueError(
                f"the checkpoint {str(self._path)!r} is of another fit (not the same: "
                f"{', '.join(others)}); {_GO_ON}"
            )


def _state(archive: Any, number: int) -> FitState:
    return FitState(
        archive[f"A{number}"],
        archive[f"b{number}"],
        archive[f"losses{number}"].tolist(),
        int(archive[f"accepted{number}"]),
    )
