"""Detection on Dask data frames, and what all clusters share of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mixed_tables import check_found, make_tables
from promise import CASES, Case
from sklearn.base import clone

import qms22
from qms22 import QMS22Ensemble
from qms22.detection.checks.joint import RepeatCheck

pytest.importorskip("distributed", reason="Dask is not installed; pip install 'qms22[dask]'")

import dask
import dask.dataframe as dd

from qms22.cluster import table_search
from qms22.cluster.table_search import (
    SearchOptions,
    learn,
    share_to_draw,
    sparse_counts,
    sum_counts,
)
from qms22.dask import detect


@pytest.fixture(autouse=True)
def in_this_thread() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


def lazily(table: pd.DataFrame) -> dd.DataFrame:
    return dd.from_pandas(table, npartitions=4)


def options(**changed: Any) -> SearchOptions:
    defaults: dict[str, Any] = {
        "fdr": 0.1,
        "ignore": ["id"],
        "missing": "error",
        "kinds": None,
        "max_samples": 500,
        "seed": 0,
        "n_jobs": None,
    }
    return SearchOptions(**{**defaults, **changed})


@pytest.mark.parametrize("max_samples", [400, 20_000])
def test_mixed_tables(max_samples: int) -> None:
    normal, batch = make_tables()
    found = detect(lazily(normal), lazily(batch), ignore=["id"], max_samples=max_samples)
    assert isinstance(found, dd.DataFrame)
    assert found.npartitions == 4
    computed = found.compute()
    assert list(computed.dtypes) == list(found.dtypes)
    pd.testing.assert_index_equal(computed.index, batch.index)
    check_found(computed, batch)


def test_a_later_month_is_no_reason_to_flag() -> None:
    normal, batch = make_tables()
    normal, batch = normal.assign(month=normal["day"].dt.month), batch.assign(month=3, quarter="Q2")
    normal["quarter"] = np.where(normal["month"] == 1, "Q0", "Q1")
    found = detect(lazily(normal), lazily(batch), ignore=["id"], max_samples=400).compute()
    check_found(found, batch)


def test_results_of_one_process() -> None:
    """Where all rows are drawn."""
    normal, batch = make_tables(n_outliers=30)
    found = detect(lazily(normal), lazily(batch), ignore=["id"]).compute()
    expected = qms22.detect(normal, batch, ignore=["id"])
    np.testing.assert_array_equal(found["score"], expected.scores)
    np.testing.assert_array_equal(found["p_value"], expected.p_values)
    np.testing.assert_array_equal(found["flagged"], expected.flagged)


@pytest.mark.parametrize("fdr", [0.05, 0.5])
def test_decisions_follow_the_scores(fdr: float) -> None:
    normal, batch = make_tables(n_outliers=30)
    batch.loc[:29, "amount"] = np.linspace(110, 180, 30)
    found = detect(lazily(normal), lazily(batch), ignore=["id"], max_samples=200, fdr=fdr).compute()
    flagged = found["flagged"]
    assert 0 < flagged.sum() < len(flagged)
    assert found["score"][flagged].min() > found["score"][~flagged].max()
    assert found["p_value"][flagged].max() < found["p_value"][~flagged].min()
    assert (found.sort_values("score")["p_value"].diff().iloc[1:] <= 0).all()


def test_counts_of_parts_add_up() -> None:
    normal, batch = make_tables(n_outliers=30)
    model = learn(normal, batch[:200], len(batch), options(max_samples=200))
    counts = sum(model.count_ranks(batch[at : at + 70]) for at in range(0, 350, 70))
    np.testing.assert_array_equal(counts, model.ruler.count(model.score(batch)))
    lists = [sparse_counts(model.count_ranks(batch[at : at + 70])) for at in range(0, 350, 70)]
    np.testing.assert_array_equal(sum_counts(lists, model.ruler), counts)


def test_how_often_a_normal_row_is_there_does_not_count() -> None:
    """Or else repeated normal rows would score higher than the same rows of the batch."""
    normal, batch = make_tables(n_normal=400)
    normal = pd.concat([normal, normal[:1].sample(5, replace=True)], ignore_index=True)
    model = learn(normal, batch, len(batch), options(ignore=["id"]))
    rows = model.scorer.checks.read(model.scorer.encoder.typed_cells(normal), is_part=True)
    (repeats,) = (each for each in model.scorer.checks.checks if isinstance(each, RepeatCheck))
    assert not repeats.surprise(rows, own=True).any()


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
    quick = QMS22Ensemble(n_splits=2, n_members=3, n_components=2, max_iter=2)
    monkeypatch.setattr(
        table_search, "_unfitted", lambda own: clone(quick).set_params(random_state=own.seed)
    )
    shares = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        normal, batch = case.draw(900 + n_batch, rng), case.draw(n_batch, rng)
        is_outlier = np.arange(n_batch) < n_outliers
        batch.loc[is_outlier, ["x", "y"]] += case.shift
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = detect(
                lazily(normal), lazily(batch), max_samples=max_samples, seed=seed
            ).compute()
        flagged = found["flagged"].to_numpy()
        shares.append((flagged & ~is_outlier).sum() / max(1, flagged.sum()))
    assert np.mean(shares) <= 0.1 + 2 * np.std(shares) / np.sqrt(len(shares))


def test_missing_values() -> None:
    normal, batch = make_tables()
    batch.loc[40, "amount"] = np.nan
    with pytest.raises(ValueError, match=r"rows drawn from the unlabeled .* 'amount' "):
        detect(lazily(normal), lazily(batch), ignore=["id"], missing="error")
    found = detect(lazily(normal), lazily(batch), ignore=["id"]).compute()
    assert not found.loc[40, ["score", "p_value", "flagged"]].isna().any()


def test_rows_to_compare_with_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_search, "MOST_COMPARED", 90)
    normal, batch = map(lazily, make_tables())
    found = detect(normal, batch, ignore=["id"], fdr=0.5, max_samples=40).compute()
    assert found["p_value"].min() == 1 / 91
    with pytest.warns(UserWarning, match=r"with 90 known-normal rows .* of 0.001 can flag no row"):
        detect(normal, batch, ignore=["id"], fdr=0.001, max_samples=40)


def test_shares_to_draw() -> None:
    assert share_to_draw(900, 1000) is None
    share = share_to_draw(10_000, 1_000_000)
    assert share is not None
    sizes = np.random.default_rng(0).binomial(1_000_000, share, size=10_000)
    assert sizes.min() >= 10_000
    assert sizes.max() < 12_000


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"fdr": 1.5}, "fdr must be a share"),
        ({"missing": "drop"}, "missing must be one of 'error', 'impute'; got 'drop'"),
        ({"max_samples": 0}, "max_samples must be a whole number"),
        ({"ignore": "id"}, r"ignore must be a sequence of columns; write \['id'\]"),
    ],
)
def test_bad_options(changed: dict[str, Any], message: str) -> None:
    normal, batch = map(lazily, make_tables())
    with pytest.raises(ValueError, match=message):
        detect(normal, batch, **changed)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"k": 5}, "no option 'k': flags come from fdr here; take the rows with the highest"),
        ({"marks": None}, "no option 'marks': take the marked rows out of the batch"),
        ({"fdrs": 0.1}, "no option 'fdrs': the options are fdr, ignore, missing, kinds, max_"),
    ],
)
def test_options_that_clusters_lack(option: dict[str, Any], message: str) -> None:
    normal, batch = map(lazily, make_tables())
    with pytest.raises(TypeError, match=message):
        detect(normal, batch, **option)


def test_every_option_of_detect_is_there_or_refused() -> None:
    everything = set(signature(qms22.detect).parameters)
    assert everything == set(signature(detect).parameters) - {"others"} | set(table_search._INSTEAD)


@pytest.mark.filterwarnings("ignore:no row is flagged")
def test_checks_of_single_cells_raise_scores() -> None:
    """A total that does not fit is odd in no view of the detector, as each number is usual."""
    rng = np.random.default_rng(0)

    def rows(n_rows: int) -> pd.DataFrame:
        table = pd.DataFrame(rng.normal(size=(n_rows, 8)), columns=list("abcdefgh"))
        price, amount = rng.uniform(5, 50, n_rows).round(2), rng.integers(1, 20, n_rows)
        return table.assign(price=price, amount=amount, total=(price * amount).round(2))

    normal, batch = rows(900), rows(300)
    batch.loc[7, "total"] = round(batch.loc[7, "total"] / 10, 2)
    found = detect(lazily(normal), lazily(batch)).compute()
    assert found["score"].idxmax() == 7


def test_scores_do_not_depend_on_the_parts() -> None:
    normal, batch = make_tables()
    batch = pd.concat([batch, batch.iloc[[50] * 5]], ignore_index=True)
    normal, batch = normal.drop(columns="id"), batch.drop(columns="id")
    one, many = (
        detect(dd.from_pandas(normal, npartitions=2), dd.from_pandas(batch, npartitions=n_parts))
        .compute()
        .reset_index(drop=True)
        for n_parts in (1, 7)
    )
    pd.testing.assert_frame_equal(one, many)


def test_kinds_of_columns() -> None:
    normal, batch = make_tables()
    normal, batch = normal.assign(code=np.arange(900) % 3), batch.assign(code=np.arange(300) % 3)
    model = learn(normal, batch, len(batch), options(kinds={"code": "category"}))
    assert "code=2" in model.scorer.encoder.get_feature_names_out()


def test_bad_tables() -> None:
    normal, batch = make_tables()
    with pytest.raises(TypeError, match="batch must be a Dask data frame; got DataFrame, for"):
        detect(lazily(normal), batch)
    with pytest.raises(ValueError, match="the batch has a column 'score', which is the name"):
        detect(lazily(normal), lazily(batch.assign(score=1)))
    with pytest.raises(ValueError, match="the normal table has no rows"):
        detect(lazily(normal)[lazily(normal)["amount"] < 0], lazily(batch))
    with pytest.raises(ValueError, match="6 known-normal rows are too few to learn from; give at"):
        detect(lazily(normal[:6]), lazily(batch), ignore=["id"])
