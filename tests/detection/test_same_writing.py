"""Tables that write the same numbers and moments in different ways."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from qms22 import Detection, detect
from qms22.detection import score
from qms22.models import load_model, save_model

ODD = 7


def tables(n_rows: int = 120) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    frames = []
    for first in ("2024-02-01", "2024-02-12"):
        minutes = rng.integers(8 * 60, 18 * 60, n_rows) + 24 * 60 * rng.integers(0, 28, n_rows)
        frame = pd.DataFrame(
            {
                "amount": np.round(rng.uniform(2, 1500, n_rows), 2),
                "sold": pd.Timestamp(first) + pd.to_timedelta(minutes, unit="min"),
                "size": rng.normal(size=n_rows),
            }
        )
        frames.append(frame)
    frames[1].loc[ODD, "amount"] = 98765.25
    return frames[0], frames[1]


def american(value: float) -> str:
    return f"{value:,.2f}"


def german(value: float) -> str:
    return american(value).translate(str.maketrans(",.", ".,"))


WRITERS: dict[str, Callable[[float], object]] = {
    "plain": float,
    "american": american,
    "german": german,
    "dollar": lambda value: f"${american(value)}",
    "euro": lambda value: f"€{value:.2f}",
    "euro behind": lambda value: f"{german(value)} €",
}


def assert_same(found: Detection, expected: Detection) -> None:
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-9)
    assert list(found.encoder.groups_) == list(expected.encoder.groups_)
    if expected.p_values is not None:
        np.testing.assert_array_equal(found.p_values, expected.p_values)


@pytest.mark.parametrize("of_batch", WRITERS)
@pytest.mark.parametrize("of_normal", WRITERS)
def test_numbers(of_normal: str, of_batch: str) -> None:
    normal, batch = tables()
    expected = detect(normal, batch, k=1)
    written = batch.assign(amount=batch["amount"].map(WRITERS[of_batch]))
    found = detect(normal.assign(amount=normal["amount"].map(WRITERS[of_normal])), written, k=1)
    if {"dollar"} < {of_normal, of_batch} and "euro" in of_normal + of_batch:
        assert "amount" not in found.encoder.groups_  # of another currency
        return
    assert_same(found, expected)
    assert found.top.tolist() == [ODD]
    # Results have the cells of the batch.
    assert found.table().loc[ODD, "amount"] == written.loc[ODD, "amount"]


@pytest.mark.parametrize("of_normal", ["plain", "german"])
def test_flags(of_normal: str) -> None:
    normal, batch = (frame.drop(columns="sold") for frame in tables(300))
    batch = batch[:60].copy()
    expected = detect(normal, batch, fdr=0.2)
    batch["amount"] = batch["amount"].map(WRITERS["dollar"])
    found = detect(normal.assign(amount=normal["amount"].map(WRITERS[of_normal])), batch, fdr=0.2)
    assert_same(found, expected)
    assert "in another format" in found.notes[0]
    assert "98,765.25" in found.reasons[ODD][0].text


def test_words_stay_words() -> None:
    normal, batch = tables()
    batch["amount"] = batch["amount"].map(WRITERS["euro behind"])
    batch.loc[[3, 9], "amount"] = ["storno", None]
    normal["amount"] = normal["amount"].astype(object).where(normal.index % 40 != 0, "storno")
    found = detect(normal, batch, k=2)
    cells = found.encoder._typed_cells(batch)["amount"]
    assert cells.show(3) == "'storno'"
    assert cells.missing.tolist() == [row == 9 for row in range(len(batch))]
    assert cells.values[ODD] == 98765.25


@pytest.mark.parametrize(
    ("of_normal", "of_batch"),
    [
        (None, "%m/%d/%Y %H:%M"),
        ("%d.%m.%Y %H:%M", "%m/%d/%Y %H:%M"),
        ("%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M"),
        ("%m/%d/%Y %H:%M", None),
        ("%d.%m.%Y %H:%M", "%Y-%m-%d %H:%M"),
    ],
)
def test_dates(of_normal: str | None, of_batch: str | None) -> None:
    normal, batch = tables()
    batch.loc[ODD, "sold"] = pd.Timestamp("2024-02-29 03:15")
    expected = detect(normal, batch, k=1)
    frames = [
        frame if form is None else frame.assign(sold=frame["sold"].dt.strftime(form))
        for frame, form in ((normal, of_normal), (batch, of_batch))
    ]
    assert_same(detect(*frames, k=1), expected)


def test_another_time_zone() -> None:
    normal, batch = (
        frame.assign(sold=frame["sold"].dt.tz_localize("Europe/Berlin")) for frame in tables()
    )
    expected = detect(normal, batch, k=1)
    assert expected.notes == ()
    found = detect(normal, batch.assign(sold=batch["sold"].dt.tz_convert("UTC")), k=1)
    np.testing.assert_array_equal(found.scores, expected.scores)
    assert "'sold' is converted to the time zone of" in found.notes[0]
    assert found.notes[0].endswith("Europe/Berlin")


def test_only_one_time_zone() -> None:
    normal, batch = tables()
    expected = detect(normal, batch, k=1)
    found = detect(normal, batch.assign(sold=batch["sold"].dt.tz_localize("UTC")), k=1)
    np.testing.assert_array_equal(found.scores, expected.scores)
    assert found.notes[0].endswith("has a time zone in 'sold'; local times are compared")


@pytest.mark.parametrize("of_model", ["plain", "german", "dollar"])
def test_saved_model(of_model: str, tmp_path: Path) -> None:
    normal, batch = tables()
    known = normal.assign(amount=normal["amount"].map(WRITERS[of_model]))
    own = batch.assign(amount=batch["amount"].map(WRITERS[of_model]))
    found = detect(known, own, k=1)
    save_model(tmp_path / "m.skops", found.detector, encoder=found.encoder, checks=found.checks)
    model = load_model(tmp_path / "m.skops")
    batch["sold"] = batch["sold"].dt.strftime("%m/%d/%Y %H:%M")
    for other in ("american", "german", "dollar"):
        scored = score(model, batch.assign(amount=batch["amount"].map(WRITERS[other])))
        np.testing.assert_allclose(scored.scores, found.scores, rtol=1e-9)


def test_files_in_parts(tmp_path: Path) -> None:
    normal, batch = tables()
    normal.assign(amount=normal["amount"].map(german)).to_csv(tmp_path / "a.csv", index=False)
    batch.assign(amount=batch["amount"].map(american)).to_csv(tmp_path / "b.csv", index=False)
    paths = str(tmp_path / "a.csv"), str(tmp_path / "b.csv")
    expected = detect(*paths, k=1)
    found = detect(*paths, k=1, max_samples=1000)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-9)
    assert found.top.tolist() == [ODD]


def test_a_column_of_numbers_in_texts_may_be_empty_in_the_batch() -> None:
    normal, batch = tables()
    written = normal.assign(amount=normal["amount"].map(german))
    found = detect(written, batch.assign(amount=np.nan), k=1)
    np.testing.assert_array_equal(
        found.scores, detect(normal, batch.assign(amount=np.nan), k=1).scores
    )


def version_file(path: Path, versions: list[str], seed: int) -> Path:
    sizes = np.random.default_rng(seed).normal(size=120).round(3)
    pd.DataFrame({"version": np.resize(versions, 120), "size": sizes}).to_csv(path, index=False)
    return path


def test_numbers_are_texts_where_the_other_table_has_texts(tmp_path: Path) -> None:
    texts = ["1.1", "1.10", "2.0-rc", "2.1-rc", "2.2-rc", "2.3-rc"]
    normal = version_file(tmp_path / "normal.csv", texts, 0)
    batch = version_file(tmp_path / "batch.csv", ["1.1", "1.10"], 1)
    found = detect(normal, batch, k=5)
    assert found.source.take([0, 1])["version"].tolist() == ["1.1", "1.10"]
    assert "version=1.10" in found.encoder.get_feature_names_out()
    path = tmp_path / "m.skops"
    save_model(path, found.detector, encoder=found.encoder, checks=found.checks)
    np.testing.assert_allclose(score(path, batch, k=5).scores, found.scores)
    new = version_file(tmp_path / "new.csv", ["1.1", "1.100"], 1)
    assert (score(path, new, k=5).scores[1::2] > found.scores[1::2]).all()


CODES = ("AT", "CH", "DE", "FR", "NL", "PL")


def with_na(levels: tuple[str, ...], share: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two tables with "NA" in a column of texts."""
    rng = np.random.default_rng(1)
    frames = tables()
    for frame in frames:
        others = rng.choice(levels, len(frame))
        frame["level"] = np.where(rng.random(len(frame)) < share, "NA", others)
    return frames


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
@pytest.mark.parametrize(
    ("levels", "share", "kinds", "is_value"),
    [
        (CODES, 0.1, None, True),
        (CODES, 0.5, None, False),
        (CODES[:4], 0.1, None, False),
        (("good", "fair", "bad", "new", "old"), 0.1, None, False),
        (("good", "fair"), 0.5, {"level": "category"}, True),
    ],
)
def test_na_among_codes(
    tmp_path: Path,
    ending: str,
    levels: tuple[str, ...],
    share: float,
    kinds: dict[str, str] | None,
    is_value: bool,
) -> None:
    paths = [tmp_path / f"T.{ending}", tmp_path / f"S.{ending}"]
    for frame, path in zip(with_na(levels, share), paths, strict=True):
        write = frame.to_csv if ending == "csv" else frame.to_excel
        write(path, index=False)
    found = detect(*paths, kinds=kinds)
    (column,) = (each for each in found.encoder.columns_ if each.name == "level")
    assert ("NA" in found.encoder._plans_by_name[column.name].levels) == is_value
    assert found.source.read()["level"].isna().any() != is_value


def test_na_is_a_value_where_a_model_knows_it(tmp_path: Path) -> None:
    for frame, name in zip(with_na(CODES, 0.1), ("T", "S"), strict=True):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    batch = tmp_path / "S.csv"
    found = detect(tmp_path / "T.csv", batch)
    path = tmp_path / "m.skops"
    save_model(path, found.detector, encoder=found.encoder, checks=found.checks)
    again = score(load_model(path), batch)
    np.testing.assert_array_equal(again.scores, found.scores)
    assert not again.source.read()["level"].isna().any()
