"""The page of a detection has what the detection has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from page_data import read_page

from qms22.detection import Detection, detect
from qms22.detection.results import page_content as pages
from qms22.detection.results.page_content import page_content

ODD = [3, 50, 77]


def orders(n_rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.RandomState(seed)
    return pd.DataFrame(
        {
            "order": [f"O{seed}-{number:04d}" for number in range(n_rows)],
            "score": rng.randint(1, 9, n_rows),  # a name that results have too
            "price": [f"${price:,.2f}" for price in rng.uniform(5, 50, n_rows)],
            "country": rng.choice(["DE", "FR", "US"], n_rows),
        }
    )


@pytest.fixture(scope="module")
def found() -> Detection:
    batch = orders(120, 1)
    batch.loc[ODD, "score"] = 4000
    batch.loc[ODD, "country"] = "KP"
    return detect(orders(400, 0), batch, id="order", k=3, n_jobs=1)


def test_every_row_has_its_reasons_and_columns_their_names(found: Detection) -> None:
    content = page_content(found, "t", None, {})
    assert len(content.reasons) == len(content.rows) == 120
    assert None not in content.reasons
    assert content.columns is not None
    assert content.id == "order"
    names = {*content.rows.columns}
    assert names == {"score_", "price", "country"}
    for row in content.reasons:
        assert row is not None
        assert {name for reason in row for name in reason.columns} <= names
    blamed = {reason.columns[0] for row in content.reasons[:3] for reason in row or []}
    assert blamed <= {"score_", "country"}
    assert {*content.cells} == {*content.normal} == names


def test_the_page_packs_them(found: Detection, tmp_path: Path) -> None:
    header, array, columns = read_page(found.report(tmp_path / "page.html"))
    values = [spec for spec in header["columns"] if spec["role"] == "value"]
    assert values[0]["name"] in ("score_", "country")
    assert values[0]["matters"]
    assert not next(spec["matters"] for spec in values if spec["name"] == "price")
    assert sorted(columns["order"][:3]) == sorted(f"O1-{row:04d}" for row in ODD)
    for finding in header["findings"]:
        assert array(finding["rows"]).max() < 3
    price = next(spec for spec in header["columns"] if spec["name"] == "price")
    assert price["form"] == "number"
    assert columns["price"] == found.table()["price"].tolist()


def test_of_many_normal_rows_some_are_counted(
    found: Detection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_MOST_NORMAL", 100)
    content = page_content(found, "t", None, {})
    assert len(content.normal["score_"].values) == 100
    assert content.n_normal == 400
    assert content.normal_scores is not None


def test_scores_of_normal_rows_are_like_those_of_normal_rows_of_the_batch() -> None:
    normal, batch = orders(400, 0), orders(300, 1)
    found = detect(normal, batch, id="order", k=3, seed=0, n_jobs=1)
    content = page_content(found, "t", None, {})
    assert content.normal_scores is not None
    assert len(content.normal_scores) == 400
    # All rows are normal: the share beyond the median of the others is about one half.
    share = np.mean(content.normal_scores > np.median(content.scores))
    assert 0.35 < share < 0.65


def test_rows_marked_before_are_listed(found: Detection) -> None:
    batch = orders(120, 1)
    marks = pd.DataFrame(
        {
            "order": [f"O1-{row:04d}" for row in (3, 50, 9)],
            "mark": ["anomaly", "normal", "unsure"],
        }
    )
    # Rows of a frame may have any index.
    batch.index = pd.Index(np.zeros(120, dtype=int))
    again = detect(orders(400, 0), batch, id="order", k=3, n_jobs=1, marks=marks)
    content = page_content(again, "t", None, {})
    assert content.marked is not None
    assert content.marked.iloc[:, :2].to_numpy().tolist() == [
        ["O1-0003", "anomaly"],
        ["O1-0050", "normal"],
    ]
    assert {*content.marks} == {"", "unsure"}
    assert content.results["order"].iloc[list(content.marks).index("unsure")] == "O1-0009"


def meters(n_days: int, seed: int, first: str) -> pd.DataFrame:
    """Draw values of 20 meters, each with a level of its own."""
    rng = np.random.default_rng(seed)
    level = 100 + 30 * np.arange(20)[:, np.newaxis]
    value = level + rng.normal(0, 4, (20, n_days))
    return pd.DataFrame(
        {
            "meter": np.repeat([f"M{number:02}" for number in range(20)], n_days),
            "day": np.tile(pd.date_range(first, periods=n_days), 20),
            "value": value.ravel().round(1),
            "heat": rng.normal(5, 1, value.size).round(2),
        }
    )


def test_a_row_is_shown_beside_the_past_of_its_entity_and_its_twin(tmp_path: Path) -> None:
    normal, batch = meters(45, 0, "2024-01-01"), meters(15, 1, "2024-02-15")
    batch.loc[100, "value"] = 600.0
    batch.loc[120] = batch.loc[121]
    result = detect(normal, batch, k=3, n_jobs=1)
    contexts = page_content(result, "t", None, {}).contexts
    places = {int(row): place for place, row in enumerate(result.ranking)}
    past = contexts[places[100]]
    own = pd.concat([normal.loc[normal["meter"] == "M06", "value"], batch.loc[90:99, "value"]])
    assert past.past == tuple(own)
    assert past.here == 600
    assert past.text.startswith("value in 55 known-normal and earlier rows with meter M06: ")
    assert past.text.endswith(f"last {own.iloc[-1]:g}; here 600")
    assert contexts[places[120]].text == "row 121 has the same cells"
    header, _, _ = read_page(result.report(tmp_path / "page.html"))
    line = header["contexts"][str(places[100])]["line"]
    assert (len(line["past"]), line["here"], min(line["past"])) == (55, 1, 0)
    assert header["contexts"][str(places[120])]["line"] is None


def test_the_twin_of_a_row_that_differs_in_a_cell() -> None:
    normal, batch = (
        meters(n, n, "2024-01-01").assign(bar=lambda t: t["value"] * 7) for n in (45, 15)
    )
    batch.loc[120] = normal.loc[7]
    batch.loc[120, "heat"] = 4.0
    result = detect(normal, batch, k=8, n_jobs=1)
    contexts = page_content(result, "t", None, {}).contexts
    context = contexts[int(np.flatnonzero(result.ranking == 120)[0])]
    heat = normal.loc[7, "heat"]
    assert context.text == f"known-normal row 7 has the same cells, but for heat {heat:g}"
