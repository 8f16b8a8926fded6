"""Tables and tests of the benchmark against hand-made results and scipy."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from bench_results import failed, five_folds, flat, realistic, row, table
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import auc as area

from qms22.metrics import roc
from qms22_bench import tables
from qms22_bench.datasets import paper_table1
from qms22_bench.paper import TABLE2, TABLE4
from qms22_bench.roc import compact_curve, pool_scores
from qms22_bench.statistics import (
    Ranking,
    best_against_others,
    growth,
    p_matrix,
    ranking,
    signed_ranks,
    table2,
)

AUC = st.integers(0, 20).map(lambda value: value / 20)


def test_auc_is_the_mean_over_folds_then_over_seeds() -> None:
    results = table(
        five_folds("a", "QMS22", [0.1, 0.2, 0.3, 0.4, 0.5], seed=0),  # mean 0.3
        five_folds("a", "QMS22", [0.6, 0.6, 0.6, 0.6, 0.6], seed=1),
    )
    assert tables.auc_table(results).at["a", "QMS22"] == pytest.approx(0.45)
    # What is done to a mean of five folds is done seed by seed.
    assert tables.auc_table(results, "clipped").at["a", "QMS22"] == pytest.approx(0.55)
    assert tables.auc_table(results, "folded").at["a", "QMS22"] == pytest.approx(0.65)
    with pytest.raises(ValueError, match="treatment must be one of"):
        tables.auc_table(results, "rounded")


def test_detectors_come_in_the_order_of_the_paper() -> None:
    results = table(*(flat("a", name, 0.5) for name in ("kNN", "OCKRA", "LOF", "QMS22")))
    assert tables.detector_names(results) == ["QMS22", "OCKRA", "kNN", "LOF"]


def test_a_missing_fold_leaves_the_set_out_for_that_detector_alone() -> None:
    results = table(
        flat("a", "QMS22", 0.9),
        flat("b", "QMS22", 0.8),
        flat("a", "BRM", 0.7),
        flat("b", "BRM", 0.6, seed=0),
        flat("b", "BRM", 0.6, seed=1)[:3],
        [failed("b", 4, "BRM", 1, "out of luck")],
    )
    auc = tables.auc_table(results)
    assert auc["QMS22"].to_list() == pytest.approx([0.9, 0.8])
    assert auc.at["a", "BRM"] == pytest.approx(0.7)
    assert math.isnan(auc.at["b", "BRM"])
    gaps = tables.missing_folds(results)
    assert gaps.to_numpy().tolist() == [["b", "BRM", "1", "4, 5"]]
    assert table2(auc)["n_sets"].to_list() == [1]
    assert tables.failures(results).to_numpy().tolist() == [["b", "BRM", 4, "1", "out of luck"]]


def test_failures_of_several_seeds_share_a_row() -> None:
    results = table([failed("a", 2, "BRM", seed, "no") for seed in (1, 0)])
    assert tables.failures(results)["seeds"].to_list() == ["0, 1"]


def test_table_1_beside_the_paper() -> None:
    results = table(flat("glass2", "QMS22", 0.4), flat("mine", "QMS22", 0.7))
    ours = tables.table1(results).set_index("dataset")
    paper = paper_table1()["glass2"]
    glass = ours.loc["glass2"]
    assert (glass["n"], glass["p"]) == (paper.n, paper.p)
    assert glass["auc"] == pytest.approx(0.4)
    assert glass["clipped"] == 0.5
    assert glass["difference"] == pytest.approx(0.5 - paper.auc)
    assert glass["seconds"] == pytest.approx(5 * 0.12)
    assert glass["ratio"] == pytest.approx(paper.seconds / 0.6)
    # Five test parts of 20 rows.
    assert ours.loc["mine", ["n", "p"]].to_list() == [100, 4]
    assert math.isnan(ours.at["mine", "difference"])


def test_means_of_table_1_are_over_the_sets_of_both() -> None:
    paper = paper_table1()
    first, second = paper["glass1"], paper["iris0"]
    results = table(
        flat("glass1", "QMS22", first.auc + 0.1),
        flat("iris0", "QMS22", second.auc - 0.3),
        flat("mine", "QMS22", 0.7),
    )
    means = tables.table1_means(tables.table1(results))
    assert means["n_sets"] == 2
    assert means["difference"] == pytest.approx(-0.1)
    assert means["absolute_difference"] == pytest.approx(0.2)
    assert means["seconds"] == pytest.approx(1.2)
    assert means["paper_seconds"] == pytest.approx(first.seconds + second.seconds)


def test_table_1_without_qms22_is_empty() -> None:
    assert tables.table1(table(flat("a", "BRM", 0.7))).empty


def test_table_4() -> None:
    results = table(flat("a", "BRM", 0.4), flat("b", "BRM", 0.8), flat("a", "kNN", 0.6))
    ours = tables.table4(results).set_index("detector")
    brm = ours.loc["BRM"]
    assert (brm["mean"], brm["clipped_mean"], brm["folded_mean"]) == pytest.approx((0.6, 0.65, 0.7))
    assert brm["sd"] == pytest.approx(math.sqrt(0.08))
    assert (brm["paper_mean"], brm["paper_sd"]) == (0.8347, 0.1442)
    assert ours.at["kNN", "n_sets"] == 1
    assert math.isnan(ours.at["kNN", "paper_mean"])


def test_the_papers_table_4_follows_from_its_table_1() -> None:
    auc = pd.Series([entry.auc for entry in paper_table1().values()])
    assert auc.mean() == pytest.approx(TABLE4["QMS22"].mean, abs=1e-4)
    assert auc.std(ddof=1) == pytest.approx(TABLE4["QMS22"].sd, abs=1e-4)


def test_the_papers_ranks_add_up() -> None:
    for test in TABLE2.values():
        assert test.r_plus + test.r_minus in (95 * 96 / 2, 94 * 95 / 2)


def test_signed_ranks_by_hand() -> None:
    # Differences 0.1, -0.05, 0, 0.2, 0.05: ranks 3, 1.5, -, 4, 1.5.
    test = signed_ranks([0.9, 0.80, 0.7, 0.6, 0.55], [0.8, 0.85, 0.7, 0.4, 0.50])
    assert (test.n, test.zeros, test.r_plus, test.r_minus) == (4, 1, 8.5, 1.5)


def test_rounding_errors_are_no_differences() -> None:
    test = signed_ranks([0.1 + 0.2, 0.5], [0.3, 0.5])
    assert (test.n, test.zeros, test.p_value) == (0, 2, 1.0)


# For fewer pairs with ties scipy counts all permutations, which takes a while.
@given(st.lists(st.tuples(AUC, AUC), min_size=14, max_size=60))
def test_signed_ranks_agree_with_scipy(pairs: list[tuple[float, float]]) -> None:
    first, second = np.array(pairs).T
    test = signed_ranks(first, second)
    assert test.n + test.zeros == len(pairs)
    assert test.r_plus + test.r_minus == pytest.approx(test.n * (test.n + 1) / 2)
    turned = signed_ranks(second, first)
    assert (turned.r_plus, turned.r_minus) == (test.r_minus, test.r_plus)
    assert turned.p_value == pytest.approx(test.p_value)
    if test.n:
        theirs = stats.wilcoxon(np.round(first - second, 12), zero_method="wilcox")
        assert test.p_value == pytest.approx(theirs.pvalue)
        assert min(test.r_plus, test.r_minus) == pytest.approx(theirs.statistic)


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_signed_ranks_of_few_pairs_agree_with_scipy(n: int) -> None:
    rng = np.random.default_rng(n)
    first, second = rng.random(n), rng.random(n)
    theirs = stats.wilcoxon(first, second, zero_method="wilcox")
    test = signed_ranks(first, second)
    assert test.p_value == pytest.approx(theirs.pvalue)
    assert min(test.r_plus, test.r_minus) == theirs.statistic


def test_table_2_has_qms22_first_and_the_papers_values() -> None:
    auc = tables.auc_table(realistic(seeds=(0,), n_sets=20))
    pairs = table2(auc)
    assert len(pairs) == 10
    assert pairs["first"].to_list()[:4] == ["QMS22"] * 4
    assert pairs["paper_r_plus"].to_list()[:4] == [2086, 2446, 3470, 3481]
    assert pairs["paper_r_plus"].isna().to_list()[4:] == [True] * 6
    assert (pairs["rejected"] == (pairs["p_value"] < 0.05)).all()
    matrix = p_matrix(pairs)
    assert matrix.equals(matrix.T)
    assert matrix.at["BRM", "OCKRA"] == pairs["p_value"].iloc[4]


def test_ranking_by_hand() -> None:
    auc = pd.DataFrame({"a": [0.9, 0.8, 0.7], "b": [0.8, 0.8, 0.9], "c": [0.1, 0.2, 0.3]})
    order = ranking(auc)
    assert order is not None
    assert order.ranks.to_dict() == pytest.approx({"a": 4.5 / 3, "b": 4.5 / 3, "c": 3})
    theirs = stats.friedmanchisquare(*auc.to_numpy().T)
    assert (order.statistic, order.p_value) == pytest.approx((theirs.statistic, theirs.pvalue))
    # Demšar (2006), Table 5a: 2.343 for three classifiers.
    assert order.critical_difference == pytest.approx(2.343 * math.sqrt(12 / 18), rel=1e-3)


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (5, 2.728), (10, 3.164)])
def test_critical_difference_is_demsars(k: int, q: float) -> None:
    rng = np.random.default_rng(0)
    order = ranking(pd.DataFrame(rng.random((30, k))))
    assert order is not None
    expected = q * math.sqrt(k * (k + 1) / 180)
    assert order.critical_difference == pytest.approx(expected, rel=1e-3)


def test_ranking_where_there_is_nothing_to_rank() -> None:
    assert ranking(pd.DataFrame({"a": [0.5, 0.6]})) is None
    assert ranking(pd.DataFrame({"a": [0.5, np.nan], "b": [0.5, 0.6]})) is None
    alike = ranking(pd.DataFrame(np.full((4, 3), 0.5)))
    assert alike is not None
    assert (alike.statistic, alike.p_value) == (0, 1)


def test_cliques_are_the_longest_runs() -> None:
    ranks = pd.Series({"a": 1.0, "b": 1.5, "c": 2.2, "d": 4.0})
    assert Ranking(ranks, 9, 0, 1, 0.8).cliques() == [(0, 1), (1, 2)]
    assert Ranking(ranks, 9, 0, 1, 1.3).cliques() == [(0, 2)]
    assert Ranking(ranks, 9, 0, 1, 0.1).cliques() == []


def test_growth_finds_the_power() -> None:
    size = np.array([10.0, 30, 100, 500])
    exponent, error, constant = growth(size, 3 * size**1.7)
    assert (exponent, math.exp(constant)) == pytest.approx((1.7, 3))
    assert error == pytest.approx(0, abs=1e-6)
    assert math.isnan(growth([10, 20], [1, 2])[0])
    assert math.isnan(growth([10, 10, 10], [1, 2, 3])[0])


def test_table_5_uses_fits_long_enough_to_time() -> None:
    sizes = {"a": (100, 1.0), "b": (200, 4.0), "c": (400, 16.0), "d": (10, 0.001)}
    rows = [
        row(name, fold, "BRM", 0, 0.9, n_normal=n - 20, fit_seconds=seconds)
        for name, (n, seconds) in sizes.items()
        for fold in range(1, 6)
    ]
    ours = tables.table5(pd.DataFrame(rows)).iloc[0]
    assert (ours["n_used"], ours["n_sets"]) == (3, 4)
    assert (ours["exponent_n"], ours["exponent_np"]) == pytest.approx((2, 2))
    assert ours["fit_seconds"] == pytest.approx(5 * 21.001)
    assert ours["paper"] == "O(n²)"


def test_settings_of_several_seeds_share_a_row() -> None:
    rows = [
        row("a", 1, "BRM", seed, 0.9, parameters=f'{{"n": 1, "random_state": {seed}}}')
        for seed in (0, 1)
    ]
    odd = row("a", 1, "kNN", 0, 0.9, parameters="as it came")
    listed = tables.settings(pd.DataFrame([*rows, odd])).to_numpy().tolist()
    assert listed == [["BRM", "n=1", "0, 1", 1], ["kNN", "as it came", "0", 1]]


def test_bad_results_are_refused() -> None:
    good = table(flat("a", "QMS22", 0.9))
    with pytest.raises(ValueError, match="lack the columns auc, parameters;"):
        tables.validate_results(good.drop(columns=["auc", "parameters"]))
    with pytest.raises(ValueError, match="no rows"):
        tables.validate_results(good.head(0))
    with pytest.raises(ValueError, match="fold 1 of 'a' by QMS22, seed 0, twice"):
        tables.validate_results(pd.concat([good, good]))


def test_scores_are_pooled_by_rank_within_their_fold() -> None:
    truth = np.array([False, True])
    pooled = pool_scores(
        {
            ("a", 1, "BRM", 3): (truth, np.array([1.0, 2.0])),
            ("a", 2, "BRM", 3): (truth, np.array([2000.0, 1000.0])),
            ("a", 1, "BRM", 4): (truth, np.array([0.0, 0.0])),
        }
    )
    is_outlier, scores = pooled["a"]["BRM"]
    assert is_outlier.tolist() == [False, True, False, True]
    assert scores.tolist() == [0.25, 0.75, 0.75, 0.25]


def test_compact_curves_keep_their_area() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(3000) < 0.3
    scores = rng.normal(size=3000) + truth
    curve = compact_curve(truth, scores)
    assert curve is not None
    points = np.array(curve["points"]).reshape(-1, 2) / 1000
    assert len(points) <= 100
    assert points[0].tolist() == [0, 0]
    assert points[-1].tolist() == [1, 1]
    assert area(*points.T) == pytest.approx(roc(truth, scores).auc, abs=0.002)


def test_compact_curves_drop_points_in_line() -> None:
    truth = np.array([False] * 5 + [True] * 5)
    curve = compact_curve(truth, np.arange(10.0))
    assert curve == {"auc": 1.0, "points": [0, 0, 0, 1000, 1000, 1000]}
    assert compact_curve(truth[:5], np.arange(5.0)) is None


def test_the_best_is_compared_with_each_other() -> None:
    rng = np.random.RandomState(0)
    base = rng.uniform(0.6, 0.9, size=20)
    auc = pd.DataFrame({"QMS22": base, "good": base + 0.05, "kNN": base + 0.05})
    auc.loc[0, "good"] += 0.01
    auc.loc[3, "kNN"] = np.nan
    table = best_against_others(auc)
    assert table["first"].unique().tolist() == ["good"]
    assert table["second"].to_list() == ["QMS22", "kNN"]
    assert table["n_sets"].to_list() == [20, 19]
    assert table["better"].to_list() == [20, 1]
    assert table["worse"].to_list() == [0, 0]
    assert table["gain"].iloc[0] == pytest.approx(0.0505)
    expected = signed_ranks(auc["good"], auc["QMS22"])
    assert table["p_value"].iloc[0] == expected.p_value
    assert (table["r_plus"].iloc[0], table["r_minus"].iloc[0]) == (210, 0)
