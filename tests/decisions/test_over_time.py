"""Batches of a history as the unit: odd ones, and the budget of false alarms."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from over_time import Outcome, decided

from qms22.decisions import over_time
from qms22.decisions.batch_profile import Profile, profile_batch, row_evidence, summarize
from qms22.decisions.curve import OutlierBound
from qms22.decisions.moved_columns import ColumnPair, MovedColumn
from qms22.decisions.over_time import LEAST_PAST, RATE, OverTime, Past, next_budget, tail_chance

BUDGET = next_budget([], 0)
HEAT = MovedColumn("heat", "median 12.3 → 15.1", 0.4, 1.0, 1e-9)
EMPTY = MovedColumn("heat", "missing 1.0 % → 8.0 %", 0.07, 1e-9, 1.0, is_missing=True)


def profile(
    rng: np.random.Generator, shift: float = 0.0, *, n_rows: int = 200, **others: Any
) -> Profile:
    """A batch with a column of numbers and one of levels."""
    numbers = rng.normal(10 + shift, 2, n_rows)
    codes = rng.choice(2, n_rows, p=[0.7, 0.3])
    columns = [ColumnPair("x", numbers, numbers), ColumnPair("mode", codes, codes, ("run", "idle"))]
    found = profile_batch(columns, float(rng.exponential()), None)
    return {**found, **others}


def chance_of(found: OverTime | None, column: str) -> float:
    assert found is not None
    return found.p_columns[column, False]


def test_a_profile_is_data() -> None:
    values = np.array([1.0, 1.0, 2.0, 3.0, np.nan, 500.0, 2.0, 2.0])
    levels = np.array([0, 0, 0, 0, 1, 1, -1, -1])
    pairs = [
        ColumnPair("x", values, values),
        ColumnPair("a", levels, levels, ("u", "v")),
        ColumnPair("none", values * np.nan, values * np.nan),
    ]
    found = profile_batch(pairs, 1.5, 2)
    assert json.loads(json.dumps(found)) == found
    x, a, none = found["columns"].values()
    assert (x["rows"], x["missing"]) == (7, 0.125)
    assert x["shares"]["2.0"] == pytest.approx(3 / 7)
    # The mean between the quartiles, which the odd value does not reach.
    assert x["middle"] == pytest.approx(2.0, abs=0.15)
    assert a["shares"] == pytest.approx({"u": 4 / 6, "v": 2 / 6})
    assert (none["rows"], none["shares"]) == (0, {})
    assert np.isfinite(summarize([found, found]).values).all()


def test_only_columns_of_the_same_form_are_compared() -> None:
    rng = np.random.default_rng(0)
    first, second = profile(rng), profile(rng)
    second["columns"]["x"]["is_numbers"] = False
    assert {name for (name, _) in summarize([first, second]).labels} == {"mode"}
    assert summarize([first, {**second, "columns": {}}]).values.shape == (2, 0)


def test_rows_of_the_same_origin_give_evidence_by_chance_only() -> None:
    rng = np.random.default_rng(0)
    found = []
    for _ in range(300):
        is_known = rng.permutation(500) < 400
        ranks = np.cumsum(is_known)[~is_known]
        found.append(row_evidence(np.bincount(ranks, minlength=401)))
    # A few ranks are looked at: somewhat more than a single one would give.
    assert 1.0 < np.mean(found) < 2.5
    beyond = np.bincount(np.append(np.zeros(6, dtype=int), np.full(94, 400)), minlength=401)
    assert row_evidence(beyond) == pytest.approx(6 * np.log(5), rel=0.1)
    assert row_evidence(np.bincount([400], minlength=401)) == 0.0


def test_quantiles_of_the_others() -> None:
    values = np.random.default_rng(0).integers(0, 6, (23, 4)).astype(float)
    for share in (0.5, 0.8):
        found = over_time._quantile_of_others(values, share)
        expected = [np.quantile(np.delete(values, at, 0), share, axis=0) for at in range(23)]
        np.testing.assert_allclose(found, expected)


def test_chances_are_exact() -> None:
    rng = np.random.default_rng(0)
    drawn = rng.exponential(size=(20_000, LEAST_PAST + 1))
    chances = np.array([tail_chance(row[:-1], row[-1]) for row in drawn])
    # Of any numbers in random order, a conformal p-value; of exponential ones, all of the tail.
    for chance in (20 / 21, 11 / 21, 0.1, 0.01, 0.002):
        assert np.mean(chances <= chance) == pytest.approx(chance, abs=4 * np.sqrt(chance / 20_000))
    heavy = np.array([tail_chance(row[:-1], row[-1]) for row in np.exp(drawn)])
    assert np.mean(heavy <= 11 / 21) == np.mean(chances <= 11 / 21)
    assert tail_chance(np.ones(30), 1.0) == 1.0
    assert tail_chance(np.ones(30), 2.0) == 1 / 31


def test_walks_and_levels_are_forecast() -> None:
    rng = np.random.default_rng(0)
    errors = np.full((61, 2), 0.01)
    level, walk = rng.normal(size=61), np.cumsum(rng.normal(size=61))
    odd = over_time.oddness(np.column_stack([level, walk]), errors)
    assert np.median(odd) < 1.0
    # The walk is far from its median, but its last step is one of many.
    assert odd[-1].max() < 3.0
    moved = np.column_stack([level, walk])
    moved[-1] += 10
    assert over_time.oddness(moved, errors)[-1].min() > 5.0
    # Where rows are few, what looks odd may be chance.
    assert over_time.oddness(moved, np.full((61, 2), 10.0))[-1].max() < 2.0


def test_a_batch_is_compared_once_there_are_enough() -> None:
    rng = np.random.default_rng(0)
    past = tuple(profile(rng) for _ in range(30))
    assert Past(past[: LEAST_PAST - 1], BUDGET).compare(profile(rng)) is None
    same, odd = (Past(past, BUDGET).compare(profile(rng, shift)) for shift in (0.0, 8.0))
    assert same is not None
    assert same.n_past == 30
    assert chance_of(same, "x") > 0.05
    assert chance_of(odd, "x") < 0.001
    assert chance_of(odd, "mode") > 0.05


def test_batches_of_the_same_weekday_are_enough() -> None:
    rng = np.random.default_rng(0)
    days = [profile(rng, 5.0 * (at % 7 == 6), weekday=at % 7) for at in range(150)]
    found = Past(tuple(days), BUDGET).compare(profile(rng, 5.0, weekday=6))
    assert found is not None
    assert found.n_past == 21
    assert chance_of(found, "x") > 0.05
    # A Sunday that is like a Monday.
    assert chance_of(Past(tuple(days), BUDGET).compare(profile(rng, 0.0, weekday=6)), "x") < 0.01
    few = Past(tuple(days[:100]), BUDGET).compare(profile(rng, weekday=0))
    assert few is not None
    assert few.n_past == 100


def test_a_new_column_counts_once_enough_batches_have_it() -> None:
    rng = np.random.default_rng(0)
    past = [profile(rng) for _ in range(30 + LEAST_PAST)]
    for early in past[:30]:
        early["columns"] = {"x": early["columns"]["x"]}
    found = Past(tuple(past[:-1]), BUDGET).compare(past[-1])
    assert found is not None
    assert (found.n_past, {name for name, _ in found.p_columns}) == (49, {"x"})
    found = Past(tuple(past), BUDGET).compare(profile(rng))
    assert found is not None
    assert (found.n_past, {name for name, _ in found.p_columns}) == (LEAST_PAST, {"x", "mode"})


@pytest.mark.parametrize(
    ("p_rows", "p_heat", "fewest", "decision"),
    [
        (0.5, 0.5, 0, "fine"),
        (0.5, 1e-5, 0, "drift"),
        (1e-5, 0.5, 7, "anomalies"),
        (1e-5, 0.5, 0, "fine"),  # no row can be named
        (1e-5, 1e-5, 7, "drift"),
        (1e-5, 0.5, 300, "drift"),  # more than a fifth of all rows
        (0.5, 0.004, 0, "fine"),  # not at the level of the history
    ],
)
def test_decisions(p_rows: float, p_heat: float, fewest: int, decision: str) -> None:
    found = OverTime(31, BUDGET, p_rows, {("heat", False): p_heat, ("heat", True): 1.0})
    bound = OutlierBound(fewest, 0.01)
    columns = [HEAT, EMPTY]
    verdict = found.judge(columns, 1000, bound=bound, left_out=(), excepted=())
    assert verdict.decision == decision
    assert [each.name for each in verdict.moved] == (["heat"] if p_heat < 0.001 else [])
    assert verdict.confidence == 1 - BUDGET.level
    facts = found.facts(verdict)
    assert (facts["p_value"] <= facts["level"]) == (decision != "fine")
    allowed = found.judge(columns, 1000, bound=bound, left_out=(), excepted=("heat",))
    assert not allowed.moved
    assert len(allowed.excepted) == (p_heat < 0.001)
    if decision == "fine":
        assert "as much like the 31 accepted batches of the history" in str(verdict)
    elif decision == "drift":
        assert "tag the batch as an incident" in verdict.advice[0]


def test_the_budget_lasts() -> None:
    spent: list[float] = []
    for _ in range(5000):
        budget = next_budget(spent, 0)
        spent.append(budget.spent)
        assert budget.left == pytest.approx(RATE - sum(spent))
    assert sum(spent[:20]) == pytest.approx(RATE / 2)
    assert sum(spent) < RATE
    assert spent == sorted(spent, reverse=True)
    # Of what is called bad more is known; a batch called bad costs nothing.
    first, third = next_budget([], 0), next_budget(spent[:20], 2)
    assert third.level == pytest.approx(3 * next_budget(spent[:20], 0).level)
    assert third.spent == pytest.approx(next_budget(spent[:20], 0).spent)
    assert next_budget(spent[1:20], 0).level > next_budget(spent[:20], 0).level
    assert first.level == pytest.approx(RATE / 21)
    assert next_budget([], 1000).level == 0.05
    assert next_budget([0.09, 0.03], 0) == (0.0, 0.0, 0.0)


def test_the_rate_over_a_history_holds() -> None:
    """Uniform p-values of good batches, one bad batch in ten, 200 histories of 200 batches."""
    rng = np.random.default_rng(0)
    shares = []
    for bad_share in (0.0, 0.1):
        for _ in range(200):
            spent: list[float] = []
            n_called = n_false = 0
            for is_bad in rng.random(200) < bad_share:
                budget = next_budget(spent, n_called)
                is_alarm = rng.random() ** (8 if is_bad else 1) <= budget.level
                spent.append(budget.spent)
                n_called += is_alarm
                n_false += is_alarm and not is_bad
            shares.append(n_false / max(1, n_called))
    by_kind = np.reshape(shares, (2, 200))
    assert (by_kind.mean(axis=1) <= RATE + 2 * by_kind.std(axis=1) / np.sqrt(200)).all()
    assert by_kind[0].any()


@pytest.mark.slow
def test_histories_keep_their_rate_and_marks_help() -> None:
    """The small form of benchmarks/over_time.py."""

    def play(*, has_bad: bool, marks: bool = False) -> list[Outcome]:
        return [decided("normal steps", at, 60, has_bad=has_bad, marks=marks) for at in range(8)]

    clean, bad, marked = (
        play(has_bad=False),
        play(has_bad=True),
        play(has_bad=True, marks=True),
    )
    assert sum(any(each.is_alarm) for each in clean) <= 2
    for outcomes in (bad, marked):
        assert np.mean([each.facts()["false rate"] for each in outcomes]) <= 0.2
    found = [np.nanmean([each.facts()["found"] for each in outcomes]) for outcomes in (bad, marked)]
    assert 0.3 < found[0] <= found[1]
