"""Detectors by name, and functions that call all of them in the same way.

>>> import numpy as np
>>> from qms22_bench.registry import get_detector, outlier_scores
>>> rng = np.random.default_rng(0)
>>> normal, unlabeled = rng.normal(size=(200, 3)), rng.normal(size=(50, 3))
>>> unlabeled[7] += 8
>>> detector = get_detector("BRM").build(0)
>>> int(outlier_scores(detector, normal, unlabeled).argmax())
7

To add a detector, add a line to `_SPECS`: a name and the address of a class with `fit` and with
`score_samples`, which is higher for more normal rows.
"""

# Heavy packages are imported when a detector is built, not when they are listed.
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

_PYOD_PREFIX = "pyod:"


class Detector(Protocol):
    """The methods of a detector that `fit`, `score` and `outlier_scores` use."""

    @property
    def fit(self) -> Callable[..., Any]:
        """Learn from known-normal rows and, if it has that parameter, from `unlabeled`."""

    def score_samples(self, X: Any, /) -> NDArray[np.float64]:
        """Score rows; higher is more normal."""


@dataclass(frozen=True)
class DetectorSpec:
    """A detector that can be built by name.

    Parameters
    ----------
    name : str
        Name of the detector.
    build : callable
        Takes a seed or None, and returns a new detector.
    label : str
        Short description.
    is_transductive : bool
        Whether it also learns from the unlabeled rows.
    """

    name: str
    build: Callable[[int | None], Detector]
    label: str
    is_transductive: bool = False


def get_detector(name: str) -> DetectorSpec:
    """Return a detector by name.

    Parameters
    ----------
    name : str
        One of `list_detectors()`, in upper or lower case; with PyOD installed, "pyod:" and the
        name of a class of `pyod.models`.

    Returns
    -------
    DetectorSpec

    Examples
    --------
    >>> get_detector("knn").label
    'mean distance to the 5 nearest normal rows'
    """
    if name.startswith(_PYOD_PREFIX):
        return _pyod_spec(name)
    specs = {spec.name.casefold(): spec for spec in _SPECS}
    if name.casefold() in specs:
        return specs[name.casefold()]
    close = get_close_matches(name.casefold(), specs, n=1)
    hint = f"did you mean {specs[close[0]].name!r}? There are" if close else "there are"
    raise ValueError(
        f"no detector is called {name!r}; {hint} {', '.join(list_detectors())} and, of PyOD, "
        "names such as pyod:ECOD"
    )


def list_detectors() -> list[str]:
    """Return the names of the detectors, without those of PyOD.

    Examples
    --------
    >>> list_detectors()[:3]
    ['QMS22', 'QMS22Ensemble', 'DOUST']
    """
    return [spec.name for spec in _SPECS]


def fit(detector: Detector, normal: ArrayLike, unlabeled: ArrayLike) -> None:
    """Fit a detector to the normal rows, and to the unlabeled rows if it uses them.

    Parameters
    ----------
    detector : Detector
    normal : array-like of shape (n_normal, n_features)
    unlabeled : array-like of shape (n_unlabeled, n_features)
    """
    if "unlabeled" in inspect.signature(detector.fit).parameters:
        detector.fit(normal, unlabeled=unlabeled)
    else:
        detector.fit(normal)


def score(detector: Detector, unlabeled: ArrayLike) -> NDArray[np.float64]:
    """Score the batch by a fitted detector; higher is more suspicious.

    Parameters
    ----------
    detector : Detector
    unlabeled : array-like of shape (n_unlabeled, n_features)
        The same rows that `fit` was given.

    Returns
    -------
    ndarray of shape (n_unlabeled,)
        A detector that learns from the batch has them since the fit, as `unlabeled_scores_`.
    """
    known = getattr(detector, "unlabeled_scores_", None)
    if known is not None:
        return np.asarray(known, dtype=np.float64)
    return -np.asarray(detector.score_samples(unlabeled), dtype=np.float64)


def outlier_scores(
    detector: Detector, normal: ArrayLike, unlabeled: ArrayLike
) -> NDArray[np.float64]:
    """Fit a detector and score the unlabeled rows; higher is more suspicious.

    Parameters
    ----------
    detector : Detector
    normal : array-like of shape (n_normal, n_features)
    unlabeled : array-like of shape (n_unlabeled, n_features)

    Returns
    -------
    ndarray of shape (n_unlabeled,)
    """
    fit(detector, normal, unlabeled)
    return score(detector, unlabeled)


@dataclass(frozen=True)
class _Recipe:
    """Build a detector whose class is imported at that moment.

    Parameters
    ----------
    address : str
        Module and class, as in "sklearn.svm:OneClassSVM".
    parameters : dict
        Parameters of the class. A seed is passed as `random_state` if the class has that.
    is_scaled : bool
        Whether rows are scaled to [0, 1] first.
    """

    address: str
    parameters: Mapping[str, object] = field(default_factory=dict, hash=False)
    is_scaled: bool = False

    def __call__(self, seed: int | None) -> Detector:
        module, _, name = self.address.partition(":")
        detector_class = getattr(import_module(module), name)
        parameters = dict(self.parameters)
        if "random_state" in inspect.signature(detector_class).parameters:
            parameters["random_state"] = seed
        detector: Detector = detector_class(**parameters)
        return _scale(detector) if self.is_scaled else detector


def _scale(detector: Detector) -> Detector:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler

    scaled: Detector = make_pipeline(MinMaxScaler(), detector)
    return scaled


def _pyod_spec(name: str) -> DetectorSpec:
    class_name = name.removeprefix(_PYOD_PREFIX)
    pyod = import_module("qms22_bench.rivals.pyod")
    pyod.find_pyod_class(class_name)  # raises here, not in the middle of a benchmark
    recipe = _Recipe(f"{pyod.__name__}:PyODDetector", {"name": class_name}, is_scaled=True)
    return DetectorSpec(name, recipe, f"PyOD's {class_name}")


_SPECS = (
    DetectorSpec(
        "QMS22",
        _Recipe("qms22:QMS22"),
        "quadratic multiform separation, the paper's settings",
        is_transductive=True,
    ),
    DetectorSpec(
        "QMS22Ensemble",
        _Recipe("qms22:QMS22Ensemble"),
        "the recommended detector: QMS22, distances, covariance and forests",
        is_transductive=True,
    ),
    DetectorSpec(
        "DOUST",
        _Recipe("qms22_bench.rivals:DOUST"),
        "network that tells the batch from normal rows by test-time training",
        is_transductive=True,
    ),
    DetectorSpec("BRM", _Recipe("qms22_bench.rivals:BRM"), "Bagging-Random Miner, 100 bags"),
    DetectorSpec(
        "OCKRA",
        _Recipe("qms22_bench.rivals:OCKRA"),
        "one-class k-means with randomly projected features, 100 members",
    ),
    DetectorSpec(
        "IsolationForest",
        _Recipe("sklearn.ensemble:IsolationForest", {"n_estimators": 100}),
        "isolation forest, 100 trees",
    ),
    DetectorSpec(
        "ExtendedIsolationForest",
        _Recipe("qms22_bench.rivals:ExtendedIsolationForest"),
        "isolation forest of random hyperplanes, 100 trees",
    ),
    DetectorSpec(
        "OneClassSVM",
        _Recipe("sklearn.svm:OneClassSVM", {"kernel": "rbf", "gamma": "scale"}, is_scaled=True),
        "one-class support vector machine, Gaussian kernel",
    ),
    DetectorSpec(
        "kNN",
        _Recipe("qms22_bench.rivals:KNNDetector", {"n_neighbors": 5}),
        "mean distance to the 5 nearest normal rows",
    ),
    DetectorSpec(
        "DTE-NP",
        _Recipe("qms22_bench.rivals:DTENonParametric"),
        "diffusion time estimated from the 5 nearest normal rows",
    ),
    DetectorSpec(
        "LOF",
        _Recipe("sklearn.neighbors:LocalOutlierFactor", {"novelty": True}, is_scaled=True),
        "local outlier factor, 20 neighbors",
    ),
    DetectorSpec(
        "GaussianMixture",
        # reg_covar makes constant and collinear features harmless.
        _Recipe(
            "sklearn.mixture:GaussianMixture",
            {"n_components": 3, "reg_covar": 1e-3},
            is_scaled=True,
        ),
        "density of a mixture of 3 Gaussians",
    ),
)
