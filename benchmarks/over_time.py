"""Measure the alarms of histories in which every batch is a little unlike the one before.

    python benchmarks/over_time.py

A batch has some 300 rows of five columns. From day to day the means walk at random, with normal
steps or with steps that have long tails (t with 3 degrees of freedom), or they vary around a level;
volumes change, and weekends differ. The first 20 batches are clean and accepted. After that

- "clean": all batches are clean. The rate is the share of histories with any alarm;
- "bad": one batch in ten is bad: a column of amounts is multiplied, levels are exchanged, cells are
  missing, or rows have odd values. The rate is the mean share of good batches among the alarms, and
  `rate of list` that among all that are called bad, by an alarm or by a person.

Nobody says anything: a batch without an alarm is accepted. Or somebody does ("marks"): bad batches
are tagged as incidents afterwards, whether there was an alarm or not, and good ones are accepted.

Most histories go through the functions that `detect` calls (`profile_batch`, `Past`,
`next_budget`), with the evidence of rows drawn from its distribution; `searched` ones through
`detect` itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import numpy as np
import pandas as pd
from joblib import Parallel, delayed

import qms22
from qms22.decisions.batch_profile import Profile, profile_batch
from qms22.decisions.curve import OutlierBound
from qms22.decisions.moved_columns import ColumnPair, compare_columns
from qms22.decisions.over_time import LEAST_PAST, Past, next_budget

LEVELS = ("A", "B", "C", "D")
STEPS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "normal steps": lambda rng: rng.normal(size=4),
    "long tails": lambda rng: rng.standard_t(3, 4) / np.sqrt(3),
    "levels": lambda rng: rng.normal(size=4),
}
DRIFT, N_ROWS, BAD_SHARE = 0.08, 300, 0.1


class Shop:
    """Draws the batches of one history.

    Parameters
    ----------
    steps : {"normal steps", "long tails", "levels"}
    seed : int
    """

    def __init__(self, steps: str, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self._steps = steps
        self._state = np.zeros(4)
        self._day = 0

    def next_batch(self, n_rows: int | None = None) -> pd.DataFrame:
        """Return the rows of the next day."""
        rng, step = self.rng, DRIFT * STEPS[self._steps](self.rng)
        self._state = step if self._steps == "levels" else self._state + step
        self._day += 1
        weekend = float(self._day % 7 >= 5)
        n = n_rows or int(N_ROWS * np.exp(0.3 * rng.normal() - 0.5 * weekend))
        odds = np.exp([0.8 + self._state[3], 0.4, 0.0, -1.5])
        base = rng.standard_t(4, n)
        return pd.DataFrame(
            {
                "amount": np.exp(3 + 0.2 * weekend + self._state[0] + 0.8 * rng.normal(size=n)),
                "weight": base + self._state[1],
                "height": base + self._state[2] + rng.normal(size=n),
                "items": rng.poisson(3 + weekend, n),
                "country": rng.choice(LEVELS, n, p=odds / odds.sum()),
            }
        )

    def spoil(self, batch: pd.DataFrame) -> pd.DataFrame:
        """Return a bad batch."""
        kind = self.rng.integers(4)
        if kind == 0:
            return batch.assign(amount=4 * batch["amount"])
        if kind == 1:
            return batch.assign(
                country=batch["country"].map(dict(zip(LEVELS, "CABD", strict=True)))
            )
        is_odd = self.rng.random(len(batch)) < (0.3 if kind == 2 else 0.05)
        if kind == 2:
            return batch.assign(weight=batch["weight"].mask(is_odd))
        return batch.assign(
            weight=batch["weight"] + 40 * is_odd, height=batch["height"] - 40 * is_odd
        )


@dataclass
class Outcome:
    """What became of the batches of a history after the first `LEAST_PAST`."""

    is_bad: list[bool] = field(default_factory=list)
    is_alarm: list[bool] = field(default_factory=list)

    def facts(self) -> dict[str, float]:
        """Return rates and power."""
        bad, alarm = np.array(self.is_bad), np.array(self.is_alarm)
        n_false = int((alarm & ~bad).sum())
        return {
            "alarms": float(alarm.mean()),
            "any": float(alarm.any()),
            "false rate": n_false / max(1, int(alarm.sum())),
            "rate of list": n_false / max(1, int((alarm | bad).sum())),
            "found": float(alarm[bad].mean()) if bad.any() else np.nan,
        }


def is_bad(has_bad: bool, at: int, rng: np.random.Generator) -> bool:
    """Return whether a batch is bad; the draw is made in any case."""
    return bool(rng.random() < BAD_SHARE) and has_bad and at >= LEAST_PAST


def decided(steps: str, seed: int, n_batches: int, *, has_bad: bool, marks: bool) -> Outcome:
    """Play a history through the functions that decide."""
    shop, outcome = Shop(steps, seed), Outcome()
    known = pd.concat([shop.next_batch(60) for _ in range(7)])
    past: list[Profile] = []
    spent: list[float] = []
    n_called = 0
    for at in range(n_batches):
        batch, bad = shop.next_batch(), is_bad(has_bad, at, shop.rng)
        if bad:
            batch = shop.spoil(batch)
        columns = list(pairs(known, batch))
        # Odd rows that chance would hardly bring.
        n_odd = int((batch["weight"] > 30).sum())
        profile = profile_batch(columns, float(shop.rng.exponential()) + 4.0 * n_odd, None)
        if at < LEAST_PAST:
            past.append(profile)
            continue
        budget = next_budget(spent, n_called)
        found = Past(tuple(past), budget).compare(profile)
        assert found is not None
        alarm = False
        # It can be an alarm; else columns need not be compared, which takes long.
        if 2 * min(found.p_rows, *found.p_columns.values()) <= budget.level:
            moved = compare_columns(columns)
            # Rows can be named: the worst case for a clean batch.
            bound = OutlierBound(1, 0.0)
            verdict = found.judge(moved, len(batch), bound=bound, left_out=(), excepted=())
            alarm = verdict.decision != "fine"
        outcome.is_bad.append(bad)
        outcome.is_alarm.append(alarm)
        if not (marks and bad):
            spent.append(budget.spent)
        n_called += bad if marks else alarm
        if not (bad if marks else alarm):
            past.append(profile)
    return outcome


def pairs(known: pd.DataFrame, batch: pd.DataFrame) -> Iterator[ColumnPair]:
    """Return the columns of two tables as `detect` compares them."""
    for name in known:
        if name == "country":
            codes = [pd.Categorical(table[name], LEVELS).codes for table in (known, batch)]
            yield ColumnPair(name, codes[0].astype(int), codes[1].astype(int), LEVELS)
        else:
            values = [table[name].to_numpy(dtype=float) for table in (known, batch)]
            yield ColumnPair(str(name), values[0], values[1])


def searched(steps: str, seed: int, n_batches: int, *, has_bad: bool, marks: bool) -> Outcome:
    """Play a history through `detect`."""
    shop, outcome = Shop(steps, seed), Outcome()
    known = pd.concat([shop.next_batch(60) for _ in range(7)])
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a batch has drifted is an answer here
        history = qms22.BatchHistory(Path(folder, "history.sqlite"))
        for at in range(n_batches):
            batch, bad = shop.next_batch(), is_bad(has_bad, at, shop.rng)
            batch = shop.spoil(batch) if bad else batch
            found = qms22.detect(known, batch, seed=at, n_jobs=1, history=history.path)
            assert found.verdict is not None
            alarm = found.verdict.decision != "fine"
            if at >= LEAST_PAST:
                assert found.verdict.n_past
                outcome.is_bad.append(bad)
                outcome.is_alarm.append(alarm)
            if marks and bad:
                history.tag_incident(at + 1, "bad")
            elif at < LEAST_PAST or marks or not alarm:
                history.accept(at + 1)
    return outcome


def measure(
    way: Callable[..., Outcome], n_histories: int, n_batches: int, n_jobs: int
) -> Iterator[dict[str, object]]:
    """Play all kinds of histories in one way."""
    for steps in STEPS:
        for has_bad, marks in ((False, False), (True, False), (True, True)):
            outcomes = Parallel(n_jobs=n_jobs)(
                delayed(way)(steps, seed, n_batches, has_bad=has_bad, marks=marks)
                for seed in range(n_histories)
            )
            table = pd.DataFrame([outcome.facts() for outcome in outcomes])
            yield {
                "way": way.__name__,
                "steps": steps,
                "batches": ("bad, marks" if marks else "bad") if has_bad else "clean",
                "histories": n_histories,
                "length": n_batches,
                **table.mean().to_dict(),
                "error of rate": table["false rate"].std() / np.sqrt(n_histories),
            }


@click.command()
@click.option("--histories", default=200, show_default=True, help="Histories of each kind.")
@click.option("--searches", default=4, show_default=True, help="Those through detect.")
@click.option("--n-jobs", default=-1, show_default=True, help="Processes.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("benchmarks/results/over_time.csv"),
    show_default=True,
)
def main(histories: int, searches: int, n_jobs: int, output: Path) -> None:
    """Measure alarms over whole histories."""
    rows: list[dict[str, object]] = []
    for way, n_histories, n_batches in (
        (decided, histories, 30),
        (decided, histories // 2, 80),
        (searched, searches, 30),
    ):
        for row in measure(way, n_histories, n_batches, n_jobs) if n_histories else ():
            rows.append(row)
            click.echo(pd.DataFrame([row]).to_string(index=False, float_format="%.3f"))
    pd.DataFrame(rows).to_csv(output, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
