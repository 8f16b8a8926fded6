"""Bookings of a hotel: nights from the dates, total from nights and rate, season, rare rooms."""

from __future__ import annotations

import numpy as np
import pandas as pd

from businesses import parts
from businesses.plant import (
    Business,
    Row,
    accented,
    add,
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
    nothing,
    put,
    text,
    times,
    typo,
)

# Rate, most guests, floor, number of rooms.
ROOMS = {
    "single": (79, 1, 1, 30),
    "double": (119, 2, 2, 50),
    "family": (169, 4, 3, 20),
    "suite": (289, 2, 4, 8),
    "penthouse": (690, 4, 5, 2),
}
COUNTRIES = parts.words("DE AT CH NL FR IT GB US PL CZ DK SE ES BE JP")
REMARKS = (
    "late arrival",
    "quiet room please",
    "baby cot needed",
    "Geburtstag, bitte Blumen",
    "Allergie: Nüsse",
    "Parkplatz für 2 Autos",
    "vegetarian breakfast",
)


def draw(seed: int, period: int) -> pd.DataFrame:
    world, rng = parts.generators(seed, period)
    n_rows, earlier = parts.n_of_period(period, 3800, 1000)
    n_guests = 2600
    names = parts.people(n_guests, world)
    mails, phones = parts.emails(list(names), world), parts.phones(n_guests, world)
    homes = np.array(COUNTRIES, dtype=object)[parts.pick(n_guests, len(COUNTRIES), world, 1.2)]

    who = rng.integers(0, parts.known_by(period, n_guests), n_rows)
    room = np.array(list(ROOMS), dtype=object)[
        rng.choice(5, n_rows, p=[0.25, 0.5, 0.17, 0.07, 0.01])
    ]
    rate, most, floor, n_rooms = (np.array(x) for x in zip(*(ROOMS[r] for r in room), strict=True))
    booked = parts.moments(n_rows, *parts.span(period), rng, parts.evening_hours())
    arrival = booked.dt.normalize() + pd.to_timedelta(
        (1 + rng.gamma(1.3, 22, n_rows)).round(), unit="D"
    )
    nights = np.minimum(1 + rng.poisson(1.4, n_rows), 14)
    season = 1 + 0.05 * np.sin(2 * np.pi * (arrival.dt.day_of_year - 100) / 365)
    channel = parts.levels(rng, n_rows, portal=48, website=30, phone=10, agency=8, walk_in=4)
    price = np.round(
        rate * season * rng.normal(1, 0.05, n_rows) * np.where(channel == "agency", 0.85, 1)
    )
    adults = np.minimum(most, 1 + (rng.random(n_rows) < 0.75))
    children = np.where(room == "family", rng.choice([0, 1, 2], n_rows, p=[0.2, 0.4, 0.4]), 0)
    breakfast = rng.random(n_rows) < 0.6
    extras = np.where(rng.random(n_rows) < 0.2, np.round(rng.lognormal(3.2, 0.5, n_rows), 2), 0.0)
    meals = np.where(breakfast, 16 * (adults + children) * nights, 0)
    total = np.round(price * nights + meals + extras, 2)
    status = parts.levels(rng, n_rows, confirmed=55, checked_out=32, cancelled=11, no_show=2)
    is_off = status == "cancelled"
    wait = ((arrival - booked.dt.normalize()).dt.days * rng.random(n_rows)).round()
    return pd.DataFrame(
        {
            "booking_no": parts.numbered("B", 57_300 + earlier, n_rows, 7),
            "booked_at": booked,
            "guest": names[who],
            "email": mails[who],
            "phone": parts.only_where(who % 4 > 0, phones[who]),
            "country": homes[who],
            "channel": channel,
            "arrival": arrival,
            "departure": arrival + pd.to_timedelta(nights, unit="D"),
            "nights": nights,
            "room_type": room,
            "room_no": floor * 100 + 1 + rng.integers(0, n_rooms),
            "adults": adults,
            "children": children,
            "rate": price,
            "breakfast": np.where(breakfast, "yes", "no"),
            "breakfast_total": meals,
            "extras": extras,
            "total": total,
            "deposit": np.where(channel == "walk_in", 0.0, np.round(total * 0.2, 2)),
            "status": status,
            "cancelled_on": (booked.dt.normalize() + pd.to_timedelta(wait, unit="D")).where(is_off),
            "remark": parts.only_where(rng.random(n_rows) < 0.12, rng.choice(REMARKS, n_rows)),
        }
    )


def _dear(row: Row, rng: np.random.Generator) -> dict[str, object]:
    """Sell a single room at the rate of a suite, in all cells that follow."""
    rate = round(float(rng.uniform(270, 330)))
    total = round(rate * row["nights"] + row["breakfast_total"] + row["extras"], 2)
    return {"rate": rate, "total": total, "deposit": round(total * 0.2, 2)}


BUSINESS = Business(
    "bookings",
    draw,
    (
        each("time", "departure before arrival", days_after("departure", "arrival", -8, -2)),
        each("time", "arrival before the booking", days_after("arrival", "booked_at", -90, -20)),
        each("time", "arrival in a far year", in_year("arrival", 2052, 2205), n=2),
        each(
            "kind",
            "single room at the rate of a suite",
            _dear,
            lambda rows: (rows["room_type"] == "single") & (rows["channel"] != "walk_in"),
        ),
        each(
            "kind",
            "room number of another type",
            lambda row, rng: {"room_no": 400 + int(rng.integers(1, 9))},
            equals("room_type", "single", "double"),
        ),
        each(
            "kind",
            "children in a single room",
            put("children", 2, 3),
            equals("room_type", "single"),
            2,
        ),
        each(
            "text", "e-mail without a domain", text("email", lambda x: x.split("@")[0] + "@"), n=3
        ),
        each(
            "text", "malformed phone", text("phone", lambda x: x[4:8] + "/abc"), filled("phone"), 2
        ),
        each("text", "typo of a room type", typo("room_type")),
        each(
            "text",
            "country spelt out",
            put("country", "Germany", "D", "de"),
            equals("country", "DE"),
            3,
        ),
        each("text", "damaged letters in a name", mojibake("guest"), accented("guest")),
        each("text", "misspelt truth value", put("breakfast", "yse", "nno", "yes?"), n=2),
        duplicate("booking twice", ("booking_no",)),
        gathered(
            "burst of one guest", ("guest", "email", "phone", "country"), nothing, 6, "booked_at"
        ),
        each(
            "rule",
            "nights are not the dates'",
            lambda row, rng: {"nights": row["nights"] + int(rng.integers(3, 7))},
        ),
        each("rule", "total is not the sum", add("total", 60, 300)),
        each("rule", "cancelled without a date", empty("cancelled_on"), filled("cancelled_on"), 2),
        each(
            "rule",
            "breakfast charged but not taken",
            put("breakfast", "no"),
            equals("breakfast", "yes"),
            2,
        ),
        each("value", "rate times 10", times("rate", 10), n=2),
        each("value", "forty guests", put("adults", 40, 22, 11), n=2),
        each("value", "negative extras", negative("extras"), lambda rows: rows["extras"] > 0, 2),
    ),
    {
        "booked_at": "%Y-%m-%d %H:%M",
        "arrival": "%Y-%m-%d",
        "departure": "%Y-%m-%d",
        "cancelled_on": "%Y-%m-%d",
        "rate": ".2f",
        "extras": ".2f",
        "total": ".2f",
        "deposit": ".2f",
    },
)
