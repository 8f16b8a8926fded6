"""Columns of a batch compared with those of known-normal rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import betabinom, binom, fisher_exact, ks_2samp

from qms22.decisions.change_text import change_of_numbers
from qms22.decisions.moved_columns import (
    LEAST_NORMAL,
    ColumnPair,
    MovedColumn,
    _chance_of_lost,
    _chance_of_shares,
    _holm,
    _Sizes,
    compare_columns,
    compare_over_time,
)

LEVELS = ("red", "green", "blue", "black")


def numbers(normal: np.ndarray, batch: np.ndarray) -> list[ColumnPair]:
    return [
        ColumnPair(f"x{at}", *columns)
        for at, columns in enumerate(zip(normal.T, batch.T, strict=True))
    ]


def only(pair: ColumnPair) -> MovedColumn:
    (column,) = compare_columns([pair])
    return column


def test_a_move_counts_by_the_rows_with_a_value() -> None:
    normal, batch = np.full(3000, -1), np.full(600, -1)
    normal[:90], batch[:30] = 0, 1
    compared = compare_columns([ColumnPair("x", normal, batch, LEVELS)])
    values = [each for each in compared if not each.is_missing]
    assert [round(each.effect, 6) for each in values] == [0.05]
    assert not any(each.is_large for each in values)
    whole = only(ColumnPair("x", normal[:90], batch[:30], LEVELS))
    assert whole.effect == 1.0


@pytest.mark.parametrize(("n_normal", "n_batch"), [(30, 40), (200, 25), (40, 400)])
def test_chance_of_lost_rows_is_the_naive_one(n_normal: int, n_batch: int) -> None:
    for share in (0.1, 0.3, 0.8):
        in_set = max(1, round(share * n_normal))
        most = int(0.7 * share * n_batch)
        for found in {0, most // 2, most}:
            # So many rows of the batch are like the normal ones, and the others are elsewhere.
            n_like = np.arange(n_batch + 1)
            expected = binom(n_batch, LEAST_NORMAL).pmf(n_like) @ [
                betabinom(n, in_set, n_normal - in_set + 1).cdf(found) if n else 1.0 for n in n_like
            ]
            counts = np.array([[in_set], [found]])
            chance = _chance_of_lost(counts, _Sizes(n_normal, n_batch))[0]
            assert chance == pytest.approx(expected, rel=1e-3, abs=1e-8)


def test_shares_are_compared_by_fishers_test() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        n_normal, n_batch = rng.integers(5, 80, size=2)
        x, y = rng.integers(0, n_normal + 1), rng.integers(0, n_batch + 1)
        table = [[x, n_normal - x], [y, n_batch - y]]
        sides = [fisher_exact(table, alternative=side).pvalue for side in ("less", "greater")]
        chance = _chance_of_shares(np.array([[x], [y]]), _Sizes(n_normal, n_batch))
        assert chance == pytest.approx(min(1.0, 2 * min(sides)))


def test_numbers_are_compared_by_kolmogorov_and_smirnov() -> None:
    rng = np.random.default_rng(0)
    normal, batch = rng.normal(size=500), rng.normal(0.3, size=300)
    expected = ks_2samp(normal, batch, method="exact")
    found = only(ColumnPair("x", normal, batch))
    assert found.effect == pytest.approx(expected.statistic)
    assert expected.pvalue <= found.p_value <= 3 * expected.pvalue


def test_holm() -> None:
    assert _holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert _holm([0.9, 0.8]) == [1.0, 1.0]
    assert _holm([]) == []


def mixed_table(rng: np.random.Generator, n_rows: int) -> list[np.ndarray]:
    values = rng.normal(size=n_rows)
    return [
        values,
        np.round(rng.normal(size=n_rows)),
        (rng.random(n_rows) < 0.2).astype(float),
        np.where(rng.random(n_rows) < 0.1, np.nan, np.exp(values)),
        rng.choice(4, n_rows, p=[0.5, 0.3, 0.15, 0.05]),
    ]


def pairs_of(normal: list[np.ndarray], batch: list[np.ndarray]) -> list[ColumnPair]:
    levels: list[tuple[str, ...]] = [(), (), (), (), LEVELS]
    columns = zip("abcde", normal, batch, levels, strict=True)
    return [ColumnPair(*column) for column in columns]


@pytest.mark.parametrize(("n_normal", "n_batch"), [(50, 40), (300, 150)])
def test_batches_like_the_normal_rows_seldom_move(n_normal: int, n_batch: int) -> None:
    rng = np.random.default_rng(0)
    n_runs, level = 150, 0.2
    lowest = []
    for _ in range(n_runs):
        columns = compare_columns(pairs_of(mixed_table(rng, n_normal), mixed_table(rng, n_batch)))
        lowest.append([min(c.p_value for c in columns), min(c.p_lost for c in columns)])
    shares = np.mean(np.array(lowest) <= level, axis=0)
    assert (shares <= level + 3 * np.sqrt(level * (1 - level) / n_runs)).all()


def test_a_fifth_of_outliers_is_no_loss_of_normal_rows() -> None:
    rng = np.random.default_rng(0)
    n_runs, level = 150, 0.2
    n_lost = 0
    for _ in range(n_runs):
        batch = mixed_table(rng, 500)
        for column in batch[:4]:
            column[:100] = 50.0
        batch[4][:100] = 3
        columns = compare_columns(pairs_of(mixed_table(rng, 400), batch))
        n_lost += min(column.p_lost for column in columns) <= level
    assert n_lost / n_runs <= level + 3 * np.sqrt(level * (1 - level) / n_runs)


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values + 1,
        lambda values: values - 0.7,
        lambda values: values * 2,
        lambda values: values / 2,
        lambda values: np.abs(values),
    ],
)
def test_drift_loses_normal_rows(change: object) -> None:
    rng = np.random.default_rng(0)
    normal, batch = rng.normal(size=(800, 6)), rng.normal(size=(500, 6))
    batch[:, 2] = change(batch[:, 2])  # type: ignore[operator]
    first, *others = compare_columns(numbers(normal, batch))
    assert first.name == "x2"
    assert first.p_lost < 0.005
    assert first.p_value < 0.005
    assert all(column.p_lost > 0.05 for column in others)


def test_levels_that_are_lost_and_gained() -> None:
    rng = np.random.default_rng(0)
    normal = rng.choice(4, 1000, p=[0.4, 0.4, 0.2, 0.0])
    batch = rng.choice(4, 600, p=[0.1, 0.4, 0.2, 0.3])
    found = only(ColumnPair("color", normal, batch, LEVELS))
    assert found.change in ("share of 'red' 40 % → 10 %", "share of 'black' 0 % → 30 %")
    assert found.effect == pytest.approx(0.3, abs=0.05)
    assert max(found.p_value, found.p_lost) < 1e-6
    assert not found.is_period


def test_many_rare_levels_are_no_drift() -> None:
    rng = np.random.default_rng(0)
    levels = tuple(map(str, range(3000)))
    normal, batch = rng.integers(0, 3000, 1000), rng.integers(0, 3000, 1000)
    found = only(ColumnPair("id", normal, batch, levels))
    assert found.p_value > 0.01
    assert found.p_lost == 1.0


def test_missing_cells_are_compared_on_their_own() -> None:
    rng = np.random.default_rng(0)
    normal = np.where(rng.random(1000) < 0.01, np.nan, rng.normal(size=1000))
    batch = np.where(rng.random(800) < 0.12, np.nan, rng.normal(size=800))
    missing, values = compare_columns([ColumnPair("x", normal, batch)])
    assert missing.change == "missing 1.1 % → 12 %"
    assert missing.p_value < 1e-6
    assert values.p_value > 0.01


def test_a_column_may_be_all_missing() -> None:
    there, none = np.arange(50.0), np.full(40, np.nan)
    found = only(ColumnPair("x", there, none))
    assert found.change == "missing 0 % → 100 %"
    assert max(found.p_value, found.p_lost) < 1e-6
    only(ColumnPair("x", none, none))
    assert compare_columns([]) == ()


def test_periods_and_counters() -> None:
    rng = np.random.default_rng(0)
    month = ColumnPair("month", np.repeat([1.0, 2.0], 100), np.full(80, 3.0))
    number = ColumnPair("number", np.arange(1000.0, 1200.0), np.arange(1200.0, 1280.0))
    week = ColumnPair("week", np.zeros(200, int), np.ones(80, int), ("W07", "W08"))
    heat = ColumnPair("heat", rng.normal(size=200), rng.normal(50, size=80))
    same = ColumnPair("same", rng.integers(0, 9, 200) * 1.0, rng.integers(0, 9, 80) * 1.0)
    found = {column.name: column for column in compare_columns([month, number, week, heat, same])}
    assert [name for name in found if found[name].is_period] == ["month", "number", "week"]
    assert found["month"].change == "1 to 2 → 3"
    assert found["number"].change == "1000 to 1199 → 1200 to 1279"


@pytest.mark.parametrize(
    ("normal", "batch", "expected"),
    [
        ([0, 0, 0, 1], [1, 1, 0, 1], "share of 1 25 % → 75 %"),
        ([12.1, 12.3, 12.9], [12.2, 15.1, 15.2], "median 12.3 → 15.1"),
        ([1, 2, 3, 4, 5], [-5, 0, 3, 6, 11], "middle half 2 to 4 → 0 to 6"),
        ([1, 2, 2, 2, 3], [1, 2, 2, 2, 9], "mean 2.0 → 3.2"),
        ([0.00012, 0.00014, 0.0002], [0.00013, 0.00018, 0.0002], "median 0.000140 → 0.000180"),
        ([1e300, 2e300], [-1e300, -2e300], "1e+300 to 2e+300 → -2e+300 to -1e+300"),
    ],
)
def test_change_in_units_of_the_column(
    normal: list[float], batch: list[float], expected: str
) -> None:
    arrays = (np.sort(np.array(values, dtype=float)) for values in (normal, batch))
    assert change_of_numbers(*arrays) == expected


def test_new_prices_are_no_drift_of_a_later_batch() -> None:
    rng = np.random.default_rng(0)
    prices = np.array([28.0, 44.0, 48.0, 52.0, 65.0])
    normal, batch = rng.choice(prices, 2000), rng.choice(prices, 800)
    for factor, is_ordinary in ((1.03, True), (1.6, False)):
        pair = ColumnPair("fee", normal, (factor * batch).round(2))
        moved = compare_columns([pair])
        assert moved[0].is_certain(0.05)
        later = compare_over_time([pair], np.arange(2000), 1.3, 0.05)
        assert (later == []) == is_ordinary
        # At the same time it is a move.
        assert compare_over_time([pair], np.arange(2000), 0.2, 0.05)


@pytest.mark.parametrize(("new", "is_ordinary"), [(4289.0, True), (5100.0, False)])
def test_a_rate_that_rises_a_little_is_no_drift_of_a_later_batch(
    new: float, is_ordinary: bool
) -> None:
    pair = ColumnPair("rate", np.full(900, 4210.59), np.full(300, new))
    later = compare_over_time([pair], np.arange(900), 1.3, 0.05)
    assert (later == []) == is_ordinary


def test_many_different_numbers_may_not_rise_by_their_deviation() -> None:
    rng = np.random.default_rng(0)
    pair = ColumnPair("pressure", rng.normal(1013, 10, 900), rng.normal(1045, 10, 300))
    assert compare_over_time([pair], np.arange(900), 1.3, 0.05)
