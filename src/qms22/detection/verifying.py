"""Repeat a recorded search, and say what differs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from qms22.detection.history.history_entry import ColumnException
from qms22.detection.history.history_file import BatchHistory
from qms22.detection.policy import FAIL_ON
from qms22.detection.result import Detection
from qms22.detection.results.job_files import json_text
from qms22.detection.results.result_data import (
    SCHEMA_VERSION,
    input_facts,
    provenance_of,
    result_data,
)
from qms22.detection.rows import TableLike
from qms22.detection.run import detect
from qms22.detection.scoring import score
from qms22.tables import open_table

# Settings that are not options of `detect`: how both tables were found in one file.
_OF_ONE_FILE = {"marker", "normal_value"}
# Options that would write a file.
_WRITING = {"history", "accept"}
# What follows from the scores; it is compared to see that nobody has edited the file.
_CONCLUSIONS = (
    *("counts", "rows", "findings", "verdict", "moved", "answer", "remark", "noticed", "dates"),
    *("notes", "policy"),
)


def read_result(path: Path) -> dict[str, Any]:
    """Read a file that `--json` has written; raise ValueError if it is something else."""
    if not path.exists():
        raise ValueError(f"there is no file {str(path)!r}; correct the path")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        inputs = [each["role"] for each in data["provenance"]["inputs"]]
        options = data["settings"].keys() - _OF_ONE_FILE
        is_result = data["schema_version"] == SCHEMA_VERSION and {*_CONCLUSIONS} <= data.keys()
        is_result &= "model" in inputs or options <= {*signature(detect).parameters} - _WRITING
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} is not a result that qms22 has written; give a file of --json"
        ) from error
    if not is_result:
        raise ValueError(
            f"{path} is a result of another version or has been changed; give a file of --json"
        )
    return dict(data)


def repeat(
    recorded: Mapping[str, Any],
    normal: TableLike,
    batch: TableLike,
    *,
    marks: Sequence[TableLike] = (),
    history: Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> tuple[bool, str]:
    """Repeat a search with its recorded settings; return whether it is the same, and a sentence.

    What was `recorded` comes from `read_result`. If it is a result of `score`, `normal` is the
    model file. The history is needed if the search has learned from accepted batches; it is not
    changed.
    """
    roles = [each["role"] for each in recorded["provenance"]["inputs"]]
    if (n_used := roles.count("marks")) != len(marks):
        tables = "1 table" if n_used == 1 else f"{n_used} tables"
        raise ValueError(
            f"the search used {tables} of marks, not {len(marks)}; give the same marks"
        )
    is_model = "model" in roles
    given: list[Any] = [Path(str(normal)) if is_model else open_table(normal), open_table(batch)]
    given += [open_table(each) for each in marks]
    for known, table in zip(recorded["provenance"]["inputs"], given, strict=True):
        now = input_facts(known["role"], table)
        if _digests(now) != _digests(known):
            what = f"the input {now['name']} ({now['role']})"
            return False, f"{what} is not the one that was searched"
    settings = recorded["settings"]
    if is_model:
        found = score(*given, k=settings["k"], id=settings["id"], verbose=verbose)
        return _compare(recorded, found)
    if settings.get("seed") is None:
        raise ValueError("the search had no seed, so it cannot be repeated; search with --seed")
    options = {name: value for name, value in settings.items() if name not in _OF_ONE_FILE}
    options |= {"n_jobs": n_jobs, "verbose": verbose}
    with ExitStack() as stack:
        then = recorded["history"] or {}
        if then.get("learned_from") or then.get("exceptions"):
            folder = stack.enter_context(TemporaryDirectory())
            options["history"] = _history_then(history, recorded, Path(folder))
        found = detect(given[0], given[1], marks=given[2:] or None, **options)
    return _compare(recorded, found)


def _digests(facts: Mapping[str, Any]) -> tuple[list[str], str | None]:
    return [file["sha256"] for file in facts["files"]], facts["cells_sha256"]


def _history_then(path: Path | None, recorded: Mapping[str, Any], folder: Path) -> Path:
    """Return a copy of a history as it was when a result was recorded."""
    then = recorded["history"]
    if path is None:
        numbers = ", ".join(map(str, then["learned_from"]))
        what = f"learned from accepted batches ({numbers})" if numbers else "had exceptions"
        raise ValueError(f"the search {what}; give the file of history, too")
    BatchHistory(path, must_exist=True)
    copied = BatchHistory(shutil.copy(path, folder / "history.sqlite"))
    # As a history has it: without the zone, which is UTC.
    time = recorded["provenance"]["time"][:19].replace("T", " ")
    exceptions = [ColumnException(**each) for each in then.get("exceptions", ())]
    copied.go_back(time, then["learned_from"], exceptions)
    return copied.path


def _compare(recorded: Mapping[str, Any], found: Detection) -> tuple[bool, str]:
    """Return whether a recorded result and a new one are the same, and how, in one sentence."""
    then, now = recorded["provenance"], provenance_of(found)
    again, known = json.loads(json_text(result_data(found))), dict(recorded)
    # Files may lie elsewhere now.
    again["notes"], known["notes"] = _nameless(again, now), _nameless(known, then)
    policy = recorded["policy"] or {"is_met": True, "rules": []}
    compared = policy["rules"]
    if recorded["history"] is not None:  # sizes and dates of batches that are gone from it
        again["noticed"] = known["noticed"]
        compared = [each for each in compared if each["name"] != "volume"]
    limits = {each["name"]: each["limit"] for each in compared}
    fail_on = [name for name in limits if name in FAIL_ON]
    most = {"max_flagged": limits.get("max-flagged"), "max_share": limits.get("max-share")}
    rules = [rule._asdict() for rule in found.check(fail_on=fail_on, **most)]
    again["policy"] = [rules, all(each["is_met"] for each in policy["rules"])]
    known["policy"] = [compared, policy["is_met"]]
    changed = [
        f"{name} {old} then, {version} now"
        for name, version in now["versions"].items()
        if (old := then["versions"].get(name)) != version
    ]
    versions = f"; versions differ: {'; '.join(changed)}" if changed else ""
    if now["scores_sha256"] != then["scores_sha256"]:
        same = ", though inputs, settings and versions are the same"
        return False, f"the scores differ{versions or same}"
    for name in _CONCLUSIONS:
        if again[name] != known[name]:
            return False, f"the scores are equal, but not what the file says about {name}"
    return True, f"the scores of {found.n_scored:,} rows are the same to the bit{versions}"


def _nameless(data: Mapping[str, Any], provenance: Mapping[str, Any]) -> str:
    """Return the notes of a result without names of inputs and ends of exceptions."""
    text = "\n".join(data["notes"])
    for each in (data["history"] or {}).get("exceptions", ()):
        text = text.replace(each["until"], "")
    for each in provenance["inputs"]:
        for name in (each["name"], Path(each["name"]).name):
            text = text.replace(name, each["role"])
    return text
