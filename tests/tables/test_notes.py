"""Notes about several tables."""

from __future__ import annotations

from qms22.tables.texts.words import join_notes


def test_the_same_about_several_tables_is_said_once() -> None:
    parts = [f"data/{at}.csv" for at in range(7)]
    notes = [f"{path}: 2 lines above the header left out ('Month {path}')" for path in parts]
    notes += ["left out: memo (text)", *(f"{path} has its header once more" for path in parts[:2])]
    notes += ["other.csv: 1 line above the header left out ('Month')", "a.csv: lost", "b.csv: lost"]
    assert join_notes(notes) == [
        (
            "data/0.csv, data/1.csv, data/2.csv, data/3.csv, data/4.csv and 2 more: 2 lines above "
            "the header left out ('Month data/0.csv', …)"
        ),
        "left out: memo (text)",
        "data/0.csv, data/1.csv have their header once more",
        "other.csv: 1 line above the header left out ('Month')",
        "a.csv, b.csv: lost",
    ]


def test_other_notes_stay() -> None:
    notes = [
        "columns of a.csv and b.csv are matched by their order",
        "the batch is small",
        "a.csv: column 'x' is not there",
        "b.csv: column 'y' is not there",
    ]
    assert join_notes(notes) == notes
