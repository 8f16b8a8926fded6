"""What is learned from two files together does not tell their lines apart.

A line is read in the same way in both files: known-normal rows and rows of the batch are compared
with each other, and none of them may be odd because of what else is in its file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from frames import encode_frames
from numpy.random import Generator
from numpy.typing import NDArray

import qms22
from qms22.checks import learn_checks
from qms22.detection.inputs import align_tables, draw, open_tables

N_LINES = 240
N_NORMAL = 140

# Makes the cells of a column.
Column = Callable[[Generator], list[str]]


def texts(rng: Generator, *levels: str) -> list[str]:
    return [levels[at] for at in rng.integers(0, len(levels), N_LINES)]


def with_odd(cells: list[str], *odd: str) -> list[str]:
    """The same cells, with others in the last lines, which are in the batch."""
    return [*cells[: len(cells) - len(odd)], *odd]


def numbers(rng: Generator, form: str = "{:.2f}") -> list[str]:
    return [form.format(value) for value in rng.normal(50, 10, N_LINES)]


def dates(rng: Generator, form: str) -> list[str]:
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, N_LINES), "D")
    return [f"{day:{form}}" for day in days]


def two_notations(rng: Generator) -> list[str]:
    pairs = zip(dates(rng, "%Y-%m-%d"), dates(rng, "%d.%m.%Y"), strict=True)
    return [pair[rng.integers(2)] for pair in pairs]


COLUMNS: dict[str, Column] = {
    "truth": lambda rng: texts(rng, "TRUE", "FALSE"),
    "truth misspelt": lambda rng: with_odd(texts(rng, "TRUE", "FALSE"), "RTUE"),
    "truth misspelt twice": lambda rng: with_odd(texts(rng, "true", "false"), "ture", "flase"),
    "truth in two spellings": lambda rng: with_odd(texts(rng, "TRUE", "true", "False"), "RTUE"),
    "truth with gaps": lambda rng: with_odd(texts(rng, "True", "False"), "", "NA"),
    "truth with blanks": lambda rng: with_odd(texts(rng, "True", " False"), "no"),
    "truth beside numbers": lambda rng: with_odd(texts(rng, "True", "False"), "1", "0"),
    "constant truth with a gap": lambda rng: with_odd(["False"] * N_LINES, ""),
    "constant truth misspelt": lambda rng: with_odd(["False"] * N_LINES, "Flase"),
    "constant with gaps": lambda rng: with_odd(["EUR"] * N_LINES, "", "NULL"),
    "constant number with a word": lambda rng: with_odd(["7"] * N_LINES, "seven"),
    "constant number with a gap": lambda rng: with_odd(["7.50"] * N_LINES, ""),
    "unit in one cell": lambda rng: with_odd(numbers(rng), "52 kg"),
    "unit in few cells": lambda rng: [
        f"{cell} kg" if rng.random() < 0.09 else cell for cell in numbers(rng)
    ],
    "unit in some cells": lambda rng: [
        f"{cell} kg" if at % 3 else cell for at, cell in enumerate(numbers(rng))
    ],
    "numbers with a word": lambda rng: with_odd(numbers(rng), "unknown", "-"),
    "numbers with many words": lambda rng: [
        cell if at < 150 else f"about {cell}" for at, cell in enumerate(numbers(rng, "{:.1f}"))
    ],
    "numbers and infinity": lambda rng: with_odd(numbers(rng), "inf", "-Infinity", "x"),
    "numbers with gaps": lambda rng: with_odd(numbers(rng, "{:.0f}"), "", "n/a"),
    "whole numbers and fractions": lambda rng: with_odd(numbers(rng, "{:.0f}"), "50.5"),
    "numbers in two notations": lambda rng: with_odd(numbers(rng), "1e2", "+3"),
    "few numbers": lambda rng: with_odd(texts(rng, "1.0", "1.5", "2.50"), "1.5x"),
    "versions": lambda rng: with_odd(
        texts(rng, "1.1", "1.10", "1.2"), *(f"1.{n}-rc" for n in range(20))
    ),
    "digests": lambda rng: with_odd(
        texts(rng, "12", "1e5", "100000", "7e1"), *(f"{n:02x}" for n in range(160, 190))
    ),
    "sizes": lambda rng: with_odd(texts(rng, "36", "38.0", "38"), *"SMLXSML"),
    "codes": lambda rng: with_odd([f"{n:03}" for n in rng.integers(100, 140, N_LINES)], "007"),
    "zip code": lambda rng: with_odd(texts(rng, "10115", "20095", "50667"), "01067"),
    "codes with NA": lambda rng: texts(rng, "AT", "CH", "DE", "FR", "NA", "NL", "PL"),
    "date": lambda rng: dates(rng, "%Y-%m-%d"),
    "date in two notations": two_notations,
    "date in another notation": lambda rng: with_odd(dates(rng, "%Y-%m-%d"), "31.12.2024"),
    "date without signs": lambda rng: with_odd(dates(rng, "%Y%m%d"), "2024-12-31"),
    "date beside numbers": lambda rng: with_odd(dates(rng, "%Y%m%d"), "1e3", "x"),
    "date with a word": lambda rng: with_odd(dates(rng, "%m/%d/%Y"), "soon"),
    "words for missing cells": lambda rng: texts(rng, "a", "", "NA", "n/a", "null", "?", "-"),
    "order id": lambda rng: with_odd([f"{n}" for n in rng.permutation(N_LINES)], "A7"),
    "rare levels": lambda rng: [f"shop {n}" for n in rng.geometric(0.08, N_LINES)],
    "rarer levels": lambda rng: [f"{n}" for n in rng.zipf(1.6, N_LINES)],
    "empty but for one": lambda rng: with_odd([""] * N_LINES, "TRUE"),
    "empty but for a word": lambda rng: with_odd([""] * N_LINES, "x"),
}


class Pooled(NamedTuple):
    """What is learned from two files together, by line."""

    matrix: NDArray[np.float64]
    oddness: NDArray[np.float64]


def pooled(folder: Path, header: str, lines: list[str], is_normal: NDArray[np.bool_]) -> Pooled:
    """Write lines into two files, and learn from both."""
    order = np.concatenate([np.flatnonzero(is_normal), np.flatnonzero(~is_normal)])
    paths = folder / "T.csv", folder / "S.csv"
    for path, rows in zip(paths, np.split(order, [is_normal.sum()]), strict=True):
        path.write_text("\n".join([header, *(lines[at] for at in rows)]) + "\n", encoding="utf-8")
    tables, ignored = align_tables(open_tables(*paths, None), [])
    normal_rows, batch_rows = draw(tables, 0)
    # In the order of the lines: the checks hold out rows by their places.
    frames = [tables.normal.take(normal_rows), tables.batch.take(batch_rows)]
    everything = pd.concat(frames).iloc[np.argsort(order)]
    both = encode_frames(everything, everything, ignore=ignored)
    own = learn_checks(both.encoder, both.normal_cells, both.batch_cells, 0)
    return Pooled(both.known.read(slice(None)), own.oddness)


def assert_same(folder: Path, header: str, lines: list[str]) -> None:
    rng = np.random.default_rng(1)
    is_normal = np.arange(N_LINES) < N_NORMAL
    first = pooled(folder, header, lines, is_normal)
    for n_swapped in (1, 4, 60):
        swapped = is_normal.copy()
        # Among them are the last lines, which are odd.
        places = rng.permutation(N_NORMAL)[:n_swapped], np.arange(N_LINES)[::-1][:n_swapped]
        swapped[places[0]], swapped[places[1]] = False, True
        second = pooled(folder, header, lines, swapped)
        np.testing.assert_array_equal(first.matrix, second.matrix)
        np.testing.assert_array_equal(first.oddness, second.oddness)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_line_is_read_alike_in_both_files(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(0)
    cells = [numbers(rng), texts(rng, "a", "b", "c"), COLUMNS[name](rng)]
    lines = [",".join(line) for line in zip(*cells, strict=True)]
    assert_same(tmp_path, f"x,level,{name}", lines)


@pytest.mark.parametrize("separator", [",", ";"])
def test_all_columns_together(tmp_path: Path, separator: str) -> None:
    rng = np.random.default_rng(0)
    cells = [numbers(rng), *(column(rng) for column in COLUMNS.values())]
    lines = [separator.join(line) for line in zip(*cells, strict=True)]
    assert_same(tmp_path, separator.join(["x", *COLUMNS]), lines)


@pytest.mark.parametrize("odd", ["x", "4.5", ""])
def test_decimal_commas(tmp_path: Path, odd: str) -> None:
    rng = np.random.default_rng(0)
    cells = [numbers(rng), with_odd(numbers(rng), odd), numbers(rng, "{:.0f}")]
    lines = [";".join(line).replace(".", ",") for line in zip(*cells, strict=True)]
    assert_same(tmp_path, "x;y;z", lines)


def write(path: Path, header: str, *columns: list[str]) -> Path:
    lines = [",".join(line) for line in zip(*columns, strict=True)]
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("odd", ["RTUE", ""])
@pytest.mark.parametrize("levels", [("TRUE", "FALSE"), ("False",)])
def test_one_odd_truth_value_flags_no_other_row(
    tmp_path: Path, odd: str, levels: tuple[str, ...]
) -> None:
    paths = []
    for seed, name in enumerate(("T.csv", "S.csv")):
        rng = np.random.default_rng(seed)
        truths = texts(rng, *levels)
        cells = [numbers(rng), numbers(rng), with_odd(truths, odd) if seed else truths]
        paths.append(write(tmp_path / name, "x,y,is_paid", *cells))
    found = qms22.detect(*paths, fdr=0.1)
    assert set(np.flatnonzero(found.flagged)) <= {N_LINES - 1}
    assert found.verdict is not None
    assert found.verdict.decision != "drift"
    (first,) = qms22.detect(*paths, k=1).top
    assert not odd or first == N_LINES - 1


def test_a_category_that_is_no_category_of_both_tables(tmp_path: Path) -> None:
    paths = []
    for seed, name in enumerate(("T.csv", "S.csv")):
        rng = np.random.default_rng(seed)
        codes = [f"A{n}" for n in rng.integers(0, 600, 60)]
        codes[:20] = [f"A{n}" for n in rng.integers(0, 600, 10)] * 2
        paths.append(write(tmp_path / name, "shop", codes))
    found = qms22.detect(*paths, fdr=0.1)
    assert "shop" in found.encoder.groups_


@pytest.mark.parametrize("words", [("no", "yes"), ("FALSE", "TRUE"), ("False", "True"), (0, 1)])
@pytest.mark.parametrize("is_normal_in_words", [False, True])
def test_frames_with_true_and_false_in_other_words(
    words: tuple[object, object], is_normal_in_words: bool
) -> None:
    frames = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        truths = rng.random(N_LINES) < 0.4
        frames.append(pd.DataFrame({"x": rng.normal(size=N_LINES), "is_paid": truths}))
    at = 0 if is_normal_in_words else 1
    frames[at]["is_paid"] = [words[int(truth)] for truth in frames[at]["is_paid"]]
    found = qms22.detect(*frames, fdr=0.1)
    assert not found.flagged.any()
