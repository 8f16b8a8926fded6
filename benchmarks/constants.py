"""Halve and double every limit of the checks, and measure what changes.

    PYTHONPATH=benchmarks python benchmarks/constants.py --output benchmarks/results

A limit is a number with a name of its own in a module of `qms22.checks`, other than units and
guards against overflow. Shares are doubled up to half of what is left of 1. With each, tables of
made-up businesses are searched: batches with planted errors, of the month after the known-normal
rows, and clean ones. A limit that can be halved and doubled with little effect has a round value
for a reason that its comment gives; one that matters was chosen on these tables, and confirmed on
others (docs/evaluation.md).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import click
import numpy as np
from businesses.measure import BUSINESSES, measure_clean, measure_planted
from fdr_sets import n_jobs_option
from joblib import Parallel, delayed
from reporting import console, output_option, write_csv

import qms22.checks

PLANTED = ("transfers", "laboratory", "orders")
CLEAN = ("meters", "payroll")

# Units of time and guards against overflow are no limits.
SMALLEST, LARGEST = 1e-5, 1e8


def list_limits() -> Iterator[tuple[str, str, float]]:
    """Yield the module, the name and the value of every limit."""
    for info in iter_modules(qms22.checks.__path__, "qms22.checks."):
        module = import_module(info.name)
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        for name, value in vars(module).items():
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            # Names that are imported are those of another module.
            is_own = source.startswith(f"{name} = ") or f"\n{name} = " in source
            if name.lstrip("_").isupper() and is_number and SMALLEST < value < LARGEST and is_own:
                yield info.name, name, value


def change(value: float, factor: float) -> float:
    """Return a limit that is half as large, or twice: a whole one stays whole, a share a share."""
    if isinstance(value, int):
        return max(1, round(value * factor))
    return (1 + value) / 2 if value < 1 < 2 * value and factor > 1 else value * factor


def set_limit(module: str, name: str, value: float) -> None:
    """Set a limit in its module, and in those that import it."""
    for other, each in list(sys.modules.items()):
        is_importing = other.startswith("qms22.checks.") and not name.startswith("_")
        if other == module or (is_importing and name in vars(each)):
            setattr(each, name, value)


def measure(limit: tuple[str, str, float] | None, factor: float) -> list[object]:
    """Return what is found with a changed limit: recall, precision, false flags, alarms."""
    list(list_limits())  # imports them
    if limit is not None:
        set_limit(*limit[:2], change(limit[2], factor))
    try:
        planted = [measure_planted(BUSINESSES[name], 0, 1)[0] for name in PLANTED]
        clean = [measure_clean(BUSINESSES[name], 0, 1) for name in CLEAN]
    finally:
        if limit is not None:
            set_limit(*limit)
    module, name, value = limit or ("", "none", 1.0)
    return [
        module.removeprefix("qms22.checks."),
        name,
        f"{value:g}",
        f"{change(value, factor):g}",
        *(
            f"{np.mean([getattr(each, measure) for each in planted]):.4f}"
            for measure in ("recall_top", "average_precision", "recall_flagged", "fdp")
        ),
        sum(each.n_flagged for each in clean),
        sum(each.decision != "fine" for each in clean),
    ]


@click.command()
@n_jobs_option
@click.option("--only", default="", help="Change only limits of this module.")
@output_option("constants.csv")
def main(n_jobs: int, only: str, output: Path) -> None:
    """Measure, print what matters, and write."""
    limits = [each for each in list_limits() if each[0].endswith(only)]
    jobs = [(None, 1.0), *((limit, factor) for limit in limits for factor in (0.5, 2.0))]
    found = Parallel(n_jobs=n_jobs)(delayed(measure)(*job) for job in jobs)
    of_none = found[0][4:]
    matters = [row for row in found[1:] if row[4:] != of_none]
    console.print(f"{len(limits)} limits; {len({tuple(row[:2]) for row in matters})} matter")
    for row in sorted(found, key=lambda row: abs(float(str(row[5])) - float(str(of_none[1])))):
        if row[4:] != of_none or row is found[0]:
            console.print(*row)
    headings = (
        "module,limit,value,changed,recall,average_precision,flagged,false,clean_flags,alarms"
    )
    write_csv(output / "constants.csv", headings.split(","), found)


if __name__ == "__main__":
    main()
