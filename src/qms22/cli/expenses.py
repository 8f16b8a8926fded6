"""Made-up expense claims of a company, for the demo: tables as offices have them.

The claims of a quarter were checked; those of the week after it were not. Among these are a few
anomalies, of kinds that auditors know.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

# Enough for every pattern to be learned, and little enough for the demo to take seconds.
_N_CHECKED = 2400
_N_NEW = 300

# The share of claims of each kind, and the usual price: of hotels per night, of meals per guest.
_KINDS = ["hotel", "taxi", "train", "meal", "supplies"]
_SHARES = [0.2, 0.25, 0.2, 0.2, 0.15]
_PRICES = {"hotel": 140.0, "taxi": 24.0, "train": 75.0, "meal": 32.0, "supplies": 45.0}
_TAX = 0.2

_MANAGERS = {"sales": "Okafor", "support": "Lindqvist", "research": "Tanaka", "finance": "Moreau"}
_CITIES = ["Berlin", "Hamburg", "Lyon", "Madrid", "Milan", "Vienna", "Zurich"]


class Expenses(NamedTuple):
    """Known-normal claims, new ones, and the anomalies among these by what is odd about them."""

    checked: pd.DataFrame
    new: pd.DataFrame
    hidden: dict[str, list[str]]


def make_expenses(seed: int = 0) -> Expenses:
    """Return claims of a quarter and of the week after it, with anomalies in the latter."""
    rng = np.random.RandomState(seed)
    checked = _usual_claims(rng, _N_CHECKED, "2026-01-05", n_days=84, first=10_000)
    new = _usual_claims(rng, _N_NEW, "2026-03-30", n_days=7, first=10_000 + _N_CHECKED)
    hidden = _hide_anomalies(rng, new)
    return Expenses(_as_written(checked), _as_written(new), hidden)


def _usual_claims(
    rng: np.random.RandomState, n_claims: int, start: str, n_days: int, first: int
) -> pd.DataFrame:
    """Return claims in the order of their times; most are made on working days, by day."""
    kind = rng.choice(_KINDS, n_claims, p=_SHARES)
    department = rng.choice(list(_MANAGERS), n_claims, p=[0.4, 0.25, 0.2, 0.15])
    nights = np.where(kind == "hotel", rng.geometric(0.5, n_claims).clip(max=6), np.nan)
    guests = np.where(kind == "meal", 1 + rng.poisson(1.6, n_claims), np.nan)
    number = np.fmax(np.fmax(nights, guests), 1.0)
    price = np.array([_PRICES[each] for each in kind]) * rng.lognormal(0.0, 0.22, n_claims)
    amount = (price * number).round(2)
    by_day = np.sort(rng.randint(n_days, size=n_claims))
    day = pd.Timestamp(start) + pd.to_timedelta(by_day - (by_day % 7 > 4) * (by_day % 7 - 4), "D")
    minute = (60 * rng.normal(13.5, 2.8, n_claims).clip(6, 22)).astype(int)
    return pd.DataFrame(
        {
            "claim": [f"EX-{first + at}" for at in range(n_claims)],
            "time": day + pd.to_timedelta(minute, "min"),
            "department": department,
            "kind": kind,
            "city": rng.choice(_CITIES, n_claims, p=[0.3, 0.2, 0.14, 0.12, 0.1, 0.08, 0.06]),
            "nights": nights,
            "guests": guests,
            "amount": amount,
            "tax": (_TAX * amount).round(2),
            "paid_with": rng.choice(
                ["company card", "own card", "cash"], n_claims, p=[0.7, 0.2, 0.1]
            ),
            "approved_by": [_MANAGERS[each] for each in department],
        }
    )


def _hide_anomalies(rng: np.random.RandomState, table: pd.DataFrame) -> dict[str, list[str]]:
    """Change a few rows of a table; return which, by what is odd about them."""
    free = set(range(len(table)))
    hidden: dict[str, list[str]] = {}

    def take(n_rows: int, what: str, kind: str | None = None) -> list[int]:
        """Return rows of a kind that nothing was done to, which what is odd is done to."""
        fitting = [row for row in sorted(free) if kind is None or table.at[row, "kind"] == kind]
        chosen = sorted(rng.choice(fitting, n_rows, replace=False).tolist())
        free.difference_update(chosen)
        hidden[what] = table.loc[chosen, "claim"].tolist()
        return chosen

    rows = take(2, "amounts typed without the decimal point", "hotel")
    table.loc[rows, ["amount", "tax"]] *= 100
    rows = take(3, "tax that does not fit the amount", "train")
    table.loc[rows, "tax"] = (0.31 * table.loc[rows, "amount"]).round(2)
    rows = take(3, "claims approved by another department")
    table.loc[rows, ["department", "approved_by"]] = "research", _MANAGERS["finance"]
    rows = take(2, "meals for two at the price of twenty", "meal")
    table.loc[rows, "guests"] = 2.0
    table.loc[rows, "amount"] = 700.0 + 10 * rng.randint(9, size=len(rows))
    table.loc[rows, "tax"] = (_TAX * table.loc[rows, "amount"]).round(2)
    rows = take(8, "night taxis of sales, all paid in cash", "taxi")
    minutes = pd.to_timedelta(120 + rng.randint(150, size=len(rows)), "min")
    table.loc[rows, "time"] = table.loc[rows, "time"].dt.normalize() + minutes
    table.loc[rows, "paid_with"] = "cash"
    table.loc[rows, ["department", "approved_by"]] = "sales", _MANAGERS["sales"]
    rows = take(1, "a city where nobody has been", "hotel")
    table.loc[rows, "city"] = "Las Vegas"
    rows = take(2, "hotels without nights", "hotel")
    table.loc[rows, "nights"] = np.nan
    return hidden


def _as_written(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table as an office writes it: amounts of money and times as texts."""
    written = table.copy()
    for name in ("amount", "tax"):
        written[name] = table[name].map("${:,.2f}".format)
    for name in ("nights", "guests"):
        written[name] = table[name].astype("Int64")
    written["time"] = table["time"].dt.strftime("%d %b %Y %H:%M")
    return written
