"""Known-normal rows that are not normal: how they are found, and what removing them does."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive_views import left_out_square, mean_log_distance
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from qms22 import QMS22Ensemble
from qms22.estimators import learning
from qms22.estimators.base import ROWS_OF_FIT
from qms22.estimators.held_out import HeldOutScores, hash_rows
from qms22.estimators.suspicious_normal import score_known, stand_out
from qms22.estimators.views import KnownRows
from qms22.models import load_model, save_model

QUICK: dict[str, Any] = {"n_members": 3, "n_components": 2, "max_iter": 3, "n_splits": 3}


def make_rows(
    seed: int, n_planted: int = 0, n_outliers: int = 12
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return T, whose first rows are outliers, and S, whose first rows are outliers like them."""
    rng = np.random.RandomState(seed)
    normal, batch = rng.normal(size=(240, 3)), rng.normal(size=(60, 3))
    normal[:n_planted] += 3.5
    batch[:n_outliers] += 3.5
    return normal, batch


def fit(
    normal: NDArray[np.float64],
    batch: NDArray[np.float64],
    outliers: NDArray[np.float64] | None = None,
    **options: Any,
) -> QMS22Ensemble:
    detector = QMS22Ensemble(random_state=0, contamination=1, **{**QUICK, **options})
    return detector.fit(normal, unlabeled=batch, outliers=outliers)


def naive_log_p(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compare each held-out row with the others."""
    deviation = float(scores.std())
    return np.array(
        [
            HeldOutScores(np.sort(np.delete(scores, i)), deviation).log_p_values(scores[[i]])[0]
            for i in range(len(scores))
        ]
    )


def naive_scores(detector: QMS22Ensemble, normal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Score the rows of T by the definition, row by row."""
    views: dict[str, Any] = detector.views_
    mean, deviation = normal.mean(axis=0), normal.std(axis=0)
    standard = (normal - mean) / deviation * 85
    near = normal / np.minimum(np.ptp(normal, axis=0), 3 * deviation)
    everyone = range(len(normal))
    log_p = {
        "covariance": naive_log_p(
            np.array([np.log(left_out_square(standard, i)) for i in everyone])
        ),
        "distances": naive_log_p(
            np.array([mean_log_distance(near[i], np.delete(near, i, 0), near) for i in everyone])
        ),
    }
    for name in views.keys() & {"forest", "self_training"}:
        log_p[name] = naive_log_p(views[name].forest.oob_scores[: len(normal)])
    log_p["members"] = np.empty(len(normal))
    for part, out in zip(views["members"].parts, detector._held_out, strict=True):
        scores = np.log1p(part.members.outlier_scores(standard[out]))
        log_p["members"][out] = naive_log_p(scores)
    weighted = [weight * log_p[name] for name, weight in detector.weights_.items()]
    total: NDArray[np.float64] = -np.sum(weighted, axis=0)
    return total


def test_scores_are_those_of_the_definition() -> None:
    normal, batch = make_rows(0, n_planted=4)
    detector = fit(normal, batch, dtype="float64")
    # Rows are held out by their places in an order of their values.
    order = hash_rows(normal).argsort(kind="stable")
    expected = naive_scores(detector, normal[order])
    np.testing.assert_allclose(detector.score_normals()[order], expected, rtol=1e-5)


@pytest.mark.parametrize("scores", [[3.0, 1.0, 2.0, 9.0], [1.0, 5.0, 5.0], [2.0, 2.0]])
def test_held_out_rows_are_compared_with_the_others(scores: list[float]) -> None:
    array = np.array(scores)
    found = HeldOutScores.of(array).log_p_values_of_own(array)
    deviation = array.std() or 1.0
    expected = [
        HeldOutScores(np.sort(np.delete(array, i)), deviation).log_p_values(array[[i]])[0]
        for i in range(len(array))
    ]
    np.testing.assert_allclose(found, expected)


def test_a_single_held_out_row() -> None:
    assert np.isfinite(HeldOutScores.of(np.array([4.0])).log_p_values_of_own(np.array([4.0]))).all()


@pytest.mark.parametrize("seed", range(3))
def test_planted_rows_come_first(seed: int) -> None:
    detector = fit(*make_rows(seed, n_planted=5))
    assert (detector.suspicious_normal(10) < 5).sum() >= 4
    assert np.array_equal(
        detector.suspicious_normal(240), np.argsort(-detector.score_normals(), kind="stable")
    )


def test_a_false_alarm_is_rare_and_planted_rows_cause_one() -> None:
    clean = [fit(*make_rows(seed)).suspicious_normal() for seed in range(10)]
    assert sum(len(rows) > 0 for rows in clean) <= 1
    planted = [fit(*make_rows(seed, n_planted=5)).suspicious_normal() for seed in range(10)]
    assert sum(len(rows) > 0 for rows in planted) >= 4
    named = np.concatenate(planted)
    assert (named < 5).mean() > 0.8


def test_without_outliers_in_the_batch_nothing_stands_out() -> None:
    found = [fit(*make_rows(seed, n_outliers=0)).suspicious_normal() for seed in range(10)]
    assert sum(len(rows) > 0 for rows in found) <= 1


def test_what_stands_out() -> None:
    """Of 100 rows of T three reach the clearest rows of a batch in which 30 of 100 are found."""
    batch = np.concatenate([np.linspace(10, 20, 30), np.zeros(70)])
    normal = np.zeros(100)
    assert stand_out(normal, batch).size == 0
    normal[[3, 50, 99]] = [19.5, 21, 20]
    assert stand_out(normal, batch).tolist() == [3, 50, 99]
    normal[3] = 15.0  # not as high as the first tenth: two rows alone are no alarm
    assert stand_out(normal, batch).size == 0
    # Where T has as many high scores as the batch, nothing is found in the batch.
    assert stand_out(batch, batch).size == 0


def test_rows_that_were_not_drawn_are_scored_as_new_ones() -> None:
    normal, batch = make_rows(0, n_planted=6)
    detector = fit(normal, batch, max_samples=150)
    scores = detector.score_normals()
    is_learned = (normal[:, None] == detector._known).all(axis=2).any(axis=1)
    assert is_learned.sum() == 150
    np.testing.assert_array_equal(scores[~is_learned], -detector.score_samples(normal[~is_learned]))
    np.testing.assert_allclose(np.sort(scores[is_learned]), np.sort(detector._of_learned))
    standing_out = detector.suspicious_normal()
    assert is_learned[standing_out].all()
    expected = stand_out(scores[is_learned], detector.unlabeled_scores_)
    assert set(standing_out) == set(np.flatnonzero(is_learned)[expected])


def test_rows_beyond_the_references(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is no reference is compared with all of them, a reference with the others."""
    monkeypatch.setattr(learning, "MOST_REFERENCES", 50)
    normal, batch = make_rows(0, n_planted=5)
    detector = fit(normal, batch)
    detector.weights_ = {"distances": 1.0}
    held_out = detector.views_["distances"].held_out
    p_values = np.sort(-detector.score_normals())
    expected = np.sort(held_out.log_p_values_of_own(held_out.ascending))
    np.testing.assert_allclose(p_values, expected)


def test_marked_rows_teach() -> None:
    """Rows marked as outliers have views of their own, and those marked as normal a part in all."""
    normal, batch = make_rows(0, n_planted=4)
    marked = np.random.RandomState(1).normal(size=(9, 3))
    detector = QMS22Ensemble(random_state=0, contamination=1, **QUICK)
    detector.fit(normal, unlabeled=batch, outliers=marked[:5] + 3.5, marked_normal=marked[5:])
    assert {"similarity", "outlier_forest"} < detector.views_.keys()
    assert (detector.suspicious_normal(6) < 4).sum() >= 3
    # On its own, a view has the held-out scores that it was compared with.
    for name in ("covariance", "similarity", "distances"):
        held_out = detector.views_[name].held_out
        known = KnownRows(normal, detector._held_out, detector._n_marked)
        scores = score_known(detector.views_, {name: 1.0}, known)
        expected = -held_out.log_p_values_of_own(held_out.ascending)
        np.testing.assert_allclose(np.sort(scores), np.sort(expected), rtol=1e-6)


def test_equal_rows() -> None:
    """Tables of categories have many equal rows."""
    rng = np.random.RandomState(0)
    normal = rng.randint(3, size=(240, 2)).astype(float)
    batch = rng.randint(3, size=(60, 2)).astype(float)
    normal[0], batch[:6] = 9.0, 9.0
    detector = fit(normal, batch)
    assert np.isfinite(detector.score_normals()).all()
    assert detector.suspicious_normal(1).tolist() == [0]


def test_the_order_of_rows_does_not_matter() -> None:
    normal, batch = make_rows(0, n_planted=4)
    expected = fit(normal, batch).score_normals()
    again = fit(normal[::-1].copy(), batch[::-1].copy()).score_normals()
    np.testing.assert_array_equal(again[::-1], expected)


def test_what_cannot_be_ranked() -> None:
    normal, batch = make_rows(0)
    with pytest.raises(NotFittedError):
        QMS22Ensemble().suspicious_normal()
    detector = fit(normal, batch)
    with pytest.raises(ValueError, match="k=241 is more than the 240 known-normal rows"):
        detector.suspicious_normal(241)
    with pytest.raises(ValueError, match="k must be"):
        detector.suspicious_normal(-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = clone(detector).fit(normal)
    with pytest.raises(ValueError, match="no known-normal rows to score"):
        alone.suspicious_normal()


def test_model_files_hold_no_more_rows(tmp_path: Path) -> None:
    detector = fit(*make_rows(0, n_planted=4))
    again = pickle.loads(pickle.dumps(detector))
    np.testing.assert_array_equal(again.score_normals(), detector.score_normals())
    save_model(tmp_path / "model.skops", detector)
    loaded = load_model(tmp_path / "model.skops").detector
    assert all(vars(loaded).get(name) is None for name in ROWS_OF_FIT)
    with pytest.raises(ValueError, match="comes from a file"):
        loaded.suspicious_normal(3)


def false_shares(
    n_planted: int, n_outliers: int, drop: Any, *, learn: bool = False, level: float = 0.2
) -> tuple[float, float]:
    """Return the mean shares of false flags and of outliers found, with rows of T dropped.

    With `learn` the dropped rows are learned from as outliers.
    """
    shares, found = [], []
    for seed in range(20):
        normal, batch = make_rows(100 + seed, n_planted, n_outliers)
        outliers = None
        if drop is not None:
            dropped = drop(fit(normal, batch).suspicious_normal(36))
            outliers = normal[dropped] if learn else None
            normal = np.delete(normal, dropped, axis=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flagged = fit(normal, batch, outliers).flag(level)
        shares.append(flagged[n_outliers:].sum() / max(1, flagged.sum()))
        found.append(flagged[:n_outliers].mean() if n_outliers else np.nan)
    return float(np.mean(shares)), float(np.mean(found))


@pytest.fixture(scope="module")
def dirty() -> tuple[float, float]:
    """The shares with outliers in T that nobody has removed."""
    return false_shares(12, 12, None)


@pytest.mark.slow
def test_outliers_in_normal_rows_keep_the_level_and_cost_power(dirty: tuple[float, float]) -> None:
    clean = false_shares(0, 12, None)
    assert clean[0] < 0.2 + 0.08
    assert dirty[0] < 0.2
    assert dirty[1] < clean[1] / 2


@pytest.mark.slow
@pytest.mark.parametrize("learn", [False, True])
def test_removing_what_was_checked_keeps_the_level_and_finds_more(
    learn: bool, dirty: tuple[float, float]
) -> None:
    checked = false_shares(12, 12, lambda ranked: ranked[ranked < 12], learn=learn)
    assert checked[0] < 0.2 + 0.08
    assert checked[1] > dirty[1] + 0.2


@pytest.mark.slow
def test_removing_rows_for_their_scores_alone_breaks_the_level() -> None:
    """In a batch without outliers every flag is false."""
    assert false_shares(0, 0, None)[0] < 0.2 + 0.15
    assert false_shares(0, 0, lambda ranked: ranked)[0] > 0.35
