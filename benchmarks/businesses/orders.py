"""Orders of a webshop: a product has a price, tax follows from the country, status from dates."""

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

TAXES = {"DE": 19, "AT": 20, "NL": 21, "FR": 20, "BE": 21, "LU": 17}
CATEGORIES = parts.words(
    "books toys garden kitchen lamps textiles music sport shoes tools pets office beauty tea "
    "bikes cameras watches camping"
)


def draw(seed: int, period: int) -> pd.DataFrame:
    world, rng = parts.generators(seed, period)
    n_rows, earlier = parts.n_of_period(period, 4000, 1050)
    n_products, n_customers = 150, 1500
    category = np.array(CATEGORIES, dtype=object)[world.integers(len(CATEGORIES), size=n_products)]
    base = dict(zip(CATEGORIES, world.lognormal(3.2, 0.8, len(CATEGORIES)), strict=True))
    price = np.round([base[c] for c in category] * world.lognormal(0, 0.4, n_products)) + 0.99
    weight = np.round(price**0.5 * world.lognormal(-2, 0.5, n_products), 2) + 0.1
    names = parts.people(n_customers, world)
    mail, phone = parts.emails(list(names), world), parts.phones(n_customers, world)
    home = world.choice(list(TAXES), n_customers, p=[0.7, 0.1, 0.08, 0.06, 0.04, 0.02])
    postcodes = np.array(
        [parts.digits(5 if c in ("DE", "FR") else 4, world) for c in home], dtype=object
    )

    who = parts.pick(n_rows, parts.known_by(period, n_customers), rng, 0.4)
    what = parts.pick(n_rows, n_products, rng, 0.5)
    ordered = parts.moments(n_rows, *parts.span(period), rng, parts.evening_hours(), 1.3)
    quantity = 1 + rng.poisson(0.6, n_rows)
    has_coupon = rng.random(n_rows) < 0.12
    discount = np.where(has_coupon, rng.choice([5, 10, 15], n_rows), 0)
    now = np.round(price * 1.01**period - 0.99) + 0.99
    net = np.round(quantity * now[what] * (1 - discount / 100), 2)
    rate = np.array([TAXES[c] for c in home[who]])
    tax = np.round(net * rate / 100, 2)
    status = parts.levels(rng, n_rows, delivered=84, shipped=7, cancelled=5, returned=3, open=1)
    is_shipped = ~np.isin(status, ["cancelled", "open"])
    shipped = ordered.dt.normalize() + pd.to_timedelta(rng.integers(0, 3, n_rows), unit="D")
    arrived = shipped + pd.to_timedelta(1 + rng.poisson(1.2, n_rows), unit="D")
    return pd.DataFrame(
        {
            "order_no": parts.numbered("W-", 220_100 + earlier, n_rows, 7),
            "ordered_at": ordered,
            "customer": names[who],
            "email": mail[who],
            "phone": parts.only_where(who % 3 > 0, phone[who]),
            "country": home[who],
            "postcode": postcodes[who],
            "sku": [f"{category[i][:3].upper()}-{1000 + 7 * i}" for i in what],
            "category": category[what],
            "quantity": quantity,
            "unit_price": now[what],
            "coupon": parts.only_where(has_coupon, [f"SAVE{d}" for d in discount]),
            "discount_pct": discount,
            "net": net,
            "tax_pct": rate,
            "tax": tax,
            "gross": np.round(net + tax, 2),
            "weight_kg": np.round(weight[what] * quantity, 2),
            "payment": parts.levels(
                rng, n_rows, paypal=40, card=30, invoice=20, transfer=9, gift_card=1
            ),
            "status": status,
            "shipped_on": shipped.where(is_shipped),
            "delivered_on": arrived.where(np.isin(status, ["delivered", "returned"])),
            "newsletter": np.where(rng.random(n_rows) < 0.3, "true", "false"),
        }
    )


def _other_price(row: Row, rng: np.random.Generator) -> dict[str, object]:
    """Multiply the price of a product, and all that follows from it."""
    factor = float(rng.choice([0.2, 5]))
    net, tax = round(row["net"] * factor, 2), round(row["tax"] * factor, 2)
    price = round(row["unit_price"] * factor, 2)
    return {"unit_price": price, "net": net, "tax": tax, "gross": round(net + tax, 2)}


BUSINESS = Business(
    "orders",
    draw,
    (
        each(
            "time",
            "delivered before shipped",
            days_after("delivered_on", "shipped_on", -30, -5),
            filled("delivered_on"),
        ),
        each("time", "ordered in a far year", in_year("ordered_at", 2205, 2052, 1999)),
        each(
            "time",
            "shipped long after",
            days_after("shipped_on", "ordered_at", 200, 700),
            equals("status", "shipped"),
            2,
        ),
        each("kind", "price of another product", _other_price, n=2),
        each(
            "kind", "tax rate of another country", put("tax_pct", 7, 27), equals("country", "DE"), 2
        ),
        each("text", "e-mail without @", text("email", lambda x: x.replace("@", " at "))),
        each("text", "malformed article number", text("sku", lambda x: x.replace("-", "") + "X")),
        each("text", "damaged letters in a name", mojibake("customer"), accented("customer")),
        each("text", "misspelt truth value", put("newsletter", "ture", "flase", "fals"), n=2),
        each("text", "typo of a category", typo("category")),
        each(
            "text", "letters in the postcode", text("postcode", lambda x: x[:2] + "O" + x[3:]), n=2
        ),
        duplicate("order twice", ("order_no",), lambda rows: rows["net"] > 20),
        gathered(
            "burst of one customer",
            ("customer", "email", "phone", "country", "postcode", "tax_pct"),
            nothing,
            time="ordered_at",
            where=equals("country", "DE"),
        ),
        each("rule", "net and tax are not gross", add("gross", 5, 30)),
        each(
            "rule",
            "cancelled but delivered",
            put("status", "cancelled"),
            equals("status", "delivered"),
        ),
        each(
            "rule",
            "coupon without discount",
            put("coupon", "SAVE10", "SAVE15"),
            lambda rows: rows["coupon"].isna(),
            2,
        ),
        each("value", "hundred pieces", put("quantity", 100, 250, 1000)),
        each("value", "weight in grams", times("weight_kg", 1000)),
        each("value", "negative net", negative("net"), n=2),
    ),
    {
        "ordered_at": "%Y-%m-%d %H:%M:%S",
        "shipped_on": "%Y-%m-%d",
        "delivered_on": "%Y-%m-%d",
        "unit_price": ".2f",
        "net": ".2f",
        "tax": ".2f",
        "gross": ".2f",
        "weight_kg": ".2f",
    },
)
