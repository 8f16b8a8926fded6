"""Model files for tests: a small one, and ways to spoil it."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qms22 import QMS22
from qms22.models import load_model


def small_rows() -> tuple[np.ndarray, np.ndarray]:
    """Normal rows, and a batch whose first three rows are outliers."""
    rng = np.random.RandomState(0)
    batch = rng.normal(size=(30, 3))
    batch[:3] += 5
    return rng.normal(size=(60, 3)), batch


def small_detector() -> QMS22:
    normal, batch = small_rows()
    return QMS22(n_restarts=2, max_iter=5, random_state=0).fit(normal, unlabeled=batch)


def assert_one_sentence(error: BaseException, path: Path) -> None:
    message = str(error)
    assert "\n" not in message
    assert len(message) - len(str(path)) < 250
    assert path.name in message


def refusal(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(ValueError, match="skops") as caught:
        load_model(path)
    assert_one_sentence(caught.value, path)
    return str(caught.value)


def rezipped(data: bytes, change: Callable[[dict[str, bytes]], None], **options: Any) -> bytes:
    """Return a model file with changed entries and right checksums."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    change(entries)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def with_schema(data: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    def change_entries(entries: dict[str, bytes]) -> None:
        schema = json.loads(entries["schema.json"])
        change(schema["content"])
        entries["schema.json"] = json.dumps(schema).encode()

    return rezipped(data, change_entries)
