"""Model files: what is not a model stays out, and nothing in a file is run."""

from __future__ import annotations

import io
import json
import os
import pickle
import sys
import zipfile
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzzing import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_files import assert_one_sentence, refusal, rezipped, small_detector, with_schema
from sklearn.preprocessing import StandardScaler

from qms22 import QMS22
from qms22.models import FORMAT, load_model, save_model

skops_io = pytest.importorskip("skops.io")


class Bomb:
    """Unpickles, or is built by skops, with a bang."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {os.environ['QMS22_TEST_BANG']}",)


@pytest.fixture(scope="module")
def detector() -> QMS22:
    return small_detector()


@pytest.fixture(scope="module")
def data(detector: QMS22, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("models") / "model.skops"
    save_model(path, detector)
    return path.read_bytes()


def test_missing_and_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no model file '.*none.skops'; check"):
        load_model(tmp_path / "none.skops")
    with pytest.raises(
        ValueError,
        match=r"is a folder; give a file that save_model or",
    ):
        load_model(tmp_path)


def test_foreign_files(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.skops"
    assert "is empty; give a file that save_model or" in refusal(path, b"")
    for content in (b"P", b"age,dose\n1,2\n", b"\0" * 1000, b"PK", data[1:]):
        assert "is not a model of qms22; give a file" in refusal(path, content)
    other_zip = rezipped(data, lambda entries: entries.__delitem__("qms22.json"))
    assert "is a zip file but not a model of qms22" in refusal(path, other_zip)
    plain_skops = skops_io.dumps(StandardScaler())
    assert "is a zip file but not a model of qms22" in refusal(path, plain_skops)


def test_newer_formats(data: bytes, tmp_path: Path) -> None:
    def change(entries: dict[str, bytes]) -> None:
        entries["qms22.json"] = b'{"format": 99, "facts": {"version": "7.0"}, "more": 1}'
        entries["schema.json"] = b"not for us"

    message = refusal(tmp_path / "model.skops", rezipped(data, change))
    assert "was saved by qms22 7.0 in format 99, and this is qms22" in message
    assert message.endswith(f"reads formats up to {FORMAT}; upgrade qms22")


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"{}",
        b'{"format": 1}',
        b'{"format": 1, "facts": []}',
        b'{"format": true, "facts": {"version": "1"}}',
        b'{"format": 0, "facts": {"version": "1"}}',
        b'{"format": "1", "facts": {"version": "1"}}',
        b"\xff\xfe\xfd",
        b"[" * 100_000,
    ],
)
def test_damaged_headers(header: bytes, data: bytes, tmp_path: Path) -> None:
    damaged = rezipped(data, lambda entries: entries.update({"qms22.json": header}))
    assert "is a damaged model file" in refusal(tmp_path / "model.skops", damaged)


def test_compressed_entries_are_refused(data: bytes, tmp_path: Path) -> None:
    # They could unpack to any size.
    packed = rezipped(data, lambda entries: None, compression=zipfile.ZIP_DEFLATED)
    assert "is a damaged model file" in refusal(tmp_path / "model.skops", packed)


def huge_array(entries: dict[str, bytes]) -> None:
    """Make every array claim 80 TB."""
    for name, content in entries.items():
        if name.endswith(".npy"):
            header = content[:128].replace(b"(30,)", b"(9999999999999,)")
            entries[name] = header + content[128:]


@pytest.mark.parametrize(
    "change",
    [
        lambda entries: entries.__delitem__("schema.json"),
        lambda entries: entries.update({"schema.json": b"{}"}),
        lambda entries: entries.update({"schema.json": b"[" * 100_000}),
        lambda entries: entries.__delitem__(next(name for name in entries if "npy" in name)),
        lambda entries: entries.update(dict.fromkeys(entries.keys() - {"qms22.json"}, b"")),
        huge_array,
    ],
)
def test_damaged_contents(
    change: Callable[[dict[str, bytes]], None], data: bytes, tmp_path: Path
) -> None:
    damaged = rezipped(data, change)
    assert "is a damaged model file" in refusal(tmp_path / "model.skops", damaged)


@pytest.mark.parametrize(
    ("name", "replacement"),
    [
        ("n_features_in_", "4"),
        ("n_features_in_", "1e99"),
        ("offset_", "NaN"),
        ("offset_", '"high"'),
        ("restarts_", "null"),
        ("_scaler", "[]"),
        ("_typical", "3"),
        ("unlabeled_scores_", "null"),
    ],
)
def test_parts_that_do_not_fit(name: str, replacement: str, data: bytes, tmp_path: Path) -> None:
    def change(contents: dict[str, Any]) -> None:
        node = contents["detector"]["content"]["content"]
        node[name] = {
            "__class__": "str",
            "__module__": "builtins",
            "__loader__": "JsonNode",
            "content": replacement,
        }

    damaged = with_schema(data, change)
    assert "is a damaged model file" in refusal(tmp_path / "model.skops", damaged)


@pytest.mark.parametrize("part", ["detector", "encoder"])
def test_swapped_parts(part: str, data: bytes, tmp_path: Path) -> None:
    def change(contents: dict[str, Any]) -> None:
        contents[part] = contents["detector"]["content"]["content"]["_typical"]

    assert "is a damaged model file" in refusal(tmp_path / "model.skops", with_schema(data, change))


@settings(max_examples=examples(400), deadline=None, suppress_health_check=list(HealthCheck))
@given(where=st.floats(0, 1, exclude_max=True), bits=st.integers(1, 255), cut=st.booleans())
def test_damage_never_gets_through(
    where: float, bits: int, cut: bool, data: bytes, detector: QMS22, tmp_path: Path
) -> None:
    at = int(where * len(data))
    damaged = data[:at] if cut else data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :]
    path = tmp_path / "model.skops"
    path.write_bytes(damaged)
    try:
        loaded = load_model(path).detector
    except ValueError as error:
        assert_one_sentence(error, path)
    else:
        # Some bytes of a zip file mean nothing, such as the dates of its entries.
        assert not cut
        np.testing.assert_array_equal(loaded.A_, detector.A_)
        np.testing.assert_array_equal(loaded.unlabeled_scores_, detector.unlabeled_scores_)


@pytest.fixture
def bang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that any of the bombs would make."""
    path = tmp_path / "bang"
    monkeypatch.setenv("QMS22_TEST_BANG", str(path))
    return path


def test_pickles_are_not_opened(bang: Path, tmp_path: Path) -> None:
    content = pickle.dumps(Bomb())
    assert "is not a model of qms22" in refusal(tmp_path / "model.skops", content)
    assert not bang.exists()
    pickle.loads(content)
    assert bang.exists()  # the bomb was live


def call_system(bang: Path) -> list[dict[str, Any]]:
    """Nodes of skops that would run a command if anyone built them."""
    text = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}
    command = {**text, "content": json.dumps(f"touch {bang}")}
    arguments = {
        "__class__": "tuple",
        "__module__": "builtins",
        "__loader__": "TupleNode",
        "content": [command],
    }
    system = {"__class__": "system", "__module__": "os"}
    function = {**system, "__loader__": "FunctionNode"}
    method = {"__class__": "methodcaller", "__module__": "operator"}
    keys = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
    dictionary = {"__class__": "dict", "__module__": "builtins", "__loader__": "DictNode"}
    return [
        {**system, "__loader__": "ConstructorFromReduceNode", "content": arguments},
        {**system, "__loader__": "ObjectNode", "content": arguments},
        {**system, "__loader__": "ListNode", "content": [command]},
        {**system, "__loader__": "TypeNode"},
        {**system, "__loader__": "RandomStateNode", "content": arguments},
        function,
        {**method, "__loader__": "OperatorFuncNode", "attrs": arguments},
        {**dictionary, "content": {"a": command}, "key_types": {**keys, "content": [function]}},
        {"__class__": "Bomb", "__module__": "booby_trap", "__loader__": "ObjectNode"},
    ]


@pytest.mark.parametrize("kind", range(9))
@pytest.mark.parametrize("where", ["detector", "encoder", "extra", "inside"])
def test_nothing_in_a_file_is_run(
    kind: int, where: str, bang: Path, data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A module that bangs on import, where a careless loader would find it.
    (tmp_path / "booby_trap.py").write_text(f"open({str(bang)!r}, 'w')\nclass Bomb: ...")
    monkeypatch.syspath_prepend(str(tmp_path))

    def change(contents: dict[str, Any]) -> None:
        inside = contents["detector"]["content"]["content"]
        place, name = (inside, "verbose") if where == "inside" else (contents, where)
        place[name] = call_system(bang)[kind]

    message = refusal(tmp_path / "model.skops", with_schema(data, change))
    assert "which is not part of a qms22 model, so nothing was loaded" in message
    assert not bang.exists()
    assert "booby_trap" not in sys.modules


CHECKED = Path(__file__).parent / "models" / "format1.skops"


@pytest.mark.parametrize(
    ("name", "replacement"),
    [
        ("checks", "3"),
        ("fitting", "null"),
        ("scale", "null"),
        ("roles", '["other"]'),
        ("weight", "NaN"),
        ("weight", '"high"'),
        ("threshold", "NaN"),
        ("threshold", "null"),
    ],
)
def test_checks_that_do_not_fit(name: str, replacement: str, tmp_path: Path) -> None:
    def change(contents: dict[str, Any]) -> None:
        contents["checks"]["content"]["content"][name] = {
            "__class__": "str",
            "__module__": "builtins",
            "__loader__": "JsonNode",
            "content": replacement,
        }

    data = CHECKED.read_bytes()
    damaged = with_schema(data, change)
    assert "is a damaged model file" in refusal(tmp_path / "model.skops", damaged)


@pytest.mark.parametrize("part", ["detector", "encoder"])
def test_checks_that_are_something_else(part: str, tmp_path: Path) -> None:
    def change(contents: dict[str, Any]) -> None:
        contents["checks"] = contents[part]

    damaged = with_schema(CHECKED.read_bytes(), change)
    assert "is a damaged model file" in refusal(tmp_path / "model.skops", damaged)


def test_arrays_of_checks_that_do_not_fit(tmp_path: Path) -> None:
    """An array of the checks is replaced by one of another shape."""
    data = CHECKED.read_bytes()
    files = []

    def find(node: Any) -> None:
        if isinstance(node, dict):
            if str(node.get("file", "")).endswith(".npy"):
                files.append(node["file"])
            for value in node.values():
                find(value)
        elif isinstance(node, list):
            for value in node:
                find(value)

    with_schema(data, lambda contents: find(contents["checks"]))
    assert len(files) > 10
    buffer = io.BytesIO()
    np.save(buffer, np.zeros((2, 3, 5)))
    damaged = rezipped(
        data, lambda entries: entries.update(dict.fromkeys(files, buffer.getvalue()))
    )
    assert "is a damaged model file" in refusal(tmp_path / "model.skops", damaged)


def test_an_array_that_is_many_objects(data: bytes, tmp_path: Path) -> None:
    """A small file must not become a huge model."""

    def change(content: dict[str, Any]) -> None:
        node = _first_array(content)
        content["encoder"] = {
            "__class__": "list",
            "__module__": "builtins",
            "__loader__": "ListNode",
            "__id__": 1,
            "content": [{**node, "__id__": number} for number in range(2, 12)],
        }

    message = refusal(tmp_path / "model.skops", with_schema(data, change))
    assert "is a damaged model file" in message


def test_entries_that_overlap(data: bytes, tmp_path: Path) -> None:
    buffer = io.BytesIO(data)
    with zipfile.ZipFile(buffer, "a") as archive:
        largest = max(archive.infolist(), key=lambda entry: entry.file_size)
        for number in range(200):
            entry = copy(largest)
            entry.filename = f"{number}.npy"
            archive.filelist.append(entry)
        archive.writestr("more", b"")
    with zipfile.ZipFile(buffer) as archive:
        assert len(archive.namelist()) > 200
    assert "is a damaged model file" in refusal(tmp_path / "model.skops", buffer.getvalue())


def test_a_model_names_no_files_to_write(data: bytes, tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        attributes = content["detector"]["content"]["content"]
        for name in ("log", "checkpoint"):
            attributes[name] = {
                "__class__": "str",
                "__module__": "builtins",
                "__loader__": "JsonNode",
                "__id__": hash(name),
                "content": json.dumps(str(tmp_path / name)),
                "is_json": True,
            }

    path = tmp_path / "model.skops"
    path.write_bytes(with_schema(data, change))
    found = load_model(path).detector
    assert found.log is None
    assert found.checkpoint is None


def _first_array(node: Any) -> dict[str, Any]:
    """Return the first node of a schema that names a file."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict) and "file" in found:
            return found
        waiting += found.values() if isinstance(found, dict) else []
        waiting += found if isinstance(found, list) else []
    raise AssertionError("no array")
