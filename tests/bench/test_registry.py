from __future__ import annotations

import pickle
import subprocess
import sys
from importlib import util
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from qms22_bench import registry
from qms22_bench.registry import get_detector, list_detectors, outlier_scores
from qms22_bench.rivals import pyod

Rows = NDArray[np.float64]


def make_task(seed: int = 0) -> tuple[Rows, Rows, NDArray[np.bool_]]:
    """Return normal rows, a batch in which a tenth is shifted, and which rows those are."""
    rng = np.random.default_rng(seed)
    normal, unlabeled = rng.normal(size=(200, 5)), rng.normal(size=(100, 5))
    is_outlier = np.arange(100) < 10
    unlabeled[is_outlier] += 4
    return normal, unlabeled, is_outlier


@pytest.mark.parametrize("name", list_detectors())
def test_every_detector_finds_the_outliers(name: str) -> None:
    normal, unlabeled, is_outlier = make_task()
    scores = outlier_scores(get_detector(name).build(0), normal, unlabeled)
    assert scores.shape == (100,)
    assert scores.dtype == np.float64
    assert roc_auc_score(is_outlier, scores) > 0.95


@pytest.mark.parametrize("name", list_detectors())
def test_equal_seeds_give_equal_scores_in_one_step_or_two(name: str) -> None:
    normal, unlabeled, _ = make_task()
    spec = get_detector(name)
    detector = spec.build(7)
    registry.fit(detector, normal, unlabeled)
    np.testing.assert_array_equal(
        registry.score(detector, unlabeled), outlier_scores(spec.build(7), normal, unlabeled)
    )


def test_transductive_detectors_get_the_batch() -> None:
    transductive = [name for name in list_detectors() if get_detector(name).is_transductive]
    assert transductive == ["QMS22", "QMS22Ensemble", "DOUST"]
    normal, unlabeled, _ = make_task()
    for name in transductive:
        detector: Any = get_detector(name).build(0)
        scores = outlier_scores(detector, normal, unlabeled)
        np.testing.assert_allclose(scores, detector.unlabeled_scores_)


@pytest.mark.parametrize("name", list_detectors())
def test_specs_travel_to_other_processes(name: str) -> None:
    spec = pickle.loads(pickle.dumps(get_detector(name)))
    assert spec == get_detector(name)
    assert hash(spec) == hash(get_detector(name))
    assert spec.label


def test_names_are_found_in_any_case() -> None:
    assert get_detector("isolationforest").name == "IsolationForest"


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("BMR", "no detector is called 'BMR'; did you mean 'BRM'?"),
        (
            "xyzzy",
            "no detector is called 'xyzzy'; there are QMS22, QMS22Ensemble, .*, BRM, .* pyod:ECOD",
        ),
    ],
)
def test_unknown_names_are_answered_with_known_ones(name: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        get_detector(name)


def test_listing_detectors_imports_nothing_heavy() -> None:
    program = (
        "import sys; from qms22_bench import registry; registry.list_detectors(); "
        "print([name for name in ('pandas', 'pyod', 'scipy', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"


def test_a_missing_pyod_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyod.models", None)
    with pytest.raises(
        ImportError, match=r"'pyod:ECOD' needs pyod, .* pip install 'qms22\[pyod\]'"
    ):
        get_detector("pyod:ECOD")


@pytest.mark.filterwarnings("ignore")  # PyOD's own
class TestPyOD:
    @pytest.fixture(autouse=True)
    def _needs_pyod(self) -> None:
        pytest.importorskip("pyod")

    @pytest.mark.parametrize("name", ["pyod:IForest", "pyod:ECOD", "pyod:KNN"])
    def test_detectors_find_the_outliers(self, name: str) -> None:
        normal, unlabeled, is_outlier = make_task()
        spec = get_detector(name)
        assert spec.name == name
        scores = outlier_scores(spec.build(0), normal, unlabeled)
        assert roc_auc_score(is_outlier, scores) > 0.95
        np.testing.assert_array_equal(scores, outlier_scores(spec.build(0), normal, unlabeled))

    @pytest.mark.skipif(util.find_spec("torch") is not None, reason="PyTorch is installed")
    @pytest.mark.parametrize("name", ["pyod:AutoEncoder", "pyod:DeepSVDD"])
    def test_what_a_detector_lacks_is_named(
        self, name: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(ImportError, match=f"'{name}' needs a package that is not.*torch"):
            get_detector(name)
        assert capsys.readouterr().out == ""

    @pytest.mark.skipif(util.find_spec("torch") is None, reason="needs PyTorch")
    def test_networks_find_the_outliers(self, capsys: pytest.CaptureFixture[str]) -> None:
        normal, unlabeled, is_outlier = make_task()
        scores = outlier_scores(get_detector("pyod:DeepSVDD").build(0), normal, unlabeled)
        assert roc_auc_score(is_outlier, scores) > 0.8

    def test_networks_get_what_they_ask_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Network:
            def __init__(self, n_features: int, verbose: int = 1) -> None:
                self.parameters = n_features, verbose

            def fit(self, X: Rows) -> None:
                assert self.parameters == (X.shape[1], 0)

        monkeypatch.setattr(pyod, "find_pyod_class", lambda name: Network)
        assert pyod.PyODDetector(name="Network").fit(make_task()[0]).detector_.parameters == (5, 0)

    def test_unknown_names_are_answered_with_examples(self) -> None:
        with pytest.raises(ValueError, match="PyOD has no detector 'Nonsense'; give the name of"):
            get_detector("pyod:Nonsense")
        with pytest.raises(ValueError, match="PyOD has no detector 'iforest'"):
            get_detector("pyod:iforest")
