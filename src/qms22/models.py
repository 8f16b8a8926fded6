"""Model files: fitted detectors on disk, in the skops format.

Loading a model file never runs code from it. The file is a zip archive of plain arrays, a
description of the objects made of them, and ``qms22.json`` with the format and the facts about the
model. `skops <https://skops.readthedocs.io>`_ checks the description and builds the objects only if
all of them are plain data or of scikit-learn's or `TRUSTED` types.

The format is a whole number, 1 so far. It rises only if earlier versions cannot load the new files;
they then ask for an upgrade. From the first release on, every version loads all earlier formats.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from sklearn.utils.validation import check_is_fitted

from qms22 import __version__
from qms22._runtime.files import atomic_path
from qms22._runtime.lazy_rows import LazyRows
from qms22._runtime.validation import is_count
from qms22.estimators.batch_detector import BatchDetector
from qms22.estimators.ensemble import QMS22Ensemble
from qms22.estimators.qms22 import QMS22
from qms22.estimators.saved_ensemble import check_views

FORMAT = 1

# By module. Names, not classes: a model without an encoder does not need the encoder's packages.
_CLASSES = {
    "_cpm.members": "MemberFunctions",
    "_cpm.scaling": "FeatureScaler",
    "checks.arithmetic": "ArithmeticCheck",
    "checks.cases": "Staying",
    "checks.codings": "Coding TextParts",
    "checks.copies": "CopyCheck KeyCheck",
    "checks.dates": "AbsurdDateCheck IntervalCheck TimeOfDayCheck WeekdayCheck",
    "checks.dependence": "DependenceCheck MissingTogetherCheck OrderCheck",
    "checks.fitting": "FittingChecks",
    "checks.groups": "GroupCheck GroupStatistics Grouping",
    "checks.relations": "Design Relations",
    "checks.sequences.limits": "LimitCheck NearLimits",
    "checks.sequences.repetition": "Bursts RepetitionCheck Runs Standstill StandstillCheck",
    "checks.sequences.series": "Series SeriesCheck",
    "checks.single": "LevelCheck PresenceCheck ValueCheck",
    "checks.sequences.steps": "CounterSteps GapCheck Gaps StepCheck",
    "checks.surprise": "LevelReference NumberReference OddnessScale RarityReference TailReference",
    "checks.table_checks": "Roles TableChecks",
    "checks.texts": "MisspellingCheck TextCheck",
    "estimators.ensemble": "QMS22Ensemble",
    "estimators.explain": "TypicalValues",
    "estimators.forest": "Forest",
    "estimators.held_out": "HeldOutScores LearnedRows",
    "estimators.qms22": "QMS22",
    "estimators.views": "CovarianceView DistanceView ForestView MembersPart MembersView "
    "SimilarityView",
    "tables.columns.plan": "ColumnPlan",
    "tables.encoder": "TabularEncoder",
    "tables.texts.date_format": "DateFormat",
    "tables.texts.number_format": "NumberFormat",
}
TRUSTED = tuple(
    f"qms22.{module}.{name}" for module, names in _CLASSES.items() for name in names.split()
)

_DETECTORS = (QMS22, QMS22Ensemble)

_HEADER = "qms22.json"
_SCHEMA = "schema.json"  # of skops
_ZIP_MAGIC = b"PK\x03\x04"
_GIVE_ANOTHER = "give a file that save_model or qms22 detect --save-model wrote"


@dataclass(frozen=True)
class SavedModel:
    """The contents of a model file.

    Parameters
    ----------
    detector : QMS22 or QMS22Ensemble
        The fitted detector.
    encoder : transformer or None
        The transformer that turns a table into the detector's rows, if one was saved.
    facts : mapping
        "version" of qms22 that saved it, when it was "created" (UTC), "parameters", "features"
        (their names, or None), "n_features", "threshold" (rows with a higher score are
        flagged: that of the checks if there are some), and the other facts given to `save_model`.
    checks : TableChecks or None
        The checks of single cells, if some were saved.
    """

    detector: BatchDetector
    encoder: Any
    facts: Mapping[str, Any]
    checks: Any = None


def save_model(
    path: str | PathLike[str],
    detector: BatchDetector,
    *,
    encoder: Any = None,
    checks: Any = None,
    **facts: Any,
) -> None:
    """Write a fitted detector to a file.

    Parameters
    ----------
    path : path
        The file, usually ``….skops``. It is written completely or not at all.
    detector : QMS22 or QMS22Ensemble
        A fitted detector. The scores of its batch are written, but not its rows: after loading,
        `score_samples` and `predict` work, `flag` and `p_values` do not.
    encoder : transformer, optional
        The fitted transformer that made the detector's rows: qms22's or one of scikit-learn's.
    checks : TableChecks, optional
        The checks of single cells, as `Detection.checks` has them.
    **facts
        Values that JSON can hold, to keep with the model, such as ``trained_on="june.csv"``.

    Notes
    -----
    **Model files can contain training data.** The file of a `QMS22Ensemble` contains up to 2,048
    known-normal rows, because new rows are compared with them; these can be all rows of a small
    table. The rows marked as outliers or as normal are there, too. They are scaled, but the file
    contains the scaling as well. It also contains values that lie halfway between two neighboring
    ones of a column of T or S (the edges of a forest's bins), and hashes of the rows that the
    forests learned from, which tell whether a given row was among them. The file of a `QMS22`
    contains no rows. An encoder contains the names of the columns and the levels of categories.
    Protect the file as you protect the data.

    The forests take most of the space: about 7 MB in all for tables of 20,000 rows or more.

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
    from skops import io as skops_io  # type: ignore[import-untyped, unused-ignore]

    if type(detector) not in _DETECTORS:
        raise TypeError(
            "a model file can hold a QMS22 or a QMS22Ensemble detector; got a "
            f"{type(detector).__name__}"
        )
    check_is_fitted(detector)
    detector = detector.without_rows()
    threshold = -detector.offset_ if checks is None else checks.threshold
    header = _header(detector, threshold, facts)
    try:
        data = skops_io.dumps({"detector": detector, "encoder": encoder, "checks": checks})
    except Exception as error:  # objects of users can raise anything
        raise ValueError(f"skops cannot write a part of the model ({error})") from error
    foreign = _foreign_types(skops_io, data)
    if foreign:
        raise ValueError(
            f"a model with {foreign} cannot be saved, because it could not be loaded safely; use "
            "types of qms22 and of scikit-learn only"
        )
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {str(path.parent)!r} does not exist; create it first")
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)
        with ZipFile(temporary, "a") as archive:
            archive.writestr(_HEADER, header)


def load_model(path: str | PathLike[str]) -> SavedModel:
    """Read a file of `save_model` without running code from it.

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
        If the file is not a model of qms22, is damaged, holds a type that a model must not hold,
        or has the format of a newer version of qms22.
    """
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
    from skops import io as skops_io  # type: ignore[import-untyped, unused-ignore]

    try:
        return _read(data, skops_io)
    except _NoModelError as error:
        raise ValueError(f"{str(path)!r} {error}") from None
    except Warning:  # scikit-learn's, about other versions, if warnings are errors
        raise
    except Exception as error:  # of any kind, in a library
        raise ValueError(
            f"{str(path)!r} is a damaged model file; get a new copy or save the model again"
        ) from error


def _header(detector: BatchDetector, threshold: float, facts: dict[str, Any]) -> str:
    """Return the format and the facts as JSON."""
    names = getattr(detector, "feature_names_in_", None)
    own = {
        "version": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "parameters": {name: _plain(value) for name, value in detector.get_params().items()},
        "features": None if names is None else [str(name) for name in names],
        "n_features": detector.n_features_in_,
        "threshold": threshold,
    }
    taken = sorted(own.keys() & facts.keys())
    if taken:
        raise ValueError(f"save_model writes a fact {taken[0]!r} itself; choose another name")
    for name, value in facts.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"the fact {name!r} is a {type(value).__name__}, which JSON cannot hold; give "
                "texts, numbers, or lists or dicts of them"
            ) from error
    return json.dumps({"format": FORMAT, "facts": {**own, **facts}}, indent=2)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, bool | int | float | str | None) else type(value).__name__


class _NoModelError(Exception):
    """A file is not damaged, but no model that this version reads."""


def _read(data: bytes, skops_io: Any) -> SavedModel:
    """Check header, sizes and types of a file, then build its detector, its encoder and checks."""
    with ZipFile(BytesIO(data)) as archive:
        if _HEADER not in archive.namelist():
            raise _NoModelError(f"is a zip file but not a model of qms22; {_GIVE_ANOTHER}")
        header: dict[str, Any] = json.loads(archive.read(_HEADER))
        number, version = header["format"], str(header["facts"]["version"])[:40]
        if not is_count(number) or number < 1:
            raise ValueError("not written by save_model")
        if number > FORMAT:
            raise _NoModelError(
                f"was saved by qms22 {version} in format {number}, and this is qms22 "
                f"{__version__}, which reads formats up to {FORMAT}; upgrade qms22"
            )
        _check_sizes(archive, len(data))
    foreign = _foreign_types(skops_io, data)
    if foreign:
        raise _NoModelError(
            f"holds {foreign}, which is not part of a qms22 model, so nothing was loaded; "
            f"{_GIVE_ANOTHER}"
        )
    contents: dict[str, Any] = skops_io.loads(data, trusted=list(TRUSTED))
    detector, encoder, checks = (contents[name] for name in ("detector", "encoder", "checks"))
    _try_out(detector)
    # A later fit must not write to files that the model names.
    detector.set_params(log=None, checkpoint=None)
    if encoder is not None and not callable(getattr(encoder, "transform", None)):
        raise TypeError("the encoder cannot transform")
    if checks is not None:
        checks.try_out(encoder)
    return SavedModel(detector, encoder, header["facts"], checks)


def _check_sizes(archive: ZipFile, n_bytes: int) -> None:
    """Raise ValueError if a small file would become a huge model.

    The entries of a model file are not compressed and do not overlap, and each array becomes one
    object.
    """
    objects: dict[str, set[Any]] = {}

    def collect(node: dict[str, Any]) -> None:
        if "file" in node:
            objects.setdefault(str(node["file"]), set()).add(node["__id__"])

    entries = archive.infolist()
    json.loads(archive.read(_SCHEMA), object_hook=collect)
    is_repeated = any(len(ids) > 1 for ids in objects.values())
    is_packed = any(each.compress_type != ZIP_STORED for each in entries)
    is_overlapping = sum(each.file_size for each in entries) > n_bytes
    if is_repeated or is_packed or is_overlapping:
        raise ValueError("not written by save_model")


def _foreign_types(skops_io: Any, data: bytes) -> str:
    """Return the names of types that no model may hold, or ""."""
    foreign = sorted(set(skops_io.get_untrusted_types(data=data)) - set(TRUSTED))
    others = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
    return f"{foreign[0][:100]!r}{others}" if foreign else ""


def _try_out(detector: Any) -> None:
    """Raise an error if the parts of a loaded detector do not fit together."""
    if type(detector) not in _DETECTORS:
        raise TypeError("not a detector of qms22")
    if type(detector) is QMS22Ensemble:
        check_views(detector)
    row = np.zeros((1, detector.n_features_in_))
    score = detector._scores(LazyRows(row)) - detector.offset_
    usual = detector._typical.row([[column] for column in range(row.shape[1])])
    if not np.isfinite(score).all() or usual.shape != row[0].shape:
        raise ValueError("parts of the detector do not fit together")
    detector.top_k(0)
