"""The state of a long fit in a file, to continue a fit that was killed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from qms22._cpm.members import MemberFunctions
from qms22._cpm.sweeps import FitState
from qms22._runtime.files import atomic_path

# Seconds between two writes: at least this, and this multiple of the time that a write takes, so
# that writing takes at most a twentieth of a fit.
_SECONDS_BETWEEN = 1.0
_TIMES_BETWEEN = 20.0

# The fields of a `FitState` and of its member functions.
_STATE = ("A", "b", "floor", "losses", "accepted")

_REMEDY = "delete it to start from the beginning, or name another file"


class Checkpoint:
    """A file with the states of several fits, None before the first sweep; not thread-safe.

    An existing file is read. It is written atomically, and at once, so that a path that cannot be
    written fails before the work. The fingerprint has what the result depends on, values of JSON by
    name; a file with another one is refused.
    """

    def __init__(self, path: Path, fingerprint: Mapping[str, Any], n_fits: int) -> None:
        self._path = path
        self._fingerprint = dict(fingerprint)
        self.states: list[FitState | None] = [None] * n_fits
        if not path.parent.is_dir():
            raise FileNotFoundError(
                f"the folder {str(path.parent)!r} of the checkpoint does not exist; create it first"
            )
        if path.exists():
            self._read()
        self.write()

    def update(self, number: int, state: FitState) -> None:
        """Store the state of a fit, and write the file if it is due."""
        self.states[number] = state
        if time.monotonic() >= self._due:
            self.write()

    def write(self) -> None:
        """Write the states of all fits."""
        begin = time.monotonic()
        arrays: dict[str, Any] = {"fingerprint": json.dumps(self._fingerprint)}
        for number, state in enumerate(self.states):
            if state is not None:
                values = {**vars(state.members), **vars(state)}
                arrays |= {f"{name}{number}": values[name] for name in _STATE}
        buffer = BytesIO()
        np.savez(buffer, **arrays)
        try:
            with atomic_path(self._path) as temporary, temporary.open("wb") as file:
                file.write(buffer.getbuffer())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OSError(
                f"{error}; the checkpoint is as it was before; once it can be written, the same "
                "fit continues from it"
            ) from error
        end = time.monotonic()
        self._due = end + max(_SECONDS_BETWEEN, _TIMES_BETWEEN * (end - begin))

    def _read(self) -> None:
        try:
            with self._path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                theirs = json.loads(str(archive["fingerprint"]))
                for number in range(len(self.states)):
                    if f"A{number}" in archive:
                        A, b, *others = (archive[f"{name}{number}"] for name in _STATE)
                        floor, losses, accepted = (each.tolist() for each in others)
                        members = MemberFunctions(A, b, floor)
                        self.states[number] = FitState(members, losses, accepted)
        except Exception as error:  # NumPy, zipfile and json raise many kinds on a foreign file
            raise ValueError(
                f"{str(self._path)!r} is not a checkpoint of a fit, or a damaged one; {_REMEDY}"
            ) from error
        others = [name for name, own in self._fingerprint.items() if theirs.get(name) != own]
        if others:
            raise ValueError(
                f"the checkpoint {str(self._path)!r} is of another fit (not the same: "
                f"{', '.join(others)}); {_REMEDY}"
            )
