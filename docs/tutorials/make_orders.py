"""Write two tables of a small shop: ``python make_orders.py``.

``march.csv`` has orders that somebody has checked. ``week-1.csv`` and ``week-2.csv`` have those of
the next weeks, which nobody has looked at: 20 orders of week 1 are wrong. ``truth.csv`` says which.
"""

import numpy as np
import pandas as pd

CATEGORIES = {"books": 14.0, "toys": 22.0, "garden": 35.0, "kitchen": 48.0, "electronics": 120.0}
TROUBLES = ["wrong total"] * 4 + ["odd return"] * 4 + ["fraud"] * 12


def make_orders(n_rows, first_day, n_days, first_number, rng):
    """Return ordinary orders, one per row, in the order of time."""
    category = rng.choice(list(CATEGORIES), n_rows, p=[0.35, 0.25, 0.15, 0.15, 0.1])
    hour = np.clip(rng.normal(14.5, 3.5, n_rows), 6, 22.9)
    days = rng.integers(n_days, size=n_rows)
    quantity = 1 + rng.poisson(0.8, n_rows)
    price = np.array([CATEGORIES[name] for name in category]) * rng.lognormal(0, 0.3, n_rows)
    orders = pd.DataFrame(
        {
            "time": pd.Timestamp(first_day)
            + pd.to_timedelta(days * 24 + hour, unit="h").round("min"),
            "country": rng.choice(
                ["DE", "FR", "NL", "AT", "PL"], n_rows, p=[0.5, 0.2, 0.15, 0.1, 0.05]
            ),
            "category": category,
            "payment": rng.choice(["card", "invoice", "wallet"], n_rows, p=[0.5, 0.3, 0.2]),
            "quantity": quantity,
            "price": price.round(2),
            "total": (quantity * price.round(2)).round(2),
            "rating": np.where(rng.random(n_rows) < 0.3, np.nan, rng.integers(3, 6, n_rows)),
        }
    ).sort_values("time", ignore_index=True)
    orders.insert(0, "order", np.arange(n_rows) + first_number)
    return orders


def spoil(orders, rng):
    """Make some orders wrong, in three ways; return which, and how."""
    rows = rng.choice(len(orders), len(TROUBLES), replace=False)
    wrong, returned, fraud = rows[:4], rows[4:8], rows[8:]
    orders.loc[wrong, "total"] = (orders.loc[wrong, "total"] * 10).round(2)
    orders.loc[returned, ["payment", "quantity"]] = ["voucher", -1]
    # Somebody buys electronics at night with stolen cards.
    night = pd.to_timedelta(rng.uniform(1.5, 3.5, len(fraud)), unit="h").round("min")
    orders.loc[fraud, "time"] = orders.loc[fraud, "time"].dt.normalize() + night
    orders.loc[fraud, ["country", "category", "payment"]] = ["PL", "electronics", "card"]
    orders.loc[fraud, "price"] = (120 * rng.lognormal(0, 0.3, len(fraud))).round(2)
    orders.loc[fraud, "total"] = (orders["quantity"] * orders["price"]).loc[fraud].round(2)
    return pd.DataFrame({"order": orders["order"][rows].array, "trouble": TROUBLES})


def write_money(orders, path):
    """Write a table with amounts as people write them."""
    money = {name: orders[name].map("{:.2f} €".format) for name in ("price", "total")}
    orders.assign(rating=orders["rating"].astype("Int64"), **money).to_csv(path, index=False)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    write_money(make_orders(2000, "2024-03-01", 31, 10_001, rng), "march.csv")
    week = make_orders(300, "2024-04-01", 7, 12_001, rng)
    spoil(week, rng).to_csv("truth.csv", index=False)
    write_money(week, "week-1.csv")
    write_money(make_orders(300, "2024-04-08", 7, 12_301, rng), "week-2.csv")
