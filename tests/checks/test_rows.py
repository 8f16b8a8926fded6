"""Rows among others: copies, values that are stuck, bursts, counters."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from looking import look

from qms22.checks.copies import CopyCheck, KeyCheck
from qms22.checks.groups import GroupCheck
from qms22.checks.sequences.limits import LimitCheck
from qms22.checks.sequences.repetition import RepetitionCheck, StandstillCheck
from qms22.checks.sequences.series import SeriesCheck
from qms22.checks.sequences.steps import GapCheck, StepCheck

N_NORMAL, N_BATCH, ODD = 600, 200, 7


def payments(n_rows: int, seed: int) -> pd.DataFrame:
    """Draw payments of customers, each with an identifier of its own."""
    rng = np.random.default_rng(seed)
    minutes = rng.choice(60 * 24 * 60, n_rows, replace=False)
    return pd.DataFrame(
        {
            "id": [f"P{seed}-{number:05}" for number in rng.permutation(n_rows)],
            "paid": pd.Timestamp("2024-01-01") + pd.to_timedelta(minutes, "min"),
            "customer": [f"C{number:03}" for number in rng.integers(0, 90, n_rows)],
            "amount": rng.lognormal(4, 1, n_rows).round(2),
            "fee": rng.uniform(0, 5, n_rows).round(2),
            "shop": rng.choice(["north", "south", "west"], n_rows),
        }
    )


def meters(n_days: int, first: str, begin: float) -> pd.DataFrame:
    """Draw readings of 20 meters that rise from day to day, and a temperature."""
    rng = np.random.default_rng(n_days)
    used = rng.gamma(4, 2.5, (20, n_days))
    counter = begin + 1000 * np.arange(20)[:, np.newaxis] + np.cumsum(used, axis=1)
    return pd.DataFrame(
        {
            "meter": np.repeat([f"M{number:02}" for number in range(20)], n_days),
            "day": np.tile(pd.date_range(first, periods=n_days), 20),
            "counter": counter.ravel().round(2),
            "heat": rng.normal(20, 3, 20 * n_days).round(2),
        }
    )


def test_a_copy_under_another_id() -> None:
    normal, batch = payments(N_NORMAL, 0), payments(N_BATCH, 1)
    same = [name for name in batch if name != "id"]
    batch.loc[ODD, same] = batch.loc[90, same]
    found = look(normal, batch)
    assert sorted(found.ranking[:2]) == [ODD, 90]
    assert np.flatnonzero(found.by(CopyCheck)).tolist() == [ODD, 90]
    assert found.says(ODD, CopyCheck).startswith("the same row occurs 2 times; none of 600")


def test_a_copy_of_a_normal_row() -> None:
    normal, batch = payments(N_NORMAL, 0), payments(N_BATCH, 1)
    same = [name for name in batch if name != "id"]
    batch.loc[ODD, same] = normal.loc[300, same]
    found = look(normal, batch)
    assert found.ranking[0] == ODD
    assert np.flatnonzero(found.by(CopyCheck)).tolist() == [ODD]
    assert found.says(ODD, CopyCheck).startswith("a normal row is the same; none of 600")


@pytest.mark.parametrize("is_of_normal", [False, True])
def test_a_copy_but_for_one_cell(is_of_normal: bool) -> None:
    normal, batch = payments(N_NORMAL, 0), payments(N_BATCH, 1)
    source = normal.loc[300] if is_of_normal else batch.loc[90]
    same = [name for name in batch if name not in ("id", "fee")]
    batch.loc[ODD, same] = source[same]
    found = look(normal, batch)
    expected = [ODD] if is_of_normal else [ODD, 90]
    assert np.flatnonzero(found.by(CopyCheck)).tolist() == expected
    text = found.says(ODD, CopyCheck)
    assert text.startswith("the same as another row but for fee (fee ")
    assert text.endswith("as none of 600 normal rows are")
    # It is found in the same way where only some rows are looked at.
    some = {name: cells.take(np.array([3, ODD])) for name, cells in found.rows.items()}
    np.testing.assert_array_equal(found.checks.surprises(some), found.surprises[[3, ODD]])


def test_copies_are_usual_in_narrow_tables() -> None:
    rng = np.random.default_rng(0)
    tables = [pd.DataFrame(rng.integers(0, 9, (n, 2)), columns=["a", "b"]) for n in (400, 80)]
    found = look(*tables, kinds={"a": "number", "b": "number"})
    assert not any(isinstance(check, CopyCheck) for check in found.checks.checks)


def test_a_value_that_is_stuck() -> None:
    normal, batch = meters(60, "2024-01-01", 0.0), meters(30, "2024-03-11", 700.0)
    stuck = np.arange(3 * 30 + 5, 3 * 30 + 13)
    batch.loc[stuck, "heat"] = 19.87
    shuffled = batch.sample(frac=1.0, random_state=0)
    for table in (batch, shuffled):
        found = look(normal, table.reset_index(drop=True))
        of_runs = found.by(RepetitionCheck, "heat", "meter")
        assert sorted(table.index[of_runs > 5]) == stuck.tolist()
        assert sorted(table.index[found.ranking[: len(stuck)]]) == stuck.tolist()
    found = look(normal, batch)
    text = found.says(int(stuck[0]), RepetitionCheck, "heat", "meter")
    assert text == ("heat 19.87 in 8 rows of meter M03 after each other; at most 2 in normal rows")
    # One normal meter was stuck for as long, which is rare nevertheless.
    normal.loc[stuck[:4], "heat"] = 19.12
    batch.loc[stuck[4:], "heat"] = 20.0 + 0.1 * np.arange(4)
    text = look(normal, batch).says(int(stuck[0]), RepetitionCheck, "heat", "meter")
    assert (
        text == "heat 19.87 in 4 rows of meter M03 after each other, as in hardly any normal rows"
    )


def test_a_burst() -> None:
    normal, batch = payments(N_NORMAL, 0), payments(N_BATCH, 1)
    burst = np.array([3, 50, 51, 100, 150, 199])
    batch.loc[burst, "customer"] = "C017"
    times = pd.Timestamp("2024-02-03 10:00") + pd.to_timedelta([0, 4, 9, 11, 17, 25], "min")
    batch.loc[burst, "paid"] = times
    found = look(normal, batch)
    assert sorted(found.ranking[:6]) == burst.tolist()
    text = found.says(50, RepetitionCheck, "customer", "paid")
    assert text.startswith("customer C017 in 6 rows within an hour; at most ")


@pytest.mark.parametrize("n_customers", [8, 20, 50])
def test_a_burst_of_a_frequent_customer(n_customers: int) -> None:
    normal, batch = payments(N_NORMAL, 0), payments(N_BATCH, 1)
    for table in (normal, batch):
        # One in three is of the largest customer, who pays six times at once each week.
        numbers = np.where(table.index % 3 == 0, 0, 1 + table.index % (n_customers - 1))
        table["customer"] = [f"C{number:03}" for number in numbers]
    weeks = pd.Timestamp("2024-01-02 09:00") + pd.to_timedelta(np.repeat(np.arange(8), 6) * 7, "D")
    minutes = pd.to_timedelta(np.tile(np.arange(6), 8), "min")
    normal.loc[np.arange(48) * 3, "paid"] = weeks + minutes
    large, small = np.arange(9) * 3, np.arange(100, 109)
    batch.loc[[*large, *small], "paid"] = [
        *pd.date_range("2024-02-03 10:00", periods=9, freq="2min"),
        *pd.date_range("2024-02-10 10:00", periods=9, freq="2min"),
    ]
    batch.loc[small, "customer"] = "C002"
    found = look(normal, batch, by="customer")
    bursts = found.by(RepetitionCheck, "customer", "paid")
    assert sorted(np.argsort(-bursts)[:9]) == small.tolist()
    assert bursts[small].min() > 10
    assert not np.delete(bursts, small).any()
    says = found.says(104, RepetitionCheck, "customer", "paid")
    assert re.match(
        r"customer C002 in 9 rows within an hour; at most \d in normal rows of a customer", says
    )


@pytest.mark.parametrize("change", [-500.0, 500.0])
def test_a_counter_that_runs_back_or_jumps(change: float) -> None:
    normal, batch = meters(60, "2024-01-01", 0.0), meters(30, "2024-03-11", 700.0)
    odd = 5 * 30 + 11
    batch.loc[odd, "counter"] += change
    found = look(normal, batch)
    of_steps = found.by(StepCheck, "counter", "meter")
    assert found.ranking[0] == int(np.argmax(of_steps)) == odd
    # The right value after it is not to blame.
    assert np.delete(of_steps, odd).max() < 8
    text = found.says(odd, StepCheck, "counter", "meter")
    here, before = (f"{batch.loc[row, 'counter']:g}" for row in (odd, odd - 1))
    if change < 0:
        assert text == f"counter {here} runs back from {before} (meter M05, the day before)"
    else:
        since = f"a day from {before} (meter M05, the day before); "
        assert re.fullmatch(rf"counter {here} rises by 5\d\d\.?\d* {re.escape(since)}.*", text)


@pytest.mark.parametrize("back", [0.4, 40.0, 4000.0])
def test_a_counter_that_stays_back(back: float) -> None:
    normal, batch = meters(60, "2024-01-01", 0.0), meters(30, "2024-03-11", 700.0)
    odd = 5 * 30 + 11
    fall = batch.loc[odd, "counter"] - batch.loc[odd - 1, "counter"] + back
    batch.loc[odd : 5 * 30 + 29, "counter"] = (
        batch.loc[odd : 5 * 30 + 29, "counter"] - fall
    ).round(2)
    found = look(normal, batch)
    of_steps = found.by(StepCheck, "counter", "meter")
    assert found.ranking[0] == int(np.argmax(of_steps)) == odd
    assert of_steps[odd] > 12
    assert np.delete(of_steps, odd).max() < 8
    assert "runs back" in found.reason(odd)


def test_a_counter_without_dates() -> None:
    normal, batch = (
        meters(n, "2024-01-01", begin).drop(columns="day") for n, begin in ((60, 0.0), (30, 2000.0))
    )
    batch.loc[ODD, "counter"] = 12.5
    found = look(normal, batch)
    assert found.ranking[0] == ODD
    text = found.says(ODD, StepCheck)
    before = f"{batch.loc[ODD - 1, 'counter']:g}"
    assert text == f"counter 12.5 runs back from {before} (meter M00, the row before)"


def test_a_counter_that_goes_on_is_not_odd() -> None:
    """All its values are higher than those of normal rows."""
    found = look(meters(60, "2024-01-01", 0.0), meters(30, "2024-03-11", 700.0))
    assert found.by(StepCheck).max() < 8
    assert np.median(found.surprises.max(axis=1)) < 4


@pytest.mark.parametrize("change", [-300.0, 900.0])
def test_a_counter_goes_on_from_the_normal_rows(change: float) -> None:
    """A batch with one row of each meter has no row before them."""
    normal, batch = meters(60, "2024-01-01", 0.0), meters(1, "2024-03-11", 700.0)
    batch.loc[5, "counter"] += change
    found = look(normal, batch)
    of_steps = found.by(StepCheck, "counter", "meter")
    assert found.ranking[0] == int(np.argmax(of_steps)) == 5
    assert np.delete(of_steps, 5).max() < 8
    before = f"{normal.loc[6 * 60 - 1, 'counter']:g} (meter M05, 11 days before)"
    assert before in found.says(5, StepCheck)


def test_a_row_with_a_wrong_date_is_before_no_other() -> None:
    normal, batch = meters(60, "2024-01-01", 0.0), meters(30, "2024-03-11", 700.0)
    batch.loc[5 * 30 + 20, "day"] = pd.Timestamp("1970-01-01")
    assert look(normal, batch).by(StepCheck).max() < 8


def inverters(n_times: int, first: str, seed: int) -> pd.DataFrame:
    """Draw measurements of five inverters, which are all 0 at night."""
    rng = np.random.default_rng(seed)
    times = pd.date_range(first, periods=n_times, freq="30min")
    sun = np.maximum(np.sin(2 * np.pi * np.arange(n_times) / 48) + 0.6, 0.0)
    drift = np.cumsum(rng.normal(0, 0.05, (5, n_times)), axis=1)
    power = 100 * sun * np.exp(drift)
    table = {
        "inverter": np.repeat([f"I{number}" for number in range(5)], n_times),
        "time": np.tile(times, 5),
        "total": 1e5 + np.cumsum(power + 1, axis=1).ravel().round(1),
    }
    for name, factor in (("power", 1.0), ("current", 0.4), ("heat", 0.2), ("load", 0.7)):
        noise = rng.uniform(0.99, 1.01, power.size)
        table[name] = (power.ravel() * factor * noise).round(1)
    return pd.DataFrame(table)


def test_a_row_that_repeats_the_one_before() -> None:
    normal, batch = inverters(400, "2024-01-01", 0), inverters(100, "2024-01-15", 1)
    row = 2 * 100 + 24
    measured = ["power", "current", "heat", "load"]
    assert (batch.loc[row, measured] > 1).all()
    batch.loc[row, measured] = batch.loc[row - 1, measured]
    found = look(normal, batch)
    of_repeats = found.by(StandstillCheck)
    assert int(np.argmax(of_repeats)) == row
    assert of_repeats[row] > 6
    # At night all are 0, as in many normal rows.
    assert np.delete(of_repeats, row).max() < 5
    assert found.says(row, StandstillCheck) == (
        "power, current, heat and 1 more repeat much of the row before of inverter I2, as hardly "
        "any normal rows do"
    )


def test_a_key_that_is_there_twice() -> None:
    normal, batch = payments(N_NORMAL, 0), payments(N_BATCH, 1)
    batch.loc[ODD, "id"] = batch.loc[90, "id"]
    found = look(normal, batch)
    assert np.flatnonzero(found.by(KeyCheck, "id")).tolist() == [ODD, 90]
    assert found.says(ODD, KeyCheck).endswith(
        "is there 2 times; that of none of 600 normal rows is there again"
    )


def test_keys_that_are_repeated_among_normal_rows() -> None:
    normal, batch = payments(N_NORMAL, 0), payments(N_BATCH, 1)
    normal.loc[:20, "id"] = "P0"
    assert not found_keys(normal, batch).any()


def found_keys(normal: pd.DataFrame, batch: pd.DataFrame) -> np.ndarray:
    batch.loc[ODD, "id"] = batch.loc[90, "id"]
    return look(normal, batch).by(KeyCheck)


def panel(days: pd.DatetimeIndex, seed: int) -> pd.DataFrame:
    """Draw a number of 20 shops that drifts from day to day, each on its own."""
    rng = np.random.default_rng(seed)
    drift = np.cumsum(rng.normal(0, 0.03, (20, len(days))), axis=1)
    sold = 100 * np.exp(np.arange(20)[:, np.newaxis] / 10 + drift)
    return pd.DataFrame(
        {
            "shop": np.repeat([f"S{number:02}" for number in range(20)], len(days)),
            "day": np.tile(days, 20),
            "sold": sold.ravel().round(1),
            "noise": rng.normal(0, 1, sold.size).round(3),
        }
    )


def sensor(n_rows: int, first: str, seed: int) -> pd.DataFrame:
    """Draw the temperatures of a sensor every ten minutes, with a door that has nothing to say."""
    rng = np.random.default_rng(seed)
    times = pd.date_range(first, periods=n_rows, freq="10min")
    heat = 20 + 5 * np.sin(np.arange(n_rows) / 144 * 2 * np.pi) + rng.normal(0, 0.1, n_rows)
    doors = rng.choice(["open", "shut"], n_rows)
    return pd.DataFrame({"time": times, "heat": heat.round(2), "door": doors})


def test_a_table_that_is_one_series() -> None:
    normal, batch = sensor(600, "2024-01-01", 0), sensor(300, "2024-01-06", 1)
    usual = look(normal, batch)
    # Nothing is said about the ends, of which normal rows have two.
    assert usual.by(SeriesCheck)[[0, -1]].max() < 5
    row = 150
    batch.loc[row, "heat"] = 40 - batch.loc[row, "heat"] - 5
    for table in (batch, batch.sample(frac=1.0, random_state=0)):
        found = look(normal, table.reset_index(drop=True))
        assert table.index[found.ranking[0]] == row
    found = look(normal, batch)
    assert np.delete(found.by(SeriesCheck), row).max() <= usual.by(SeriesCheck).max() + 2
    assert "; the rows before and after have about " in found.reason(row)


def test_rows_in_order_of_time_are_no_series_by_that() -> None:
    found = look(payments(N_NORMAL, 0), payments(N_BATCH, 1))
    assert not any(isinstance(check, SeriesCheck) for check in found.checks.checks)


def test_the_neighbours_of_a_wrong_number_are_not_odd() -> None:
    normal = panel(pd.date_range("2024-01-01", periods=60), 0)
    batch = panel(pd.date_range("2024-06-01", periods=30), 1)
    usual = look(normal, batch).by(SeriesCheck, "sold", "shop")
    second = 31  # of its shop: the first row has only two others around
    batch.loc[second, "sold"] *= 5
    found = look(normal, batch).by(SeriesCheck, "sold", "shop")
    assert int(np.argmax(found)) == second
    assert np.delete(found, second).max() <= usual.max()


def test_a_number_unlike_those_before_and_after() -> None:
    normal = panel(pd.date_range("2024-01-01", periods=60), 0)
    batch = panel(pd.date_range("2024-06-01", periods=30), 1)
    # All of a shop has changed in the meantime, which is nothing odd.
    batch.loc[batch["shop"] == "S03", "sold"] *= 4
    usual = batch.loc[ODD, "sold"]
    batch.loc[ODD, "sold"] *= 1.5
    found = look(normal, batch)
    assert found.ranking[0] == ODD
    by_series = found.by(SeriesCheck, "sold", "shop")
    assert int(np.argmax(by_series)) == ODD
    says = found.says(ODD, SeriesCheck)
    near = float(says.rpartition("have about ")[2])
    assert near == pytest.approx(usual, rel=0.1)
    assert not found.by(SeriesCheck, "noise").any()
    assert not any(
        type(check) is GroupCheck and check.columns[0] == "sold" for check in found.checks.checks
    )


@pytest.mark.parametrize("n_near", [0, 2, 6])
def test_many_amounts_just_below_a_limit(n_near: int) -> None:
    approvers = np.array(["lam", "novak", "berg", "singh"])
    tables = payments(N_NORMAL, 0), payments(N_BATCH, 1)
    for seed, table in enumerate(tables):
        table["approver"] = approvers[np.random.default_rng(seed).integers(0, 4, len(table))]
    normal, batch = tables
    batch.loc[: n_near - 1, "approver"] = "lam"
    batch.loc[: n_near - 1, "amount"] = 990.5 + np.arange(n_near)
    found = look(normal, batch)
    odd = np.flatnonzero(found.by(LimitCheck, "amount", "approver") > 5)
    assert odd.tolist() == (list(range(n_near)) if n_near > 2 else [])
    if n_near > 2:
        said = found.says(0, LimitCheck, "amount", "approver")
        assert re.match(
            r"amount 990.5, one of 6 just below 1,000 in \d+ rows of approver lam", said
        )


def test_one_price_just_below_a_limit() -> None:
    normal, batch = payments(N_NORMAL, 0), payments(N_BATCH, 1)
    batch.loc[batch["shop"] == "west", "amount"] = 99.0
    assert look(normal, batch).by(LimitCheck, "amount").max() == 0


def test_a_meter_that_is_silent_for_days() -> None:
    normal, batch = meters(60, "2024-01-01", 0.0), meters(30, "2024-03-11", 700.0)
    is_silent = batch["day"].between("2024-03-20", "2024-03-24") & (batch["meter"] == "M07")
    batch = batch[~is_silent].reset_index(drop=True)
    found = look(normal, batch)
    (row,) = np.flatnonzero((batch["meter"] == "M07") & (batch["day"] == "2024-03-25")).tolist()
    assert found.ranking[0] == row
    assert "before it meter M07 lacks 5 rows that others have, at most 0" in found.reason(row)
    assert np.flatnonzero(found.by(GapCheck)).tolist() == [row]


def test_days_without_any_row_are_no_gap() -> None:
    normal, batch = meters(60, "2024-01-01", 0.0), meters(30, "2024-03-01", 9000.0)
    batch = batch[~batch["day"].between("2024-03-10", "2024-03-14")].reset_index(drop=True)
    assert look(normal, batch).by(GapCheck).max() == 0
