"""The data that a page carries, read as the page reads them."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from qms22.report.packed_columns import _TYPE_NAMES


def unpacked(text: str) -> tuple[Any, Callable[[Any], Any]]:
    """The header of a payload, and a function that reads its arrays."""
    data = gzip.decompress(base64.b64decode(text))
    start = int.from_bytes(data[:8], "little")
    dtypes = {name: dtype for dtype, name in _TYPE_NAMES.items()}

    def array(place: Any) -> Any:
        kind, offset, length = place
        return np.frombuffer(data, dtypes[kind], length, offset)

    return json.loads(data[start:]), array


def column_values(spec: Any, array: Callable[[Any], Any]) -> list[Any]:
    """The values of a column; None where one is missing."""
    stored = array(spec["data"]).tolist()
    if spec["type"] == "text":
        levels = [*spec["levels"], None]
        return [levels[code] for code in stored]
    scale = 10 ** spec.get("places", 0)
    missing = [value == spec.get("missing") or value != value for value in stored]
    return [None if gone else value / scale for gone, value in zip(missing, stored, strict=True)]


def read_page(path: Path) -> tuple[Any, Callable[[Any], Any], dict[str, list[Any]]]:
    """The header of a page's data, the reader of its arrays, and its columns by name."""
    found = re.search(r'id="data">([^<]*)<', path.read_text("utf-8"))
    assert found is not None
    header, array = unpacked(found[1])
    return header, array, {spec["name"]: column_values(spec, array) for spec in header["columns"]}
