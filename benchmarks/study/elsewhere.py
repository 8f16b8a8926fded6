"""Data sets that come with scikit-learn, to test the variants outside KEEL."""

from __future__ import annotations

from collections.abc import Iterator

from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from qms22.datasets import Dataset, LabeledRows

_LOADERS = {
    "digits": load_digits,
    "wine": load_wine,
    "breast-cancer": load_breast_cancer,
    "iris": load_iris,
}
# The outlier classes of sources of which not every class is used.
_OUTLIER_CLASSES = {"breast-cancer": ["malignant"]}


def sets_elsewhere() -> list[Dataset]:
    """Return a data set for every class, whose rows are the outliers among the other rows.

    Examples
    --------
    >>> [dataset.name for dataset in sets_elsewhere()][9:12]
    ['digits-9', 'wine-class_0', 'wine-class_1']
    """
    return [dataset for source in _LOADERS for dataset in _sets_of(source)]


def source_of(name: str) -> str:
    """Return the source of a data set."""
    return next(source for source in _LOADERS if name.startswith(source))


def _sets_of(source: str) -> Iterator[Dataset]:
    data = _LOADERS[source]()
    columns = tuple(data.data.T.astype(float))
    features = tuple(map(str, data.feature_names))
    classes = [str(name) for name in data.target_names]
    for name in _OUTLIER_CLASSES.get(source, classes):
        rows = LabeledRows(columns, data.target == classes.index(name))
        yield Dataset(f"{source}-{name}", features, rows, origin="scikit-learn")
