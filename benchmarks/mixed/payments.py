"""Payments with cards: a table that no setting was chosen on, to confirm what others show."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mixed import anomalies as make
from mixed.tables import MixedTable, draw_times, with_holes


def draw_payments(n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw payments: amounts and rates by merchant, durations by device; the fee follows."""
    # The usual amount in cents, and the rate in hundredths of a percent.
    merchants = {
        "fuel": (5500, 90),
        "grocery": (3200, 110),
        "online": (6000, 180),
        "restaurant": (4500, 150),
        "travel": (30000, 240),
    }
    durations = {"desktop": 350, "phone": 900, "terminal": 2200}
    merchant = rng.choice(list(merchants), n_rows, p=[0.15, 0.35, 0.25, 0.2, 0.05])
    device = rng.choice(list(durations), n_rows, p=[0.25, 0.35, 0.4])
    usual, rate = np.array([merchants[name] for name in merchant], dtype=float).T
    amount = np.round(usual * rng.lognormal(0, 0.6, n_rows))
    fee = np.round(25 + amount * rate / 10_000)
    age = np.round(rng.exponential(900, n_rows))
    duration = np.array([durations[name] for name in device]) * rng.lognormal(0, 0.2, n_rows)
    return pd.DataFrame(
        {
            "paid_at": draw_times(n_rows, rng, days=60, hours=(6, 23)),
            "merchant": merchant,
            "country": rng.choice(
                ["CZ", "DK", "PL", "PT", "SE"], n_rows, p=[0.1, 0.2, 0.4, 0.1, 0.2]
            ),
            "brand": rng.choice(["amex", "master", "visa"], n_rows, p=[0.1, 0.4, 0.5]),
            "device": device,
            "network": rng.choice(
                ["home", "mobile", "office", "proxy"], n_rows, p=[0.5, 0.3, 0.15, 0.05]
            ),
            "is_saved": rng.random(n_rows) < 0.6,
            "status": rng.choice([200.0, 202.0, 402.0], n_rows, p=[0.9, 0.06, 0.04]),
            "attempts": 1.0 + rng.poisson(0.15, n_rows),
            "amount_cents": amount,
            "rate": rate,
            "fee_cents": fee,
            "net_cents": amount - fee,
            "duration_ms": np.round(duration),
            "account_days": age,
            "past_payments": rng.poisson(2 + age / 15).astype(float),
            "risk": with_holes(np.round(100 * rng.beta(1.5, 8, n_rows)), 0.1, rng),
        }
    )


PAYMENTS = MixedTable(
    "payments",
    draw_payments,
    {
        "spike": make.spike(duration_ms=6000, attempts=5, risk=75),
        "wrong sign": make.wrong_sign("net_cents"),
        "impossible value": make.impossible("account_days", [-30, -1, 36500, 99999]),
        "broken product": make.broken_product("fee_cents"),
        "swapped columns": make.swapped("account_days", "past_payments"),
        "clustered fraud": make.clustered(
            country="PT", brand="amex", network="proxy", account_days=40.0, risk=31.0
        ),
        "new level": make.new_level("brand", "jcb"),
        "shifted subgroup": make.shifted("duration_ms", 900.0, "device", "desktop"),
        "odd hours": make.odd_hours("paid_at", [1, 2, 3, 4]),
        "missing cells": make.missing("amount_cents", "duration_ms", "device", "brand"),
        "repeated rows": make.repeated(),
        "broken constant": make.impossible("rate", [70, 130, 210]),
    },
)
