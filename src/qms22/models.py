"""Model files: fitted detectors on disk, in the skops format (``pip install "qms22[model]"``).

Loading a model file never runs code from it. The file is a zip archive of plain arrays, a
description of the objects made of them (`skops <https://skops.readthedocs.io>`_ reads and audits
it: objects of `TRUSTED` types, scikit-learn's own and plain data, or nothing at all), and
``qms22.json`` with the format and the facts about the model, for anyone to read.

The format is a whole number. Every version of qms22 loads the models of every earlier format; the
number rises only when an earlier version could not load what is written now, and then it says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from sklearn.utils.validation import check_is_fitted

from qms22 import __version__
from qms22._runtime.files import written_whole
from qms22._runtime.lazy_rows import LazyRows
from qms22._runtime.validation import is_count
from qms22.estimators.batch_detector import BatchDetector
from qms22.estimators.ensemble import QMS22Ensemble
from qms22.estimators.qms22 import QMS22

FORMAT = 3

# By name: a model without an encoder does not need the packages of the encoder.
TRUSTED = (
    "qms22._cpm.members.MemberFunctions",
    "qms22._cpm.scaling.FeatureScaler",
    "qms22.estimators.ensemble.HeldOutScores",
    "qms22.estimators.ensemble.QMS22Ensemble",
    "qms22.estimators.ensemble.Split",
    "qms22.estimators.explain.TypicalValues",
    "qms22.estimators.qms22.QMS22",
    "qms22.tables.encoder.TabularEncoder",
)

# A model file names a type by its module; formats 1 and 2 have the modules of version 0.1.
_MOVED = {
    "qms22._detector": "qms22.estimators.qms22",
    "qms22._ensemble": "qms22.estimators.ensemble",
    "qms22._explain": "qms22.estimators.explain",
    "qms22._members": "qms22._cpm.members",
    "qms22._scaling": "qms22._cpm.scaling",
    "qms22.tabular._encoder": "qms22.tables.encoder",
}

_DETECTORS = (QMS22, QMS22Ensemble)

_HEADER = "qms22.json"
_SCHEMA = "schema.json"  # of skops
_ZIP_MAGIC = b"PK\x03\x04"
_GIVE_ANOTHER = "give a file that save_model wrote"


@dataclass(frozen=True)
class SavedModel:
    """What a model file holds.

    Parameters
    ----------
    detector : QMS22 or QMS22Ensemble
        The fitted detector.
    encoder : transformer or None
        What turns a table into the rows that the detector takes, where one was saved.
    facts : mapping
        "version" of qms22 that saved it, when it was "created" (UTC), "parameters", "features"
        (their names, or None), "n_features", "threshold" (rows with a higher score are
        flagged), and what else `save_model` was given.
    """

    detector: BatchDetector
    encoder: Any
    facts: Mapping[str, Any]


def save_model(
    path: str | PathLike[str], detector: BatchDetector, *, encoder: Any = None, **facts: Any
) -> None:
    """Write a fitted detector to a file.

    Parameters
    ----------
    path : path
        The file, by custom ``….skops``. It is written whole or not at all.
    detector : QMS22 or QMS22Ensemble
        A fitted detector. Its batch is not written: one that is loaded scores rows and tells
        outliers, but can no longer flag rows of its batch. An ensemble holds some hundreds of the
        known-normal rows, which it measures distances from.
    encoder : transformer, optional
        The fitted transformer that made the detector's rows: qms22's or one of scikit-learn's.
    **facts
        Anything to keep with the model that JSON can hold, such as ``trained_on="june.csv"``.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from qms22 import QMS22
    >>> from qms22.models import load_model, save_model
    >>> rng = np.random.default_rng(0)
    >>> T, S = rng.normal(size=(100, 3)), rng.normal(size=(50, 3))
    >>> detector = QMS22(random_state=0).fit(T, unlabeled=S)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(f"{folder}/june.skops", detector, trained_on="june")
    ...     model = load_model(f"{folder}/june.skops")
    >>> model.facts["trained_on"]
    'june'
    >>> bool((model.detector.score_samples(S) == detector.score_samples(S)).all())
    True
    """
    skops_io = _import_skops()
    if type(detector) not in _DETECTORS:
        raise TypeError(
            "a model file holds a QMS22 or a QMS22Ensemble detector; got a "
            f"{type(detector).__name__}"
        )
    check_is_fitted(detector)
    detector = detector.without_rows()
    header = _header(detector, facts)
    try:
        data = skops_io.dumps({"detector": detector, "encoder": encoder})
    except Exception as error:  # skops meets objects of any kind here
        raise ValueError(f"the model holds what skops cannot write ({error})") from error
    foreign = _foreign_types(skops_io, data)
    if foreign:
        raise ValueError(
            f"a model with {foreign} cannot be saved, as it could not be loaded safely; only "
            "types of qms22 and of scikit-learn can"
        )
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {str(path.parent)!r} does not exist; make it first")
    with written_whole(path) as temporary:
        temporary.write_bytes(data)
        with ZipFile(temporary, "a") as archive:
            archive.writestr(_HEADER, header)


def load_model(path: str | PathLike[str]) -> SavedModel:
    """Read what `save_model` wrote, without running code from the file.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    SavedModel

    Raises
    ------
    ValueError
        Where the file is not a model of qms22, is damaged, holds anything but the types a model
        may hold, or was saved by a version of qms22 with a newer format.
    """
    skops_io = _import_skops()
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder; {_GIVE_ANOTHER}")
    try:
        file = path.open("rb")
    except FileNotFoundError as error:
        raise FileNotFoundError(f"there is no model file {str(path)!r}; check the path") from error
    with file:
        data = file.read(len(_ZIP_MAGIC))
        if data != _ZIP_MAGIC:
            what = "is not a model of qms22" if data else "is empty"
            raise ValueError(f"{str(path)!r} {what}; {_GIVE_ANOTHER}")
        data += file.read()
    header = _read_header(data, path)
    if header["format"] < 3:
        with _damage_named(path):
            data = _with_current_modules(data)
    contents = _read_contents(skops_io, data, path)
    return SavedModel(contents["detector"], contents["encoder"], header["facts"])


def _header(detector: BatchDetector, facts: dict[str, Any]) -> str:
    """Describe a model in JSON."""
    names = getattr(detector, "feature_names_in_", None)
    own = {
        "version": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "parameters": {name: _plain(value) for name, value in detector.get_params().items()},
        "features": None if names is None else [str(name) for name in names],
        "n_features": detector.n_features_in_,
        "threshold": -detector.offset_,
    }
    taken = sorted(own.keys() & facts.keys())
    if taken:
        raise ValueError(f"the fact {taken[0]!r} is written by itself; choose another name")
    for name, value in facts.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"the fact {name!r} is a {type(value).__name__}, which JSON cannot hold; give "
                "texts, numbers, lists or dicts of them"
            ) from error
    return json.dumps({"format": FORMAT, "facts": {**own, **facts}}, indent=2)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, bool | int | float | str | None) else type(value).__name__


def _read_header(data: bytes, path: Path) -> dict[str, Any]:
    """Read format and facts, before anything else of the file is looked at."""
    with _damage_named(path), ZipFile(BytesIO(data)) as archive:
        entries = archive.infolist()
        text = archive.read(_HEADER) if _HEADER in archive.namelist() else None
    if text is None:
        raise ValueError(f"{str(path)!r} is a zip file but not a model of qms22; {_GIVE_ANOTHER}")
    with _damage_named(path):
        header: dict[str, Any] = json.loads(text)
        number, version = header["format"], str(header["facts"]["version"])[:40]
        # Models are not compressed: nothing in them unpacks to more than the file's size.
        packed = any(entry.compress_type != ZIP_STORED for entry in entries)
        if packed or not is_count(number) or number < 1:
            raise ValueError("not written by save_model")
    if number > FORMAT:
        raise ValueError(
            f"{str(path)!r} was saved by qms22 {version} in format {number}, and this is qms22 "
            f"{__version__}, which reads formats up to {FORMAT}; upgrade qms22"
        )
    return header


def _with_current_modules(data: bytes) -> bytes:
    """Return a model file of an earlier format with the names that its types have now."""
    updated = BytesIO()
    with ZipFile(BytesIO(data)) as old, ZipFile(updated, "w", ZIP_STORED) as new:
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename == _SCHEMA:
                content = json.dumps(json.loads(content, object_hook=_with_current_module)).encode()
            new.writestr(entry, content)
    return updated.getvalue()


def _with_current_module(node: dict[str, Any]) -> dict[str, Any]:
    module = node.get("__module__")
    return {**node, "__module__": _MOVED[module]} if module in _MOVED else node


def _read_contents(skops_io: Any, data: bytes, path: Path) -> dict[str, Any]:
    """Build detector and encoder, once all their types are known to be harmless."""
    with _damage_named(path):
        foreign = _foreign_types(skops_io, data)
    if foreign:
        raise ValueError(
            f"{str(path)!r} holds {foreign}, which a model of qms22 never does, so nothing of it "
            f"was loaded; {_GIVE_ANOTHER}"
        )
    with _damage_named(path):
        contents: dict[str, Any] = skops_io.loads(data, trusted=list(TRUSTED))
        _try_out(contents["detector"])
        encoder = contents["encoder"]
        if encoder is not None and not callable(getattr(encoder, "transform", None)):
            raise TypeError("the encoder cannot transform")
    return contents


def _foreign_types(skops_io: Any, data: bytes) -> str:
    """Name the types in a skops file that no model may hold; "" where there are none."""
    foreign = sorted(set(skops_io.get_untrusted_types(data=data)) - set(TRUSTED))
    others = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
    return f"{foreign[0][:100]!r}{others}" if foreign else ""


def _try_out(detector: Any) -> None:
    """Use all that a detector needs for its methods; whatever does not fit together raises."""
    if type(detector) not in _DETECTORS:
        raise TypeError("not a detector of qms22")
    row = np.zeros((1, detector.n_features_in_))
    score = detector._scores(LazyRows(row)) - detector.offset_
    usual = detector._typical.row([[column] for column in range(row.shape[1])])
    if not np.isfinite(score).all() or usual.shape != row[0].shape:
        raise ValueError("parts of the detector do not fit together")
    detector.top_k(0)


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    """Turn into one sentence whatever a damaged file makes zipfile, json, NumPy or skops raise."""
    try:
        yield
    except Warning:  # of scikit-learn, about encoders of other versions, where warnings are errors
        raise
    except Exception as error:
        raise ValueError(
            f"{str(path)!r} is a damaged model file; get a new copy or save the model again"
        ) from error


def _import_skops() -> Any:
    # Imported here: detectors are used without files more often than with.
    try:
        return import_module("skops.io")
    except ImportError as error:
        raise ImportError('model files need skops: pip install "qms22[model]"') from error
