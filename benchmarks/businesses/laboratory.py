"""Results of a hospital laboratory: values and units by test, patients with their own level."""

from __future__ import annotations

import numpy as np
import pandas as pd

from businesses import parts
from businesses.plant import (
    Business,
    Row,
    accented,
    between,
    both,
    days_after,
    duplicate,
    each,
    empty,
    equals,
    filled,
    in_year,
    mojibake,
    put,
    stuck,
    swap,
    text,
    typo,
)

# Unit, lower and upper limit, decimals, analyser.
TESTS = {
    "Sodium": ("mmol/L", 135, 145, 0, "cobas-1"),
    "Potassium": ("mmol/L", 3.5, 5.1, 1, "cobas-1"),
    "Creatinine": ("mg/dL", 0.6, 1.2, 2, "cobas-1"),
    "Glucose": ("mg/dL", 70, 110, 0, "cobas-2"),
    "Calcium": ("mmol/L", 2.15, 2.55, 2, "cobas-2"),
    "CRP": ("mg/L", 0.3, 5.0, 1, "cobas-2"),
    "ALT": ("U/L", 10, 50, 0, "cobas-2"),
    "Bilirubin": ("mg/dL", 0.2, 1.2, 1, "cobas-1"),
    "Hemoglobin": ("g/dL", 12, 17, 1, "sysmex"),
    "Leukocytes": ("10^9/L", 4, 10, 1, "sysmex"),
    "Platelets": ("10^9/L", 150, 400, 0, "sysmex"),
    "INR": ("", 0.9, 1.2, 2, "stago"),
    "TSH": ("mU/L", 0.4, 4.0, 2, "cobas-3"),
    "PSA": ("ng/mL", 0.1, 4.0, 2, "cobas-3"),
    "Ferritin": ("ng/mL", 30, 300, 0, "cobas-3"),
    "Troponin": ("ng/L", 2, 14, 0, "cobas-3"),
}
WARDS = parts.words(
    "Emergency Cardiology Surgery Oncology Nephrology Gynecology Urology ICU Geriatrics"
)
STAFF = ["abauer", "jhansen", "mconti", "lvogel", "rsmit"]
COMMENTS = (
    "phoned to ward",
    "slightly hemolytic",
    "control in 24 h",
    "Kontrolle nächste Woche",
    "Röhrchen knapp gefüllt",
)


def draw(seed: int, period: int) -> pd.DataFrame:
    world, rng = parts.generators(seed, period)
    n_rows, earlier = parts.n_of_period(period, 4000, 1050)
    n_patients = 2000
    names = parts.people(n_patients, world)
    sex = world.choice(["F", "M"], n_patients)
    born = pd.Timestamp(2007, 1, 1) - pd.to_timedelta(
        np.clip(world.normal(50, 18, n_patients), 0, 82) * 365.25, unit="D"
    )
    level = world.normal(0, 0.5, (n_patients, len(TESTS)))
    age = (2025 - born.year).to_numpy()
    systolic = world.normal(105 + age / 2.5, 9)

    # Patients come and stay for some time: each has a number by arrival.
    share = np.arange(n_rows) / n_rows
    newest = 400 + (600 + 200 * (period - 1 + share) if period else 600 * share)
    who = (newest - np.minimum(rng.exponential(30, n_rows), 400)).astype(int)
    test = parts.pick(n_rows, len(TESTS), rng, 0.4)
    psa = list(TESTS).index("PSA")
    test = np.where((test == psa) & (sex[who] == "F"), 0, test)
    unit, low, high, decimals, device = (
        np.array(column, dtype=object) for column in zip(*TESTS.values(), strict=True)
    )
    low_, high_ = low[test].astype(float), high[test].astype(float)
    middle, width = (np.log(low_) + np.log(high_)) / 2, (np.log(high_) - np.log(low_)) / 4
    z = (
        level[who, test]
        + rng.normal(0, 0.8, n_rows)
        + 0.02 * (age[who] - 50) * (rng.random(n_rows) < 0.3)
    )
    value = np.array(
        [
            round(float(v), int(d))
            for v, d in zip(np.exp(middle + width * z), decimals[test], strict=True)
        ]
    )
    collected = parts.moments(
        n_rows, *parts.span(period), rng, {h: 5.0 if 6 <= h < 11 else 1.0 for h in range(24)}, 0.5
    )
    ordered = collected - pd.to_timedelta(rng.gamma(2, 25, n_rows).round(), unit="min")
    pending = rng.random(n_rows) < 0.02
    reported = collected + pd.to_timedelta((30 + rng.gamma(3, 20, n_rows)).round(), unit="min")
    wards = np.array(WARDS, dtype=object)
    men = rng.choice(wards[wards != "Gynecology"], n_rows)
    women = rng.choice(wards[wards != "Urology"], n_rows)
    upper = np.round(systolic[who] + rng.normal(0, 6, n_rows)).astype(int)
    lower = np.round(upper * 0.62 + rng.normal(0, 4, n_rows)).astype(int)
    return pd.DataFrame(
        {
            "result_id": 7_340_000 + earlier + np.arange(n_rows),
            "patient": [f"P{104_000 + i}" for i in who],
            "name": names[who],
            "born": born[who].normalize(),
            "sex": sex[who],
            "ward": np.where(sex[who] == "M", men, women),
            "ordered_at": ordered,
            "collected_at": collected,
            "reported_at": pd.Series(reported).where(~pending),
            "test": np.array(list(TESTS), dtype=object)[test],
            "value": parts.only_where(~pending, value),
            "unit": unit[test],
            "low": low[test],
            "high": high[test],
            "flag": np.where(
                pending, "", np.select([value < low_, value > high_], ["L", "H"], "N")
            ),
            "blood_pressure": parts.only_where(
                rng.random(n_rows) < 0.85, [f"{a}/{b}" for a, b in zip(upper, lower, strict=True)]
            ),
            "analyser": device[test],
            "technician": rng.choice(STAFF, n_rows),
            "status": np.where(pending, "pending", "final"),
            "comment": parts.only_where(rng.random(n_rows) < 0.06, rng.choice(COMMENTS, n_rows)),
        }
    )


def _turned(cell: str) -> str:
    upper, lower = cell.split("/")
    return f"{lower}/{upper}"


def _other_flag(row: Row, rng: np.random.Generator) -> dict[str, object]:
    return {"flag": "N" if row["flag"] != "N" else str(rng.choice(["H", "L"]))}


FINAL = equals("status", "final")
# Tests with so many values that equal ones in a row are odd.
PRECISE = equals("test", "Platelets", "TSH", "Ferritin")
PRESSURE = filled("blood_pressure")

BUSINESS = Business(
    "laboratory",
    draw,
    (
        each(
            "time",
            "reported before collected",
            days_after("reported_at", "collected_at", -20, -1),
            FINAL,
        ),
        each("time", "born in the future", in_year("born", 2026, 2068, 2031)),
        each(
            "time",
            "ordered months before",
            days_after("ordered_at", "collected_at", -200, -60),
            n=2,
        ),
        each(
            "kind",
            "potassium as a sodium value",
            both(between("value", 36, 48, 1), put("flag", "H")),
            equals("test", "Potassium"),
            2,
        ),
        each(
            "kind",
            "hemoglobin in g/L",
            lambda row, rng: {"value": row["value"] * 10, "flag": "H"},
            lambda rows: FINAL(rows) & (rows["test"] == "Hemoglobin"),
            2,
        ),
        each("kind", "PSA of a woman", put("sex", "F"), equals("test", "PSA"), 2),
        each(
            "text",
            "unit of another test",
            put("unit", "g/dL", "U/L"),
            equals("test", "Sodium", "Calcium", "Potassium"),
        ),
        each("text", "typo of a test", typo("test"), lambda rows: rows["test"].str.len() > 4),
        each(
            "text",
            "pressure in another shape",
            text("blood_pressure", lambda x: x.replace("/", " - ")),
            PRESSURE,
            2,
        ),
        each("text", "word as value", put("value", "hemolysed", "n. m.", "error 12"), FINAL, 2),
        each("text", "damaged letters in a name", mojibake("name"), accented("name"), 2),
        duplicate("result twice", ("result_id",), FINAL),
        stuck("analyser repeats a value", "test", ("value", "flag"), 6, PRECISE),
        each("rule", "flag disagrees with the value", _other_flag, FINAL),
        each("rule", "final without a time", empty("reported_at"), FINAL, 2),
        each("rule", "limits exchanged", swap("low", "high"), n=2),
        each("value", "pressure turned", text("blood_pressure", _turned), PRESSURE),
        each("value", "value times 100", lambda row, rng: {"value": row["value"] * 100}, FINAL, 2),
    ),
    {
        "born": "%Y-%m-%d",
        "ordered_at": "%Y-%m-%d %H:%M",
        "collected_at": "%Y-%m-%d %H:%M",
        "reported_at": "%Y-%m-%d %H:%M",
        "value": ".6g",
    },
)
