"""What is packed into the page is what the run holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_data import column_values, unpacked
from report_runs import by_rate, content, plausible, searched

from qms22._runtime.visible_text import visible
from qms22.detection import Finding, RowReason
from qms22.metrics import true_positive_rate_at
from qms22.report.bins import MISSING, Bins, bin_feature, bin_scores
from qms22.report.history_strip import history_picture
from qms22.report.packed_columns import (
    Payload,
    alphabetical,
    as_levels,
    as_numbers,
    pack_column,
    shorten,
)
from qms22.report.page import certainty, rarity, write_page
from qms22.report.prepare import (
    UNKNOWN,
    order_columns,
    outliers_found,
    pack_content,
    pack_reasons,
    roc_points,
    rows_reached,
)
from qms22.tables.columns.arrow_columns import frame_cells
from qms22.tables.columns.cells import Cells


def binned(normal: pd.Series, rows: pd.Series, flagged: Any = ()) -> Bins | None:
    """Bin a column as its table stores it; `flagged` are positions."""
    ours, theirs = (frame_cells(pd.DataFrame({"a": values})) for values in (normal, rows))
    assert ours
    assert theirs
    return bin_feature(ours[0], theirs[0], np.isin(np.arange(len(rows)), flagged))


def there_and_back(values: pd.Series) -> tuple[Any, list[Any]]:
    """Pack a column, and read it as the page does."""
    payload = Payload()
    spec, array = unpacked(payload.pack(pack_column(values, None, payload)))
    return spec, column_values(spec, array)


@pytest.mark.parametrize(
    ("values", "kind", "places"),
    [
        ([1, -2, 127], "Int8Array", 0),
        ([1, -2, 128], "Int16Array", 0),
        ([17.99, 20.38, None], "Int16Array", 2),
        ([0.1, 123456.789], "Int32Array", 3),
        ([123456789.12, 0.01], "Float64Array", 2),
        ([2**53, 1], "Float64Array", 0),
        ([], "Int8Array", 0),
    ],
)
def test_decimal_numbers_come_back_to_the_bit(values: Any, kind: str, places: int) -> None:
    spec, back = there_and_back(pd.Series(values, dtype=float))
    assert (spec["data"][0], spec["places"]) == (kind, places)
    assert back == values


@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_other_numbers_keep_nine_digits(values: list[float]) -> None:
    _, back = there_and_back(pd.Series(values, dtype=float))
    assert back == pytest.approx(values, rel=2.0**-32, abs=0)


def test_the_largest_numbers_do_not_become_infinite() -> None:
    ends = np.array([np.finfo(float).max, -np.finfo(float).max, np.inf, 5e-324, 0.0, np.nan])
    back = shorten(ends)
    assert np.isfinite(back[[0, 1]]).all()
    assert back[2] == np.inf
    assert np.isnan(back[5])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pd.Series([True, False]), ["True", "False"]),
        (pd.Series(["b", None, "a", "b"]), ["b", None, "a", "b"]),
        (pd.Series([1, "1", None, 2.5], dtype=object), ["1", "1", None, "2.5"]),
        (pd.Series([[1], [2], [1]]), ["[1]", "[2]", "[1]"]),
        (pd.Series(["x", "y", "x"], dtype="category"), ["x", "y", "x"]),
        (pd.to_datetime(pd.Series(["2024-02-29", None])), ["2024-02-29", None]),
        (pd.Series([2**60 + 1, 5]), [str(2**60 + 1), "5"]),
        (pd.Series([1 + 2j]), ["(1+2j)"]),
    ],
)
def test_what_is_no_number_comes_back_as_text(values: pd.Series, expected: Any) -> None:
    spec, back = there_and_back(values)
    assert spec["type"] == "text"
    assert back == expected


def test_numbers_of_other_types() -> None:
    single = as_numbers(pd.Series([0.1, np.nan], dtype=np.float32))
    nullable = as_numbers(pd.Series([1, None], dtype="Int64"))
    assert single is not None
    assert single[0] == 0.1
    assert nullable is not None
    assert np.isnan(nullable[1])


def test_levels_need_no_more_room_than_they_have_to() -> None:
    for n_levels, kind in ((255, "Uint8Array"), (256, "Uint16Array"), (70_000, "Uint32Array")):
        spec, back = there_and_back(pd.Series([*map(str, range(n_levels)), None], dtype=object))
        assert spec["data"][0] == kind
        assert back[-2:] == [str(n_levels - 1), None]
    codes, levels = as_levels(pd.Series([None, None], dtype=object))
    assert codes.tolist() == [-1, -1]
    assert levels == []


def test_bins_count_every_value_once() -> None:
    normal, rows = pd.Series([0.0, 1.0, 2.5, np.nan]), pd.Series([0.5, np.nan, 9.0])
    bins = binned(normal, rows)
    assert bins is not None
    assert (bins.kind, sum(bins.normal), bins.n_missing) == ("number", 3, 1)
    assert bins.codes[1] == MISSING
    assert bins.is_clipped
    assert bins.codes[2] == len(bins.normal) - 1


def test_integers_share_bins_evenly() -> None:
    values = pd.Series(np.arange(200) % 100)
    bins = binned(values, values)
    assert bins is not None
    assert set(np.diff(bins.edges)) == {3.0}
    assert set(bins.normal[:-1]) == {6}
    few = binned(pd.Series([0, 1, 1]), pd.Series([2]))
    assert few is not None
    assert few.edges == [-0.5, 0.5, 1.5, 2.5]


@pytest.mark.parametrize(
    "values",
    [[5.0], [1e300, 1e300], [1.0, np.nextafter(1, 2)], [1e15, 1e15 + 2], [-np.inf, 0.0, 1.0]],
)
def test_odd_values_have_bins_too(values: list[float]) -> None:
    bins = binned(pd.Series(values), pd.Series(values))
    assert bins is not None
    assert sum(bins.normal) == len(values)
    assert (np.diff(bins.edges) > 0).all()


@pytest.mark.parametrize("values", [[np.nan], [np.inf], [-1.7e308, 1.7e308]])
def test_some_columns_have_no_distribution(values: list[float]) -> None:
    assert binned(pd.Series(values), pd.Series(values)) is None


def test_free_text_has_no_distribution() -> None:
    names = pd.Series([f"name {number}" for number in range(100)])
    assert binned(names, names[:5]) is None


def test_levels_of_flagged_rows_are_shown_before_others() -> None:
    normal = pd.Series([f"level {number}" for number in range(30)] * 40)
    rows = pd.Series([*normal[:1000], "odd", None])
    bins = binned(normal, rows, [1000])
    assert bins is not None
    assert "odd" in bins.labels
    assert bins.labels[-2:] == ["(19 others)", "(missing)"]
    assert len(bins.labels) == len(bins.normal) == 14
    assert sum(bins.normal) == len(normal)
    assert bins.codes[-1] == 13


def test_columns_that_differ_in_type_are_compared_as_texts() -> None:
    bins = binned(pd.Series([1, 2]), pd.Series(["1", "x"]))
    assert bins is not None
    assert bins.kind == "level"
    assert dict(zip(bins.labels, bins.normal, strict=True)) == {"1": 1, "2": 1, "x": 0}


def test_dates_are_binned_in_time() -> None:
    days = pd.Series(pd.date_range("2024-01-01", periods=50, tz="Europe/Berlin"))
    bins = binned(days, days)
    assert bins is not None
    assert bins.kind == "date"
    assert bins.edges[0] <= pd.Timestamp("2024-01-01").timestamp()


def test_equal_scores_share_a_bin() -> None:
    edges, counts, codes = bin_scores(np.zeros(4), 3)
    assert len(edges) == 2
    assert counts == [4]
    assert codes.tolist() == [0, 0, 0]


def test_scores_are_counted_where_they_are_binned() -> None:
    scores = np.sort(np.random.default_rng(0).normal(size=1000).round(2))[::-1]
    edges, counts, codes = bin_scores(scores, 1000)
    assert np.bincount(codes, minlength=len(edges) - 1).tolist() == counts


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=30))
def test_found_outliers_agree_with_the_metric(pairs: list[tuple[int, bool]]) -> None:
    scores = np.array([score for score, _ in pairs], dtype=float)
    truth = np.array([label for _, label in pairs])
    order = np.argsort(-scores, kind="stable")
    found = outliers_found(scores[order], truth[order])
    reached = rows_reached(scores[order], len(scores)).tolist()
    assert reached == [int((scores >= score).sum()) for score in scores[order]]
    assert found[-1] == pytest.approx(truth.sum())
    if truth.any():
        for k in range(len(scores) + 1):
            assert found[k] / truth.sum() == pytest.approx(true_positive_rate_at(truth, scores, k))


def test_a_long_roc_curve_gets_few_points() -> None:
    rng = np.random.default_rng(0)
    points = roc_points(rng.random(5000) < 0.3, rng.normal(size=5000))
    assert points is not None
    assert len(points["x"]) == len(points["y"]) == 400
    assert (np.diff(points["x"]) >= 0).all()


def test_of_too_many_rows_the_page_holds_the_top() -> None:
    header, array = unpacked(pack_content(plausible(n_rows=500, k=20, n_kept=100)))
    assert (header["nRows"], header["nKept"]) == (500, 100)
    assert sum(header["scores"]["counts"]) == 500
    assert len(array(header["scores"]["bins"])) == len(array(header["reach"])) == 100
    assert len(array(header["truth"]["found"])) == 101
    assert {column["data"][2] for column in header["columns"]} == {100}


def test_flags_and_p_values_are_those_of_the_run() -> None:
    run = by_rate()
    header, array = unpacked(pack_content(run))
    assert header["nFlagged"] == 30
    assert run.flagged[:30].all()
    assert not run.flagged[30:].any()
    p_value = next(spec for spec in header["columns"] if spec["role"] == "p")
    assert column_values(p_value, array) == pytest.approx(run.results["p_value"].tolist(), rel=1e-8)


def test_the_truth_does_not_take_the_name_of_a_column() -> None:
    rows = pd.DataFrame({"truth": [1.0, 2.0], "truth_": [1.0, 2.0]})
    header, _ = unpacked(pack_content(content([1.0, 0.0], rows, truth=[1, 0])))
    names = [column["name"] for column in header["columns"]]
    assert names == ["rank", "row", "score", "truth__", "truth", "truth_"]


def test_texts_of_dates_are_shown_as_written_and_sort_by_time() -> None:
    values = pd.Series(["31.12.2024", None, "01.02.2025", "31.12.2024"])
    days = np.array(["2024-12-31", "NaT", "2025-02-01", "2024-12-31"], dtype="datetime64[us]")
    cells = Cells("day", "date", np.where(np.isnat(days), np.nan, days.astype(np.int64)))
    payload = Payload()
    spec, array = unpacked(payload.pack(pack_column(values, cells, payload)))
    assert column_values(spec, array) == ["31.12.2024", None, "01.02.2025", "31.12.2024"]
    assert spec["levels"] == ["01.02.2025", "31.12.2024"]
    assert spec["form"] == "date"
    keys = array(spec["keys"])
    assert keys[0] > keys[1]
    assert np.isnan(keys[2])


def test_a_column_unknown_to_the_normal_rows_gets_no_picture() -> None:
    rows = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]})
    header, _ = unpacked(pack_content(content([1.0, 0.0], rows, rows[["b"]])))
    assert [feature["name"] for feature in header["features"]] == ["b"]


REASONS = st.builds(
    RowReason,
    st.lists(st.sampled_from("abc"), max_size=3, unique=True).map(tuple),
    st.text(max_size=5),
    st.floats(0, allow_infinity=True),
)


@given(st.lists(st.none() | st.lists(REASONS, max_size=4), max_size=6))
def test_reasons_of_all_rows_come_back(reasons: Any) -> None:
    payload = Payload()
    spec, array = unpacked(payload.pack(pack_reasons(reasons, payload)))
    counts, strengths = array(spec["counts"]).tolist(), array(spec["strength"]).tolist()
    texts = [spec["texts"][code] for code in array(spec["text"])]
    groups = [tuple(spec["groups"][code]) for code in array(spec["group"])]
    assert counts == [UNKNOWN if row is None else len(row) for row in reasons]
    listed = [reason for row in reasons for reason in row or []]
    assert texts == [reason.text for reason in listed]
    assert groups == [reason.columns for reason in listed]
    most = [max(each.strength for each in row) for row in reasons if row for _ in row]
    for share, reason, strongest in zip(strengths, listed, most, strict=True):
        is_full = min(reason.strength, 1e300) == min(strongest, 1e300)
        assert share == 100 if is_full and strongest > 0 else share <= 100


def test_columns_named_by_reasons_of_flagged_rows_come_first() -> None:
    rows = pd.DataFrame({name: [1.0, 2.0, 3.0] for name in "abcd"})
    reasons = [
        [RowReason(("c", "b"), "x", 12.0), RowReason(("c",), "y", 0.5)],
        [RowReason(("d",), "z", 10.0)],
    ]
    run = content([3.0, 2.0, 1.0], rows, k=1, reasons=reasons)
    assert order_columns(run) == [(2, True), (1, True), (0, False), (3, False)]
    nothing = content([3.0, 2.0, 1.0], rows, k=0, reasons=reasons)
    assert [at for at, _ in order_columns(nothing)] == [2, 3, 1, 0]


def test_texts_are_in_the_order_of_the_alphabet() -> None:
    _, levels = as_levels(pd.Series(["b 10", "B 2", "a", None, "Ä"]))
    assert levels == ["a", "B 2", "b 10", "Ä"]
    many = alphabetical([str(number) for number in range(3000)])
    assert many == sorted(many)


def test_scores_of_normal_rows_are_binned_with_those_of_the_batch() -> None:
    run = plausible(n_rows=100, normal_scores=np.array([-9.0, 0.1, 99.0]))
    header, _ = unpacked(pack_content(run))
    assert sum(header["scores"]["normal"]) == 3
    assert len(header["scores"]["normal"]) == len(header["scores"]["counts"])


@pytest.mark.parametrize(
    ("share", "p_value", "words"),
    [
        (0.0, None, "like no known-normal row"),
        (0.031, 0.0004, "like 3.1\xa0% of the known-normal rows, p < 0.001"),
        (0.25, 0.012, "like 25\xa0% of the known-normal rows, p = 0.012"),
        (0.0, 1.0, "like no known-normal row"),
    ],
)
def test_findings_say_how_usual_they_are(share: float, p_value: float, words: str) -> None:
    assert rarity(Finding("a", np.arange(1), ("a",), share, p_value)) == words


def test_findings_say_how_certain_they_are() -> None:
    finding = Finding("a", np.arange(40), ("a",), None, None, 31)
    assert certainty(finding) == "of these at least 31 are anomalies (90\xa0% sure)"
    one = replace(finding, fewest_outliers=1)
    assert certainty(one) == "of these at least 1 is an anomaly (90\xa0% sure)"
    assert certainty(replace(finding, fewest_outliers=0)) == ""
    assert certainty(replace(finding, fewest_outliers=None)) == ""


def test_the_picture_shows_the_last_batches() -> None:
    history = [
        searched("2026-01-01", "a.csv", decision, n_flagged, columns)
        for decision, n_flagged, columns in (
            *(("fine", 0, ["x"]), ("anomalies", 50, ["x", "y" * 60])),
            *(("drift", 200, ["x"]), ("fine", 0, [])),
        )
    ]
    history[1] = replace(history[1], incident="half of it is missing")
    history[3] = replace(history[3], accepted="2026-01-02")
    picture = history_picture(history)
    batches = picture.batches
    assert [batch.share for batch in batches] == [0, 0.05, 0.2, 0]
    bars = [[path for kind, path in batch.marks if kind == "bar"][1] for batch in batches]
    assert [path.split("v")[1].split("h")[0] for path in bars] == ["-1", "-8.5", "-34", "-1"]
    flagged = "200 of 1,000 rows flagged (20\xa0%)"
    assert batches[2].title == f"2026-01-01, a.csv: drift, {flagged}; moved: x"
    assert batches[1].title.endswith("; incident: half of it is missing")
    kinds = [[kind for kind, _ in batch.marks] for batch in batches]
    assert kinds[0] == ["fine", "bar", "bar", "moved"]
    assert kinds[1] == ["anomalies", "incident", "bar", "bar", "moved", "moved"]
    assert kinds[3] == ["fine", "accepted", "bar", "bar"]
    words = ["verdict", "rows, up to 1,000", "flagged, up to 20\xa0%", "x moved"]
    assert [words for words, _ in picture.lanes] == [*words, f"{'y' * 40}… moved"]
    # Nothing overlaps: each lane begins below the one above.
    assert np.diff([y for _, y in picture.lanes]).min() >= 30
    assert len(history_picture(history * 20).batches) == 40
    assert history_picture([]).batches == []


def test_the_same_run_gives_the_same_file(tmp_path: Path) -> None:
    first = write_page(tmp_path / "a.html", plausible(n_rows=50))
    again = write_page(tmp_path / "b.html", plausible(n_rows=50))
    assert first.read_bytes() == again.read_bytes()
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["a.html", "b.html"]


def test_the_page_is_small_and_keeps_the_licence(tmp_path: Path) -> None:
    text = write_page(tmp_path / "a.html", plausible()).read_text("utf-8")
    assert len(text) < 250_000
    assert "Copyright (c) 2022 Leon Sorokin" in text


def test_signs_that_hide_are_shown() -> None:
    assert visible("a\u202eb\ud800\n\x00") == "a\\u202eb\\ud800\n\\u0000"
