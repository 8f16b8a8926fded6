"""Decisions about a batch, as users of the detectors meet them."""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from fuzzing import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from qms22 import QMS22, QMS22Ensemble
from qms22.estimators.batch_detector import FitInputs

QUICK: dict[str, Any] = {
    "n_splits": 2,
    "n_members": 3,
    "n_components": 2,
    "max_iter": 3,
    "random_state": 0,
}

Rows = tuple[NDArray[np.float64], NDArray[np.float64]]


def draw_tables(
    seed: int, n_normal: int = 300, n_batch: int = 60, n_outliers: int = 8, shift: float = 7.0
) -> Rows:
    """Return normal rows, and a batch whose first rows are outliers."""
    rng = np.random.RandomState(seed)
    batch = rng.normal(size=(n_batch, 3))
    batch[:n_outliers] += shift
    return rng.normal(size=(n_normal, 3)), batch


def fit(rows: Rows, **options: Any) -> QMS22Ensemble:
    return QMS22Ensemble(**{**QUICK, **options}).fit(rows[0], unlabeled=rows[1])


def quietly_flag(detector: QMS22Ensemble, fdr: float) -> NDArray[np.bool_]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return detector.flag(fdr)


def decisions(detector: QMS22Ensemble) -> list[Any]:
    return [
        detector.p_values().tolist(),
        quietly_flag(detector, 0.2).tolist(),
        np.asarray(detector.false_at_most()).tolist(),
        detector.verdict(),
        detector.offset_,
    ]


@pytest.fixture(scope="module")
def rows() -> Rows:
    return draw_tables(0)


@pytest.fixture(scope="module")
def fitted(rows: Rows) -> QMS22Ensemble:
    return fit(rows)


@settings(max_examples=examples(20))
@given(
    seed=st.integers(0, 10**6),
    n_normal=st.integers(8, 120),
    n_batch=st.integers(1, 40),
    shift=st.sampled_from([0.0, 2.0, 7.0]),
    is_rounded=st.booleans(),
)
def test_rank_p_value_flag_and_bound_agree(
    seed: int, n_normal: int, n_batch: int, shift: float, is_rounded: bool
) -> None:
    tables = draw_tables(seed, n_normal, n_batch, n_batch // 5, shift)
    detector = fit(tables if not is_rounded else (np.rint(tables[0]), np.rint(tables[1])))
    scores, known = detector.unlabeled_scores_, detector.score_normals()
    p_values = detector.p_values()
    expected = [(1 + np.count_nonzero(known >= score)) / (n_normal + 1) for score in scores]
    np.testing.assert_array_equal(p_values, expected)
    order = detector.top_k(n_batch)
    assert (np.diff(p_values[order]) >= 0).all()
    before = np.zeros(n_batch, dtype=bool)
    for fdr in (0.01, 0.1, 0.3, 0.9):
        flagged = quietly_flag(detector, fdr)
        assert (flagged >= before).all()
        assert flagged[order[: flagged.sum()]].all()
        before = flagged
    bounds = np.asarray(detector.false_at_most())
    assert bounds.shape == (n_batch,)
    assert (bounds <= np.arange(1, n_batch + 1)).all()
    assert set(np.diff(bounds)) <= {0, 1}
    assert [detector.false_at_most(k) for k in range(1, n_batch + 1)] == bounds.tolist()
    assert detector.false_at_most(0) == 0


def test_clear_outliers_are_flagged(fitted: QMS22Ensemble) -> None:
    flagged = fitted.flag(0.2)
    assert flagged.dtype == bool
    assert flagged[:8].all()
    assert flagged.sum() <= 12
    p_values = fitted.p_values()
    assert p_values[:8].max() < p_values[8:].mean()
    assert fitted.false_at_most(8) <= 3
    assert fitted.false_at_most(8, confidence=0.5) <= fitted.false_at_most(8)


def test_everything_takes_one_fit(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    learn, seen = QMS22Ensemble._learn, []

    def noted(detector: QMS22Ensemble, inputs: FitInputs) -> None:
        seen.append([len(inputs.normal), len(inputs.batch)])
        learn(detector, inputs)

    monkeypatch.setattr(QMS22Ensemble, "_learn", noted)
    decisions(fit(rows))
    assert seen == [[300, 60]]


def test_auto_flags_what_flag_does() -> None:
    normal, batch = draw_tables(0, n_normal=900)
    detector = fit((normal, batch))
    flagged = detector.flag(0.1)
    assert flagged[:8].all()
    np.testing.assert_array_equal(detector.predict(batch) == -1, flagged)
    # New rows are no rows of the batch, and are judged by the same threshold.
    assert (detector.predict(np.full((3, 3), 7.0)) == -1).all()


def test_auto_with_few_known_normal_rows(rows: Rows) -> None:
    """If a false discovery rate could only flag many rows or none, Tukey's rule is used."""
    detector = fit((rows[0][:57], rows[1]))
    low, high = np.quantile(detector.unlabeled_scores_, [0.25, 0.75])
    assert detector.offset_ == pytest.approx(-(high + 1.5 * (high - low)))


def test_equal_rows_score_alike_in_both_tables() -> None:
    rng = np.random.RandomState(0)
    normal, batch = (rng.binomial(3, 0.3, size=(n, 2)).astype(float) for n in (600, 100))
    batch[:5] = 9.0
    detector = fit((normal, batch))
    known, searched = detector.score_normals(), detector.unlabeled_scores_
    for row in np.unique(batch[5:], axis=0):
        of_known, of_batch = (
            known[(normal == row).all(axis=1)],
            searched[(batch == row).all(axis=1)],
        )
        assert np.ptp(of_batch) < 1e-9
        if len(of_known) >= 5:
            assert of_batch[0] == pytest.approx(of_known.mean(), rel=0.2)


@pytest.mark.parametrize("n_compared", [50, 300])
def test_of_many_known_normal_rows_some_are_drawn(
    rows: Rows, n_compared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qms22.estimators.ensemble._LEAST_COMPARED", n_compared)
    monkeypatch.setattr("qms22.estimators.ensemble._COMPARED_PER_ROW", 0)
    detector = fit(rows)
    assert detector._ruler is not None
    assert detector._ruler.n_known == n_compared
    assert np.isin(detector._ruler.ascending, detector.score_normals()).all()
    np.testing.assert_array_equal(fit(rows).p_values(), detector.p_values())


def test_decisions_are_repeatable(rows: Rows, fitted: QMS22Ensemble) -> None:
    assert decisions(fitted) == decisions(fit(rows))
    again = fit(rows)
    again.verdict()  # what is asked for first does not matter
    assert decisions(again) == decisions(fitted)
    assert decisions(fit(rows, random_state=1)) != decisions(fitted)


def by_joblib(detector: QMS22Ensemble) -> Any:
    file = io.BytesIO()
    joblib.dump(detector, file)
    file.seek(0)
    return joblib.load(file)


@pytest.mark.parametrize("copy", [lambda one: pickle.loads(pickle.dumps(one)), by_joblib])
@pytest.mark.parametrize("is_asked", [False, True])
def test_copies_decide_alike(
    rows: Rows, copy: Callable[[QMS22Ensemble], QMS22Ensemble], is_asked: bool
) -> None:
    detector = fit(rows)
    if is_asked:
        decisions(detector)
    assert decisions(copy(detector)) == decisions(detector)


def test_a_clone_has_decided_nothing(fitted: QMS22Ensemble) -> None:
    fitted.flag(0.2)
    with pytest.raises(NotFittedError):
        clone(fitted).p_values()


def test_a_new_fit_forgets_the_old_batch(rows: Rows) -> None:
    detector = fit(rows)
    decisions(detector)
    other = draw_tables(3, n_normal=200, n_batch=40)
    detector.fit(other[0], unlabeled=other[1])
    assert decisions(detector) == decisions(fit(other))
    with pytest.warns(UserWarning, match="no unlabeled rows"):
        detector.fit(rows[0])
    for ask in (detector.flag, detector.p_values, detector.false_at_most, detector.verdict):
        with pytest.raises(ValueError, match=r"no batch to flag rows of.*fit\(X, unlabeled=batch"):
            ask()


def test_too_few_known_normal_rows_for_the_level() -> None:
    detector = fit(draw_tables(0, n_normal=57, n_batch=40, n_outliers=0))
    for level, text in (
        (
            0.2,
            r"57 known-normal rows, a .* rate of 0\.2 flags 4 or more of 40 rows, or none; .* 199",
        ),
        (
            0.01,
            r"a false discovery rate of 0\.01 flags no row; to flag a single row takes 3,999 known",
        ),
    ):
        with pytest.warns(UserWarning, match=text) as caught:
            assert not detector.flag(level).any()
        assert caught[0].filename == __file__


def test_no_warning_where_one_row_can_be_flagged() -> None:
    assert fit(draw_tables(0, n_normal=100, n_batch=2, n_outliers=0)).flag(0.1).shape == (2,)


@pytest.mark.parametrize("fdr", [0, 1, -0.1, 1.5, np.nan, "some", None, True])
def test_bad_fdr(fdr: Any, fitted: QMS22Ensemble) -> None:
    with pytest.raises(ValueError, match=r"fdr must be a share in \(0, 1\); got"):
        fitted.flag(fdr)


@pytest.mark.parametrize("confidence", [0, 1, 95, np.nan, "high"])
def test_bad_confidence(confidence: Any, fitted: QMS22Ensemble) -> None:
    for ask in (fitted.false_at_most, fitted.verdict):
        with pytest.raises(ValueError, match=r"confidence must be a share in \(0, 1\); got"):
            ask(confidence=confidence)


@pytest.mark.parametrize(
    ("k", "text"), [(-1, "k must be"), (1.5, "k must be"), (61, "k=61 is more than the 60")]
)
def test_bad_number_of_rows(k: Any, text: str, fitted: QMS22Ensemble) -> None:
    for ask in (fitted.top_k, fitted.false_at_most):
        with pytest.raises(ValueError, match=text):
            ask(k)


def test_nothing_is_decided_before_fit() -> None:
    detector = QMS22Ensemble()
    for ask in (detector.flag, detector.p_values, detector.false_at_most, detector.verdict):
        with pytest.raises(NotFittedError):
            ask()


def test_qms22_ranks_and_has_no_flags(rows: Rows) -> None:
    detector = QMS22(random_state=0).fit(rows[0], unlabeled=rows[1])
    for ask in (detector.flag, detector.p_values, detector.false_at_most):
        with pytest.raises(ValueError, match=r"QMS22 ranks rows.*use QMS22Ensemble"):
            ask()
    low, high = np.quantile(detector.unlabeled_scores_, [0.25, 0.75])
    assert detector.offset_ == pytest.approx(-(high + 1.5 * (high - low)))


def test_verdicts() -> None:
    detector = QMS22Ensemble(**QUICK)
    T, S = draw_tables(0, 600, 300, 0)
    fine = detector.fit(T, unlabeled=S).verdict()
    assert fine.decision == "fine"
    assert fine.fewest_outliers == 0
    assert fine.moved == ()
    assert detector.verdict() == fine

    T, S = draw_tables(0, 600, 300, 30, 5.0)
    anomalies = detector.fit(T, unlabeled=S).verdict()
    assert anomalies.decision == "anomalies"
    assert 15 <= (anomalies.fewest_outliers or 0) <= 30
    assert anomalies.p_value < 0.01

    T, S = draw_tables(1, 600, 300, 0)
    S[:, 2] += 1
    named = [pd.DataFrame(table, columns=list("abc")) for table in (T, S)]
    drift = detector.fit(named[0], unlabeled=named[1]).verdict()
    assert drift.decision == "drift"
    assert [column.name for column in drift.moved] == ["c"]
    assert drift.moved[0].change.startswith("median ")


def test_a_correlation_that_is_lost_shows_in_the_rows() -> None:
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(1500, 1))
    T = shared + 0.1 * rng.normal(size=(1500, 3))
    S = rng.normal(size=(500, 3)) * T.std()
    verdict = QMS22Ensemble(random_state=0).fit(T, unlabeled=S).verdict()
    assert verdict.decision == "drift"
    assert verdict.moved == ()


def test_flags_in_a_drifted_batch_come_with_a_warning() -> None:
    T, S = draw_tables(0, 600, 300, 0)
    S[:, 1] += 3
    with pytest.warns(UserWarning, match=r"\(x1: median .*drifted as a whole.*see verdict\(\)"):
        assert fit((T, S)).flag(0.1).any()
    assert fit(draw_tables(0, 600, 300, 20)).flag(0.1).any()  # without a warning


def test_large_tables_are_drawn_from(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    T = np.lib.format.open_memmap(tmp_path / "T.npy", "w+", np.float32, (30_000, 3))
    T[:] = rng.normal(size=T.shape)
    S = rng.normal([0, 0, 1], size=(25_000, 3))
    detector = fit((T, S), max_samples=500)
    verdict = detector.verdict()
    assert verdict.decision == "drift"
    assert verdict.n_rows == 25_000
    assert [column.name for column in verdict.moved] == ["x2"]


def test_nothing_is_decided_without_the_rows(fitted: QMS22Ensemble) -> None:
    detector = fitted.without_rows()
    for ask in (detector.flag, detector.p_values, detector.false_at_most, detector.verdict):
        with pytest.raises(ValueError, match="there is no batch"):
            ask()


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_promised() -> None:
    """In clean batches any flag is false; in others, on average a share of them."""
    n_runs = 40
    flags, alarms, shares, found = [], [], [], []
    for seed in range(n_runs):
        clean = fit(draw_tables(seed, 300, 100, 0), random_state=seed)
        flags.append(quietly_flag(clean, 0.1).any())
        alarms.append(clean.verdict().decision != "fine")
        flagged = quietly_flag(fit(draw_tables(seed, 300, 100, 10, 3.0), random_state=seed), 0.1)
        shares.append(flagged[10:].sum() / max(1, flagged.sum()))
        found.append(flagged[:10].mean())
    assert np.mean(flags) <= 0.1 + 3 * np.sqrt(0.09 / n_runs)
    assert np.mean(alarms) <= 0.05 + 3 * np.sqrt(0.0475 / n_runs)
    assert np.mean(shares) <= 0.1 + 3 * np.std(shares) / np.sqrt(n_runs)
    assert np.mean(found) > 0.3
