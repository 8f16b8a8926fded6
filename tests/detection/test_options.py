"""Options of `qms22.detect` and `qms22.score` that are wrong, and little to learn from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from visits import visits

import qms22
from qms22.models import save_model


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    return visits(60, 0), visits(40, 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ignore": 5}, r"^ignore must be a sequence of columns; write \[5\]$"),
        ({"ignore": ["colour"]}, "^there is no column 'colour' to ignore; the columns are 'visit'"),
        ({"ignore": ["colour (days)"]}, r"^there is no column 'colour \(days\)' to ignore"),
        ({"kinds": ["age"]}, r"^kinds must have a kind for each column, .* got \['age'\]$"),
        ({"kinds": {"age": 3}}, "^column 'age' cannot be read as 3; give one of the kinds number"),
        ({"missing": "guess"}, "^missing must be one of"),
        ({"id": ["visit"]}, r"^id must be the name of one column; got \['visit'\]$"),
        ({"id": 5}, "^the batch has no column 5 for the names of rows; its columns are 'visit'"),
        ({"id": "visit", "by": "Visit"}, "^by='visit' and id='visit' name the same column; leave"),
        ({"ignore": ["day"], "time": "day"}, "^time='day' is a column to ignore; leave one of"),
        ({"kinds": {"ward": "ignore"}, "by": "ward"}, "^by='ward' is a column to ignore"),
        ({"seed": "x"}, "^seed must be None or a whole number from 0 to 2³² − 1; got 'x'$"),
        ({"seed": -1}, "^seed must be None or a whole number .* got -1$"),
        ({"n_jobs": 1.5}, "^n_jobs must be a number of threads, or -1 for all cores; got 1.5$"),
        ({"history": 3}, "^history must be a path or None; got 3$"),
        ({"k": 2.5}, "^k must be a whole number of at least 1; got 2.5$"),
        ({"fdr": 2}, r"^fdr must be a share in \(0, 1\); got 2$"),
    ],
)
def test_messages_name_the_parameter(
    tables: tuple[pd.DataFrame, pd.DataFrame], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        qms22.detect(*tables, **options)


def test_rows_that_belong_together_must_be_known_from_both_tables(
    tables: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    normal, batch = tables
    with pytest.raises(ValueError, match=r"^by='nurse': the normal frame has no such column; name"):
        qms22.detect(normal, batch.assign(nurse="A"), by="nurse")


def test_a_detector_names_its_random_state() -> None:
    parameters: dict[str, Any] = {"random_state": "x"}
    with pytest.raises(ValueError, match=r"^random_state must be None or a whole number .* 'x'$"):
        qms22.QMS22(**parameters).fit(np.ones((20, 2)), unlabeled=np.ones((5, 2)))


def test_columns_to_ignore_are_matched_as_columns_are(
    tables: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    normal, batch = tables
    known = normal.assign(nurse=np.arange(60) % 7)
    ignore = ["Visit", "WEIGHT", "day (days)", "nurse"]
    found = qms22.detect(known, batch, ignore=ignore, k=3)
    names = found.encoder.get_feature_names_out().tolist()
    assert "day (weekday sine)" in names
    assert not {"weight", "day (days)", "nurse"} & set(names)
    assert not any("left out" in note for note in found.notes)


def test_few_known_normal_rows(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    normal, batch = (table[["age", "weight", "pulse"]] for table in tables)
    with pytest.raises(ValueError, match=r"^5 known-normal rows are too few .* give at least 7$"):
        qms22.detect(normal[:5], batch)
    (note,) = qms22.detect(normal[:10], batch, k=3).notes
    assert note.startswith("10 known-normal rows are few: by chance about 1 in 11 normal rows")
    assert not qms22.detect(normal, batch, k=3).notes


def test_dropped_rows_of_the_batch_are_told(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    normal, batch = tables
    batch = batch.copy()
    batch.loc[[0, 7], "pulse"] = np.nan
    batch.loc[39, "pulse"] = 500.0
    marks = pd.DataFrame({"visit": [batch["visit"][3]], "mark": ["normal"]})
    found = qms22.detect(normal, batch, id="visit", missing="drop", k=1, marks=marks)
    assert found.notes[-1] == "2 of 40 rows to search have missing values and were dropped"
    table = found.table()
    assert table["visit"].iloc[0] == batch["visit"][39]
    assert set(batch["visit"]) - set(table["visit"]) == {batch["visit"][0], batch["visit"][7]}


def test_a_notebook_shows_the_most_suspicious_rows_if_none_is_flagged(
    tables: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    found = qms22.detect(*tables, id="visit", k=1)
    assert "not certain" not in found._repr_html_()
    found.flagged[:] = False
    html = found._repr_html_()
    assert "most suspicious, but not certain" in html
    named = [f"<td>{name}</td>" in html for name in found.table()["visit"]]
    assert named == [True] * 10 + [False] * 30


def test_a_model_is_a_file_or_what_was_read_from_one(
    tables: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path
) -> None:
    normal, batch = tables
    found = qms22.detect(normal, batch, k=3)
    path = tmp_path / "model.skops"
    save_model(path, found.detector, encoder=found.encoder, checks=found.checks)
    np.testing.assert_array_equal(qms22.score(path, batch, k=3).flagged, found.flagged)
    batch.to_csv(tmp_path / "batch.csv", index=False)
    with pytest.raises(ValueError, match=r"batch.csv' is not a model of qms22"):
        qms22.score(tmp_path / "batch.csv", batch)
    with pytest.raises(ValueError, match=r"^model must be a model file .* got Detection, so save"):
        qms22.score(found, batch)  # type: ignore[arg-type]


def test_messages_tell_two_frames_apart(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    normal, batch = tables
    with pytest.raises(ValueError, match=r"^the normal frame and the batch have no column in comm"):
        qms22.detect(normal, batch.add_prefix("new "))
    with pytest.raises(ValueError, match=r"^the batch has 2 columns named 'age'"):
        qms22.detect(normal, batch.rename(columns={"pulse": "age"}))
    found = qms22.detect(normal, batch.drop(columns="pulse"), k=3)
    assert found.notes[0].startswith("column 'pulse' of the normal frame is left out, as the batch")
