"""Tables for the page "What it looks for": orders of a shop, readings of water meters, logins.

Each `why_…` puts something odd into a batch that is fine, searches it, and prints why the row is
suspicious.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

import qms22

_CITIES = {
    "Hamburg": "Germany",
    "Munich": "Germany",
    "Vienna": "Austria",
    "Graz": "Austria",
    "Zurich": "Switzerland",
    "Basel": "Switzerland",
}
_CATEGORIES = {"books": "BK", "garden": "GA", "toys": "TY"}
_NOTES = ("please call", "leave at the door", "gift, no invoice", "behind the house")


def _account(digits: int) -> str:
    """Return a German account number with the right check digits."""
    return f"DE{98 - int(f'{digits:018}131400') % 97:02}{digits:018}"


def make_orders(
    n_rows: int, seed: int, first_day: str = "2024-01-01", prices: float = 1.0
) -> pd.DataFrame:
    """Return orders of a shop in which nothing is wrong; all prices may be higher."""
    rng = np.random.default_rng(seed)
    cities = rng.choice(list(_CITIES), n_rows)
    categories = rng.choice(list(_CATEGORIES), n_rows)
    status = rng.choice(["open", "sent", "returned"], n_rows, p=[0.2, 0.7, 0.1])
    customers = rng.integers(40, size=n_rows)
    quantity = rng.integers(1, 9, n_rows)
    # Some customers buy cheap things, others dear ones.
    price = (prices * (4 + customers) * rng.uniform(0.9, 1.1, n_rows)).round(2)
    net = (quantity * price).round(2)
    days = pd.bdate_range(first_day, periods=90)
    ordered = days[np.sort(rng.integers(90, size=n_rows))] + pd.to_timedelta(
        rng.integers(8 * 60, 18 * 60, n_rows), unit="min"
    )
    sent = ordered.normalize() + pd.to_timedelta(rng.integers(1, 5, n_rows), unit="D")
    weight = rng.uniform(0.3, 30.0, n_rows).round(1)
    gross = (net * np.where(rng.random(n_rows) < 0.5, 1.07, 1.19)).round(2)
    return pd.DataFrame(
        {
            "order": [f"A-{100_000 + 1000 * seed + at}" for at in range(n_rows)],
            "ordered_at": ordered,
            "sent_on": pd.Series(sent).where(status != "open"),
            "status": status,
            "customer": [f"C{customer:03}" for customer in customers],
            "account": [_account(int(each)) for each in rng.integers(10**17, 10**18, n_rows)],
            "city": cities,
            "country": [_CITIES[city] for city in cities],
            "category": categories,
            "article": [f"{_CATEGORIES[each]}-{rng.integers(1000, 9999)}" for each in categories],
            "note": [
                f"{rng.choice(_NOTES)}, floor {rng.integers(9)}, room {rng.integers(100, 999)}"
                for _ in range(n_rows)
            ],
            "weight": weight,
            "bulky": np.where(weight > 20, "yes", "no"),
            "quantity": quantity,
            "size": [f"{a} x {b} cm" for a, b in rng.integers(10, 60, (n_rows, 2))],
            "price": price,
            "net": net,
            "gross": gross,
            "paid": (gross * rng.uniform(0, 1, n_rows)).round(2),
            "server": [f"10.1.{rng.integers(4)}.{rng.integers(1, 255)}" for _ in range(n_rows)],
        }
    )


def make_readings(n_days: int, seed: int, first_day: str = "2024-01-01") -> pd.DataFrame:
    """Return readings of sixty water meters, one in six days, in which nothing is wrong."""
    rng = np.random.default_rng(seed)
    parts = []
    for meter in range(60):
        days = pd.date_range(first_day, periods=n_days // 6, freq="6D")
        moments = days + pd.to_timedelta(rng.integers(0, 6 * 24 * 60, len(days)), unit="min")
        since = (moments - pd.Timestamp("2023-01-01")).total_seconds() / 86_400
        parts.append(
            pd.DataFrame(
                {
                    "meter": f"M{meter:02}",
                    "read_at": moments,
                    "level": (100 * meter + since * 0.4 + rng.uniform(0, 0.2, len(days))).round(2),
                    "pressure": rng.normal(3, 0.3, len(days)).round(3),
                    "temperature": rng.normal(12, 2, len(days)).round(2),
                }
            )
        )
    return pd.concat(parts).sort_values("read_at", ignore_index=True)


def make_sales(n_days: int, seed: int, first_day: str = "2024-01-01") -> pd.DataFrame:
    """Return what twenty shops sell each day, which drifts; nothing is wrong."""
    rng = np.random.default_rng(seed)
    drift = np.cumsum(rng.normal(0, 0.03, (20, n_days)), axis=1)
    sold = 500 * np.exp(np.arange(20)[:, np.newaxis] / 10 + drift)
    return pd.DataFrame(
        {
            "shop": np.repeat([f"S{shop:02}" for shop in range(20)], n_days),
            "day": np.tile(pd.date_range(first_day, periods=n_days), 20),
            "sold": sold.ravel().round(1),
            "visitors": rng.poisson(90, sold.size),
        }
    )


def make_logins(n_rows: int, seed: int) -> pd.DataFrame:
    """Return logins of 400 users within thirty days."""
    rng = np.random.default_rng(seed)
    minutes = np.sort(rng.integers(30 * 24 * 60, size=n_rows))
    return pd.DataFrame(
        {
            "user": [f"user{each:03}" for each in rng.integers(400, size=n_rows)],
            "at": pd.Timestamp("2024-03-01") + pd.to_timedelta(minutes, unit="min"),
            "seconds": rng.gamma(4.0, 30.0, n_rows).round(1),
        }
    )


def _print_reason(normal: pd.DataFrame, batch: pd.DataFrame, row: int, **options: Any) -> None:
    found = qms22.detect(normal, batch, k=20, **options)
    print(found.reasons[row][0])


def why_order(
    like: Mapping[str, Any] | None = None, first_day: str = "2024-01-01", **cells: Any
) -> None:
    """Change cells of one order, and print the first reason why it is suspicious.

    Parameters
    ----------
    like : mapping, optional
        Which order: the first with these cells.
    first_day : str
        Of the batch.
    **cells
        What is written into the order.
    """
    normal, batch = make_orders(1000, 0), make_orders(100, 1, first_day)
    is_like = np.logical_and.reduce(
        [np.ones(100, bool), *(batch[name] == value for name, value in (like or {}).items())]
    )
    row = int(np.argmax(is_like))
    batch = batch.astype(dict.fromkeys(cells, object))
    for name, value in cells.items():
        batch.at[row, name] = value
    _print_reason(normal, batch, row)


def why_load(**cells: float) -> None:
    """Change the load of a crane, which lifts less the further out it is, and print the reason."""
    rng = np.random.default_rng(0)
    loads = pd.DataFrame(
        {"weight": rng.uniform(10, 90, 3000).round(1), "distance": rng.normal(20, 4, 3000).round(1)}
    )
    loads = loads[loads["weight"] * loads["distance"] <= 1700].reset_index(drop=True)
    batch = loads[1000:1100].reset_index(drop=True)
    batch.loc[0, list(cells)] = list(cells.values())
    _print_reason(loads[:1000], batch, 0)


def why_copy(**cells: Any) -> None:
    """Repeat an order, with some cells changed, and print the first reason."""
    normal, batch = make_orders(1000, 0), make_orders(100, 1)
    again = batch.iloc[[40]].assign(**cells)
    _print_reason(normal, pd.concat([batch, again], ignore_index=True), 100)


def why_flags(**cells: int) -> None:
    """Write categories in columns of 0 and 1, change those of an order, and print the reason."""
    orders = make_orders(1000, 0), make_orders(100, 1)
    normal, batch = (each.join(pd.get_dummies(each.pop("category"), dtype=int)) for each in orders)
    batch.loc[40, list(cells)] = list(cells.values())
    _print_reason(normal, batch, 40)


def why_key(order: str) -> None:
    """Set the same number for two orders, and print the first reason of one of them."""
    normal, batch = make_orders(1000, 0), make_orders(100, 1)
    batch.loc[[40, 70], "order"] = order
    _print_reason(normal, batch, 70)


def why_sales(factor: float) -> None:
    """Multiply what a shop sold on one day, and print the first reason."""
    normal, batch = make_sales(90, 0), make_sales(30, 1, "2024-06-03")
    batch.loc[100, "sold"] *= factor
    _print_reason(normal, batch, 100)


def why_readings(change: Mapping[str, Sequence[Any]], meter: str = "M07", **options: Any) -> None:
    """Change cells of the last readings of a meter, and print the first reason of the last one."""
    normal, batch = make_readings(180, 0), make_readings(60, 1, "2024-06-29")
    rows = np.flatnonzero(batch["meter"] == meter)
    for name, values in change.items():
        batch.loc[rows[len(rows) - len(values) :], name] = list(values)
    _print_reason(normal, batch, int(rows[-1]), **options)


def why_limit(advances: Sequence[float]) -> None:
    """Let one clerk pay some advances, and print the first reason of the first."""
    normal, batch = make_orders(1000, 0), make_orders(100, 1)
    for seed, orders in enumerate((normal, batch)):
        rng = np.random.default_rng(2 + seed)
        orders["clerk"] = rng.choice(["Lam", "Novak", "Singh", "Berg"], len(orders))
        orders["advance"] = rng.lognormal(6, 0.8, len(orders)).round(2)
    rows = np.arange(40, 40 + len(advances))
    batch.loc[rows, "clerk"], batch.loc[rows, "advance"] = "Novak", list(advances)
    _print_reason(normal, batch, 40)


def why_silent(days: int) -> None:
    """Leave out some days of a shop, and print the first reason of its next row."""
    normal, batch = make_sales(90, 0), make_sales(30, 1, "2024-06-03")
    batch = batch.drop(index=range(100, 100 + days)).reset_index(drop=True)
    _print_reason(normal, batch, 100)


def why_login(times: int) -> None:
    """Let one user log in so many times within minutes, and print the first reason."""
    normal, batch = make_logins(2000, 0), make_logins(400, 1)
    rows = np.arange(200, 200 + times)
    batch.loc[rows, "user"] = "user042"
    batch.loc[rows, "at"] = batch.at[200, "at"] + pd.to_timedelta(np.arange(times), unit="min")
    _print_reason(normal, batch, 200)


def search_later(prices: float) -> None:
    """Search a later batch with other prices and one wrong weight, and print the answer."""
    normal, batch = make_orders(2000, 0), make_orders(100, 1, "2024-06-03", prices)
    batch.loc[50, ["weight", "bulky"]] = [812.0, "yes"]
    found = qms22.detect(normal, batch)
    print(found.verdict)
    for row in found.top:
        print("flagged:", found.reasons[row][0])
