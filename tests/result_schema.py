"""Results in JSON, as docs/schema describes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

SCHEMA = Path(__file__).parents[1] / "docs/schema/result-1.json"


def valid(path: Path) -> dict[str, Any]:
    """Return a result, which the schema must describe."""
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if SCHEMA.exists():  # the source archive has no docs
        Draft202012Validator(json.loads(SCHEMA.read_text())).validate(data)
    return data
