from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from fuzzing import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from qms22.tables.texts.date_format import DateFormat, find_date_format
from qms22.tables.texts.date_text import month_number, month_style

GERMAN = month_style(["März"])


def find(texts: list[str], counts: list[int] | None = None) -> DateFormat:
    found = find_date_format(texts, counts)
    assert found is not None
    return found


def stamp(moment: datetime) -> float:
    return (moment - datetime(1970, 1, 1)) / timedelta(microseconds=1)


def moments(found: DateFormat, texts: list[str]) -> list[datetime]:
    return [datetime(1970, 1, 1) + timedelta(microseconds=value) for value in found.read(texts)]


# Formats of strftime.
FORMATS = [
    "%Y-%m-%d",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%dT%H:%M:%S+02:00",
    "%Y/%m/%d",
    "%Y.%m.%d %H:%M",
    "%d.%m.%Y",
    "%d.%m.%Y, %H:%M",
    "%d.%m.%y",
    "%d-%m-%Y",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y",
    "%m/%d/%y",
    "%m/%d/%Y %I:%M %p",
    "%m/%d/%Y %I:%M:%S %p",
    "%m-%d-%Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%d %B %Y",
    "%d %b %Y %H:%M",
    "%d-%b-%y",
    "%d%b%Y",
    "%d/%b/%Y:%H:%M:%S",
    "%b %d %H:%M:%S %Y",
    "%Y-%b-%d",
    "%Y%m%d",
    "%Y%m%d%H%M%S",
    "%G-W%V",
    "%G-W%V-%u",
    "%Y-%m",
    "%m/%Y",
    "%b %Y",
    "%b-%y",
    "%H:%M",
    "%H:%M:%S",
    "%I:%M %p",
]
DATES = st.datetimes(datetime(1970, 1, 1), datetime(2060, 12, 31))
# Dates whose order of day and month is clear, and whose seconds are not all 0.
CLEAR = [datetime(2024, 2, 13, 14, 5, 9), datetime(1999, 12, 31, 0, 7), datetime(2031, 3, 30, 9)]


def reread(texts: list[str], form: str) -> list[datetime]:
    """Return what strptime reads; a week or a time alone needs a day."""
    if form == "%G-W%V":
        return [datetime.strptime(f"{text}-1", "%G-W%V-%u") for text in texts]
    if "%d" in form or "%m" in form or "%b" in form or "%u" in form:
        return [datetime.strptime(text, form) for text in texts]
    return [datetime.strptime(f"1970 {text}", f"%Y {form}") for text in texts]


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=examples(20))
@given(dates=st.lists(DATES, max_size=8))
def test_dates_of_every_format_are_read_and_shown(form: str, dates: list[datetime]) -> None:
    texts = [date.strftime(form) for date in dates + CLEAR]
    found = find(texts)
    expected = reread(texts, form)
    assert moments(found, texts) == expected
    assert not found.note
    shown = [found.show(stamp(moment)) for moment in expected]
    assert moments(found, shown) == expected
    # Except for the offset, which does not matter.
    assert shown == [text.removesuffix("Z").removesuffix("+02:00") for text in texts]


def test_without_zeros_in_front() -> None:
    texts = ["1/2/2024 9:05 AM", "12/31/2024 11:05 PM"]
    found = find(texts)
    assert [found.show(value) for value in found.read(texts)] == texts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5. März 2024", datetime(2024, 3, 5)),
        ("5. Mär. 2024", datetime(2024, 3, 5)),
        ("Mi, 31.01.2024", datetime(2024, 1, 31)),
        ("Tuesday, March 5th, 2024", datetime(2024, 3, 5)),
        ("Sept. 5, 2024", datetime(2024, 9, 5)),
        ("3 août 2023", datetime(2023, 8, 3)),
        ("5 de marzo de 2024", datetime(2024, 3, 5)),
        ("31. 12. 2024", datetime(2024, 12, 31)),
        ("31.12.68", datetime(2068, 12, 31)),
        ("31.12.69", datetime(1969, 12, 31)),
        ("29.02.2024 24:00", datetime(2024, 3, 1)),
        ("2024-01-31 10:00:01.5", datetime(2024, 1, 31, 10, 0, 1, 500_000)),
        ("13/1/2024 12:00 AM", datetime(2024, 1, 13)),
        ("13/1/2024 12:30 p.m.", datetime(2024, 1, 13, 12, 30)),
        ("14:05 Uhr", datetime(1970, 1, 1, 14, 5)),
        ("Tue Mar  5 14:05:09 2024", datetime(2024, 3, 5, 14, 5, 9)),
        ("2024-03-05 14:05:09 CET", datetime(2024, 3, 5, 14, 5, 9)),
    ],
)
def test_other_ways_to_write_dates(text: str, expected: datetime) -> None:
    assert moments(find([text]), [text]) == [expected]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1981 Q1", "1981 Q4"], [datetime(1981, 1, 1), datetime(1981, 10, 1)]),
        (["Q2/2024", "Q3/2024"], [datetime(2024, 4, 1), datetime(2024, 7, 1)]),
        (["1960 Jan", "1960 Dec"], [datetime(1960, 1, 1), datetime(1960, 12, 1)]),
        ([f"{at}/86" for at in range(1, 13)] + ["1/87"], [datetime(1986, 1, 1)]),
    ],
)
def test_quarters_and_months(texts: list[str], expected: list[datetime]) -> None:
    found = find(texts)
    assert moments(found, texts)[: len(expected)] == expected
    assert [found.show(value) for value in found.read(texts)] == texts


def test_german_names_are_shown() -> None:
    texts = [f"{day}. {GERMAN[day % 12]} 2024" for day in range(1, 29)]
    found = find(texts)
    assert [found.show(value) for value in found.read(texts)] == texts


@pytest.mark.parametrize(
    "name", ["Januar", "fév", "SEPTEMBRE", "Maerz", "mrt", "dic", "out", "juil"]
)
def test_names_of_months(name: str) -> None:
    months = {"Januar": 1, "fév": 2, "SEPTEMBRE": 9, "Maerz": 3, "mrt": 3, "dic": 12, "out": 10}
    assert month_number(name) == months.get(name, 7)
    assert month_number("jui") is None  # June or July


def test_a_column_may_mix_formats() -> None:
    texts = ["31.12.2024", "2024-12-31", "12/31/2024", "Dec 31, 2024"]
    assert moments(find(texts), texts) == [datetime(2024, 12, 31)] * 4


@pytest.mark.parametrize(
    ("texts", "month", "is_doubtful"),
    [
        (["1/2/2024", "3/4/2024"], 2, True),
        (["1/2/2024", "30/4/2024"], 2, False),
        (["1/2/2024", "4/30/2024"], 1, False),
        (["1/2/2024 2:05 PM", "3/4/2024 2:06 AM"], 1, True),
        (["1.2.2024", "3.4.2024"], 2, True),
        (["1-2-2024", "3/14/2024"], 1, True),
        (["1.2.2024", "3/14/2024"], 2, True),
    ],
)
def test_the_order_of_day_and_month(texts: list[str], month: int, is_doubtful: bool) -> None:
    found = find(texts)
    assert moments(found, texts[:1])[0].month == month
    assert found.is_doubtful == is_doubtful
    assert ("though the other way fits too" in found.note) == is_doubtful


def test_more_rows_decide_about_the_order() -> None:
    found = find(["12/31/2024", "4/30/2024", "31/12/2024"], [50, 48, 2])
    assert np.isnan(found.read(["31/12/2024", "12/31/2024"])).tolist() == [True, False]


@pytest.mark.parametrize(
    "texts",
    [
        ["007", "012"],
        ["1.2.3", "1.2.10"],
        ["3-5", "6-9"],
        ["12.30", "14.05"],
        ["2023", "2024"],
        ["1706659200", "1706659201"],
        ["May", "June"],
        ["31.02.2024", "30.02.2024"],
        ["13.13.2024", "14.14.2024"],
        ["25:00", "12:75"],
        ["13:05 PM", "0:05 AM"],
        ["2024-W54", "2024-W60"],
        ["2024-13", "2024-00"],
        ["12345678", "20241399"],
        ["20240131", "20240131"],
        ["20240131", "20240201", "20240202", "31337007"],
        ["192.168.1.1", "10.0.0.24"],
        ["word 2024", "name 5, 2024"],
        ["1936 Summer", "1936 Winter"],
        ["1981 Q5", "1981 Q0"],
        ["7/10", "9/10", "3/10", "12/10"],
        [f"{at}/86" for at in range(1, 13)],
        ["5 kg", "7 m"],
        ["0000-01-01"],
        ["", "-"],
        [],
    ],
)
def test_codes_and_words_are_no_dates(texts: list[str]) -> None:
    assert find_date_format(texts) is None


def test_few_words_leave_a_column_of_dates() -> None:
    found = find(["2024-01-31", "2024-02-01", "unknown"], [60, 31, 9])
    assert np.isnan(found.read(["2024-01-31", "unknown"])).tolist() == [False, True]
    assert find_date_format(["2024-01-31", "unknown"], [89, 11]) is None


def test_what_the_user_asks_for_needs_a_single_date() -> None:
    texts = ["20240131", "unknown"]
    found = find_date_format(texts, is_asked=True)
    assert found is not None
    assert np.isnan(found.read(texts)).tolist() == [False, True]
    assert find_date_format(texts[1:], is_asked=True) is None


def test_other_families_and_codes_are_words_among_dates() -> None:
    texts = ["2024-03", "2024-W05", "14:05", "20240131"]
    assert np.isnan(find(["2024-01-31", "2024-02-01"]).read(texts)).all()


@given(st.lists(st.text(max_size=12)), st.lists(st.text("0123456789-./: TWAPMar", max_size=12)))
def test_any_text_is_read_without_an_error(texts: list[str], dates: list[str]) -> None:
    found = find_date_format(texts + dates, is_asked=True)
    if found is not None:
        values = found.read(texts + dates)
        assert np.isfinite(values).any()
        for value in values:
            found.show(float(value))


@given(
    st.lists(st.sampled_from(list(FORMATS)), min_size=1),
    st.sampled_from(["", " ", "Mi, ", "2024-01-31 ", "12/31/2024 "]),
    st.sampled_from(["", " ", " 14:05", " 2 PM", " Z", "T10", " x"]),
)
def test_dates_and_times_are_read_as_a_whole(forms: list[str], before: str, after: str) -> None:
    texts = [before + CLEAR[0].strftime(form) + after for form in forms]
    texts += ["12/31/2024", "11/30/2024"]
    for found in (DateFormat(), DateFormat(month_first="/", is_compact=True)):
        np.testing.assert_array_equal(found.read(texts), found._read_each(texts))


@pytest.mark.parametrize("bad", ["2024-02-30", "2024-01-01 25:00", "0000-01-01", "NaT", "x"])
def test_a_date_that_does_not_exist_leaves_the_others(bad: str) -> None:
    found = find(["2024-01-31", "2024-02-01 10:30"])
    alone = found.read(["2024-01-31", "2024-02-01 10:30"])
    np.testing.assert_array_equal(found.read(["2024-01-31", bad, "2024-02-01 10:30"])[::2], alone)
    assert np.isnan(found.read([bad])).all()


def test_midnight_everywhere_is_no_time() -> None:
    found = find(["2024-01-31 00:00:00", "2024-02-01 00:00:00"])
    assert found.show(0.0) == "1970-01-01"
    mixed = find(["2024-01-31", "2024-02-01", "2024-02-01 14:05"])
    assert mixed.show(0.0) == "1970-01-01 00:00"


def test_dates_far_away_are_shown() -> None:
    found = find(["9999-12-31", "0001-01-01"])
    assert found.show(found.read(["9999-12-31"])[0]) == "9999-12-31"
    assert found.show(1e18).startswith("33658-")
    assert found.show(float("nan")) == "nan"


def test_the_default_reads_iso_dates_as_python_does() -> None:
    moment = datetime(2024, 3, 1, 2, 10, 5, tzinfo=UTC)
    texts = [moment.isoformat(sep) for sep in "T "] + [moment.date().isoformat()]
    expected = [datetime.fromisoformat(text).replace(tzinfo=None) for text in texts]
    assert moments(DateFormat(), texts) == expected


def test_a_format_is_plain_data() -> None:
    found = find(["Mar 5, 2024 2:05 PM"])
    assert DateFormat(**asdict(found)) == found
    assert json.loads(json.dumps(asdict(found)))["family"] == "date"
