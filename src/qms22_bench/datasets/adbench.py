"""ADBench's data sets, from a folder of its .npz files."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qms22_bench.datasets.dataset import Dataset, OfficialFold
from qms22_bench.datasets.labeled_rows import LabeledRows

MOST_ROWS = 6000
MOST_FEATURES = 200
LEAST_OUTLIERS = 5
_SEED = 0


def load_adbench(folder: str | Path) -> list[Dataset]:
    """Load a folder of ADBench's files, each as a data set with one fold.

    At most 6,000 rows of a file are drawn, with seed 0. A random half of the normal rows are T;
    the other half and the outliers, in random order, are S.

    Parameters
    ----------
    folder : str or Path
        With files such as 14_glass.npz that hold `X` (rows × features) and `y` (1 for outliers,
        else 0). Pickled objects are not loaded.

    Returns
    -------
    list of Dataset
        In the order of the file names, without those that have fewer than 5 outliers after the
        draw, or more than 200 features.

    Raises
    ------
    ValueError
        If a file is damaged or holds anything else than numbers, or if no data set is left.

    References
    ----------
    S. Han, X. Hu, H. Huang, M. Jiang, Y. Zhao, "ADBench: Anomaly detection benchmark", NeurIPS
    2022. https://github.com/Minqi824/ADBench
    """
    place = Path(folder).expanduser()
    if not place.is_dir():
        raise FileNotFoundError(f"there is no folder {str(place)!r}; correct the path")
    loaded = [_load_file(path) for path in sorted(place.glob("*.npz"))]
    datasets = [dataset for dataset in loaded if dataset is not None]
    if not datasets:
        raise ValueError(
            f"the folder {place} has no .npz file with at least {LEAST_OUTLIERS} outliers and at "
            f"most {MOST_FEATURES} features; put ADBench's files there"
        )
    return datasets


def _load_file(path: Path) -> Dataset | None:
    """Load a file; return None if it has too few outliers or too many features."""
    X, is_outlier = _read(path)
    rng = np.random.default_rng(_SEED)
    if len(X) > MOST_ROWS:
        drawn = rng.permutation(len(X))[:MOST_ROWS]
        X, is_outlier = X[drawn], is_outlier[drawn]
    if is_outlier.sum() < LEAST_OUTLIERS or X.shape[1] > MOST_FEATURES:
        return None
    normal = rng.permutation(np.flatnonzero(~is_outlier))
    half = len(normal) // 2
    if not half:
        raise ValueError(f"{path} has {len(normal)} normal rows (y = 0); it needs at least 2")
    batch = rng.permutation(np.concatenate([normal[half:], np.flatnonzero(is_outlier)]))
    order = np.concatenate([normal[:half], batch])
    rows = LabeledRows(tuple(X[order].T), is_outlier[order])
    return Dataset(
        path.stem,
        tuple(f"x{column}" for column in range(X.shape[1])),
        rows,
        origin=str(path.parent),
        official=(OfficialFold(rows, half),),
        official_name=f"half of the normal rows, seed {_SEED}",
        n_folds=1,
    )


def _read(path: Path) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Read X and y of a file; raise ValueError if they are not plain and complete numbers."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            X, y = np.asarray(file["X"]), np.asarray(file["y"])
    except KeyError as error:
        raise ValueError(f"{path} has no array X or y, which ADBench's files have") from error
    except (ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            f"{path} is damaged, or holds pickled objects, which are not loaded because they can "
            "run any code; save X and y as plain numbers"
        ) from error
    if X.ndim != 2 or y.shape != X.shape[:1] or X.dtype.kind not in "buif":
        raise ValueError(
            f"{path} has X of shape {X.shape} and type {X.dtype}, and y of shape {y.shape}; X has "
            "to hold rows × features of numbers, and y one label for each row"
        )
    if not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        raise ValueError(
            f"{path} has missing or infinite values (first at row {row} of feature {column}); "
            "impute them or remove the rows"
        )
    if y.dtype.kind not in "buif" or not np.isin(y, (0, 1)).all():
        raise ValueError(f"the labels y of {path} are not all 0 (normal) or 1 (outlier)")
    return X.astype(np.float64), y == 1
