"""Visits to a clinic: patients who return, codes of diagnoses with a season, an index of weight.

Made after the checks, as were the scans of a warehouse. Colds fade and hay fever comes, patients
get older and new ones come, a doctor leaves and another follows, and fees rise in June.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from businesses import parts
from businesses.plant import (
    Business,
    Row,
    accented,
    at_hour,
    between,
    days_after,
    duplicate,
    each,
    empty,
    equals,
    filled,
    in_year,
    mojibake,
    put,
    swap,
    text,
    times,
    typo,
)

# Code, name, department, weight in winter and its change from month to month.
DIAGNOSES = (
    ("J06.9", "acute respiratory infection", "general", 26.0, 0.75),
    ("J30.1", "hay fever", "general", 3.0, 1.6),
    ("I10", "hypertension", "cardiology", 20.0, 1.0),
    ("E11.9", "type 2 diabetes", "internal", 14.0, 1.0),
    ("M54.5", "low back pain", "orthopedics", 16.0, 1.0),
    ("S93.4", "sprained ankle", "orthopedics", 6.0, 1.15),
    ("L20.9", "atopic dermatitis", "dermatology", 7.0, 1.0),
    ("K21.9", "reflux disease", "internal", 8.0, 1.0),
)
HOLIDAYS = pd.to_datetime(["2025-01-01", "2025-04-18", "2025-04-21", "2025-05-01", "2025-06-09"])
DOCTORS = {
    "general": ("Dr. Weber", "Dr. Novák", "Dr. Lang"),
    "cardiology": ("Dr. Rossi", "Dr. Böhm"),
    "internal": ("Dr. Hansen", "Dr. Öztürk"),
    "orthopedics": ("Dr. Smit", "Dr. Vogel"),
    "dermatology": ("Dr. Conti",),
}
FEES = {"general": 28.0, "cardiology": 65.0, "internal": 48.0, "orthopedics": 52.0}
N_PATIENTS = 1100


def draw(seed: int, period: int) -> pd.DataFrame:
    world, rng = parts.generators(seed, period)
    sex = world.choice(["f", "m"], N_PATIENTS)
    age = np.clip(world.normal(48, 19, N_PATIENTS), 4, 93)
    born = pd.Timestamp(2025, 1, 1) - pd.to_timedelta(np.round(age * 365.25), unit="D")
    height = np.round(
        np.minimum(72 + 6.1 * age, np.where(sex == "f", 166, 179)) + world.normal(0, 6, N_PATIENTS)
    )
    weight = (
        (height / 100) ** 2
        * (16 + 9 * np.minimum(age, 40) / 40)
        * world.lognormal(0, 0.13, N_PATIENTS)
    )
    insurer = parts.levels(world, N_PATIENTS, AOK=40, TK=30, Barmer=18, private=12)
    names = parts.people(N_PATIENTS, world)

    n_rows, earlier = parts.n_of_period(period, 3300, 980)
    at = parts.moments(2 * n_rows, *parts.span(period), rng, parts.office_hours(), 0.04)
    at = at[~at.dt.normalize().isin(HOLIDAYS)].to_numpy()
    at = pd.Series(np.sort(rng.permutation(at)[:n_rows])).dt.floor("min")
    who = parts.pick(n_rows, parts.known_by(period, N_PATIENTS), rng, 0.35)
    month = at.dt.month.to_numpy()
    odds = np.array([[w * change ** (m - 2) for *_, w, change in DIAGNOSES] for m in range(1, 13)])
    odds /= odds.sum(axis=1, keepdims=True)
    what = np.array([rng.choice(len(DIAGNOSES), p=odds[m - 1]) for m in month])
    department = np.array([DIAGNOSES[i][2] for i in what], dtype=object)
    doctor = np.array([rng.choice(DOCTORS[d]) for d in department], dtype=object)
    # One doctor retires at the end of April.
    is_gone = (doctor == "Dr. Smit") & (month >= 5)
    doctor = np.where(is_gone, "Dr. Marchetti", doctor)
    years = (at - pd.Series(born[who])).dt.days / 365.25
    is_high = np.isin(what, [2])
    systolic = np.round(108 + 0.35 * years + 18 * is_high + rng.normal(0, 9, n_rows))
    diastolic = np.round(systolic * 0.42 + 26 + rng.normal(0, 5, n_rows))
    kilograms = np.round(weight[who] + rng.normal(0, 0.8, n_rows), 1)
    minutes = np.round(rng.gamma(4, 5, n_rows) + 4 * (department == "general"))
    fee = np.array([FEES.get(d, 44.0) for d in department]) * np.where(month >= 6, 1.03, 1.0)
    fee = np.round(fee * np.where(insurer[who] == "private", 2.3, 1.0), 2)
    returns = rng.random(n_rows) < 0.4
    following = at.dt.normalize() + pd.to_timedelta(7 * rng.integers(2, 14, n_rows), unit="D")
    return pd.DataFrame(
        {
            "visit": parts.numbered("V-", 71_000 + earlier, n_rows, 6),
            "arrived": at,
            "patient": [f"P{10_000 + 7 * i}" for i in who],
            "name": names[who],
            "sex": sex[who],
            "born": pd.Series(born[who]),
            "age": np.floor(years).astype(int),
            "department": department,
            "doctor": doctor,
            "diagnosis": [DIAGNOSES[i][0] for i in what],
            "in_words": [DIAGNOSES[i][1] for i in what],
            "pressure": [f"{s:.0f}/{d:.0f}" for s, d in zip(systolic, diastolic, strict=True)],
            "pulse": np.round(rng.normal(74, 9, n_rows)),
            "temperature": np.round(36.6 + 0.9 * (what == 0) + rng.normal(0, 0.25, n_rows), 1),
            "height_cm": height[who],
            "weight_kg": kilograms,
            "bmi": np.round(kilograms / (height[who] / 100) ** 2, 1),
            "insurer": insurer[who],
            "waited_min": minutes,
            "seen_at": at + pd.to_timedelta(minutes, unit="min"),
            "fee": fee,
            "returns": np.where(returns, "yes", "no"),
            "next_visit": following.where(returns),
        }
    )


def _heavier(row: Row, rng: np.random.Generator) -> dict[str, object]:
    return {"weight_kg": round(float(row["weight_kg"]) * float(rng.uniform(1.5, 1.8)), 1)}


BUSINESS = Business(
    "visits",
    draw,
    (
        each("time", "born after the visit", in_year("born", 2031, 2044)),
        each("time", "arrived at night", at_hour("arrived", 2, 3)),
        each(
            "time",
            "next visit before this one",
            days_after("next_visit", "arrived", -90, -10),
            filled("next_visit"),
        ),
        each(
            "kind",
            "department of another diagnosis",
            put("department", "dermatology"),
            equals("department", "cardiology", "orthopedics"),
        ),
        each(
            "kind",
            "doctor of another department",
            put("doctor", "Dr. Conti"),
            equals("department", "cardiology"),
        ),
        each(
            "kind",
            "fever with low back pain",
            between("temperature", 39.0, 40.2, 1),
            equals("diagnosis", "M54.5"),
        ),
        each("text", "typo of a diagnosis", typo("in_words")),
        each(
            "text",
            "code without a dot",
            text("diagnosis", lambda x: x.replace(".", "")),
            equals("diagnosis", "J06.9", "E11.9", "M54.5"),
            2,
        ),
        each("text", "pressure with one number", text("pressure", lambda x: x.split("/")[0]), n=2),
        each("text", "damaged letters in a name", mojibake("name"), accented("name"), 2),
        each("text", "unit in the cell", text("temperature", lambda x: f"{x} °C"), n=2),
        each("text", "malformed patient", text("patient", lambda x: x[0] + " " + x[1:]), n=2),
        duplicate("visit there twice", ("visit",)),
        each("rule", "weight is not of the index", _heavier),
        each("rule", "returns without a date", empty("next_visit"), equals("returns", "yes")),
        each("rule", "date of no return", put("returns", "no"), equals("returns", "yes")),
        each("rule", "age is not of the birth", put("age", 7), lambda rows: rows["age"] > 30),
        each("value", "height and weight exchanged", swap("height_cm", "weight_kg"), n=2),
        each("value", "pulse is zero", put("pulse", 0.0), n=2),
        each("value", "temperature in Fahrenheit", between("temperature", 97, 101, 1), n=2),
        each("value", "fee times 10", times("fee", 10), n=2),
    ),
    {
        "arrived": "%Y-%m-%d %H:%M",
        "born": "%Y-%m-%d",
        "seen_at": "%Y-%m-%d %H:%M",
        "next_visit": "%Y-%m-%d",
        "pulse": ".0f",
        "temperature": ".1f",
        "height_cm": ".0f",
        "weight_kg": ".1f",
        "bmi": ".1f",
        "waited_min": ".0f",
        "fee": ".2f",
    },
)
