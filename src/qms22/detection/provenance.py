"""Where a result comes from: digests of inputs and scores, settings, versions and time."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qms22 import __version__
from qms22.detection.history.history_rows import digest
from qms22.tables import Table

if TYPE_CHECKING:
    from qms22.detection.result import Detection


def provenance_of(found: Detection) -> dict[str, Any]:
    """Return what is needed to repeat a search, and to see that it gives the same scores."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "qms22": __version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "seed": found.settings.get("seed"),
        "inputs": [input_facts(role, table) for role, table in found.inputs],
        "scores_sha256": _digest_of(found.scores),
        "scores_mean": float(np.nanmean(found.scores)) if found.n_scored else None,
    }


def input_facts(role: str, given: Table | Path) -> dict[str, Any]:
    """Return name, size and digest of an input: of the bytes of its files, or else of its cells.

    Rows on a cluster have no digest.
    """
    files = []
    for path in (given,) if isinstance(given, Path) else given.files:
        with path.open("rb") as file:
            files.append({"name": str(path), "sha256": file_digest(file, "sha256").hexdigest()})
    facts = {"role": role, "files": files}
    if isinstance(given, Path):
        return {**facts, "name": str(given), "rows": None, "columns": None, "cells_sha256": None}
    return {
        **facts,
        "name": given.name,
        "rows": given.n_rows,
        "columns": len(given.names),
        "cells_sha256": None if files or given.is_distributed else digest(given),
    }


def _digest_of(scores: NDArray[np.float64]) -> str:
    """Return the SHA-256 of all scores, to the bit; rows without a score have one NaN."""
    plain = np.where(np.isnan(scores), np.nan, scores).astype("<f8")
    return sha256(plain.tobytes()).hexdigest()
