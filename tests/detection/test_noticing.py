"""What is noticed about a batch as a whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from weeks import day, orders

from qms22 import BatchHistory, Detection, detect

NORMAL = orders("2026-02-02", 28, 0, 10_000)


def search(batch: pd.DataFrame, normal: pd.DataFrame = NORMAL, **options: object) -> Detection:
    return detect(normal, batch, id="order", n_jobs=1, **options)  # type: ignore[arg-type]


def noticed(found: Detection) -> dict[str, str]:
    return {each.kind: each.text for each in found.noticed}


def test_nothing_about_an_ordinary_day() -> None:
    found = search(day(1))
    assert found.noticed == ()
    dates = found.to_dict()["dates"]
    assert dates["column"] == "time"
    assert dates["newest"].startswith("2026-03-02 19:")
    assert dates["normal_newest"].startswith("2026-03-01 19:")


@pytest.mark.parametrize("n_rows", [60, 800])
def test_rows_of_a_day(n_rows: int) -> None:
    many = pd.concat([day(1)] * 4, ignore_index=True).assign(order=lambda t: np.arange(len(t)))
    found = search(many[:n_rows])
    text = f"The batch has {n_rows} rows, {n_rows} a day by 'time'; known-normal days have 200."
    assert noticed(found)["volume"] == text


def test_one_day_is_compared_with_another_one() -> None:
    one, cut = day(1), day(2).iloc[:28]
    rule = search(cut, one, k=1).check(fail_on=["volume"])[0]
    text = "The batch has 28 rows, 28 a day by 'time'; known-normal days have 200."
    assert rule == ("volume", False, text, None)
    assert search(day(2)[:80], one, k=1).check(fail_on=["volume"])[0].is_met


def test_a_rule_says_that_nothing_was_compared() -> None:
    undated = [table.drop(columns="time") for table in (day(2)[:28], day(1))]
    found = search(*undated, k=1)
    [rule] = found.check(fail_on=["volume"])
    assert rule.is_met
    assert rule.text.startswith("not checked: ")
    data = found.to_dict([rule])
    assert data["policy"]["text"] == "policy met: volume (not checked)"
    [usual] = search(day(1)).check(fail_on=["volume"])
    assert usual.text == "The number of rows is as usual."


def test_rows_of_the_same_days_may_be_a_draw() -> None:
    assert "volume" not in noticed(search(NORMAL[::10].assign(order=range(0, 5600, 10))))


def test_rows_without_dates() -> None:
    plain = NORMAL.drop(columns="time")
    few = day(1).drop(columns="time")[:50]
    text = "The batch has 50 rows, the known-normal table 5,600."
    assert noticed(search(few, plain)) == {"volume": text}
    assert not noticed(search(day(1).drop(columns="time"), plain))


def test_undated_rows_of_one_export(tmp_path: Path) -> None:
    plain = day(1).drop(columns="time")
    for name, rows in (
        ("2026-03-01", plain),
        ("2026-03-02", plain[:28]),
        ("2026-03-03", plain[5:]),
    ):
        rows.to_csv(tmp_path / f"orders-{name}.csv", index=False)
    plain[:28].to_csv(tmp_path / "today.csv", index=False)

    def volume(name: str) -> tuple[bool, str]:
        found = detect(tmp_path / "orders-2026-03-01.csv", tmp_path / name, k=1, n_jobs=1)
        [rule] = found.check(fail_on=["volume"])
        return rule.is_met, rule.text

    text = "The batch has 28 rows; the export before it, the known-normal table, has 200."
    assert volume("orders-2026-03-02.csv") == (False, text)
    assert volume("orders-2026-03-03.csv") == (True, "The number of rows is as usual.")
    # What is known of another kind of file may be any number of rows.
    assert volume("today.csv")[1].startswith("not checked: ")
    # Rows of one file, as with a marker, may be parted in any way.
    assert volume("orders-2026-03-01.csv")[1].startswith("not checked: ")


def test_rows_of_earlier_batches(tmp_path: Path) -> None:
    history = tmp_path / "h.sqlite"
    plain = NORMAL.drop(columns="time")[:400]
    for number in (1, 2, 4):
        batch = day(number).drop(columns="time")[:150]
        assert "volume" not in noticed(search(batch, plain, history=history))
    found = search(day(7).drop(columns="time")[:60], plain, history=history)
    assert noticed(found)["volume"] == "The batch has 60 rows; earlier batches have 150."
    assert found.noticed[0].facts == {"rows": 60, "normal_rows": 400, "usual": 150.0}
    # An incident does not say what is usual, and two batches are too few.
    BatchHistory(history).tag_incident(1, "a test")
    with pytest.warns(UserWarning, match="was replaced"):
        found = search(day(7).drop(columns="time")[:60], plain, history=history)
    assert "volume" not in noticed(found)


def test_columns() -> None:
    batch = day(1).rename(columns={"country": "channel"}).assign(total="n/k", note="x")
    found = search(batch)
    texts = [each.text for each in found.noticed if each.kind == "schema"]
    assert texts == [
        "Columns 'channel', 'note' are new.",
        "Column 'country' is gone.",
        "Column 'total' holds texts; before it held numbers.",
    ]
    assert found.noticed[-1].facts == {"change": "kind", "is": "text", "was": "number"}
    assert not noticed(search(day(1).assign(note="x"), ignore=["note"]))


def test_keys_and_rows_that_are_sent_again() -> None:
    batch = day(1)
    batch.loc[[3, 4], "order"] = batch.loc[5, "order"]
    text = "Column 'order' is no longer unique: 1 value occurs more than once, such as 21005."
    assert noticed(search(batch))["key"] == text
    names = batch.assign(order=batch["order"].map("A{}".format))
    known = NORMAL.assign(order=NORMAL["order"].map("A{}".format))
    assert noticed(search(names, known))["key"].endswith(" more than once, such as 'A21005'.")
    again = pd.concat([day(1), NORMAL[-20:]], ignore_index=True)
    text = "20 rows are sent again: the known-normal table has the same."
    assert noticed(search(again))["resent"] == text


def test_missing_cells() -> None:
    batch = day(1)
    batch.loc[[7, 9], "price"] = np.nan
    text = "Column 'price' has 2 missing cells; the known-normal rows have none."
    assert noticed(search(batch, k=1)) == {"missing": text}


def test_numbers_that_become_texts_are_not_missing() -> None:
    verdict = search(day(1).assign(quantity="a few"), k=1).verdict
    assert verdict is not None
    [moved] = [column for column in verdict.moved if column.name == "quantity"]
    assert moved.change == "no number 0 % → 100 %"


def test_a_long_constant_is_cut_in_notes() -> None:
    long = search(day(1).assign(note="x" * 25_000), NORMAL.assign(note="x" * 25_000), k=1)
    notes = [column.note for column in long.encoder.columns_ if column.name == "note"]
    assert max(map(len, [*notes, *long.notes])) < 200


def test_days_that_lack(tmp_path: Path) -> None:
    week = pd.concat([day(1), day(2), day(7)], ignore_index=True)
    text = noticed(search(week))["dates"]
    assert text.startswith("Column 'time' has no dates between 2026-03-03 1")
    assert " and 2026-03-08 0" in text
    history = tmp_path / "h.sqlite"
    assert not noticed(search(day(2), history=history))
    text = noticed(search(day(1), history=history))["dates"]
    assert text.startswith("The newest 'time' is 2026-03-02 19:")


def test_a_stray_date_is_no_gap_and_no_day() -> None:
    batch = day(1)
    batch.loc[7, "time"] = pd.Timestamp("2062-03-02 10:00")
    found = search(batch)
    assert not {"dates", "volume"} & {*noticed(found)}
    assert found.to_dict()["dates"]["newest"].startswith("2026-03-02 19:")


def test_files_that_are_read_part_by_part(tmp_path: Path) -> None:
    NORMAL.to_csv(tmp_path / "n.csv", index=False)
    day(4).to_csv(tmp_path / "b.csv", index=False)
    found = detect(tmp_path / "n.csv", tmp_path / "b.csv", max_samples=100, n_jobs=1)
    assert noticed(found) == {"schema": "Column 'channel' is new."}
    assert found.to_dict()["dates"] is None
