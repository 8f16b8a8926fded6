"""Durations in texts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from qms22.tables import TabularEncoder
from qms22.tables.texts.durations import find_duration_style, read_durations, show_duration

HOUR = 3600.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2h 5m", 2 * HOUR + 300),
        ("2h5m", 2 * HOUR + 300),
        ("12h30min", 12.5 * HOUR),
        ("1 h 30 min", 1.5 * HOUR),
        ("1 day, 2 hours", 26 * HOUR),
        ("2 Std. 15 Min.", 2.25 * HOUR),
        ("45m", 2700.0),
        ("1,5 h", 1.5 * HOUR),
        ("P1DT2H", 26 * HOUR),
        ("PT90M", 1.5 * HOUR),
        ("-PT5S", -5.0),
        ("27:15:00", 27.25 * HOUR),
        ("75:03", 4503.0),
        ("1:23.5", 83.5),
    ],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    np.testing.assert_allclose(read_durations([text]), [seconds])


@pytest.mark.parametrize(
    "text",
    ["", "12", "2h,", "P", "PT", "h", "m", "5 m 3", "16:9", "3-5", "abc", "12:75", "5 apples"],
)
def test_other_texts_are_no_durations(text: str) -> None:
    assert np.isnan(read_durations([text])).all()


@pytest.mark.parametrize(
    "texts",
    [
        ["2h 5m", "45m", "1h 1m", "30h 0m"],
        ["2h5m", "10h10m"],
        ["1 h 30 min", "20 min"],
        ["P1DT2H", "PT5M", "PT1H0.5S"],
        ["27:15:00", "01:02:03"],
        ["75:03", "4:10"],
        ["1 day 2 hours", "2 days 1 hour", "3 days 0 hours"],
    ],
    ids=lambda texts: texts[0],
)
def test_durations_are_shown_as_the_column_writes_them(texts: list[str]) -> None:
    style = find_duration_style("x", texts, [9] * len(texts))
    assert style is not None
    shown = [show_duration(value, style) for value in read_durations(texts).tolist()]
    assert shown == [text.replace("1H0.5S", "1H") for text in texts]
    assert read_durations([show_duration(-90_000.0, style)]) == [-90_000.0]


def test_times_of_day_are_durations_only_if_something_says_so() -> None:
    clocks = ["01:30:00", "00:45:10", "23:10:00"]
    assert find_duration_style("start", clocks) is None
    assert find_duration_style("start", clocks, is_asked=True) == "hh:mm:ss"
    assert find_duration_style("call_duration", clocks) == "hh:mm:ss"
    assert find_duration_style("start", [*clocks, "24:10:00"]) == "hh:mm:ss"
    assert find_duration_style("x", ["90 min", "45 min"]) is None  # numbers with a unit
    assert find_duration_style("x", ["2h 5m", "yesterday"]) is None


def test_short_clocks_are_durations() -> None:
    """Calls last some minutes; what happens around midnight is on either side of it."""
    calls = [f"00:0{at % 6}:{at:02d}" for at in range(40)]
    assert find_duration_style("call", calls) == "hh:mm:ss"
    assert find_duration_style("call", [*calls, "09:12:55"]) == "hh:mm:ss"
    assert find_duration_style("break", ["00:30", "00:45", "01:00"]) == "mm:ss"
    assert find_duration_style("job", [*calls, *(f"23:5{at}:00" for at in range(9))]) is None
    # One text for times that nobody knows is no majority.
    clocks = [f"{hour:02d}:{minute}" for hour in range(7, 18) for minute in (15, 45)]
    assert find_duration_style("begin", ["00:00", *clocks], [90, *[1] * 22]) is None


def test_columns_of_durations_are_numbers() -> None:
    minutes = np.random.default_rng(0).integers(5, 300, 200)
    table = pd.DataFrame(
        {
            "took": [f"{at // 60}h {at % 60}m" for at in minutes],
            "clock": [f"{at // 60:02d}:{at % 60:02d}" for at in minutes],
        }
    )
    encoder = TabularEncoder().fit(table)
    kinds = {column.name: column.kind for column in encoder.columns_}
    assert kinds == {"took": "number", "clock": "date"}
    np.testing.assert_allclose(encoder.transform(table)[:, 0], 60.0 * minutes)
    assert encoder._plans_by_name["took"].show(7500.0) == "2h 5m"
    asked = TabularEncoder(kinds={"clock": "number"}).fit(table)
    assert {column.kind for column in asked.columns_} == {"number"}
    assert asked._plans_by_name["clock"].show(125.0) == "02:05"
