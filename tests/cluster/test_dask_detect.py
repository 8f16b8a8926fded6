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
from qms22.estimators.conformal import adaptive_benjamini_hochberg, conformal_p_values

pytest.importorskip("distributed", reason="Dask is not installed; pip install 'qms22[dask]'")

import dask
import dask.dataframe as dd

from qms22.cluster import table_search
from qms22.cluster.table_search import Draws, SearchOptions, score_part, share_to_draw
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


def test_decisions_are_those_of_all_p_values() -> None:
    """Without partitions: from the same draws, every p-value at once."""
    normal, batch = make_tables(n_outliers=30)
    draws = Draws(normal, batch, 300, len(batch))
    split = draws.learn_split(options(), np.random.RandomState(0))
    scores = score_part(split.scorer, batch)
    p_values = conformal_p_values(scores, score_part(split.scorer, normal[:300]))
    np.testing.assert_array_equal(split.held_out.p_values(scores), p_values)
    counts = sum(split.count_p_values(batch[at : at + 70]) for at in range(0, 300, 70))
    line = split.held_out.line(np.asarray(counts), len(batch), 0.1)
    np.testing.assert_array_equal(
        scores > line.above, adaptive_benjamini_hochberg(p_values, 300, 0.1)
    )


def test_the_encoder_of_the_split_sees_no_held_out_row() -> None:
    """A level that only held-out rows have is unseen, as it is for a row of the batch."""
    normal, batch = make_tables()
    normal.loc[:299, "country"] = "IT"
    draws = Draws(normal, batch, 300, len(batch))
    split = draws.learn_split(options(), np.random.RandomState(0))
    assert "country=IT" not in split.scorer.encoder.get_feature_names_out()
    scorer = draws.learn(options(max_samples=900))
    assert "country=IT" in scorer.encoder.get_feature_names_out()


@pytest.mark.slow
@pytest.mark.parametrize("case", [CASES[0], CASES[3]], ids=lambda case: case.name)
def test_the_level_is_kept(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """On tables with rare levels, which break the bound if the split is wrong."""
    quick = QMS22Ensemble(n_splits=2, n_members=3, n_components=2, max_iter=2)
    monkeypatch.setattr(
        table_search, "_unfitted", lambda _, seed: clone(quick).set_params(random_state=seed)
    )
    shares = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        normal, batch = case.draw(900, rng), case.draw(150, rng)
        is_outlier = np.arange(len(batch)) < case.n_outliers // 2
        batch.loc[is_outlier, ["x", "y"]] += case.shift
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = detect(lazily(normal), lazily(batch), max_samples=500, seed=seed).compute()
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


def test_held_out_rows_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_search, "MOST_HELD_OUT", 40)
    normal, batch = make_tables()
    found = detect(lazily(normal), lazily(batch), ignore=["id"], fdr=0.5).compute()
    assert found["p_value"].min() == 1 / 41
    with pytest.warns(UserWarning, match="with 40 of them held out, fdr=0.001 can flag none of"):
        detect(lazily(normal), lazily(batch), ignore=["id"], fdr=0.001)


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
    draws = Draws(normal, batch, 300, len(batch))
    asked = options(kinds={"code": "category"})
    for scorer in (draws.learn(asked), draws.learn_split(asked, np.random.RandomState(0)).scorer):
        assert "code=2" in scorer.encoder.get_feature_names_out()


def test_bad_tables() -> None:
    normal, batch = make_tables()
    with pytest.raises(TypeError, match="batch must be a Dask data frame; got DataFrame, for"):
        detect(lazily(normal), batch)
    with pytest.raises(ValueError, match="the batch has a column 'score', which is the name"):
        detect(lazily(normal), lazily(batch.assign(score=1)))
    with pytest.raises(ValueError, match="the normal table has no rows"):
        detect(lazily(normal)[lazily(normal)["amount"] < 0], lazily(batch))
    with pytest.raises(ValueError, match="of 9 known-normal rows 3 are held out"):
        detect(lazily(normal[:9]), lazily(batch), ignore=["id"])
