"""Detection on tables of a cluster, whatever the engine: here Dask in this thread."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mixed_tables import check_same, make_numbers, make_tables
from promise import CASES, Case

import qms22
from qms22 import QMS22, QMS22Ensemble
from qms22.checks.copies import CopyCheck
from qms22.detection.scorer import TableScorer
from qms22.detection.search_options import PRESETS

pytest.importorskip("distributed", reason="Dask is not installed; pip install 'qms22[dask]'")

import dask
import dask.dataframe as dd

from qms22.cluster.cluster_table import ClusterTable
from qms22.cluster.search import open_cluster_table
from qms22.dask import ClusterDetection, detect, fit, score_samples


@pytest.fixture(autouse=True)
def in_this_thread() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


def lazily(table: pd.DataFrame, n_parts: int = 4) -> dd.DataFrame:
    return dd.from_pandas(table, npartitions=n_parts)


def check(normal: pd.DataFrame, batch: pd.DataFrame, **options: Any) -> ClusterDetection:
    """Check that a detection on a cluster is that in memory; return it."""
    found = detect(lazily(normal), lazily(batch), **options)
    check_same(found, found.scored_batch().compute(), qms22.detect(normal, batch, **options))
    return found


@pytest.mark.parametrize(
    "options",
    [
        {"max_samples": 200, "missing": "drop"},
        {"max_samples": 200, "kinds": {"is_new": "category"}, "seed": 3},
        {"max_samples": 400, "fdr": 0.4, "device": "auto", "n_jobs": 2},
        {"max_samples": 200, "k": 20},
    ],
    ids=["drop", "kinds", "device", "k"],
)
def test_options_of_memory(options: dict[str, Any]) -> None:
    normal, batch = make_tables()
    batch.loc[40, "amount"] = np.nan
    found = check(normal, batch, id="id", **options)
    assert found.n_dropped == (options.get("missing") == "drop")


def test_marks() -> None:
    normal, batch = make_tables()
    marks = pd.DataFrame({"id": ["order 0", "order 7"], "mark": ["anomaly", "normal"]})
    found = check(normal, batch, id="id", marks=marks, max_samples=200)
    assert found.n_marked == 2


@pytest.mark.filterwarnings("ignore:The flagged rows may only show")
# Days of another time zone have drifted by its offset.
@pytest.mark.filterwarnings("ignore:The rows may be flagged only because the batch has drifted")
def test_columns_of_other_names_and_values_in_other_words() -> None:
    normal, batch = make_tables()
    normal = normal.rename(columns={"is_new": "Is New"})
    normal["day"] = normal["day"].dt.tz_localize("UTC")
    batch["day"] = batch["day"].dt.tz_localize("Asia/Tokyo")
    found = check(normal, batch, ignore=["id"], max_samples=200)
    assert any("time zone" in note for note in found.notes)


def test_parts_without_rows() -> None:
    normal, batch = make_tables()
    table = dd.concat([lazily(batch[:0], 1), lazily(batch[:100], 1), lazily(batch[100:], 2)])
    found = detect(lazily(normal), table, ignore=["id"], max_samples=200)
    expected = qms22.detect(normal, batch, ignore=["id"], max_samples=200)
    check_same(found, found.scored_batch().compute(), expected)


def test_lazy_table_keeps_the_index_and_the_parts() -> None:
    normal, batch = make_tables()
    table = dd.from_pandas(batch.set_axis(np.arange(300) + 5), npartitions=4)
    scored = detect(lazily(normal), table, ignore=["id"]).scored_batch()
    assert scored.divisions == table.divisions
    assert scored.compute().index.tolist() == list(range(5, 305))


def test_scores_do_not_depend_on_the_parts() -> None:
    """Also those of repeated rows, which may be in several."""
    normal, batch = make_tables()
    batch = pd.concat([batch, batch.iloc[[50] * 5]], ignore_index=True)
    normal, batch = normal.drop(columns="id"), batch.drop(columns="id")
    one, many = (
        detect(lazily(normal, 2), lazily(batch, n_parts), max_samples=100).scores
        for n_parts in (1, 7)
    )
    np.testing.assert_array_equal(one, many)


def test_repeated_rows_count_if_all_rows_are_drawn() -> None:
    normal, batch = (table.drop(columns="id") for table in make_tables())
    batch = pd.concat([batch, batch.iloc[[50] * 5]], ignore_index=True)
    found = check(normal, batch)
    assert "6 times" in str(found.reasons[50]) or found.scores[50] > found.scores[51:100].max()


def test_how_often_a_normal_row_is_there_does_not_count() -> None:
    """Or else repeated normal rows would score higher than the same rows of the batch."""
    normal, batch = make_tables(n_normal=200)
    normal = pd.concat([normal, normal[:1].sample(5, replace=True)], ignore_index=True)
    found = detect(lazily(normal), lazily(batch), ignore=["id"], max_samples=250)
    assert found.checks is not None
    assert not any(isinstance(check, CopyCheck) for check in found.checks.checks)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "n_batch", "n_outliers", "max_samples"),
    [(CASES[0], 150, 0, 500), (CASES[3], 150, 7, 500), (CASES[1], 1500, 40, 200)],
    ids=["no outlier", "outliers", "few rows drawn"],
)
def test_the_level_is_kept(
    case: Case, n_batch: int, n_outliers: int, max_samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On tables with rare levels, which break the bound if the encoder favors normal rows."""
    quick: Any = partial(QMS22Ensemble, n_splits=2, n_members=3, n_components=2, max_iter=2)
    monkeypatch.setitem(PRESETS, "recommended", quick)
    shares = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        normal, batch = case.draw(900 + n_batch, rng), case.draw(n_batch, rng)
        is_outlier = np.arange(n_batch) < n_outliers
        batch.loc[is_outlier, ["x", "y"]] += case.shift
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = detect(lazily(normal), lazily(batch), max_samples=max_samples, seed=seed)
        shares.append((found.flagged & ~is_outlier).sum() / max(1, found.n_flagged))
    assert np.mean(shares) <= 0.1 + 2 * np.std(shares) / np.sqrt(len(shares))


def test_all_rows_are_brought_here_only_with_a_warning() -> None:
    normal, batch = make_tables()
    with pytest.warns(UserWarning, match="max_samples=None brings all 900 and 300 rows of the two"):
        found = detect(lazily(normal), lazily(batch), ignore=["id"], max_samples=None)
    expected = qms22.detect(normal, batch, ignore=["id"])
    check_same(found, found.scored_batch().compute(), expected)
    numbers = [lazily(table) for table in make_numbers()]
    with pytest.warns(UserWarning, match="max_samples=None brings all 3,003 and 1,501 rows"):
        fit(QMS22(max_iter=1), *numbers)


def test_workers_get_no_rows_of_the_fit() -> None:
    normal, batch = make_tables()
    found = detect(lazily(normal), lazily(batch), ignore=["id"])
    assert found.checks is not None
    scorer = TableScorer(found.encoder, found.detector, found.checks)
    detector = pickle.loads(pickle.dumps(scorer)).detector
    assert not {"unlabeled_scores_", "_known", "_normal", "_batch"} & vars(detector).keys()


def test_lazy_scores() -> None:
    normal, batch = make_numbers()
    detector = QMS22(max_iter=1, random_state=0).fit(normal.to_numpy(), unlabeled=batch.to_numpy())
    seen = []

    def load(rows: pd.DataFrame) -> pd.DataFrame:
        seen.append(len(rows))
        return rows

    scored = score_samples(detector, lazily(batch).map_partitions(load, meta=batch[:0]))
    assert not seen
    np.testing.assert_array_equal(
        scored.compute()["score"], detector.score_samples(batch.to_numpy())
    )
    with pytest.raises(ValueError, match="the table has 2 columns, but the detector was fitted on"):
        score_samples(detector, lazily(batch[["a", "b"]]))


def test_bad_tables_to_score() -> None:
    normal, batch = make_numbers()
    detector = QMS22(max_iter=1).fit(normal, unlabeled=batch)
    with pytest.raises(ValueError, match="the table has no column 'b', which the detector needs"):
        score_samples(detector, lazily(batch[["a", "c"]]))
    with pytest.raises(ValueError, match="has a column 'a' already; name another output"):
        score_samples(detector, lazily(batch), output="a")
    with pytest.raises(ValueError, match="method must be one of 'score_samples'"):
        score_samples(detector, lazily(batch), method="fit")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fdr": 1.5}, "fdr must be a share"),
        ({"max_samples": 0}, "max_samples must be a whole number"),
        ({"max_samples": "all"}, "max_samples must be a whole number"),
        ({"ignore": "id"}, r"ignore must be a sequence of columns; write \['id'\]"),
        ({"history": "batches.db"}, "there is no 'history' on a cluster, as a history needs all"),
        ({"ignore": ["nothing"]}, "there is no column 'nothing' to ignore"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    normal, batch = map(lazily, make_tables())
    with pytest.raises(ValueError, match=message):
        detect(normal, batch, **options)


def test_bad_tables() -> None:
    normal, batch = make_tables()
    with pytest.raises(TypeError, match="the batch is of type DataFrame; give one of a Dask data"):
        detect(lazily(normal), batch)
    with pytest.raises(ValueError, match="the batch has a column 'score', which is the name"):
        detect(lazily(normal), lazily(batch.assign(score=1)), ignore=["id"]).scored_batch()
    with pytest.raises(ValueError, match="the normal frame has 0 rows of 5 columns"):
        detect(lazily(normal)[lazily(normal)["amount"] < 0], lazily(batch))
    with pytest.raises(ValueError, match="6 known-normal rows are too few to learn from; give at"):
        detect(lazily(normal[:6]), lazily(batch), ignore=["id"])


def test_bad_numbers() -> None:
    normal, batch = make_numbers()
    detector = QMS22(max_iter=1, max_samples=99)
    with pytest.raises(ValueError, match="column 'b' of unlabeled has 1 NaN"):
        fit(detector, lazily(normal), lazily(batch.assign(b=batch["b"].where(batch.index != 1400))))
    with pytest.raises(ValueError, match="feature names should match those that were passed"):
        fit(detector, lazily(normal), lazily(batch[["a", "b"]]))
    with pytest.raises(ValueError, match="could not convert string to float"):
        fit(detector, lazily(normal.assign(a="x")), lazily(batch.assign(a="x")))


def test_tables_must_be_the_same_each_time() -> None:
    rows = make_numbers()[1]
    sizes = iter([900, 900, 300, 300])
    table = open_cluster_table(
        lazily(rows, 1).map_partitions(lambda part: part[: next(sizes)], meta=rows[:0]), "the batch"
    )
    assert table.n_rows == 900
    assert len(table.take([5, 899])) == 2
    with pytest.raises(ValueError, match="the batch has other rows each time it is read; make it"):
        table.take([5, 899])


def test_rows_that_were_learned_from_are_brought_once(monkeypatch: pytest.MonkeyPatch) -> None:
    normal, batch = make_tables()
    normal = normal.rename(columns={"is_new": "Is New"})
    found = detect(lazily(normal), lazily(batch), id="id", max_samples=200)
    assert found.normal_table is not None
    assert found.normal_positions is not None
    expected = found.normal_table.read().iloc[found.normal_positions]

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("the workers were asked again")

    monkeypatch.setattr(ClusterTable, "_results", fail)
    assert found.normal is not None
    pd.testing.assert_frame_equal(found.normal, expected)
