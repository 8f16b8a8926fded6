"""Cells that belong together: numbers of groups, levels given others, numbers in order."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from looking import Looked, look

from qms22.checks.codings import Coding
from qms22.checks.dependence import DependenceCheck, OneOfCheck, OrderCheck
from qms22.checks.groups import GroupCheck
from qms22.tables.columns.cells import Cells
from qms22.tables.columns.date_parts import DAY

N_NORMAL, N_BATCH, ODD = 900, 200, 7
TARIFFS = {"day": "power", "night": "power", "heat": "gas", "cook": "gas"}

USUAL = {"sodium": (140, 3.0), "potassium": (4.2, 0.4), "glucose": (90, 18.0)}


def readings(n_rows: int, seed: int) -> pd.DataFrame:
    """Draw readings of meters, each with its own usual value."""
    rng = np.random.default_rng(seed)
    meter = rng.integers(0, 30, n_rows)
    value = 10.0 * meter + 50 + rng.normal(0, 1, n_rows)
    tariff = rng.choice(list(TARIFFS), n_rows)
    is_paid = rng.random(n_rows) < 0.6
    net = rng.lognormal(3, 1, n_rows).round(2)
    return pd.DataFrame(
        {
            "meter": [f"M{number:03}" for number in meter],
            "value": value.round(1),
            "tariff": tariff,
            "energy": [TARIFFS[name] for name in tariff],
            "status": np.where(is_paid, "paid", "open"),
            "days": np.where(is_paid, rng.integers(1, 60, n_rows), np.nan),
            "is_large": value > 200,
            "invoice": [
                f"{'EL' if TARIFFS[name] == 'power' else 'GA'}-{number:06}"
                for name, number in zip(tariff, rng.integers(0, 10**6, n_rows), strict=True)
            ],
            "net": net,
            "gross": (net + rng.uniform(0, 5, n_rows)).round(2),
        }
    )


def samples(n_rows: int, seed: int) -> pd.DataFrame:
    """Draw values of a laboratory, whose spreads differ, and loads with flags and colours."""
    rng = np.random.default_rng(seed)
    test = rng.choice(["sodium", "potassium", "glucose"], n_rows)
    mean, deviation = np.array([USUAL[name] for name in test]).T
    load = rng.uniform(0, 50, n_rows).round(1)
    load[np.abs(load - 30) < 0.5] = 20.0
    colours = np.eye(4, dtype=int)[rng.integers(4, size=n_rows)]
    return pd.DataFrame(
        {
            "test": test,
            "value": rng.normal(mean, deviation).round(1),
            "load": load,
            "alarm": (load > 30).astype(int),
            "class": np.array(["low", "middle", "high"])[np.searchsorted([10, 40], load)],
            **dict(zip(["red", "blue", "green", "black"], colours.T, strict=True)),
        }
    )


@pytest.fixture(scope="module")
def normal() -> pd.DataFrame:
    return readings(N_NORMAL, 0)


def planted(normal: pd.DataFrame, **cells: Any) -> Looked:
    batch = readings(N_BATCH, 1)
    for name, value in cells.items():
        batch.loc[ODD, name] = value
    return look(normal, batch, missing="impute")


def test_a_number_that_is_odd_for_its_entity(normal: pd.DataFrame) -> None:
    found = planted(normal, meter="M003", value=120.0, is_large=False)
    of_groups = found.by(GroupCheck, "value", "meter")
    assert np.argmax(of_groups) == found.ranking[0] == ODD
    assert of_groups[ODD] > 2 * np.delete(of_groups, ODD).max()
    text = found.says(ODD, GroupCheck, "value", "meter")
    assert text.startswith("value 120.0; ")
    assert "normal rows with meter M003 have 77.1 to 82.0" in text


def test_nothing_is_odd_for_an_entity_that_nobody_knows(normal: pd.DataFrame) -> None:
    found = planted(normal, meter="M999", value=120.0, is_large=False)
    assert found.by(GroupCheck, "value", "meter")[ODD] == 0


@pytest.mark.parametrize(
    ("cells", "columns", "sentence"),
    [
        # A level given another one.
        (
            {"tariff": "heat", "energy": "power"},
            ("energy", "tariff"),
            r"energy power, as in none of [\d,]+ normal rows with tariff heat",
        ),
        # A cell that is missing, and one that is there, given a status.
        (
            {"status": "paid", "days": np.nan},
            ("days", "status"),
            r"days is missing, as in none of [\d,]+ normal rows with status paid",
        ),
        (
            {"status": "open", "days": 9.0},
            ("days", "status"),
            r"days 9, as in none of [\d,]+ normal rows with status open; \d+ have no value",
        ),
        # A flag given a range.
        (
            {"meter": "M028", "value": 330.0, "is_large": False},
            ("is_large", "value"),
            r"is_large false, as in none of [\d,]+ normal rows with value (above )?[\d.]+",
        ),
        # The beginning of a code given a category.
        (
            {"energy": "gas", "tariff": "heat", "invoice": "EL-123456"},
            ("invoice", "energy"),
            r"invoice EL-123456, as in none of [\d,]+ normal rows with energy gas",
        ),
    ],
)
def test_cells_that_do_not_go_together(
    normal: pd.DataFrame, cells: dict[str, Any], columns: tuple[str, str], sentence: str
) -> None:
    found = planted(normal, **cells)
    oddness = np.maximum(
        found.by(DependenceCheck, *columns), found.by(DependenceCheck, *reversed(columns))
    )
    assert np.argmax(oddness) == found.ranking[0] == ODD
    assert oddness[ODD] > 5
    assert np.delete(oddness, ODD).max() < 5
    text = found.says(ODD, DependenceCheck, *columns)
    assert re.match(sentence, text), text
    assert "as in none of" in text


def test_a_clean_batch_breaks_no_rule(normal: pd.DataFrame) -> None:
    found = planted(normal)
    assert found.by(DependenceCheck).max() < 7
    assert not found.by(OrderCheck).any()


def planted_samples(**cells: Any) -> Looked:
    normal, batch = samples(N_NORMAL, 0), samples(N_BATCH, 1)
    batch.loc[ODD, list(cells)] = list(cells.values())
    return look(normal, batch)


@pytest.mark.parametrize(("test", "value"), [("potassium", 8.5), ("sodium", 165.0)])
def test_the_spread_of_a_group_is_its_own(test: str, value: float) -> None:
    found = planted_samples(test=test, value=value)
    assert found.ranking[0] == ODD
    assert f"normal rows with test {test} have " in found.says(ODD, GroupCheck, "value", "test")


def test_a_few_rows_of_a_group_borrow_the_spread_of_others() -> None:
    normal = readings(N_NORMAL, 0)
    rare = normal["meter"] == "M003"
    # Three readings that are equal by chance make no exact meter.
    normal = normal[~rare | (rare.cumsum() <= 3)]
    normal.loc[rare, "value"] = 80.0
    batch = readings(N_BATCH, 1)
    batch.loc[ODD, ["meter", "value", "is_large"]] = ["M003", 81.0, False]
    assert look(normal, batch, missing="impute").by(GroupCheck, "value", "meter")[ODD] < 5


@pytest.mark.parametrize(
    ("name", "level", "load", "of_rows"),
    [
        ("alarm", 0, 30.8, r"above 30; \d+ have 1"),
        ("alarm", 1, 29.2, r"up to 29\.\d; \d+ have 0"),
        ("class", "low", 10.4, r"10 to 40; \d+ have middle"),
    ],
)
def test_a_limit_is_named(name: str, level: object, load: float, of_rows: str) -> None:
    found = planted_samples(load=load, **{name: level})
    assert found.ranking[0] == ODD
    text = found.says(ODD, DependenceCheck, name, "load")
    assert re.match(rf"{name} {level}, as in none of \d+ normal rows with load {of_rows}", text), (
        text
    )


def test_where_no_normal_row_tells_the_side_of_a_limit_is_a_part_of_its_own() -> None:
    load = np.array([12.0, 20.4, np.nan, 33.3, 47.0])
    cells = Cells("load", "number", load)
    coding = Coding.of_range(cells).with_limits({"load": cells}, np.array([0, 0, 1, 1, 1]))
    assert coding is not None
    new = {"load": Cells("load", "number", np.array([1.0, 20.4, 25.0, 30.0, 30.1, 99.0, np.nan]))}
    assert coding.codes(new).tolist() == [0, 0, 1, 1, 2, 2, -1]
    assert coding.show_condition(new, lambda _, value: f"{value:g}")[1:5:3] == [
        "load up to 20.4",
        "load above 30",
    ]
    assert Coding.of_range(cells).with_limits({"load": cells}, np.array([0, 1, 1, 0, 1])) is None


@pytest.mark.parametrize("n_ones", [0, 2, 3])
def test_a_category_in_columns_of_0_and_1(n_ones: int) -> None:
    ones = [1] * n_ones + [0] * (4 - n_ones)
    found = planted_samples(**dict(zip(["red", "blue", "green", "black"], ones, strict=True)))
    assert found.ranking[0] == ODD
    words = f"{n_ones} of red … black are 1; exactly one is in all 900 normal rows"
    assert found.reason(ODD) == words
    assert np.flatnonzero(found.by(OneOfCheck)).tolist() == [ODD]
    # What the columns say about each other is said once.
    assert not found.by(DependenceCheck, "red", "blue").any()


def test_slips_among_normal_rows_keep_no_category_from_being_found() -> None:
    normal, batch = samples(N_NORMAL, 0), samples(N_BATCH, 1)
    normal.loc[0, ["red", "blue"]] = 1
    batch.loc[ODD, ["red", "blue", "green", "black"]] = 0
    found = look(normal, batch)
    assert found.says(ODD, OneOfCheck).endswith("; exactly one is in 899 of 900 normal rows")
    batch["red"] = batch["red"].astype(float)
    batch.loc[ODD, "red"] = np.nan
    assert not look(normal, batch, missing="impute").by(OneOfCheck).any()


def test_a_number_above_another_one(normal: pd.DataFrame) -> None:
    found = planted(normal, net=20.0, gross=19.0)
    assert np.flatnonzero(found.by(OrderCheck, "net", "gross")).tolist() == [ODD]
    assert not found.by(OrderCheck, "gross", "net").any()
    assert found.says(ODD, OrderCheck) == "net 20 is above gross 19, as in none of 900 normal rows"


def test_order_says_nothing_where_chance_would_keep_it() -> None:
    rng = np.random.default_rng(0)
    tables = [
        pd.DataFrame({"low": rng.normal(size=n), "high": rng.normal(1000, 1, n)}) for n in (300, 60)
    ]
    tables[1].loc[ODD, "low"] = 2000.0
    found = look(*tables)
    assert not any(isinstance(check, OrderCheck) for check in found.checks.checks)
    assert found.ranking[0] == ODD


def test_a_condition_on_days_between_dates() -> None:
    days = np.array([10.0, 20.0, 30.0, np.nan])
    rows = {
        "sent": Cells("sent", "date", np.zeros(4)),
        "paid": Cells("paid", "date", days * DAY),
    }
    coding = Coding.of_interval(rows["sent"], rows["paid"])
    assert coding.show_condition(rows, lambda _, value: str(value)) == [
        "up to 10 days from sent to paid",
        "10 to 20 days from sent to paid",
        "20 to 30 days from sent to paid",
        "no days from sent to paid",
    ]


def test_the_country_of_a_sender_is_odd_and_not_the_sender() -> None:
    rng = np.random.default_rng(0)
    countries = np.array(["DE", "FR", "IT", "ES"])
    homes = rng.integers(4, size=25)

    def transfers(n_rows: int) -> pd.DataFrame:
        senders = rng.integers(25, size=n_rows)
        return pd.DataFrame(
            {
                "sender": [f"S{sender:02}" for sender in senders],
                "country": countries[homes[senders]],
                "amount": rng.normal(size=n_rows),
            }
        )

    normal, batch = transfers(600), transfers(150)
    home = countries[homes[7]]
    batch.loc[ODD, ["sender", "country"]] = "S07", countries[countries != home][0]
    found = look(normal, batch)
    assert found.ranking[0] == ODD
    text = found.reason(ODD)
    assert re.match(
        rf"country \w\w, as in none of \d+ .* with sender S07; \d+ have {home}", text
    ), text


def test_a_rare_level_may_be_missing_by_chance() -> None:
    def make(seed: int, n_rare: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        reason = rng.choice(["faith", "race", "age"], 1000, p=[0.5, 0.3, 0.2])
        p = np.where(reason == "faith", 0.7, 0.4)
        law = np.where(rng.random(1000) < p, "felony", "misdemeanor").astype(object)
        law[np.flatnonzero(reason == "faith")[:n_rare]] = "violation"
        return pd.DataFrame({"law": law, "reason": reason})

    batch = make(1, 0)
    batch.loc[0] = ["violation", "age"]
    # Of four violations none would be for age as often as not; of a hundred some would.
    assert look(make(0, 4), batch).by(DependenceCheck, "law")[0] < 5
    assert look(make(0, 100), batch).by(DependenceCheck, "law")[0] > 7
