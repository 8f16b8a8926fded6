"""`qms22.detect` on frames and files, and what its result gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from command_line import assert_coherent
from page_data import read_page
from sklearn.base import clone
from visits import N_BATCH, PLAIN, SICK, visits, write_visits

import qms22
from qms22 import Detection, QMS22Ensemble, TabularEncoder, detect
from qms22.checks import learn_checks
from qms22.cli.terminal import print_found
from qms22.detection import score
from qms22.detection.results import page_content as page
from qms22.models import SavedModel, load_model
from qms22.tables import read_table
from qms22.tables.sources.frame_table import FrameTable


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    normal, batch = visits(400, 0), visits(N_BATCH, 1)
    batch.loc[SICK, "pulse"] += 60.0
    batch.index = pd.Index([f"label {at}" for at in range(N_BATCH)], name="place")
    return normal, batch


@pytest.fixture(scope="module")
def found(tables: tuple[pd.DataFrame, pd.DataFrame]) -> Detection:
    return detect(*tables, **PLAIN)


@pytest.fixture(scope="module")
def by_rate(tables: tuple[pd.DataFrame, pd.DataFrame]) -> Detection:
    normal, batch = tables
    batch = batch.assign(pulse=batch["pulse"])
    batch.loc[batch.index[:12], "weight"] += 90.0
    return detect(normal, batch, id="visit", fdr=0.3, n_jobs=1)


def test_the_table_has_results_first_and_keeps_the_index(
    found: Detection, tables: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    batch = tables[1]
    table = found.table()
    assert table.columns.tolist() == [
        *("rank", "visit", "score", "flagged", "reasons", "p_value", "false_at_most"),
        *batch.columns.drop("visit"),
    ]
    assert table.index.name == "place"
    assert table.index.tolist() == batch.index[found.ranking].tolist()
    pd.testing.assert_frame_equal(table[batch.columns], batch.loc[table.index])
    assert table["rank"].tolist() == list(range(1, N_BATCH + 1))
    assert table["score"].is_monotonic_decreasing
    assert table["flagged"].sum() == 8
    assert ((table["reasons"] != "") == table["flagged"]).all()
    assert "pulse" in table["reasons"].iloc[0]
    pd.testing.assert_frame_equal(found.table(only_flagged=True), table[:8])


def test_without_names_rows_are_called_by_position(
    tables: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    found = detect(*tables, preset="paper", k=8)
    table = found.table()
    assert table["row"].tolist() == found.ranking.tolist()
    assert table.columns[1] == "row"
    assert found.summary()["row"].tolist() == found.top.tolist()


def test_an_index_may_hold_labels_twice(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    normal, batch = tables
    twice = batch.set_axis(["a"] * len(batch), axis=0)
    expected = detect(normal, batch, **PLAIN).table().reset_index(drop=True)
    table = detect(normal, twice, **PLAIN).table()
    assert set(table.index) == {"a"}
    pd.testing.assert_frame_equal(table.reset_index(drop=True), expected)


def test_flags_are_the_first_rows(by_rate: Detection) -> None:
    table = by_rate.table()
    assert by_rate.p_values is not None
    assert_coherent(table)
    flagged = table[table["flagged"]]
    assert 10 < len(flagged) < N_BATCH / 2
    assert table["false_at_most"].tolist() == [
        by_rate.false_at_most(k) for k in range(1, N_BATCH + 1)
    ]
    np.testing.assert_array_equal(table["p_value"], by_rate.p_values[by_rate.ranking])
    pd.testing.assert_frame_equal(by_rate.table(only_flagged=True), flagged)
    summary = by_rate.summary()
    assert summary.columns.tolist() == table.columns[:7].tolist()
    pd.testing.assert_frame_equal(summary, flagged.iloc[:, :7])
    assert set(by_rate.top) | set(by_rate.ranking[:10]) == set(by_rate.reasons)


@pytest.mark.parametrize("name", ["o.csv", "o.parquet", "o.json", "o.xlsx", "o.db#found"])
def test_results_are_written(name: str, by_rate: Detection, tmp_path: Path) -> None:
    path = f"{tmp_path}/{name}"
    by_rate.write(path)
    written = read_table(f"{path}#rows" if name.endswith(".xlsx") else path)
    assert written["visit"].tolist() == by_rate.table()["visit"].tolist()
    with pytest.raises(ValueError, match=r"o\.txt must end in \.csv, \.parquet, .* or \.xlsx"):
        by_rate.write(tmp_path / "o.txt")
    by_rate.write(tmp_path / "f.csv", only_flagged=True)
    assert len(read_table(tmp_path / "f.csv")) == by_rate.n_flagged


def test_a_result_is_saved_as_a_model(by_rate: Detection, tmp_path: Path) -> None:
    by_rate.save(tmp_path / "m.skops")
    model = load_model(tmp_path / "m.skops")
    assert (model.facts["preset"], model.facts["id"]) == ("recommended", "visit")
    np.testing.assert_allclose(score(model, by_rate.source).scores, by_rate.scores, rtol=1e-6)


def test_flagged_rows_are_the_first_ones(by_rate: Detection) -> None:
    np.testing.assert_array_equal(by_rate.top, by_rate.ranking[: by_rate.n_flagged])
    assert by_rate.flagged[by_rate.top].all()


def test_an_encoder_keeps_its_parameters(by_rate: Detection) -> None:
    assert clone(by_rate.encoder).get_params() == by_rate.encoder.get_params()
    assert {*by_rate.encoder.ignore} <= {*by_rate.encoder.ignored_}


def test_all_outputs_flag_the_same_rows(by_rate: Detection, tmp_path: Path) -> None:
    table = by_rate.table()
    header, _, columns = read_page(by_rate.report(tmp_path / "page.html"))
    assert header["nFlagged"] == table["flagged"].sum()
    assert header["isRate"]
    assert columns["visit"] == table["visit"].tolist()
    np.testing.assert_allclose(columns["p_value"], table["p_value"], rtol=1e-8)
    np.testing.assert_allclose(columns["score"], table["score"], rtol=1e-8)
    pd.testing.assert_frame_equal(pd.concat(by_rate.tables()), table)


def test_columns_may_be_numbers() -> None:
    rng = np.random.RandomState(0)
    normal, batch = (pd.DataFrame(rng.normal(size=(n, 3))) for n in (120, 30))
    batch.loc[4, 1] = 40.0
    found = detect(normal, batch, k=2, preset="paper")
    table = found.table()
    assert table.columns.tolist() == ["rank", "row", "score", "flagged", "reasons", 0, 1, 2]
    assert found.reasons[4][0].columns == ("1",)
    assert found.reasons[4][0].text.startswith("1 40")
    named = detect(normal, batch, k=2, preset="paper", id=2, ignore=[0])
    assert named.table().columns.tolist() == ["rank", 2, "score", "flagged", "reasons", 0, 1]
    assert list(named.encoder.groups_) == ["1"]


def test_columns_of_the_batch_that_clash_get_a_line_below() -> None:
    rng = np.random.RandomState(0)
    names = ["score", "rank", "rank_", "flagged", "p_value", "row"]
    normal, batch = (pd.DataFrame(rng.normal(size=(n, 6)), columns=names) for n in (120, 30))
    plain = detect(normal, batch, preset="paper", n_jobs=1)
    assert plain.table().columns.tolist() == [
        *("rank", "row", "score", "flagged", "reasons"),
        *("score_", "rank__", "rank_", "flagged_", "p_value", "row_"),
    ]
    pd.testing.assert_series_equal(
        plain.table()["rank__"].sort_index(), batch["rank"], check_names=False
    )
    named = detect(normal, batch, preset="paper", id="rank", n_jobs=1)
    assert named.table().columns.tolist() == [
        *("rank", "rank__", "score", "flagged", "reasons"),
        *("score_", "rank_", "flagged_", "p_value", "row"),
    ]
    assert named.summary().columns.tolist() == named.table().columns[:5].tolist()
    rated = detect(normal, batch, fdr=0.01, n_jobs=1)
    assert "to flag a single row takes 2,999 known-normal rows" in rated.remark
    assert rated.table().columns.tolist() == [
        *("rank", "row", "score", "flagged", "reasons", "p_value", "false_at_most"),
        *("score_", "rank__", "rank_", "flagged_", "p_value_", "row_"),
    ]


def test_frames_and_files_of_any_kind_agree(tmp_path: Path) -> None:
    files = write_visits(tmp_path)
    normal, batch = read_table(files / "normal.csv"), read_table(files / "batch.csv")
    expected = detect(normal, batch, **PLAIN)
    for known, rows in (
        (str(files / "normal.csv"), files / "batch.parquet"),
        (pl.from_pandas(normal), pl.from_pandas(batch)),
        (normal, files / "batch.feather"),
    ):
        found = detect(known, rows, **PLAIN)
        np.testing.assert_array_equal(found.scores, expected.scores)
        pd.testing.assert_frame_equal(found.table(), expected.table(), check_dtype=False)


def test_it_is_what_the_steps_one_by_one_give(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    normal, batch = tables
    encoder = TabularEncoder(ignore=["visit"]).fit(pd.concat(tables))
    detector = QMS22Ensemble(random_state=0, n_jobs=1, contamination=1)
    rows = encoder.transform(batch)
    detector.fit(encoder.transform(normal), unlabeled=rows, groups=encoder.groups_)
    found = detect(normal, batch, k=8, id="visit", n_jobs=1)
    assert found.detector.offset_ == detector.offset_
    cells = encoder._typed_cells(batch)
    checks = learn_checks(encoder, encoder._typed_cells(normal), cells, 0).checks
    of_checks = checks.scores(checks.surprises(checks.read(cells)))
    checks.weigh(of_checks, sum(detector.weights_.values()))
    scores = detector.unlabeled_scores_ + checks.weight * of_checks
    assert checks.weight >= 1
    np.testing.assert_array_equal(found.scores, scores)
    np.testing.assert_array_equal(found.top, np.argsort(-scores, kind="stable")[:8])
    assert found.checks is not None
    np.testing.assert_array_equal(scores > found.checks.threshold, found.flagged)


def test_a_short_text_for_terminals_and_notebooks(found: Detection, by_rate: Detection) -> None:
    assert repr(found) == (
        "Detection: 8 of 150 rows flagged, at most 2 of them normal; contains anomalies"
    )
    n_flagged = len(by_rate.top)
    assert repr(by_rate).startswith(f"Detection: {n_flagged} of 150 rows flagged at fdr=0.3, ")
    assert f"at most {by_rate.false_at_most()} of them normal; contains anomalies" in repr(by_rate)
    most = by_rate.false_at_most()
    assert by_rate.answer == (
        f"{n_flagged} of 150 rows are flagged (false discovery rate 0.3); at most {most} of them "
        "are normal (90 % sure)."
    )
    assert found.answer == ("8 of 150 rows are flagged; at most 2 of them are normal (90 % sure).")
    html = found._repr_html_()
    assert html.count("<tr>") == 9
    assert found.table()["visit"].iloc[0] in html


def test_numbers_that_name_rows_are_not_rounded(capsys: pytest.CaptureFixture[str]) -> None:
    normal, batch = visits(40, 0)[["pulse"]], visits(30, 1)[["pulse"]]
    batch["order"] = 70_012_345.0 + np.arange(30)  # floats, since one is missing
    batch.loc[0, ["order", "pulse"]] = np.nan, 65.0
    batch.loc[7, "pulse"] = 300.0
    found = detect(normal, batch, id="order", k=1, preset="paper")
    assert "<td>70012352</td>" in found._repr_html_()
    print_found(found)
    assert "70012352" in capsys.readouterr().out


def test_text_of_the_table_stays_text_in_notebooks() -> None:
    rng = np.random.RandomState(0)
    evil = "<script>alert(1)</script>\u202e"
    normal, batch = (pd.DataFrame({evil: rng.normal(size=n), "b": rng.rand(n)}) for n in (90, 9))
    batch["name"] = evil
    html = detect(normal, batch, id="name", preset="paper")._repr_html_()
    assert "<script" not in html
    assert "\u202e" not in html
    assert "&lt;script&gt;" in html


def test_of_a_large_batch_the_page_holds_the_first_and_all_flagged_rows(
    found: Detection, by_rate: Detection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(page, "MOST_ROWS_ON_PAGE", 10)
    header, _, columns = read_page(found.report(tmp_path / "a.html"))
    assert (header["nRows"], header["nKept"]) == (150, 10)
    assert sum(header["scores"]["counts"]) == 150
    assert columns["rank"] == list(range(1, 11))
    header, _, _ = read_page(by_rate.report(tmp_path / "b.html"))
    assert header["nKept"] == header["nFlagged"] == len(by_rate.top) > 10


def test_dates_in_text_get_a_histogram_of_dates(tmp_path: Path) -> None:
    rng = np.random.RandomState(0)
    for name, n_rows in (("normal.csv", 300), ("batch.csv", 60)):
        days = pd.Timestamp("2024-12-01") + pd.to_timedelta(rng.randint(0, 60, n_rows), unit="D")
        table = pd.DataFrame({"day": days.strftime("%d.%m.%Y"), "a": rng.normal(size=n_rows)})
        table.to_csv(tmp_path / name, index=False)
    found = detect(tmp_path / "normal.csv", tmp_path / "batch.csv", k=5, preset="paper")
    header, array, columns = read_page(found.report(tmp_path / "page.html"))
    day = next(feature for feature in header["features"] if feature["name"] == "day")
    assert day["kind"] == "date"
    assert pd.Timestamp(day["edges"][0], unit="s") <= pd.Timestamp("2024-12-02")
    assert sum(day["normal"]) == 300
    assert columns["day"] == found.table()["day"].tolist()  # as written
    spec = next(spec for spec in header["columns"] if spec["name"] == "day")
    by_time = [spec["levels"][at] for at in np.argsort(array(spec["keys"])[:-1])]
    assert by_time == sorted(by_time, key=lambda text: text.split(".")[::-1])


def test_a_page_names_the_run(found: Detection, tmp_path: Path) -> None:
    truth = np.isin(np.arange(N_BATCH), SICK)
    path = found.report(tmp_path / "p.html", title="Visits", truth=truth, facts={"who": "me"})
    text = path.read_text("utf-8")
    for words in ("Visits", "me", "QMS22", qms22.__version__, "as flagged by the top 8"):
        assert words in text
    header, _, columns = read_page(path)
    assert columns["truth"].count("outlier") == header["truth"]["nOutliers"] == len(SICK)
    assert [feature["name"] for feature in header["features"]] == [
        *("day", "age", "weight", "pulse", "ward", "urgent")
    ]
    with pytest.raises(ValueError, match="truth must hold True or 1 for outliers"):
        found.report(tmp_path / "page.html", truth=["0"] * N_BATCH)
    with pytest.raises(ValueError, match=r"truth must be of shape \(150,\)"):
        found.report(tmp_path / "q.html", truth=truth[1:])


def test_a_report_does_not_replace_a_table(tmp_path: Path) -> None:
    table = tmp_path / "batch.csv"
    pd.DataFrame({"a": np.arange(40.0) ** 2}).to_csv(table, index=False)
    before = table.read_bytes()
    found = detect(table, table, k=3, preset="paper")
    with pytest.raises(ValueError, match=r"a report is an .html file; got '.*batch.csv'"):
        found.report(table)
    assert table.read_bytes() == before


def test_later_dates_alone_are_no_reason() -> None:
    rng = np.random.RandomState(0)
    days = pd.date_range("2026-01-01", periods=200)
    normal = pd.DataFrame({"day": days[:150], "a": rng.normal(size=150), "b": rng.normal(size=150)})
    batch = pd.DataFrame({"day": days[150:], "a": rng.normal(size=50), "b": rng.normal(size=50)})
    found = detect(normal, batch, k=5, preset="paper")
    names = found.encoder.get_feature_names_out().tolist()
    assert names == ["day (weekday sine)", "day (weekday cosine)", "a", "b"]
    day = found.encoder.columns_[0]
    assert day.note == "most of the batch is outside the normal dates; only weekday used"
    # Ten days say little about weekdays.
    few = detect(normal[:10], batch, k=5, preset="paper")
    assert "day" not in few.encoder.groups_
    assert few.encoder.columns_[0].note == "most of the batch is outside the normal dates; ignored"
    with pytest.raises(ValueError, match="no column is of use but column 'day'"):
        detect(normal[["day"]][:10], batch[["day"]], k=5, preset="paper")
    earlier = detect(normal, batch.assign(day=days[:50]), k=5, preset="paper")
    assert len(earlier.encoder.groups_["day"]) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_samples": 0}, "max_samples must be a whole number of at least 1"),
        ({"k": 0}, "k must be a whole number"),
        ({"k": 3, "fdr": 0.1}, "give one of them"),
        ({"fdr": 1.0}, r"fdr must be a share in \(0, 1\)"),
        ({"preset": "best"}, "preset must be one of"),
        ({"ignore": "sick"}, r"ignore must be a sequence of columns; write \['sick'\]"),
        ({"id": "name"}, "no column 'name' for the names of rows"),
        ({"missing": "guess"}, "missing must be one of"),
    ],
)
def test_options_that_make_no_sense(
    tables: tuple[pd.DataFrame, pd.DataFrame], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        detect(*tables, **({"id": "visit", "preset": "paper"} | options))


def test_two_columns_of_one_name_are_refused(
    tables: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    normal, batch = tables
    twice = batch.set_axis([*batch.columns[:-1], "age"], axis=1)
    with pytest.raises(ValueError, match="2 columns named 'age'"):
        detect(normal, twice)


@pytest.mark.parametrize(
    ("missing", "values", "words"),
    [
        ("error", [np.nan, 1.0, 2.0], r"1 column has missing \(NaN\) values"),
        ("error", [np.inf, 1.0, 2.0], r"1 column has infinite \(inf\) values: 'pulse' \(10"),
        ("drop", [np.nan] * 3, "every row has missing values|no column .* is of use"),
    ],
)
@pytest.mark.parametrize("role", ["normal", "unlabeled"])
def test_messages_name_the_table(
    role: str, missing: str, values: list[float], words: str, tmp_path: Path
) -> None:
    frames = {"normal": visits(30, 0)[["pulse"]], "unlabeled": visits(30, 1)[["pulse"]]}
    frames[role]["pulse"] = values * 10
    paths = [tmp_path / f"{name}.parquet" for name in frames]
    for path, frame in zip(paths, frames.values(), strict=True):
        frame.to_parquet(path)
    name = "the normal frame" if role == "normal" else "the batch"
    with pytest.raises(ValueError, match=rf"^{name}: ({words})"):
        detect(*frames.values(), missing=missing)
    with pytest.raises(ValueError, match=rf"{role}.parquet: ({words})"):
        detect(*paths, missing=missing)
    parts = [FrameTable(frame, "visits.csv") for frame in frames.values()]
    with pytest.raises(ValueError, match=rf"^visits.csv \({role}\): ({words})"):
        detect(*parts, missing=missing)


def test_messages_of_a_model_name_the_table(found: Detection, tmp_path: Path) -> None:
    model = SavedModel(found.detector, found.encoder, {})
    path = tmp_path / "new.csv"
    table = visits(30, 2)
    table.to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"new.csv has no column 'who' .* its columns are 'visit'"):
        score(model, path, id="who")
    table[["visit"]].to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"new.csv: the table lacks columns 'age', 'day', 'pulse'"):
        score(model, path)


def test_a_model_takes_the_usual_value_for_a_column_that_is_not_there(
    found: Detection, tmp_path: Path
) -> None:
    model = SavedModel(found.detector, found.encoder, {})
    path = tmp_path / "new.csv"
    table = visits(30, 2)
    usual = float(found.encoder.typical_row_[found.encoder.groups_["pulse"][0]])
    expected = score(model, table.assign(pulse=usual), k=3)
    table.drop(columns=["pulse", "visit"]).to_csv(path, index=False)
    scored = score(model, path, k=3)
    assert "new.csv lacks 'pulse', which the model uses" in scored.notes[0]
    np.testing.assert_array_equal(scored.scores, expected.scores)
    # A text in place of a number is as little a value.
    table.assign(pulse="fast").to_csv(path, index=False)
    np.testing.assert_array_equal(score(model, path, k=3).scores, expected.scores)


@pytest.mark.parametrize("k", [0, -1, 1.5, "3"])
def test_a_model_flags_a_whole_number_of_rows(found: Detection, k: Any) -> None:
    model = SavedModel(found.detector, found.encoder, {})
    with pytest.raises(ValueError, match="k must be a whole number of at least 1"):
        score(model, visits(30, 2), k=k)
