"""Random combinations of troubles: no error, and no column of an anomaly is lost without a word."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run
from date_cases import days
from orders import MAKERS, ROW, Maker, Orders, Text, Writer, amounts, make_orders, sometimes
from value_cases import large_amounts, money

pytest.importorskip("pyarrow")

N_COMBINATIONS, N_DAMAGED = 40, 40

# By name: how amounts are written; those with a comma in them need another separator.
AMOUNTS: dict[str, Writer] = {
    "plain": lambda value: f"{value:.2f}",
    "dollars": money("$"),
    "euros": money("", " €", ".", ","),
    "francs": money("CHF ", "", "'"),
    "code": money("EUR "),
    "comma": lambda value: f"{value:.2f}".replace(".", ","),
    "kilograms": lambda value: f"{value:.1f} kg",
    "brackets": lambda value: f"{value:,.2f}" if value >= 0 else f"({-value:,.2f})",
}
DATES: dict[str, tuple[Maker, Writer]] = {
    "iso": (MAKERS["shipped"], lambda value: f"{value:%Y-%m-%dT%H:%M}"),
    "us": (days, lambda value: f"{value:%m/%d/%Y}"),
    "german": (days, lambda value: f"{value:%d.%m.%Y}"),
    "am-pm": (MAKERS["shipped"], lambda value: f"{value:%m/%d/%Y %I:%M %p}"),
    "words": (days, lambda value: f"{value:%b} {value.day}, {value.year}"),
}
ANOMALIES: dict[str, Any] = {
    "amount": 99_999.0,
    "quantity": 88,
    "shipped": datetime(2039, 5, 9),
    "country": "XX",
}
TRUTHS: dict[str, Writer] = {
    "true": lambda value: str(value).lower(),
    "yes": lambda value: "yes" if value else "no",
    "1": lambda value: str(int(value)),
}
TEXT_CHANGES: dict[str, Callable[[str], str]] = {
    "title": lambda text: "Orders of the shop\n\n" + text,
    "footer": lambda text: text + "\nExported on 1 May 2024\n",
    "windows": lambda text: text.replace("\n", "\r\n"),
    "two headers": lambda text: text + text.split("\n", 1)[0] + "\n",
    "empty lines": lambda text: text.replace("\n", "\n\n"),
}
TABLE_CHANGES: dict[str, Callable[[Orders, bool], Orders]] = {
    "other case": lambda table, is_batch: (
        table
        if is_batch
        else table.renamed({name: name.upper().replace("A", " A") for name in table.columns})
    ),
    "extra": lambda table, is_batch: replace(
        table, columns={**table.columns, "batch" if is_batch else "memo": [1] * len(table.cells)}
    ),
    "lacking": lambda table, is_batch: table.without("express") if is_batch else table,
    "turned": lambda table, is_batch: replace(
        table, columns=dict(list(table.columns.items())[:: -1 if is_batch else 1])
    ),
    "same names": lambda table, is_batch: table.renamed({"quantity": "n", "express": "n"}),
}


@dataclass(frozen=True)
class Combination:
    """Some troubles at once."""

    seed: int
    column: str
    amounts: str
    dates: str
    truths: str
    separator: str
    codec: str
    texts: tuple[str, ...]
    tables: tuple[str, ...]
    gaps: float
    words: float
    is_large: bool

    @classmethod
    def draw(cls, seed: int) -> Combination:
        """Draw a combination."""
        rng = np.random.default_rng([2024, seed])

        def one_of(values: Any) -> Any:
            values = list(values)
            return values[rng.integers(len(values))]

        def some_of(values: Any) -> tuple[str, ...]:
            return tuple(value for value in values if rng.random() < 0.3)

        tables = some_of(TABLE_CHANGES)
        if "same names" in tables:  # these columns are known by their order
            tables = tuple(name for name in tables if name != "turned")
        return cls(
            seed,
            one_of(ANOMALIES),
            one_of(AMOUNTS),
            one_of(DATES),
            one_of(TRUTHS),
            one_of(",;\t|"),
            one_of(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
            some_of(TEXT_CHANGES),
            tables,
            one_of([0.0, 0.0, 0.08]),
            one_of([0.0, 0.0, 0.05]),
            one_of([False, True]),
        )

    def write(self, folder: Path) -> None:
        """Write both files."""
        makers = dict(MAKERS)
        made: Maker = large_amounts if self.is_large else amounts
        makers["amount"] = sometimes(sometimes(made, self.gaps, None), self.words, Text("n/k"))
        makers["shipped"], dates = DATES[self.dates]
        if "lacking" not in self.tables:
            makers["country"] = sometimes(makers["country"], self.gaps, None)
        write_amount = AMOUNTS[self.amounts]
        writers: dict[str, Writer] = {
            "amount": lambda value: "" if value is None else write_amount(value),
            "shipped": dates,
            "express": TRUTHS[self.truths],
        }
        both = make_orders(self.seed, makers, self.column, ANOMALIES[self.column], writers)
        for table, is_batch in zip(both, (False, True), strict=True):
            for name in self.tables:
                table = TABLE_CHANGES[name](table, is_batch)
            text = table.to_csv(self.separator)
            for name in self.texts:
                text = TEXT_CHANGES[name](text)
            title = "batch.csv" if is_batch else "normal.csv"
            (folder / title).write_bytes(text.encode(self.codec))


def damage(content: bytes, rng: np.random.Generator) -> bytes:
    """Cut out, repeat, move or replace a few pieces of a file."""
    for _ in range(rng.integers(1, 4)):
        first, last = np.sort(rng.integers(0, len(content) + 1, 2)).tolist()
        last = min(last, first + int(rng.choice([1, 5, 50, 500])))
        piece = content[first:last]
        at = int(rng.integers(0, len(content) + 1))
        way = rng.integers(5)
        if way == 0:
            content = content[:first] + content[last:]
        elif way == 1:
            content = content[:at] + piece + content[at:]
        elif way == 2:
            content = content[:at]
        elif way == 3:
            signs = b'",;\n\t\r -.$%x0'
            content = content[:at] + bytes(rng.choice(list(signs), 3).tolist()) + content[at:]
        else:
            content = content[:at] + rng.bytes(2) + content[at + 2 :]
    return content


@pytest.mark.parametrize("seed", range(N_DAMAGED))
def test_damaged_files(tmp_path: Path, seed: int) -> None:
    """A file is read, or refused in one sentence."""
    rng = np.random.default_rng([2025, seed])
    folders = sorted((Path(__file__).parent / "files").iterdir())
    folder = folders[rng.integers(len(folders))]
    expected = json.loads((folder / "expected.json").read_text())
    for path in sorted(folder.rglob("*.*")):
        place = tmp_path / path.relative_to(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(damage(path.read_bytes(), rng))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = run("detect", *expected["inputs"], "--top-k", "1", "--n-jobs", "1", cwd=tmp_path)
    assert done.exit_code in (0, 2), f"{folder.name}: {done.stderr}"
    if done.exit_code == 2:
        assert "Error: " in done.stderr
        assert len(done.stderr.strip().splitlines()) < 12


@pytest.mark.parametrize("seed", range(N_COMBINATIONS))
def test_combinations(tmp_path: Path, seed: int) -> None:
    combination = Combination.draw(seed)
    combination.write(tmp_path)
    options = ["--top-k", "3", "--n-jobs", "1", "-o", "found.json"]
    done = run("detect", "normal.csv", "batch.csv", *options, cwd=tmp_path)
    assert done.exit_code == 0, f"{combination}: {done.stderr}"
    rows = json.loads((tmp_path / "found.json").read_text())
    first = [row["row"] for row in rows[:3]]
    assert ROW in first, f"{combination}: {rows[:3]}"
    reasons = rows[first.index(ROW)]["reasons"]
    column = combination.column
    if column == "quantity" and "same names" in combination.tables:
        column = "n"
    assert reasons.startswith(column), f"{combination}: {reasons}"
