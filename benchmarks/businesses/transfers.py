"""Transfers of a bank: customers with a level of their own, and an approval above 10,000."""

from __future__ import annotations

import numpy as np
import pandas as pd

from businesses import parts
from businesses.plant import (
    Business,
    accented,
    at_hour,
    between,
    days_after,
    duplicate,
    each,
    empty,
    equals,
    filled,
    gathered,
    in_year,
    mojibake,
    negative,
    put,
    text,
    times,
    typo,
    wrong_digit,
)

LIMIT = 10_000
PURPOSES = {
    "salary": 2600.0,
    "rent": 950.0,
    "invoice": 1400.0,
    "insurance": 85.0,
    "energy": 120.0,
    "savings": 300.0,
    "loan": 480.0,
    "gift": 60.0,
    "refund": 45.0,
    "tuition": 750.0,
    "membership": 28.0,
    "tax": 1100.0,
}
COMPANIES = parts.words(
    "Stadtwerke Köln GmbH|Müller & Söhne KG|Hausverwaltung Böhm|Allrisk Versicherung AG|"
    "Nordlicht Energie|Bäckerei Schäfer|Finanzamt Mitte|Autohaus Krüger|Turnverein 1888|"
    "Gärtnerei Lang|Kanzlei Dr. Weiß|Baustoffe Jansen|Sprachschule Größer|IT-Haus Peeters|"
    "Möbel Strauß|Druckerei Olsen|Zahnarzt Dr. Nagy|Café Zoë|Spedition Horvát|Kita Löwenzahn",
    "|",
)


def draw(seed: int, period: int) -> pd.DataFrame:
    world, rng = parts.generators(seed, period)
    n_rows, earlier = parts.n_of_period(period, 3800, 1000)
    n_customers = 300
    debtors = parts.people(n_customers, world)
    is_firm = world.random(n_customers) < 0.2
    debtors[is_firm] = [f"{name.split()[1]} GmbH" for name in debtors[is_firm]]
    debtor_ibans = np.array([parts.iban("DE", world) for _ in debtors], dtype=object)
    size = world.lognormal(np.where(is_firm, 1.4, 0), 0.35)
    countries = ("DE", "AT", "NL", "FR", "ES")
    homes = world.choice(countries, len(COMPANIES) * 4, p=[0.7, 0.1, 0.08, 0.07, 0.05])
    creditor_ibans = np.array([parts.iban(home, world) for home in homes], dtype=object)
    bics = {
        "DE": "COBADEFF",
        "AT": "BKAUATWW",
        "NL": "INGBNL2A",
        "FR": "BNPAFRPP",
        "ES": "BBVAESMM",
    }

    who = parts.pick(n_rows, parts.known_by(period, n_customers), rng)
    to = parts.pick(n_rows, len(homes), rng, 0.6)
    purpose = np.array(list(PURPOSES), dtype=object)[parts.pick(n_rows, len(PURPOSES), rng, 0.5)]
    usual = np.array([PURPOSES[name] for name in purpose]) * 1.01**period
    amount = np.round(usual * size[who] * rng.lognormal(0, 0.3, n_rows), 2)
    booked = parts.moments(n_rows, *parts.span(period), rng, parts.office_hours(), weekend=0.1)
    is_instant = (rng.random(n_rows) < 0.15) & (amount < LIMIT)
    channel = parts.levels(rng, n_rows, app=45, web=30, standing_order=15, branch=7, phone=3)
    wait = np.where(is_instant, 0, np.where(booked.dt.day_of_week == 4, 3, 1))
    clerks = np.array(["kmeyer", "svogel", "hlang", "pwolff"])
    return pd.DataFrame(
        {
            "transfer_id": parts.numbered("TR", 4_810_000 + earlier, n_rows, 9),
            "booked_at": booked,
            "value_date": booked.dt.normalize() + pd.to_timedelta(wait, unit="D"),
            "debtor": debtors[who],
            "debtor_iban": debtor_ibans[who],
            "creditor": np.array(COMPANIES, dtype=object)[to % len(COMPANIES)],
            "creditor_iban": creditor_ibans[to],
            "creditor_bic": [bics[home] for home in homes[to]],
            "country": homes[to],
            "currency": "EUR",
            "amount": amount,
            "fee": np.where(is_instant, 0.5, np.where(channel == "branch", 2.5, 0.0)),
            "channel": channel,
            "instant": np.where(is_instant, "yes", "no"),
            "purpose": purpose,
            "reference": [_reference(name, rng) for name in purpose],
            "approved_by": parts.only_where(amount >= LIMIT, rng.choice(clerks, n_rows)),
        }
    )


def _reference(purpose: str, rng: np.random.Generator) -> str | None:
    number, month = rng.integers(1000, 9999), rng.integers(1, 13)
    texts = {
        "invoice": f"Invoice {number} of customer {rng.integers(100, 999)}",
        "rent": f"Rent {month:02d}, flat {rng.integers(1, 40)}",
        "insurance": f"Policy V-{number}",
        "energy": f"Contract {number}/{month:02d} gas and power",
        "tax": f"St.-Nr. {rng.integers(10, 99)}/{number}",
    }
    return texts.get(purpose, f"{purpose} {month:02d}") if rng.random() < 0.9 else None


BUSINESS = Business(
    "transfers",
    draw,
    (
        each("time", "booked in a far year", in_year("booked_at", 2052, 2035, 1925)),
        each("time", "value date before booking", days_after("value_date", "booked_at", -40, -9)),
        each(
            "time",
            "branch transfer at night",
            at_hour("booked_at", 2, 3),
            equals("channel", "branch"),
            2,
        ),
        each(
            "kind",
            "membership fee as high as a salary",
            between("amount", 2400, 4800),
            equals("purpose", "membership", "refund"),
        ),
        each("text", "wrong checksum of the IBAN", wrong_digit("creditor_iban", 4)),
        each("text", "IBAN too short", text("debtor_iban", lambda x: x[:-3]), n=2),
        each("text", "damaged letters in a name", mojibake("creditor"), accented("creditor")),
        each(
            "text",
            "typo of a channel",
            typo("channel"),
            equals("channel", "branch", "standing_order", "phone"),
        ),
        each("text", "currency spelt out", put("currency", "Euro", "EURO", "€"), n=2),
        each("text", "word as amount", put("amount", "unknown", "see invoice", "tbd"), n=2),
        duplicate("transfer twice", ("transfer_id",), lambda rows: rows["amount"] > 100),
        gathered(
            "amounts just below the limit",
            (
                "debtor",
                "debtor_iban",
            ),
            between("amount", 9900, 9999),
            n=5,
            where=lambda rows: rows["purpose"] != "salary",
        ),
        each("rule", "no approval above the limit", empty("approved_by"), filled("approved_by")),
        each("rule", "instant without its fee", put("fee", 0.0), equals("instant", "yes"), 2),
        each(
            "rule",
            "country is not the IBAN's",
            put("country", "NL", "AT"),
            lambda rows: rows["country"].isin(["DE"]),
        ),
        each("value", "amount times 100", times("amount", 100), lambda rows: rows["amount"] > 200),
        each("value", "negative amount", negative("amount"), n=2),
    ),
    {"booked_at": "%Y-%m-%d %H:%M:%S", "value_date": "%Y-%m-%d", "amount": ".2f", "fee": ".2f"},
)
