"""What is packed into the page is what the run holds."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_runs import plausible

from qms22.metrics import true_positive_rate_at
from qms22.report import DetectionRun, prepare, ranking, write_detection_report
from qms22.report.bins import MISSING, bin_feature, bin_scores
from qms22.report.columns import as_levels, as_numbers, pack_column
from qms22.report.page import visible
from qms22.report.payload import _TYPES, Payload, shorten
from qms22.report.truth import Ties, roc_points

NONE = np.array([], dtype=np.intp)


def unpacked(text: str) -> tuple[Any, Any]:
    """The header of a payload, and a function that reads its arrays."""
    data = gzip.decompress(base64.b64decode(text))
    start = int.from_bytes(data[:8], "little")

    def array(place: Any) -> Any:
        kind, offset, length = place
        return np.frombuffer(data, _TYPES[kind], length, offset)

    return json.loads(data[start:]), array


def there_and_back(values: pd.Series) -> tuple[Any, list[Any]]:
    """Pack a column, and read it as the page does; None where a value is missing."""
    payload = Payload()
    spec, array = unpacked(payload.pack(pack_column("name", values, payload)))
    stored = array(spec["data"]).tolist()
    if spec["type"] == "text":
        levels = [*spec["levels"], None]
        return spec, [levels[code] for code in stored]
    scale = 10 ** spec.get("places", 0)
    missing = [value == spec.get("missing") or value != value for value in stored]
    return spec, [
        None if gone else value / scale for gone, value in zip(missing, stored, strict=True)
    ]


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
    bins = bin_feature(normal, rows, NONE)
    assert bins is not None
    assert (bins.kind, sum(bins.normal), bins.n_missing) == ("number", 3, 1)
    assert bins.codes[1] == MISSING
    assert bins.is_clipped
    assert bins.codes[2] == len(bins.normal) - 1


def test_integers_share_bins_evenly() -> None:
    values = pd.Series(np.arange(200) % 100)
    bins = bin_feature(values, values, NONE)
    assert bins is not None
    assert set(np.diff(bins.edges)) == {3.0}
    assert set(bins.normal[:-1]) == {6}
    few = bin_feature(pd.Series([0, 1, 1]), pd.Series([2]), NONE)
    assert few is not None
    assert few.edges == [-0.5, 0.5, 1.5, 2.5]


@pytest.mark.parametrize(
    "values",
    [[5.0], [1e300, 1e300], [1.0, np.nextafter(1, 2)], [1e15, 1e15 + 2], [-np.inf, 0.0, 1.0]],
)
def test_odd_values_have_bins_too(values: list[float]) -> None:
    bins = bin_feature(pd.Series(values), pd.Series(values), NONE)
    assert bins is not None
    assert sum(bins.normal) == len(values)
    assert (np.diff(bins.edges) > 0).all()


@pytest.mark.parametrize("values", [[np.nan], [np.inf], [-1.7e308, 1.7e308]])
def test_some_columns_have_no_distribution(values: list[float]) -> None:
    assert bin_feature(pd.Series(values), pd.Series(values), NONE) is None


def test_free_text_has_no_distribution() -> None:
    names = pd.Series([f"name {number}" for number in range(100)])
    assert bin_feature(names, names[:5], NONE) is None


def test_levels_of_flagged_rows_are_shown_before_others() -> None:
    normal = pd.Series([f"level {number}" for number in range(30)] * 40)
    rows = pd.Series([*normal[:1000], "odd", None])
    bins = bin_feature(normal, rows, np.array([1000]))
    assert bins is not None
    assert "odd" in bins.labels
    assert bins.labels[-2:] == ["(19 others)", "(missing)"]
    assert len(bins.labels) == len(bins.normal) == 14
    assert sum(bins.normal) == len(normal)
    assert bins.codes[-1] == 13


def test_columns_that_differ_in_type_are_compared_as_texts() -> None:
    bins = bin_feature(pd.Series([1, 2]), pd.Series(["1", "x"]), NONE)
    assert bins is not None
    assert bins.kind == "level"
    assert dict(zip(bins.labels, bins.normal, strict=True)) == {"1": 1, "2": 1, "x": 0}


def test_dates_are_binned_in_time() -> None:
    days = pd.Series(pd.date_range("2024-01-01", periods=50, tz="Europe/Berlin"))
    bins = bin_feature(days, days, NONE)
    assert bins is not None
    assert bins.kind == "date"
    assert bins.edges[0] <= pd.Timestamp("2023-12-31 23:00").timestamp()


def test_equal_scores_share_a_bin() -> None:
    edges, codes = bin_scores(np.zeros(4))
    assert len(edges) == 2
    assert codes.tolist() == [0, 0, 0, 0]


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=30))
def test_found_outliers_agree_with_the_metric(pairs: list[tuple[int, bool]]) -> None:
    scores = np.array([score for score, _ in pairs], dtype=float)
    truth = np.array([label for _, label in pairs])
    order = ranking(scores)
    ties = Ties.of(scores[order])
    found = ties.found(truth[order])
    assert ties.reach().tolist() == [int((scores >= score).sum()) for score in scores[order]]
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


def test_of_too_many_rows_the_page_holds_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "MOST_ROWS", 100)
    run = plausible(n_rows=500, k=20)
    header, array = unpacked(prepare.prepare(run))
    assert (header["nRows"], header["nKept"]) == (500, 100)
    assert sum(header["scores"]["counts"]) == 500
    assert len(array(header["scores"]["bins"])) == len(array(header["reach"])) == 100
    assert len(array(header["truth"]["found"])) == 101
    assert {column["data"][2] for column in header["columns"]} == {100}
    header, _ = unpacked(prepare.prepare(plausible(n_rows=500, k=300)))
    assert header["nKept"] == 300


def test_own_columns_do_not_take_the_names_of_others() -> None:
    rows = pd.DataFrame({"score": [1], "id": [2], "qms22_score": [3]})
    header, _ = unpacked(prepare.prepare(DetectionRun("t", [0.5], rows, rows, k=0, ids=["x"])))
    names = [column["name"] for column in header["columns"]]
    assert names == ["rank", "qms22_qms22_score", "qms22_id", "score", "id", "qms22_score"]


def test_a_column_unknown_to_the_normal_rows_gets_no_picture() -> None:
    rows = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]})
    run = DetectionRun("t", [1.0, 0.0], rows, rows[["b"]], k=1)
    header, _ = unpacked(prepare.prepare(run))
    assert [feature["name"] for feature in header["features"]] == ["b"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1.23456789, "1.23457"),
        (np.int64(7), "7"),
        (np.True_, "True"),
        (None, "–"),
        ((0.0, 1.0), "0, 1"),
    ],
)
def test_values_of_reasons_are_short(value: Any, words: str) -> None:
    rows = pd.DataFrame({"a": [1.0]})
    run = DetectionRun("t", [1.0], rows, rows, k=1, reasons=[[("a", np.nan, value, value)]])
    header, _ = unpacked(prepare.prepare(run))
    assert header["reasons"] == [[["a", None, words, words]]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scores": [1.0]}, r"scores must be of shape \(30,\)"),
        ({"scores": [np.nan] * 30}, "scores holds nan at row 0"),
        ({"k": 31}, "k=31 is more than the 30 rows"),
        ({"k": 1.5}, "k must be"),
        ({"ids": ["a"]}, "there are 1 ids for 30 rows"),
        ({"reasons": [[]] * 31}, "reasons are given for 31 rows of 30"),
        ({"is_outlier": [2] * 30}, "is_outlier must hold only"),
        ({"is_outlier": [1]}, "is_outlier must be of shape"),
        ({"rows": pd.DataFrame({"a": []})}, "rows is empty"),
        ({"normal": pd.DataFrame([[1, 2]], columns=["a", "a"])}, "normal has two columns 'a'"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        plausible(n_rows=30, n_reasons=5, **change)
    assert "\n" not in str(caught.value)


def test_the_same_run_gives_the_same_file(tmp_path: Path) -> None:
    first = write_detection_report(tmp_path / "a.html", plausible(n_rows=50))
    again = write_detection_report(str(tmp_path / "b.html"), plausible(n_rows=50))
    assert first.read_bytes() == again.read_bytes()
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["a.html", "b.html"]


def test_the_page_is_small_and_keeps_the_licence(tmp_path: Path) -> None:
    text = write_detection_report(tmp_path / "a.html", plausible()).read_text("utf-8")
    assert len(text) < 250_000
    assert "Copyright (c) 2022 Leon Sorokin" in text


def test_signs_that_hide_are_shown() -> None:
    assert visible("a\u202eb\ud800\n\x00") == "a\\u202eb\\ud800\n\\u0000"
