"""Histories of batches: what is remembered, and what is learned from."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from histories import ENTRY, FAST, ROWS, accepted, filled, readings

from qms22 import BatchHistory, Detection, detect
from qms22.detection import past_batches
from qms22.detection.history import history_file as history
from qms22.detection.history import history_rows
from qms22.detection.history.history_rows import digest, from_parquet, to_parquet
from qms22.tables import open_table


def test_an_entry_comes_back_as_it_was(tmp_path: Path) -> None:
    batches = BatchHistory(tmp_path / "h.sqlite")
    assert batches.entries() == ()
    assert not (tmp_path / "h.sqlite").exists()
    assert batches.remember(ENTRY, "digest", ROWS, 1) == (replace(ENTRY, number=1),)
    assert batches.entries() == (replace(ENTRY, number=1),)


def test_a_search_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    normal, batch = readings(300, 1), readings(150, 2)
    batch["x"] += 8.0
    # Beyond what all of the batch does.
    batch.loc[:5, "y"] = 40.0
    with pytest.warns(UserWarning, match="drifted"):
        found = detect(normal, batch, fdr=0.2, history=path, n_jobs=1)
    assert found.verdict is not None
    (entry,) = found.history
    assert entry == BatchHistory(path).entries()[0]
    assert (entry.number, entry.decision, entry.n_rows, entry.n_normal) == (1, "drift", 150, 300)
    assert entry.sentence == str(found.verdict)
    assert entry.n_flagged == np.count_nonzero(found.flagged)
    assert entry.fewest_outliers == found.verdict.fewest_outliers
    assert entry.fewest_outliers is not None
    assert [name for name, _ in entry.moved] == ["x"]
    assert entry.settings["fdr"] == 0.2
    assert entry.settings["preset"] == "recommended"
    assert entry.accepted is None


def test_the_same_batch_again_replaces_its_entry(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    normal = readings(300, 1)
    for seed in (2, 3):
        detect(normal, readings(150, seed), k=5, history=path, **FAST)
    with pytest.warns(UserWarning, match="entry 1 was replaced"):
        found = detect(normal, readings(150, 2), k=7, history=path, **FAST)
    assert [(entry.number, entry.n_flagged) for entry in found.history] == [(2, 5), (1, 7)]
    listed = BatchHistory(path).entries()
    assert [(entry.number, entry.n_flagged) for entry in listed] == [(1, 7), (2, 5)]


def test_accepted_batches_are_known_normal(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    normal, batch = readings(200, 1), readings(100, 9)
    earlier = [readings(150, seed) for seed in (2, 3)]
    for rows in earlier:
        detect(normal, rows, k=5, history=path, **FAST)
        BatchHistory(path).accept(len(BatchHistory(path).entries()))
    found = detect(normal, batch, k=5, history=path, **FAST)
    assert found.notes == ("known-normal: the normal frame + 2 accepted batches (300 rows)",)
    assert found.history[-1].n_normal == 500
    newest_first = pd.concat([normal, *reversed(earlier)], ignore_index=True)
    expected = detect(newest_first, batch, k=5, **FAST)
    np.testing.assert_array_equal(found.scores, expected.scores)
    BatchHistory(path).take_back(2)
    with pytest.warns(UserWarning, match="entry 3 was replaced"):
        found = detect(normal, batch, k=5, history=path, **FAST)
    assert found.notes == ("known-normal: the normal frame + 1 accepted batch (150 rows)",)


def test_a_batch_is_never_known_normal_in_its_own_search(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    normal, batch = readings(200, 1), readings(100, 2)
    alone = detect(normal, batch, k=5, history=path, **FAST)
    BatchHistory(path).accept(1)
    with pytest.warns(UserWarning, match="entry 1 was replaced"):
        again = detect(normal, batch, k=5, history=path, **FAST)
    np.testing.assert_array_equal(again.scores, alone.scores)
    assert again.history[-1].accepted is not None


def searched(path: Path, batch: pd.DataFrame) -> tuple[Detection, list[str]]:
    """Search a batch to accept it, and return the warnings too."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = detect(readings(400, 1), batch, fdr=0.2, history=path, accept=True, n_jobs=1)
    return found, [str(each.message) for each in told]


def test_only_a_clean_batch_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    found, told = searched(path, readings(200, 2))
    assert found.history[-1].accepted is not None, told
    bad = readings(200, 3)
    bad.loc[:20, "x"] = 900.0
    found, told = searched(path, bad)
    assert found.history[-1].accepted is None
    assert "the batch was not accepted as known-normal: its verdict is not fine" in told
    with pytest.raises(ValueError, match="needs a history and a false discovery rate"):
        detect(readings(400, 1), bad, history=path, accept=True, preset="paper")


def test_flagged_rows_keep_a_batch_from_being_accepted(tmp_path: Path) -> None:
    found, _ = searched(tmp_path / "h.sqlite", readings(200, 2))
    flagged = np.zeros(200, dtype=bool)
    assert past_batches.is_acceptable(found)
    flagged[7] = True
    with pytest.warns(UserWarning, match="known-normal: 1 of its rows is flagged"):
        assert not past_batches.is_acceptable(replace(found, flagged=flagged))


def test_rows_marked_as_anomalies_are_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    batch = readings(100, 2)
    batch.loc[[3, 5], "x"] = 500.0
    marks = batch.loc[[3, 5, 6]].assign(row=[3, 5, 6], mark=["anomaly", "anomaly", "normal"])
    detect(readings(200, 1), batch, k=5, marks=marks, history=path, **FAST)
    assert BatchHistory(path).accept(1).n_marked == 2
    (kept,) = BatchHistory(path).accepted_rows("").values()
    pd.testing.assert_frame_equal(kept, batch.drop([3, 5]).reset_index(drop=True))


def test_rows_wait_until_ten_others_have_come(tmp_path: Path) -> None:
    batches = filled(tmp_path / "h.sqlite", history.MOST_WAITING)
    batches.accept(1)
    batches = filled(tmp_path / "h.sqlite", history.MOST_WAITING + 2)
    # Batch 1 is accepted, ten wait, and one is out.
    with pytest.raises(ValueError, match=r"rows of batch 2 \(1.csv\) are no longer kept"):
        batches.accept(2)
    assert batches.accept(3).accepted is not None
    with pytest.raises(ValueError, match="has no batch 99; 'qms22 history"):
        batches.accept(99)
    with pytest.raises(ValueError, match="has no batch 99"):
        batches.take_back(99)
    assert list(batches.accepted_rows("")) == [1, 3]
    assert list(batches.accepted_rows("digest 0")) == [3]


def test_batches_that_lack_columns_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    normal, batch = readings(200, 1), readings(100, 2)
    for columns in (["mode", "y", "x"], ["x", "y"]):
        detect(normal[columns], readings(90, len(columns))[columns], k=5, history=path, **FAST)
        BatchHistory(path).accept(len(BatchHistory(path).entries()))
    # Names of columns may differ in case.
    batch = batch.rename(columns=str.upper)
    found = detect(normal, batch, k=5, history=path, **FAST)
    assert "accepted batches that lack columns are left out: 2" in found.notes
    assert found.history[-1].n_normal == 290
    assert found.normal is not None
    assert not found.normal.isna().to_numpy().any()


def test_the_newest_accepted_batches_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "h.sqlite"
    normal = readings(200, 1)
    for seed in (2, 3, 4):
        detect(normal, readings(100, seed), k=5, history=path, **FAST)
        BatchHistory(path).accept(seed - 1)
    monkeypatch.setattr(past_batches, "MOST_ACCEPTED", 250)
    found = detect(normal, readings(100, 9), k=5, history=path, **FAST)
    assert found.notes == (
        "known-normal: the normal frame + 2 accepted batches (200 rows), the newest of 3",
    )


def test_columns_of_several_types_are_joined() -> None:
    normal = pd.DataFrame(
        {"a": [1, 2], "b": [1.5, 2.0], "c": ["u", "v"], "d": [True, False], "e": [1, 2]},
        index=["first", "second"],
    )
    more = pd.DataFrame(
        {"a": [3.0, None], "b": ["7", "unknown"], "c": [None, None], "d": [True, True]}
    )
    joined = past_batches._join(normal, [more])
    assert joined.index.tolist() == ["first", "second", 2, 3]
    assert joined["a"].tolist()[:3] == [1.0, 2.0, 3.0]
    assert joined["b"].tolist() == ["1.5", "2", "7", "unknown"]
    assert joined["c"].tolist()[:2] == ["u", "v"]
    assert joined["d"].tolist() == [True, False, True, True]
    assert joined["e"].isna().tolist() == [False, False, True, True]
    assert joined.dtypes.map(lambda dtype: dtype.kind).tolist()[:2] == ["f", "O"]


def test_rows_come_back_from_parquet() -> None:
    frame = pd.DataFrame(
        {
            "number": [1.5, np.nan],
            "whole": [1, 2],
            "text": ["ä", None],
            "level": pd.Categorical(["a", "b"]),
            "date": pd.to_datetime(["2026-01-01", "2026-01-02"]),
            "mixed": [1, "one"],
            "list": [[1, 2], None],
        }
    )
    back = from_parquet(to_parquet(frame))
    assert back["mixed"].tolist() == ["1", "one"]
    for name in ("number", "whole", "text", "level", "date"):
        assert back[name].dropna().tolist() == frame[name].dropna().tolist()
        assert back[name].isna().tolist() == frame[name].isna().tolist()


def test_of_a_large_batch_rows_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_rows, "MOST_CELLS", 60)
    table = open_table(readings(500, 1))
    kept = history_rows.rows_to_keep(table, ["x", "mode"], [0, 1])
    assert kept.shape == (30, 2)
    assert kept.index.min() > 1
    assert kept.index.max() > 100


def test_digests_tell_batches_apart(tmp_path: Path) -> None:
    frame = readings(50, 1)
    same = digest(open_table(frame))
    assert digest(open_table(frame.set_axis(range(50, 100), axis=0))) == same
    others = [
        frame[::-1],
        frame[["y", "x", "mode"]],
        frame[:49],
        frame.rename(columns={"x": "z"}),
        frame.assign(mode=["run"] * 50),
        frame.assign(mode=[["list"]] * 50),
    ]
    digests = [same, *(digest(open_table(other)) for other in others)]
    assert len(set(digests)) == len(digests)
    frame.to_parquet(tmp_path / "batch.parquet", row_group_size=7)
    assert digest(open_table(tmp_path / "batch.parquet")) == same


def test_enough_accepted_batches_judge_the_next_one(tmp_path: Path) -> None:
    path = accepted(tmp_path / "h.sqlite", 22).path
    found = detect(readings(300, 1), readings(150, 2), history=path, **FAST)
    assert found.verdict is not None
    assert (found.verdict.decision, found.verdict.n_past) == ("fine", 22)
    facts = found.history[-1].over_time
    assert facts is not None
    assert facts == BatchHistory(path).entries()[-1].over_time
    assert facts["level"] == facts["spent"] == pytest.approx(0.1 / 21)
    assert found.notes[-1] == (
        "compared with 22 accepted batches; an alarm needs p ≤ 0.0048, and 95 % of the budget of "
        "false alarms of this history is left (rate 0.1)"
    )
    # An alarm, after which the next batch may cost as much and has twice the level.
    batch = readings(150, 3)
    batch["x"] += 8.0
    drifted = detect(readings(300, 1), batch, history=path, **FAST)
    assert drifted.verdict is not None
    assert (drifted.verdict.decision, drifted.history[-1].moved[0][0]) == ("drift", "x")
    assert [column.name for column in drifted.verdict.moved] == ["x"]
    third = detect(readings(300, 1), readings(150, 4), history=path, **FAST).history[-1].over_time
    assert third is not None
    assert third["level"] == pytest.approx(2 * third["spent"])
    # Searched again, a batch costs once.
    with pytest.warns(UserWarning, match="entry 23 was replaced"):
        again = detect(readings(300, 1), readings(150, 2), history=path, **FAST).history[-1]
    assert again.over_time is not None
    assert again.over_time["compared_with"] == 22


def test_too_few_batches_are_judged_by_their_rows(tmp_path: Path) -> None:
    path = accepted(tmp_path / "h.sqlite", 19).path
    found = detect(readings(300, 1), readings(150, 2), history=path, **FAST)
    assert found.verdict is not None
    assert (found.verdict.n_past, found.history[-1].over_time) == (0, None)
    assert found.history[-1].profile is not None


def test_an_incident_never_teaches(tmp_path: Path) -> None:
    batches = accepted(tmp_path / "h.sqlite", 21)
    normal, batch = readings(300, 1), readings(150, 2)
    detect(normal, batch, history=batches.path, **FAST)
    batches.accept(22)
    entry = batches.tag_incident(22, " half of it is missing ")
    assert (entry.incident, entry.accepted) == ("half of it is missing", None)
    assert batches.entries()[-1] == entry
    assert 22 not in batches.accepted_rows("")
    sentence = r"batch 22 \(the batch\) is tagged as an incident: half of it is missing; an"
    with pytest.raises(ValueError, match=sentence.replace("the batch", ".*")):
        batches.accept(22)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        again = detect(normal, batch, history=batches.path, accept=True, **FAST)
    refused = "the batch was not accepted as known-normal: it is tagged as an incident: half of"
    assert any(str(each.message).startswith(refused) for each in told)
    assert (again.history[-1].accepted, again.history[-1].incident) == (None, entry.incident)
    assert 22 not in batches.accepted_rows("")
    # It is no batch to compare with, and its cost is given back; it counts as found.
    facts = detect(normal, readings(150, 3), history=batches.path, **FAST).history[-1].over_time
    assert facts is not None
    assert (facts["compared_with"], facts["spent"]) == (21, pytest.approx(0.1 / 21))
    assert facts["level"] == 2 * facts["spent"]
    assert batches.take_back(22).incident is None
    with pytest.raises(ValueError, match="no longer kept"):
        batches.accept(22)


@pytest.mark.parametrize("n_batches", [0, 22])
def test_an_excepted_column_may_move(n_batches: int, tmp_path: Path) -> None:
    batches = accepted(tmp_path / "h.sqlite", n_batches)
    normal, batch = readings(300, 1), readings(150, 3)
    batch["x"] += 8.0
    batches.add_exception("x", "new price list", "9998-12-31")
    found = detect(normal, batch, history=batches.path, **FAST)
    assert found.verdict is not None
    assert (found.verdict.decision, found.n_flagged, found.verdict.moved) == ("fine", 0, ())
    assert "x" not in found.encoder.groups_
    (noticed,) = (each for each in found.noticed if each.kind == "exception")
    assert noticed.text.startswith("Column 'x' has moved (median ")
    assert noticed.text.endswith("), and may move until 9998-12-31: new price list.")
    assert all(rule.is_met for rule in found.check(fail_on=["drift", "anomalies", "schema"]))
    batches.end_exception("x")
    with pytest.warns(UserWarning, match="was replaced"):
        found = detect(normal, batch, history=batches.path, **FAST)
    assert found.history[-1].decision == "drift"


def test_an_exception_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = accepted(tmp_path / "h.sqlite", 1)
    monkeypatch.setattr(history, "today", lambda: "2026-11-18")
    batches.add_exception("x", "a", "2026-11-30")
    kept = batches.add_exception("x", "b", "2026-11-18")
    assert batches.exceptions() == (kept,)
    monkeypatch.setattr(history, "today", lambda: "2026-11-19")
    assert batches.exceptions() == ()
    for arguments, sentence in (
        (("x", "c", "2026-11-18"), "until must be today or later; got 2026-11-18, and today is"),
        (("x", "c", "soon"), "until must be a day such as 2026-12-31; got 'soon'"),
        (("x", "  ", "2026-12-31"), "a reason is needed"),
        (("z", "c", "2026-12-31"), "no compared column 'z'; it has x, y, mode"),
    ):
        with pytest.raises(ValueError, match=sentence):
            batches.add_exception(*arguments)
    with pytest.raises(ValueError, match="column 'z' has no exception; there are exceptions of x"):
        batches.end_exception("z")
    with pytest.raises(ValueError, match="a reason is needed"):
        batches.tag_incident(1, "")
    with pytest.raises(ValueError, match="has no batch 7"):
        batches.tag_incident(7, "why")
