"""Sensors of machines by the minute: programs set the load, the hour the shift; counters go on."""

from __future__ import annotations

import numpy as np
import pandas as pd

from businesses import parts
from businesses.plant import (
    Business,
    accented,
    add,
    between,
    each,
    equals,
    in_year,
    mojibake,
    negative,
    put,
    stuck,
    text,
    times,
)

# Speed, load in per cent, parts a minute.
PROGRAMS = {
    "P100": (1200, 35, 6),
    "P120": (1800, 50, 9),
    "P200": (2400, 70, 4),
    "P310": (900, 85, 2),
}
MACHINES = ("CNC-01", "CNC-02", "PRESS-1", "MILL-07")
OPERATORS = {"early": ("Krüger", "Nagy", "Lang"), "late": ("Böhm", "Smit")}


def draw(seed: int, period: int) -> pd.DataFrame:
    world, rng = parts.generators(seed, period)
    bias = world.normal(0, 3, len(MACHINES))
    pressure = world.uniform(4, 9, len(MACHINES))
    count = world.integers(100_000, 900_000, len(MACHINES))
    # The normal period is a day from 6 to 22 o'clock, others are some hours of the days after.
    begin = pd.Timestamp(2025, 3, 3 + period, 12 if period else 6, 0)
    n = 255 if period else 960
    at = pd.date_range(begin, periods=n, freq="min")
    shift = np.where(at.hour < 14, "early", "late")
    frames = []
    for i, machine in enumerate(MACHINES):
        program = np.repeat(rng.choice(list(PROGRAMS), n // 15 + 1), 15)[:n]
        is_idle = np.repeat(rng.random(n // 10 + 1) < 0.08, 10)[:n]
        speed, load, rate = np.array([PROGRAMS[p] for p in program], dtype=float).T
        load = np.where(is_idle, 3, load) + rng.normal(0, 1.5, n)
        speed = np.where(is_idle, 0, np.round(speed + rng.normal(0, 8, n)))
        made = np.where(is_idle, 0, rng.poisson(rate))
        scrap = rng.binomial(made, 0.02)
        # Temperature follows the load slowly.
        warmth = pd.Series(load).ewm(halflife=12).mean().to_numpy()
        voltage, current = rng.normal(400, 1.5, n), 4 + load * 0.3 + rng.normal(0, 0.3, n)
        start = count[i] + 9_000 * period
        turn = rng.integers(6, size=24)[at.hour]
        alarm = (rng.random(n) < 0.01) & ~is_idle
        frames.append(
            pd.DataFrame(
                {
                    "time": at,
                    "machine": machine,
                    "shift": shift,
                    "operator": [
                        OPERATORS[s][r % len(OPERATORS[s])]
                        for s, r in zip(shift, turn, strict=True)
                    ],
                    "state": np.where(is_idle, "idle", "running"),
                    "program": program,
                    "speed_rpm": speed.astype(int),
                    "load_pct": np.round(np.maximum(load, 0), 1),
                    "temp_c": np.round(24 + warmth * 0.5 + bias[i] + rng.normal(0, 0.4, n), 1),
                    "pressure_bar": np.round(pressure[i] + rng.normal(0, 0.06, n), 2),
                    "vibration": np.round(0.4 + speed / 1500 * rng.lognormal(0, 0.12, n), 2),
                    "voltage": np.round(voltage, 1),
                    "current": np.round(current, 1),
                    "power_kw": np.round(
                        np.round(voltage, 1) * np.round(current, 1) * 1.73 * 0.9 / 1000, 2
                    ),
                    "made": made,
                    "scrap": scrap,
                    "good": made - scrap,
                    "total": start + np.cumsum(made),
                    "alarm": parts.only_where(alarm, rng.choice(["A12", "A31", "W07"], n)),
                }
            )
        )
    return pd.concat(frames).sort_values(["time", "machine"], ignore_index=True)


def _operator(shift: str, turn: int) -> str:
    return OPERATORS[shift][turn % len(OPERATORS[shift])]


RUNNING = equals("state", "running")
BUSINESS = Business(
    "machines",
    draw,
    (
        each("time", "clock reset", in_year("time", 1970, 2099)),
        each(
            "kind",
            "speed of another program",
            between("speed_rpm", 2300, 2500, 0),
            lambda rows: RUNNING(rows) & rows["program"].isin(["P310", "P100"]),
        ),
        each(
            "kind",
            "pressure of no machine like this",
            add("pressure_bar", 1.2, 1.8),
            equals("machine", "PRESS-1"),
            2,
        ),
        each("kind", "hot while idle", between("temp_c", 66, 75, 1), equals("state", "idle"), 2),
        each("text", "decimal comma", text("temp_c", lambda x: x.replace(".", ",")), n=2),
        each("text", "unit in the cell", text("pressure_bar", lambda x: f"{x} bar"), n=2),
        each("text", "typo of a state", put("state", "runing", "runnign", "RUN"), n=2),
        each(
            "text",
            "malformed program",
            text("program", lambda x: x.replace("0", "O")),
            lambda rows: rows["program"] != "P310",
            2,
        ),
        each("text", "word as number", put("vibration", "OVERFLOW", "ERR", "#REF!"), n=2),
        each("text", "damaged letters in a name", mojibake("operator"), accented("operator"), 2),
        stuck("stuck vibration", "machine", ("vibration",), 8),
        stuck("stuck temperature", "machine", ("temp_c",), 10),
        each(
            "rule",
            "good and scrap are not made",
            lambda row, rng: {"good": row["good"] + int(rng.integers(3, 9))},
        ),
        each(
            "rule",
            "shift is not the hour's",
            lambda row, rng: {"shift": "late" if row["shift"] == "early" else "early"},
        ),
        each(
            "rule",
            "idle but turning",
            put("state", "idle"),
            lambda rows: RUNNING(rows) & (rows["made"] > 1),
        ),
        each("rule", "power is not voltage and current", times("power_kw", 0.5, 1.8)),
        each(
            "value",
            "temperature in Fahrenheit",
            lambda row, rng: {"temp_c": round(row["temp_c"] * 1.8 + 32, 1)},
        ),
        each("value", "current times 10", times("current", 10), n=2),
        each("value", "counter back to zero", put("total", 0, 3, 17), n=2),
        each("value", "negative pressure", negative("pressure_bar"), n=2),
    ),
    {
        "time": "%Y-%m-%d %H:%M",
        "speed_rpm": ".0f",
        "load_pct": ".1f",
        "temp_c": ".1f",
        "pressure_bar": ".2f",
        "vibration": ".2f",
        "voltage": ".1f",
        "current": ".1f",
        "power_kw": ".2f",
    },
    lambda rows: rows["time"].dt.floor("15min"),
)
