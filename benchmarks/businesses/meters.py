"""Daily readings of smart meters: a panel of counters that go on, with season and weekend."""

from __future__ import annotations

import numpy as np
import pandas as pd

from businesses import parts
from businesses.plant import (
    Business,
    Row,
    accented,
    add,
    at_hour,
    duplicate,
    each,
    empty,
    equals,
    filled,
    in_year,
    mojibake,
    put,
    stuck,
    text,
    times,
    typo,
)

TARIFFS = {"household": 8.0, "heat pump": 22.0, "shop": 38.0, "workshop": 95.0}
N_METERS = 40


def draw(seed: int, period: int) -> pd.DataFrame:
    world, rng = parts.generators(seed, period)
    tariff = np.array(list(TARIFFS), dtype=object)[parts.pick(N_METERS, 4, world, 1.0)]
    tariff[:4] = list(TARIFFS)
    level = np.array([TARIFFS[name] for name in tariff]) * world.lognormal(0, 0.3, N_METERS)
    place = parts.places(N_METERS, world)
    owners = parts.people(N_METERS, world)
    start = world.uniform(2_000, 60_000, N_METERS)
    serial = [f"1EMH{world.integers(10**8, 10**9)}" for _ in range(N_METERS)]
    firmware = world.choice(["2.4.1", "2.4.3", "3.0.0", "3.1.2"], N_METERS, p=[0.3, 0.4, 0.2, 0.1])
    signal = world.normal(-75, 8, N_METERS)
    battery = world.uniform(60, 99, N_METERS)

    first, end = parts.span(period)
    begin = parts.span(0)[0]
    days = pd.date_range(first, end - pd.Timedelta(days=1), freq="D")
    warmth = (
        11 - 10 * np.cos(2 * np.pi * (days.day_of_year - 20) / 365) + rng.normal(0, 3.5, len(days))
    )
    # Counters go on from the period before.
    counter = draw(seed, period - 1)["reading_kwh"].to_numpy()[-N_METERS:] if period else start
    frames = []
    for day, degrees in zip(days, warmth, strict=True):
        weekend = np.where(day.day_of_week >= 5, 0.6, 1.0)
        factor = np.select(
            [tariff == "heat pump", (tariff == "shop") | (tariff == "workshop")],
            [max(0.2, 1.6 - degrees / 18), weekend],
            1.0,
        )
        used = np.round(level * factor * rng.lognormal(0, 0.12, N_METERS), 2)
        estimated = rng.random(N_METERS) < 0.03
        peak = np.round(used / 24 * rng.uniform(3.2, 4.8, N_METERS), 2)
        before, counter = np.round(counter, 2), np.round(counter + used, 2)
        age = (day - begin).days
        frames.append(
            pd.DataFrame(
                {
                    "meter": serial,
                    "customer": owners,
                    "postcode": place["postcode"],
                    "city": place["city"],
                    "tariff": tariff,
                    "read_at": day + pd.to_timedelta(rng.integers(0, 900, N_METERS), unit="s"),
                    "previous_kwh": before,
                    "used_kwh": used,
                    "reading_kwh": counter,
                    "peak_kw": parts.only_where(~estimated, peak),
                    "voltage": np.round(rng.normal(231, 1.5, N_METERS), 1),
                    "outdoor_c": np.round(degrees + rng.normal(0, 0.8, N_METERS), 1),
                    "signal_dbm": parts.only_where(
                        ~estimated, np.round(signal + rng.normal(0, 2, N_METERS))
                    ),
                    "battery_pct": np.round(battery - age / 40 + rng.normal(0, 0.3, N_METERS)),
                    "firmware": firmware,
                    "status": np.where(estimated, "estimated", "measured"),
                    "remark": parts.only_where(
                        rng.random(N_METERS) < 0.04,
                        rng.choice(["tenant changed", "visit planned", "seal checked"], N_METERS),
                    ),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def _more_used(row: Row, rng: np.random.Generator) -> dict[str, object]:
    """Use as much in a household as in a workshop, in all cells that follow."""
    used = round(float(rng.uniform(70, 120)), 2)
    return {
        "used_kwh": used,
        "reading_kwh": round(row["previous_kwh"] + used, 2),
        "peak_kw": round(used / 24 * 4, 2),
    }


def _backwards(row: Row, rng: np.random.Generator) -> dict[str, object]:
    used = -round(float(rng.uniform(3, 9)), 2)
    return {"used_kwh": used, "reading_kwh": round(row["previous_kwh"] + used, 2)}


BUSINESS = Business(
    "meters",
    draw,
    (
        each("time", "clock of the meter reset", in_year("read_at", 1970, 2000, 2069)),
        each("time", "read at noon", at_hour("read_at", 11, 12, 13)),
        each("kind", "household uses as a workshop", _more_used, equals("tariff", "household")),
        each("kind", "postcode of another city", put("postcode", "28195", "99084"), n=2),
        each("text", "typo of a tariff", typo("tariff")),
        each(
            "text", "malformed serial number", text("meter", lambda x: x[:4] + " " + x[5:-1]), n=2
        ),
        each("text", "decimal comma", text("voltage", lambda x: x.replace(".", ",")), n=2),
        each("text", "unit in the cell", text("outdoor_c", lambda x: f"{x} °C"), n=2),
        each("text", "damaged letters in a name", mojibake("customer"), accented("customer"), 2),
        each("text", "misspelt status", put("status", "mesured", "messured", "estimatet"), n=2),
        duplicate("reading sent twice", ()),
        stuck("stuck voltage", "meter", ("voltage",)),
        each("rule", "reading is not previous and used", add("reading_kwh", 8, 40)),
        each("rule", "measured without a peak", empty("peak_kw"), equals("status", "measured")),
        each("value", "peak times 10", times("peak_kw", 10), filled("peak_kw")),
        each("value", "counter runs backwards", _backwards, n=2),
        each("value", "code of an error as temperature", put("outdoor_c", 999.9, -99.9), n=2),
        each("value", "no voltage", put("voltage", 0.0), n=2),
    ),
    {
        "read_at": "%Y-%m-%d %H:%M:%S",
        "previous_kwh": ".2f",
        "used_kwh": ".2f",
        "reading_kwh": ".2f",
        "peak_kw": ".2f",
        "voltage": ".1f",
        "outdoor_c": ".1f",
        "signal_dbm": ".0f",
        "battery_pct": ".0f",
    },
    lambda rows: rows["read_at"].dt.normalize(),
)
