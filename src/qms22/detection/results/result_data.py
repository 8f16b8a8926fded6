"""A result as data of plain types: what JSON, JUnit, Markdown and workbooks are written from.

Its provenance has digests of inputs and scores, versions and the time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import file_digest, sha256
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qms22 import __version__
from qms22.detection.history.history_rows import digest
from qms22.detection.noticing import dates_of
from qms22.detection.policy import Rule, verdict_of_rules
from qms22.detection.reasons.explaining import reasons_of
from qms22.tables import Table
from qms22.tables.texts.words import join_notes

if TYPE_CHECKING:
    from qms22.detection.reasons.row_reasons import RowReason
    from qms22.detection.result import Detection

# Of the form below; docs/schema has a JSON Schema for each.
SCHEMA_VERSION = 1


def result_data(found: Detection, rules: Sequence[Rule] = ()) -> dict[str, Any]:
    """Return a result in types of JSON; see `Detection.to_dict`."""
    verdict, dates = found.verdict, dates_of(found)
    judged: dict[str, Any] | None = None
    if verdict is not None:
        said = _named(verdict, "p_value", "fewest_outliers", "confidence", "advice")
        judged = {"decision": verdict.decision, "text": str(verdict), **said}
    of_moved = ("change", "effect", "p_value", "is_missing", "is_period")
    of_finding = ("name", "columns", "rows", "normal_share", "p_value", "fewest_outliers")
    policy = {
        "is_met": all(rule.is_met for rule in rules),
        "text": verdict_of_rules(rules),
        "rules": [rule._asdict() for rule in rules],
    }
    data = {
        "schema_version": SCHEMA_VERSION,
        "batch": found.source.name,
        "answer": found.answer,
        "remark": found.remark,
        "verdict": judged,
        "moved": [
            {"column": column.name, **_named(column, *of_moved)}
            for column in (() if verdict is None else verdict.moved)
        ],
        "noticed": [each._asdict() for each in found.noticed],
        "dates": None if dates is None else dates.facts(),
        "findings": [_named(finding, *of_finding) for finding in found.findings],
        "rows": row_data(found, found.top),
        "notes": join_notes(found.notes),
        "counts": {
            "normal": 0 if found.normal_table is None else found.normal_table.n_rows,
            "normal_learned": found.n_normal,
            "rows": len(found.scores),
            "scored": found.n_scored,
            "flagged": found.n_flagged,
            "dropped": found.n_dropped,
            "marked": found.n_marked,
        },
        "settings": found.settings,
        "history": _history(found),
        "policy": policy if rules else None,
    }
    return dict(plain(data))


def data_in_words(data: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the sentences of a result's data about the batch, by what they are."""
    verdict, advice = [], []
    if data["verdict"] is not None:
        verdict, advice = [data["verdict"]["text"]], data["verdict"]["advice"]
    return {
        "verdict": [text for text in (*verdict, data["answer"], data["remark"]) if text],
        "noticed": [each["text"] for each in data["noticed"]],
        "moved": [f"{each['column']}: {each['change']}" for each in data["moved"]],
        "advice": advice,
    }


def _named(thing: object, *names: str) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in names}


def row_data(found: Detection, rows: NDArray[np.intp]) -> list[dict[str, Any]]:
    """Return rows of a batch, given by their positions; those that were not searched have no rank.

    Rows that were not explained have what is odd about their single cells.
    """
    ranks = found._ranks[rows]
    cells = found.source.take(rows)
    columns = {str(name): column_values(cells.iloc[:, at]) for at, name in enumerate(cells.columns)}
    most = None if found.comparison is None else found.comparison.curve.of_first(ranks).tolist()
    p_values, data = found.p_values, []
    for at, (row, reasons) in enumerate(zip(rows.tolist(), reasons_of(found, rows), strict=True)):
        reasons = reasons or []
        of_row = {
            "rank": int(ranks[at]) or None,
            "row": row,
            "id": None if found.id is None else columns[found.id][at],
            "score": found.scores[row],
            "p_value": None if p_values is None else p_values[row],
            "false_at_most": None if most is None else most[at],
            "text": "; ".join(map(str, reasons)),
            "reasons": [_reason(each, columns, at) for each in reasons],
        }
        data.append(of_row)
    return data


def _reason(reason: RowReason, columns: dict[str, list[Any]], at: int) -> dict[str, Any]:
    """Return a reason with the cell to blame; a saved model may know columns that are not there."""
    blamed = reason.columns[0] if reason.columns and reason.columns[0] in columns else None
    cell = None if blamed is None else {"column": blamed, "value": columns[blamed][at]}
    named = _named(reason, "kind", "columns")
    usual = None if reason.usual is None else reason.usual._asdict()
    return {**named, "cell": cell, "usual": usual, **_named(reason, "text", "strength")}


def _history(found: Detection) -> dict[str, Any] | None:
    if not found.history:
        return None
    *others, entry = found.history
    return {
        **_named(entry, "number", "accepted", "incident", "over_time"),
        "exceptions": [each._asdict() for each in found.exceptions],
        "learned_from": [each.number for each in others if each.accepted is not None],
    }


def provenance_of(found: Detection) -> dict[str, Any]:
    """Return what is needed to repeat a search, and to see that it gives the same scores."""
    # Rows without a score have one NaN.
    scores = np.where(np.isnan(found.scores), np.nan, found.scores)
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"qms22": __version__, "numpy": np.__version__, "python": python_version()},
        "seed": found.settings.get("seed"),
        "inputs": [input_facts(role, table) for role, table in found.inputs],
        "scores_sha256": sha256(scores.astype("<f8").tobytes()).hexdigest(),
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
    size = {"name": given.name, "rows": given.n_rows, "columns": len(given.names)}
    is_digest_needed = not files and not given.is_distributed
    return {**facts, **size, "cells_sha256": digest(given) if is_digest_needed else None}


def column_values(column: pd.Series) -> list[Any]:
    """Return the values of a column as Python has them."""
    is_arrow = isinstance(column.dtype, pd.ArrowDtype)
    return list(column.array.__arrow_array__().to_pylist() if is_arrow else column.tolist())


def plain(value: Any) -> Any:
    """Return a value in JSON's types; None for missing and infinite ones, text for others."""
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):  # NumPy's arrays and numbers
        return plain(value.tolist())
    return None if type(value).__name__ in ("NAType", "NaTType") else str(value)
