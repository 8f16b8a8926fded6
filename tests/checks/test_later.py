"""A batch of a later time: what time brings is not odd, and slips are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from looking import look
from numpy.random import Generator

from qms22 import QMS22Ensemble, detect
from qms22.checks.cases import repeated_cases, staying_levels, staying_rises, staying_values
from qms22.checks.dates import IntervalCheck, WeekdayCheck
from qms22.checks.dependence import DependenceCheck
from qms22.checks.sequences.repetition import RepetitionCheck
from qms22.checks.single import LevelCheck, ValueCheck
from qms22.checks.surprise import NumberReference
from qms22.checks.texts import TextCheck
from qms22.tables.columns.arrow_columns import column_of_values
from qms22.tables.columns.cells import Cells

DOCTORS = ["Weber", "Lang", "Rossi", "Smit", "Vogel", "Hansen", "Nagy", "Bauer"]
JANUARY, APRIL = pd.Timestamp("2025-01-01"), pd.Timestamp("2025-04-01")


def visits(n_rows: int, n_days: int, first: pd.Timestamp, rng: Generator) -> pd.DataFrame:
    """Draw visits to a practice in the order of time."""
    minutes = np.sort(rng.integers(0, n_days * 24 * 60, n_rows))
    patient = rng.integers(0, 90, n_rows)
    born = pd.Timestamp("1950-01-01") + pd.to_timedelta(300 * np.arange(90), unit="D")
    return pd.DataFrame(
        {
            "at": first + pd.to_timedelta(minutes, unit="min"),
            "patient": [f"P{number:03}" for number in patient],
            "born": born[patient],
            "doctor": rng.choice(DOCTORS, n_rows),
            "room": rng.choice([101.0, 102.0, 103.0, 104.0], n_rows),
            "weight": rng.normal(70, 10, n_rows).round(1),
        }
    )


def payroll(months: pd.DatetimeIndex, rng: Generator) -> pd.DataFrame:
    """Draw what 40 people are paid, by month and number of staff, which rises with the hire."""
    hired = pd.Timestamp("2005-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 6000, 40)), "D")
    n_months = len(months)
    return pd.DataFrame(
        {
            "paid": months.repeat(40),
            "name": np.tile([f"N{number:02}" for number in range(40)], n_months),
            "hired": np.tile(hired, n_months),
            "wage": rng.normal(3000, 400, 40 * n_months).round(),
            # In May and November.
            "bonus": np.where(np.isin(months.month, [5, 11]).repeat(40), 1500.0, 0.0),
        }
    )


def test_pay_of_some_months_is_no_drift() -> None:
    rng = np.random.default_rng(3)
    normal = payroll(pd.date_range("2024-01-25", periods=12, freq="MS"), rng)
    found = detect(normal, payroll(pd.date_range("2025-02-01", periods=2, freq="MS"), rng))
    assert found.verdict is not None
    assert found.verdict.decision == "fine"


def two_times(seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    return visits(1200, 90, JANUARY, rng), visits(400, 30, APRIL, rng)


def test_a_new_doctor_is_not_odd_and_a_slip_is() -> None:
    normal, batch = two_times()
    batch.loc[::9, "doctor"] = "Marchetti"
    batch.loc[[40, 41, 42], "doctor"] = "Conti"
    found = look(normal, batch)
    for kind in (LevelCheck, TextCheck):
        assert not found.by(kind, "doctor")[::9].any()
    assert (found.by(LevelCheck, "doctor")[[40, 41, 42]] > 5).all()
    (note,) = found.checks.notes
    assert note.startswith("'doctor' has 'Marchetti' all along")
    # At the same time as normal rows a new doctor is odd all the same.
    batch["at"] -= APRIL - JANUARY
    assert (look(normal, batch).by(LevelCheck, "doctor")[::9] > 5).all()


def test_rows_of_a_new_doctor_are_not_flagged_and_slips_are() -> None:
    normal, batch = two_times()
    batch.loc[::6, "doctor"] = "Marchetti"
    found = detect(normal, batch, n_jobs=1)
    assert found.n_flagged == 0
    assert found.verdict is not None
    assert found.verdict.decision == "fine"
    # Rows of a name that comes once are one case; odd rows of a new doctor who stays are not.
    batch.loc[[12, 41, 42, 60], "weight"] = 612.0
    batch.loc[[50, 51, 52], "doctor"] = "Conti"
    found = detect(normal, batch, n_jobs=1)
    assert {12, 41, 42, 50, 51, 52, 60} <= set(found.top[:9].tolist())
    only = batch.assign(weight=batch["weight"].clip(upper=90.0))
    assert detect(normal, only, n_jobs=1).n_flagged == 0


def test_levels_stay_if_they_are_there_all_along() -> None:
    texts = ["a"] * 200
    texts[::20] = ["new"] * 10
    texts[30:60] = ["glitch"] * 30
    texts[7] = "slip"
    cells = column_of_values("x", texts)
    assert staying_levels({"x": ["a", "b"]}, {"x": cells}) == {"x": ("new",)}
    assert staying_levels({"x": ["a"]}, {"x": cells}) == {"x": ()}  # a constant
    numbers = np.ones(200)
    numbers[::25], numbers[3] = 2.0, 3.0
    assert staying_values(np.array([1.0]), numbers).tolist() == [2.0]
    # The numbers of another price list are there together, one in few places; a slip is there once.
    prices = np.full(200, 1.0)
    prices[::20], prices[1:60:20], prices[61:120:20], prices[9] = 9.0, 3.2, 4.7, 5.5
    prices[121:180:20] = 12.0  # above all known ones
    assert staying_values(np.array([1.0, 9.0]), prices).tolist() == [3.2, 4.7]


def test_levels_that_come_together_are_of_a_new_entity() -> None:
    names, accounts, cities = (["a"] * 200 for _ in range(3))
    for at in (3, 8, 150):
        names[at], accounts[at] = "Leica", "NL83"
    for at in (20, 21, 22):
        names[at], cities[at - 1] = "Liecs", "Romme"
    columns = {"name": names, "account": accounts, "city": cities}
    batch = {name: column_of_values(name, texts) for name, texts in columns.items()}
    found = staying_levels({name: list("abcdefgh") for name in columns}, batch)
    assert found == {"name": ("Leica",), "account": ("NL83",), "city": ()}


def test_a_new_one_of_few_stays_and_a_rate_of_exchange_changes() -> None:
    rng = np.random.default_rng(6)

    def payments(
        n_rows: int, first: str, clerks: list[str], rates: dict[str, float]
    ) -> pd.DataFrame:
        currency = rng.choice(list(rates), n_rows, p=[0.7, 0.2, 0.1])
        amount = rng.lognormal(5, 0.6, n_rows).round(2)
        rate = np.array([rates[each] for each in currency])
        return pd.DataFrame(
            {
                "paid_at": pd.Timestamp(first) + pd.to_timedelta(np.arange(n_rows) * 3, unit="h"),
                "clerk": rng.choice(clerks, n_rows),
                "currency": currency,
                "rate": rate,
                "amount": amount,
                "euros": (amount * rate).round(2),
            }
        )

    months = [
        payments(240, f"2025-0{month}-01", ["Kaur", "Novak", "Doyle-1"], rates)
        for month, rates in enumerate(
            [{"USD": 0.92 + step, "EUR": 1.0, "GBP": 1.14 + step} for step in (0, 0.01, 0.004)], 1
        )
    ]
    normal = pd.concat(months)
    later = {"USD": 0.927, "EUR": 1.0, "GBP": 1.11}
    batch = payments(240, "2025-04-01", ["Kaur", "Novak", "Doyle-1", "Doyle-2", "Ferreira"], later)
    found = detect(normal, batch, n_jobs=1)
    assert found.n_flagged == 0
    assert found.verdict is not None
    assert found.verdict.decision == "fine"
    assert any("'Doyle-2'" in note and "all along" in note for note in found.notes)
    batch.loc[17, "clerk"] = "Novka"
    assert found.ranking[0] != 17
    assert detect(normal, batch, n_jobs=1).ranking[0] == 17


def test_a_new_machine_may_have_a_counter_and_a_price_of_its_own() -> None:
    rng = np.random.default_rng(4)

    def readings(n_rows: int, first: pd.Timestamp, n_machines: int) -> pd.DataFrame:
        number = np.arange(n_rows) % n_machines
        energy = np.where(number < 10, 50_000 + 9_000 * number, 10) + np.arange(n_rows)
        return pd.DataFrame(
            {
                "at": first + pd.to_timedelta(np.arange(n_rows), unit="h"),
                "machine": [f"M{each}" for each in number],
                "kind": np.where(number % 2, "old", "young"),
                "energy": energy + rng.normal(0, 0.1, n_rows),
                "power": rng.normal(600, 30, n_rows) + 300 * (number % 2),
            }
        )

    normal, batch = readings(1000, JANUARY, 10), readings(300, APRIL, 11)
    assert detect(normal, batch, n_jobs=1).n_flagged == 0
    # Row 43 is of the new machine.
    batch.loc[[43, 104, 205, 250], "power"] = 9_000.0
    found = detect(normal, batch, n_jobs=1)
    assert {43, 104, 205, 250} == set(np.argsort(-found.scores)[:4].tolist())


def test_prices_that_rise_a_little_stay_and_single_ones_do_not() -> None:
    prices = np.full(200, 137.0)
    prices[::15], prices[::17], prices[9] = 141.0, 1410.0, 140.0
    assert staying_rises(88.0, 137.0, prices).tolist() == [141.0]
    normal, batch = two_times()
    batch.loc[::9, "room"] = 105.0
    batch.loc[[40, 41], "room"] = 110.0
    oddness = look(normal, batch).by(ValueCheck, "room")
    assert not oddness[::9].any()
    assert (oddness[[40, 41]] > 5).all()


def test_what_is_usual_is_not_odd_because_the_batch_has_moved() -> None:
    rng = np.random.default_rng(0)
    known = rng.normal(size=500)
    moved = NumberReference.learn(known)
    assert moved is not None
    moved = moved.aligned(rng.normal(3, 1, 200))
    assert moved.move != (1.0, 0.0)
    assert (moved.surprise(np.array([-1.0, 0.0, 3.0, 5.0])) < 5).all()
    assert moved.surprise(np.array([12.0]))[0] > 8


def test_rows_of_a_case_say_the_same_of_the_same_entity() -> None:
    rows = {
        "customer": column_of_values("customer", ["a", "a", "b", "a", "", ""]),
        "country": column_of_values("country", ["XX", "XX", "XX", "YY", "XX", "XX"]),
    }
    repeated = repeated_cases(rows, ["country"], ["customer"], is_alone=True)
    assert repeated.tolist() == [False, True, False, False, False, False]
    assert not repeated_cases(rows, [], ["customer"], is_alone=True).any()
    # Where three rows in a run are usual, seven are two cases.
    values = {"x": Cells("x", "number", np.array([5.0] * 7 + [6.0] * 2))}
    assert np.flatnonzero(~repeated_cases(values, ["x"], [], is_alone=True, most=3)).tolist() == [
        2,
        5,
        7,
    ]


def test_one_customer_does_not_raise_an_alarm_and_many_do() -> None:
    normal, batch = two_times()
    normal["country"] = batch["country"] = "DE"
    own = batch.index[batch["patient"] == batch["patient"].mode()[0]]
    assert len(own) >= 8
    decisions = []
    for rows in (own, np.arange(0, 400, 40)):
        wrong = batch.copy()
        wrong.loc[rows, "country"] = "FR"
        found = detect(normal, wrong, n_jobs=1)
        assert len(set(found.ranking[: len(rows)]) & set(rows)) >= len(rows) - 1
        assert found.verdict is not None
        decisions.append((found.verdict.decision, bool(found.flagged.any())))
    assert decisions == [("fine", False), ("anomalies", True)]


def test_the_verdict_is_one_whatever_is_flagged() -> None:
    normal, batch = two_times()
    batch.loc[::40, "weight"] += 100
    for rows in (batch, batch[1:40]):
        searches = [{"fdr": 0.1}, {"fdr": 0.01}, {"k": 1}, {"k": 7}]
        found = [detect(normal, rows, n_jobs=1, **search) for search in searches]  # type: ignore[arg-type]
        assert len({str(each.verdict) for each in found}) == 1
        assert found[0].verdict is not None
        # An alarm names rows, and what it names is an alarm.
        assert (found[0].verdict.decision == "anomalies") == bool(found[0].flagged.any())


def test_who_has_many_rows_at_any_time_has_no_burst() -> None:
    normal, batch = two_times()
    batch.loc[::5, "patient"] = "P900"  # a ward that is new, three rows a day
    batch.loc[200:211, "patient"] = "P007"  # two thirds of a day
    bursts = look(normal, batch).by(RepetitionCheck, "patient", "at")
    assert not bursts[::5][batch["patient"][::5] == "P900"].any()
    assert (bursts[203:209] > 3).all()


def test_few_rooms_repeat_by_chance() -> None:
    rng = np.random.default_rng(0)
    normal, batch = two_times()
    for table in (normal, batch):
        # One doctor in eight has two rooms, and the others have forty.
        is_own = table["doctor"] == "Smit"
        table["room"] = 100 + rng.integers(0, 40, len(table))
        table.loc[is_own, "room"] = np.resize([1, 2, 2, 1, 1, 2, 2, 2], is_own.sum())
    run = batch.index[batch["doctor"] == "Smit"][20:26]
    batch.loc[run, "room"] = 2
    other = batch.index[batch["doctor"] == "Lang"][20:26]
    batch.loc[other, "room"] = 120
    runs = look(normal, batch).by(RepetitionCheck, "room", "doctor")
    assert runs[run].max() < runs[other].min() / 2


def test_known_levels_are_compared_as_among_normal_rows() -> None:
    normal, batch = two_times()
    # Not more often than among normal rows, so both tables are to be judged alike.
    normal.loc[::6, "patient"], batch.loc[::6, "patient"] = "P000", "P000"
    normal["ward"] = normal["patient"].str[:-1]
    batch["ward"] = batch["patient"].str[:-1]
    odd = [0, 120, 240]
    normal.loc[::240, "ward"], batch.loc[odd, "ward"] = "P08", "P08"
    batch.loc[3::7, ["patient", "ward"]] = "P900", "P90"
    found = look(normal, batch)
    levels, pairs = found.by(LevelCheck, "patient"), found.by(DependenceCheck, "ward", "patient")
    is_new = (batch["patient"] == "P900").to_numpy()
    assert not levels[is_new].any()
    assert not pairs[is_new].any()
    assert (levels[~is_new & (batch["patient"] != "P000").to_numpy()] > 0).mean() > 0.9
    assert (pairs[odd] > 1).all()


def test_people_get_older() -> None:
    normal, batch = two_times()
    batch["at"] += pd.Timedelta(days=60)
    ages = look(normal, batch).by(IntervalCheck)
    assert ages.max() < 8
    batch.loc[5, "born"] = pd.Timestamp("1880-01-01")
    assert np.argmax(look(normal, batch).by(IntervalCheck)) == 5


def test_days_count_for_weekdays_and_not_rows() -> None:
    normal, batch = two_times()
    normal["paid"] = normal["at"] + pd.offsets.MonthEnd(0)
    normal["paid"] = normal["paid"].dt.normalize()
    batch["paid"] = pd.Timestamp("2025-04-30")
    found = look(normal, batch)
    assert not found.by(WeekdayCheck, "paid").any()
    assert not [name for name in found.encoder.get_feature_names_out() if "paid" in name]
    assert found.by(WeekdayCheck, "at").any()


def test_an_excess_counts_nothing_in_a_later_batch() -> None:
    rng = np.random.default_rng(0)
    known, batch = rng.normal(size=(300, 4)), rng.normal([1.2, 0, 0, 0], size=(100, 4))
    detector = QMS22Ensemble(n_splits=2, max_iter=3, random_state=0)
    at_once = dict(detector.fit(known, unlabeled=batch).weights_)
    later = dict(detector.fit(known, unlabeled=batch, is_later=True).weights_)
    assert at_once["forest"] > later["forest"] + 1
    assert later["members"] + later["distances"] == pytest.approx(1.0)
    # What tells the times apart tells nothing of the rows of one time.
    apart = detector.fit(known, unlabeled=batch + 2, is_later=True).weights_
    assert apart["members"] == apart["forest"] == 0 < apart["distances"]


def test_what_all_of_a_batch_does_is_not_learned() -> None:
    rng = np.random.default_rng(0)
    known, batch = rng.normal(size=(400, 4)), rng.normal([2, 0, 0, 0], size=(200, 4))
    detector = QMS22Ensemble(n_splits=2, max_iter=3, random_state=0)
    weights = detector.fit(known, unlabeled=batch, mostly_normal=True).weights_
    assert weights["members"] == weights["forest"] == 0 < weights["distances"]
    assert "self_training" not in weights
    # A tenth of outliers is no move of the batch.
    batch[20:, 0] -= 2
    alike = dict(detector.fit(known, unlabeled=batch).weights_)
    assert detector.fit(known, unlabeled=batch, mostly_normal=True).weights_ == alike


def test_a_price_list_that_rises_moves_no_article_to_another_shelf() -> None:
    """After a rise, prices are in the part of the range of the next dearer articles."""
    rng = np.random.default_rng(0)
    prices = np.sort(rng.lognormal(3, 0.8, 40)).round(2)
    shelf = np.sort(rng.choice(list("ABCDEF"), 40))  # dear articles are on the last shelves

    def sold(rise: float, n_rows: int) -> pd.DataFrame:
        article = rng.integers(0, 40, n_rows)
        weight = rng.normal(5, 1, n_rows)
        price = (rise * prices[article]).round(2)
        return pd.DataFrame({"price": price, "shelf": shelf[article], "weight": weight})

    normal, batch = sold(1.0, 1500), sold(1.03, 400)
    batch.loc[0, "shelf"] = "A" if batch.loc[0, "shelf"] > "C" else "F"
    odd = look(normal, batch).by(DependenceCheck, "shelf", "price")
    assert odd[0] > 4
    assert odd[1:].max() < 2


def test_identifiers_of_a_new_owner_are_what_the_batch_does() -> None:
    rng = np.random.default_rng(9)

    def boxes(first: str, n_rows: int, share: float) -> pd.DataFrame:
        owner = np.where(rng.random(n_rows) < share, "ONEU", rng.choice(["MSKU", "TCLU"], n_rows))
        return pd.DataFrame(
            {
                "at": pd.Timestamp(first) + pd.to_timedelta(np.arange(n_rows) * 2, unit="h"),
                "box": [f"{each}{rng.integers(10**6, 10**7)}" for each in owner],
                "weight": rng.normal(20, 3, n_rows).round(1),
            }
        )

    normal, batch = boxes("2025-01-01", 600, 0.0), boxes("2025-03-01", 200, 0.15)
    batch.loc[77, "box"] = "MSKÜ4711422"
    found = detect(normal, batch, n_jobs=1)
    assert set(np.flatnonzero(found.flagged)) <= {77}
    assert found.ranking[0] == 77


def test_a_detector_that_tells_the_times_apart_says_nothing_about_rows() -> None:
    rng = np.random.default_rng(8)

    def readings(first: str, n_days: int, start: int) -> pd.DataFrame:
        at = pd.Timestamp(first) + pd.to_timedelta(np.arange(n_days * 40) * 36, unit="min")
        run = start + np.arange(len(at)) // 40
        sugar = 12 - 0.25 * (np.arange(len(at)) % 40) + rng.normal(0, 0.05, len(at))
        return pd.DataFrame(
            {
                "at": at,
                "run": [f"R{each:04}" for each in run],
                "sugar": sugar.round(2),
                "heat": (20 + 0.1 * sugar + rng.normal(0, 0.2, len(at))).round(1),
            }
        )

    normal, batch = readings("2025-01-01", 40, 1), readings("2025-02-10", 10, 41)
    batch.loc[[33, 150, 300], "heat"] = [31.0, 12.5, 35.2]
    found = detect(normal, batch, by="run", n_jobs=1)
    assert set(np.flatnonzero(found.flagged)) == {33, 150, 300}


def test_what_most_rows_of_a_level_do_says_nothing_about_one_of_them() -> None:
    rng = np.random.default_rng(10)

    def calls(first: str, n_days: int) -> pd.DataFrame:
        n_rows = n_days * 20
        day = pd.Timestamp(first) + pd.to_timedelta(np.arange(n_rows) // 20, unit="D")
        minutes = pd.to_timedelta(rng.integers(8 * 60, 17 * 60, n_rows), unit="min")
        return pd.DataFrame(
            {
                "at": day + minutes,
                "desk": rng.choice(["sales", "support", "orders", "returns"], n_rows),
                "minutes": rng.lognormal(1.5, 0.5, n_rows).round(1),
            }
        ).sort_values("at", ignore_index=True)

    normal, batch = calls("2025-01-01", 50), calls("2025-03-01", 15)
    late = batch["desk"] == "support"
    batch.loc[late, "at"] += pd.Timedelta(hours=7)
    row = int(np.flatnonzero(batch["desk"] == "sales")[40])
    batch.loc[row, "at"] = batch.loc[row, "at"].normalize() + pd.Timedelta(hours=3)
    found = detect(normal, batch, n_jobs=1)
    assert found.ranking[0] == row
    texts = [each.text for at, reasons in found.reasons.items() if late[at] for each in reasons]
    assert not any("is between" in text for text in texts)
