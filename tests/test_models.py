"""Model files: what goes in comes out."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from frames import encode_frames
from model_files import small_detector, small_rows
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import qms22
from qms22 import QMS22, QMS22Ensemble
from qms22.checks import learn_checks
from qms22.detection import detect, score
from qms22.detection.scorer import TableScorer
from qms22.estimators.learning import MOST_REFERENCES
from qms22.models import FORMAT, load_model, save_model

pytest.importorskip("skops")

MODELS = Path(__file__).parent / "models"


class Encoder(StandardScaler):  # type: ignore[misc]
    """A type that no model may hold."""


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    return small_rows()


@pytest.fixture(scope="module")
def detector() -> QMS22:
    return small_detector()


@pytest.mark.parametrize("random_state", [None, 7, np.int64(7), np.random.RandomState(7)])
@pytest.mark.parametrize(
    "parameters",
    [{}, {"scaling": "standard", "dtype": "float32"}, {"scaling": None, "contamination": 0.1}],
)
def test_round_trip_to_the_bit(
    parameters: dict[str, Any],
    random_state: Any,
    rows: tuple[np.ndarray, np.ndarray],
    tmp_path: Path,
) -> None:
    normal, batch = rows
    detector = QMS22(n_restarts=2, max_iter=3, random_state=random_state, **parameters)
    detector.fit(normal, unlabeled=batch)
    save_model(tmp_path / "model.skops", detector)
    assert [path.name for path in tmp_path.iterdir()] == ["model.skops"]
    model = load_model(tmp_path / "model.skops")
    loaded = model.detector
    assert model.encoder is None
    assert set(vars(loaded)) == set(vars(detector))
    if not isinstance(random_state, np.random.RandomState):
        assert loaded.get_params() == detector.get_params()
    for name in ("unlabeled_scores_", "A_", "b_", "typical_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(detector, name))
    assert loaded.members_ is loaded.restarts_[0]
    assert loaded.offset_ == detector.offset_
    np.testing.assert_array_equal(loaded.score_samples(normal), detector.score_samples(normal))
    np.testing.assert_array_equal(loaded.explain(batch).drop, detector.explain(batch).drop)
    assert loaded.top_k(3).tolist() == detector.top_k(3).tolist()
    if random_state is not None:
        np.testing.assert_array_equal(
            loaded.fit(normal, unlabeled=batch).unlabeled_scores_,
            detector.fit(normal, unlabeled=batch).unlabeled_scores_,
        )


def test_facts(rows: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    normal, batch = (pd.DataFrame(part, columns=["a", "b", "c"]) for part in rows)
    detector = QMS22(max_iter=2, alpha=np.float64(0.25), random_state=np.random.RandomState(0))
    detector.fit(normal, unlabeled=batch)
    path = tmp_path / "model.skops"
    save_model(str(path), detector, trained_on="june.csv", classes=[1, 2], nothing=None)
    facts = load_model(str(path)).facts
    assert facts["version"] == qms22.__version__
    assert facts["created"].endswith("+00:00")
    assert facts["parameters"]["alpha"] == 0.25
    assert facts["parameters"]["random_state"] == "RandomState"
    assert facts["features"] == ["a", "b", "c"]
    assert facts["n_features"] == 3
    assert facts["threshold"] == -detector.offset_
    assert facts["trained_on"] == "june.csv"
    assert facts["classes"] == [1, 2]
    assert facts["nothing"] is None
    assert load_model(path).detector.feature_names_in_.tolist() == ["a", "b", "c"]


def test_encoders_of_scikit_learn(tmp_path: Path) -> None:
    rng = np.random.RandomState(0)
    table = pd.DataFrame({"size": rng.normal(size=80), "color": rng.choice(["r", "g"], size=80)})
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["size"]),
            ("levels", OneHotEncoder(sparse_output=False), ["color"]),
        ]
    )
    encoder = make_pipeline(columns).fit(table)
    encoded = encoder.transform(table)
    detector = QMS22(max_iter=2, random_state=0).fit(encoded, unlabeled=encoded[:20])
    save_model(tmp_path / "model.skops", detector, encoder=encoder)
    model = load_model(tmp_path / "model.skops")
    np.testing.assert_array_equal(model.encoder.transform(table), encoded)


def test_the_encoder_of_tables(tmp_path: Path) -> None:
    tabular = pytest.importorskip("qms22.tables")
    rng = np.random.RandomState(0)
    table = pd.DataFrame(
        {
            "size": rng.normal(size=90),
            "color": rng.choice(["red", "green", "blue"], size=90),
            "on": rng.choice([True, False], size=90),
            "day": pd.date_range("2024-01-01", periods=90),
        }
    )
    encoder = tabular.TabularEncoder(ignore=["none"]).fit(table)
    rows = encoder.transform(table)
    detector = QMS22(max_iter=2, random_state=0).fit(rows, unlabeled=rows[:30])
    save_model(tmp_path / "model.skops", detector, encoder=encoder)
    loaded = load_model(tmp_path / "model.skops").encoder
    np.testing.assert_array_equal(loaded.transform(table), rows)
    assert loaded.typical_ == encoder.typical_
    assert loaded.groups_ == encoder.groups_


def test_an_ensemble_goes_round_and_its_batch_stays_behind(
    rows: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    normal, batch = rows
    detector = QMS22Ensemble(max_iter=3, random_state=0).fit(normal, unlabeled=batch)
    save_model(tmp_path / "model.skops", detector)
    loaded = load_model(tmp_path / "model.skops").detector
    np.testing.assert_array_equal(loaded.score_samples(batch), detector.score_samples(batch))
    np.testing.assert_array_equal(loaded.predict(batch), detector.predict(batch))
    np.testing.assert_array_equal(loaded.explain(batch).drop, detector.explain(batch).drop)
    assert loaded.weights_ == detector.weights_
    assert loaded.views_.keys() == detector.views_.keys()
    with pytest.raises(ValueError, match=r"no batch to flag rows of: .* comes from a file; fit it"):
        loaded.flag()
    assert detector.flag(0.5).shape == (len(batch),)  # the one in memory still has it


def test_an_ensemble_keeps_known_normal_rows_up_to_a_number(tmp_path: Path) -> None:
    # The documentation of save_model states this number: it matters for privacy.
    assert f"up to {MOST_REFERENCES:,}\n" in str(save_model.__doc__)
    rows = np.random.default_rng(0).normal(size=(MOST_REFERENCES + 100, 2))
    detector = QMS22Ensemble(n_splits=2, max_iter=1, random_state=0, contamination=1)
    save_model(tmp_path / "model.skops", detector.fit(rows, unlabeled=rows[:50]))
    loaded: Any = load_model(tmp_path / "model.skops").detector
    assert loaded.views_["distances"].references.shape == (MOST_REFERENCES, 2)


def test_an_ensemble_keeps_its_groups(tmp_path: Path) -> None:
    rng = np.random.RandomState(0)
    rows = np.hstack([rng.normal(size=(90, 2)), np.eye(3)[rng.randint(3, size=90)]])
    detector = QMS22Ensemble(n_splits=2, max_iter=2, random_state=0)
    detector.fit(rows[:60], unlabeled=rows[60:], groups={"color": [2, 3, 4]})
    save_model(tmp_path / "model.skops", detector)
    loaded = load_model(tmp_path / "model.skops").detector
    assert loaded.explain(rows[60:]).names == ("x0", "x1", "color")


def test_what_cannot_be_saved(detector: QMS22, tmp_path: Path) -> None:
    path = tmp_path / "model.skops"
    path.write_text("old")
    with pytest.raises(ValueError, match=r"a model with 'test_models.Encoder' cannot be saved, be"):
        save_model(path, detector, encoder=Encoder())
    with pytest.raises(ValueError, match=r"a model with 'os.\w+' cannot|'posix.system' cannot"):
        save_model(path, detector, encoder=FunctionTransformer(os.system))
    with pytest.raises(ValueError, match="skops cannot write a part of the model"):
        save_model(path, detector, encoder=(_ for _ in ""))
    with pytest.raises(ValueError, match="writes a fact 'version' itself; choose another"):
        save_model(path, detector, version=3)
    with pytest.raises(ValueError, match="the fact 'rows' is a ndarray, which JSON cannot hold"):
        save_model(path, detector, rows=np.ones(3))
    with pytest.raises(NotFittedError):
        save_model(path, QMS22())
    with pytest.raises(TypeError, match=r"QMS22 or a QMS22Ensemble .* got a StandardScaler"):
        save_model(path, StandardScaler())
    with pytest.raises(FileNotFoundError, match=r"the folder '.*none' does not exist; create it"):
        save_model(tmp_path / "none" / "model.skops", detector)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def breast_cancer() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Known-normal rows, and a batch with 20 malignant ones; few columns, for small files."""
    table, is_benign = load_breast_cancer(return_X_y=True, as_frame=True)
    table = table.iloc[:, :3]
    benign, malignant = table[is_benign == 1], table[is_benign == 0]
    return benign[:250], pd.concat([benign[250:], malignant[:20]])


def write_model() -> None:
    """Keep a model of this format; run as `python tests/test_models.py` when FORMAT rises."""
    normal, batch = breast_cancer()
    encoded = encode_frames(normal[:100], batch)
    # Without an encoder of scikit-learn: that one warns when scikit-learn's version changes.
    detector = QMS22Ensemble(n_splits=2, contamination=20, random_state=0)
    detector.fit(encoded.known, unlabeled=encoded.rows, groups=encoded.encoder.groups_)
    checks = learn_checks(encoded.encoder, encoded.normal_cells, encoded.batch_cells, 0).checks
    raised = TableScorer(encoded.encoder, detector, checks).score_batch(encoded).scores
    checks.threshold = float(np.sort(raised)[-20])
    path = MODELS / f"format{FORMAT}.skops"
    save_model(path, detector, encoder=encoded.encoder, checks=checks, data="breast cancer")
    found = score(load_model(path), batch)
    kept = {
        "detector": detector.unlabeled_scores_.tolist(),
        "scores": raised.tolist(),
        "reasons": {row: [str(each) for each in found.reasons[row]] for row in found.top.tolist()},
    }
    path.with_suffix(".json").write_text(json.dumps(kept) + "\n")


@pytest.mark.parametrize("number", range(1, FORMAT + 1))
def test_models_of_earlier_versions_load(number: int) -> None:
    path = MODELS / f"format{number}.skops"
    assert path.stat().st_size < 400_000
    model = load_model(path)
    expected = json.loads(path.with_suffix(".json").read_text())["detector"]
    batch = breast_cancer()[1]
    rows = model.encoder.transform(batch)
    scores = -model.detector.score_samples(rows)
    np.testing.assert_allclose(scores, expected, rtol=1e-5)
    np.testing.assert_array_equal(model.detector.unlabeled_scores_, expected)
    flagged = model.detector.predict(rows) == -1
    np.testing.assert_array_equal(flagged, scores > -model.detector.offset_)
    assert flagged[-20:].mean() > flagged[:-20].mean()
    assert model.facts["data"] == "breast cancer"
    assert model.detector.explain(rows).drop.shape == batch.shape


@pytest.mark.parametrize("number", range(1, FORMAT + 1))
def test_checks_of_earlier_versions_load(number: int) -> None:
    path = MODELS / f"format{number}.skops"
    expected = json.loads(path.with_suffix(".json").read_text())
    found = score(load_model(path), breast_cancer()[1])
    np.testing.assert_allclose(found.scores, expected["scores"], rtol=1e-5)
    reasons = {str(row): [str(each) for each in found.reasons[row]] for row in found.top.tolist()}
    assert reasons == expected["reasons"]


def test_the_threshold_that_is_named_is_the_one_that_is_used(tmp_path: Path) -> None:
    normal, batch = breast_cancer()
    found = detect(normal, batch, k=15, n_jobs=1)
    assert found.checks is not None
    path = tmp_path / "m.skops"
    save_model(path, found.detector, encoder=found.encoder, checks=found.checks)
    model = load_model(path)
    assert model.facts["threshold"] == found.checks.threshold
    scored = score(model, batch)
    np.testing.assert_array_equal(scored.flagged, scored.scores > model.facts["threshold"])
    assert scored.n_flagged == 15


def test_a_model_without_checks_scores_as_its_detector_does() -> None:
    model = replace(load_model(MODELS / "format1.skops"), checks=None)
    batch = breast_cancer()[1]
    found = score(model, batch)
    scores = -model.detector.score_samples(model.encoder.transform(batch))
    np.testing.assert_array_equal(found.scores, scores)
    np.testing.assert_array_equal(found.flagged, scores > -model.detector.offset_)
    assert found.flagged.any()


if __name__ == "__main__":
    write_model()
