"""Parcels of a carrier: the city sets depot and coordinates, service and weight the price."""

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
    both,
    days_after,
    duplicate,
    each,
    empty,
    equals,
    filled,
    gathered,
    in_year,
    mojibake,
    nothing,
    put,
    text,
    times,
    typo,
)

# Price of the service, days, mean weight.
SERVICES = {
    "standard": (4.9, 2, 3.0),
    "express": (11.9, 1, 2.0),
    "pallet": (89.0, 3, 160.0),
    "letter": (2.2, 2, 0.2),
}
SHIPPERS = parts.words(
    "Bücher Löwe|Technik24|Gartenwelt|Schuhhaus Brandt|Pharma Nord|Weinkontor Süd|"
    "Autoteile Jansen|Spielwaren Böhm|Modehaus Zoë|Büro Plus|Tierwelt|Kaffeerösterei Lang|"
    "Radhaus|Möbel Strauß",
    "|",
)
CITY_NAMES = [city for city, *_ in parts.CITIES]


def draw(seed: int, period: int) -> pd.DataFrame:
    world, rng = parts.generators(seed, period)
    n_rows, earlier = parts.n_of_period(period, 4000, 1050)
    shipper_service = world.dirichlet([4, 1.5, 0.25, 1], len(SHIPPERS))
    drivers = [f"{city[:3].upper()}-{i}" for city in CITY_NAMES for i in range(1, 5)]

    shipper = parts.pick(n_rows, len(SHIPPERS), rng, 0.5)
    service = np.array(
        [rng.choice(list(SERVICES), p=shipper_service[i]) for i in shipper], dtype=object
    )
    place, names = parts.places(n_rows, rng), parts.people(n_rows, rng)
    city = place["city"].to_numpy()
    mean = np.array([SERVICES[s][2] for s in service])
    weight = np.round(mean * rng.lognormal(-0.1, 0.45, n_rows), 2)
    side = (weight * 4500) ** (1 / 3)
    size = np.maximum(1, np.round(side[:, None] * rng.uniform(0.7, 1.4, (n_rows, 3)))).astype(int)
    size = -np.sort(-size, axis=1)
    zone = np.where(
        np.isin(city, ["Berlin", "Leipzig", "Dresden"]),
        "A",
        np.where(np.isin(city, ["Hamburg", "Hannover"]), "B", "C"),
    )
    base = np.array([SERVICES[s][0] for s in service]) * 1.005**period
    price = np.round(base + weight * np.select([zone == "A", zone == "B"], [0.3, 0.4], 0.5), 2)
    sent = parts.moments(
        n_rows, *parts.span(period), rng, {h: 1.0 + (h > 14) for h in range(8, 20)}, 0.1
    )
    days = np.array([SERVICES[s][1] for s in service]) + rng.poisson(0.25, n_rows)
    clock = rng.integers(8 * 60, 18 * 60, n_rows)
    delivered = (
        sent.dt.normalize() + pd.to_timedelta(days, unit="D") + pd.to_timedelta(clock, unit="min")
    )
    status = parts.levels(
        rng, n_rows, delivered=90, returned=4, in_transit=4, lost=0.6, customs=1.4
    )
    is_done = status == "delivered"
    cod = rng.random(n_rows) < 0.06
    return pd.DataFrame(
        {
            "tracking_no": parts.numbered("JD0146", 8_200_000 + earlier * 3, n_rows * 3, 10)[::3],
            "shipper": np.array(SHIPPERS, dtype=object)[shipper],
            "sent_at": sent,
            "service": service,
            "recipient": names,
            "city": city,
            "postcode": place["postcode"],
            "lat": place["lat"],
            "lon": place["lon"],
            "depot": [f"D{i}" for i in (10 + np.array([CITY_NAMES.index(c) for c in city]))],
            "driver": parts.only_where(
                is_done, [drivers[4 * CITY_NAMES.index(c) + rng.integers(4)] for c in city]
            ),
            "zone": zone,
            "weight_kg": weight,
            "size_cm": ["x".join(map(str, s)) for s in size],
            "price": price,
            "cash_on_delivery": np.where(cod, "1", "0"),
            "cod_amount": parts.only_where(cod, np.round(rng.lognormal(4, 0.6, n_rows), 2)),
            "attempts": np.where(status == "in_transit", 0, 1 + rng.poisson(0.12, n_rows)),
            "status": status,
            "delivered_at": delivered.where(is_done),
            "note": parts.only_where(
                rng.random(n_rows) < 0.1,
                rng.choice(
                    ["beim Nachbarn", "Tür links", "Klingel defekt", "Büro im 2. Stock"], n_rows
                ),
            ),
        }
    )


def _turned(row: Row, rng: np.random.Generator) -> dict[str, object]:
    return {"lat": row["lon"], "lon": row["lat"]}


DONE = equals("status", "delivered")
BUSINESS = Business(
    "parcels",
    draw,
    (
        each("time", "delivered before sent", days_after("delivered_at", "sent_at", -20, -2), DONE),
        each("time", "sent in a far year", in_year("sent_at", 2052, 2015)),
        each("time", "delivered at night", at_hour("delivered_at", 2, 3), DONE, 2),
        each(
            "kind",
            "letter of many kilograms",
            between("weight_kg", 8, 30),
            equals("service", "letter"),
        ),
        each(
            "kind",
            "pallet for the price of a letter",
            between("price", 2, 3),
            equals("service", "pallet"),
            2,
        ),
        each(
            "kind",
            "depot of another city",
            put("depot", "D21", "D20"),
            equals("city", "Berlin", "Hamburg", "Köln"),
        ),
        each(
            "text",
            "malformed tracking number",
            text("tracking_no", lambda x: x[:-2] + "O" + x[-1]),
            n=2,
        ),
        each("text", "typo of a city", typo("city")),
        each("text", "damaged letters in a shipper", mojibake("shipper"), accented("shipper"), 2),
        each("text", "size with two sides", text("size_cm", lambda x: x.rsplit("x", 1)[0]), n=2),
        each(
            "text",
            "size in another shape",
            text("size_cm", lambda x: x.replace("x", "/") + " cm"),
            n=2,
        ),
        each("text", "unit in the cell", text("weight_kg", lambda x: f"{x}kg"), n=2),
        duplicate("parcel twice", ("tracking_no",)),
        gathered(
            "burst to one recipient",
            ("recipient", "city", "postcode", "lat", "lon", "depot", "zone"),
            nothing,
            6,
            "sent_at",
            lambda rows: rows["status"] != "delivered",
        ),
        each("rule", "delivered without a time", empty("delivered_at"), DONE),
        each("rule", "lost but delivered", put("status", "lost"), DONE, 2),
        each("rule", "cash without an amount", empty("cod_amount"), filled("cod_amount"), 2),
        each("rule", "zone of another city", put("zone", "A"), lambda rows: rows["zone"] == "C"),
        each(
            "value",
            "weight in grams",
            times("weight_kg", 1000),
            equals("service", "standard", "express"),
        ),
        each("value", "coordinates exchanged", _turned, n=2),
        each("value", "coordinates are zero", both(put("lat", 0.0), put("lon", 0.0)), n=2),
    ),
    {
        "sent_at": "%Y-%m-%dT%H:%M:%S",
        "delivered_at": "%Y-%m-%dT%H:%M:%S",
        "weight_kg": ".2f",
        "price": ".2f",
        "cod_amount": ".2f",
        "lat": ".5f",
        "lon": ".5f",
    },
)
