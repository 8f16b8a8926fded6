"""Scans of a warehouse: the article sets lot, cost and place; stock before and after add up.

Made after the checks, as were the visits of a clinic. No one works on holidays, costs rise in May,
new articles and workers come, lots get newer, and the air warms up.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from businesses import parts
from businesses.plant import (
    Business,
    add,
    at_hour,
    days_after,
    duplicate,
    each,
    empty,
    equals,
    filled,
    gathered,
    in_year,
    negative,
    nothing,
    put,
    stuck,
    text,
    times,
    typo,
    wrong_digit,
)

# Mean quantity, cost of a piece, days that an article keeps.
GROUPS = {
    "dairy": (24, 0.9, 30),
    "bakery": (40, 1.4, 12),
    "drinks": (60, 0.7, 270),
    "frozen": (18, 3.2, 360),
    "household": (12, 4.5, 0),
}
ACTIONS = {"pick": 60, "put away": 22, "count": 10, "move": 8}
HOLIDAYS = pd.to_datetime(["2025-01-01", "2025-04-18", "2025-04-21", "2025-05-01", "2025-06-09"])
N_ARTICLES = 110


def draw(seed: int, period: int) -> pd.DataFrame:
    world, rng = parts.generators(seed, period)
    group = np.array(list(GROUPS), dtype=object)[parts.pick(N_ARTICLES, len(GROUPS), world, 0.4)]
    article = [f"{g[:2].upper()}-{parts.digits(5, world)}" for g in group]
    level = world.lognormal(0, 0.3, N_ARTICLES)
    place = [
        f"{'ABCD'[world.integers(4)]}-{world.integers(1, 25):02d}-{world.integers(1, 6)}"
        for _ in article
    ]
    workers = [f"W{n}" for n in world.permutation(np.arange(100, 999))[:26]]

    n_rows, earlier = parts.n_of_period(period, 3600, 1250)
    hours = {hour: 2.0 if 6 <= hour < 14 else 1.0 for hour in range(5, 22)}
    at = parts.moments(3 * n_rows, *parts.span(period), rng, hours, 0.25)
    at = at[~at.dt.normalize().isin(HOLIDAYS)].to_numpy()
    at = pd.Series(np.sort(rng.permutation(at)[:n_rows]))
    chosen = parts.pick(n_rows, parts.known_by(period, N_ARTICLES), rng, 0.5)
    kind = group[chosen]
    quantity, cost, keeps = (np.array([GROUPS[g][i] for g in kind]) for i in range(3))
    rise = np.where(at >= pd.Timestamp(2025, 5, 1), 1.04, 1.0)
    cost = np.round(cost * level[chosen] * rise, 2)
    action = parts.levels(rng, n_rows, **{name.replace(" ", "_"): p for name, p in ACTIONS.items()})
    pieces = np.maximum(1, np.round(quantity * rng.lognormal(0, 0.5, n_rows))).astype(int)
    season = 1 + 0.25 * (kind == "drinks") * min(period, 2)
    pieces = np.round(pieces * season).astype(int)
    before = pieces + rng.poisson(5 * quantity)
    sign = np.select([action == "pick", action == "put_away"], [-1, 1], 0)
    made = at.dt.normalize() - pd.to_timedelta(rng.integers(1, 12, n_rows), unit="D")
    made = made.where(keeps > 0)
    # A worker has a terminal of a hall; a few come in the course of the year.
    worker = parts.pick(n_rows, 20 + 2 * period, rng, 0.3)
    day = at.dt.day_of_year.to_numpy()
    air = 14 - 9 * np.cos(2 * np.pi * (day - 20) / 365) + rng.normal(0, 1.2, n_rows)
    return pd.DataFrame(
        {
            "scan": parts.numbered("SC", 400_000 + earlier, n_rows, 7),
            "scanned_at": at,
            "worker": np.array(workers, dtype=object)[worker],
            "terminal": [f"MC93-{w % 9 + 1}" for w in worker],
            "action": [a.replace("_", " ") for a in action],
            "article": np.array(article, dtype=object)[chosen],
            "group": kind,
            "place": np.array(place, dtype=object)[chosen],
            "lot": parts.only_where(keeps > 0, [f"L{x:%y%j}" if x == x else "" for x in made]),
            "best_before": made + pd.to_timedelta(keeps, unit="D"),
            "stock_before": before,
            "quantity": pieces,
            "stock_after": before + sign * pieces,
            "unit_cost": cost,
            "value": np.round(cost * pieces, 2),
            "room_c": np.round(
                np.select([kind == "frozen", kind == "dairy"], [-20.0, 4.0], air)
                + rng.normal(0, 0.5, n_rows),
                1,
            ),
            "battery_pct": np.round(100 - 70 * rng.beta(1.5, 2.5, n_rows)),
            "remark": parts.only_where(
                rng.random(n_rows) < 0.05,
                rng.choice(["foil torn", "label renewed", "counted twice"], n_rows),
            ),
        }
    )


BUSINESS = Business(
    "scans",
    draw,
    (
        each("time", "scanned in a far year", in_year("scanned_at", 2014, 2036)),
        each("time", "scanned at night", at_hour("scanned_at", 1, 2)),
        each(
            "time",
            "best before long past",
            days_after("best_before", "scanned_at", -900, -400),
            filled("best_before"),
        ),
        each(
            "kind", "frozen article in a warm room", put("room_c", 18.5), equals("group", "frozen")
        ),
        each("kind", "group of another article", put("group", "bakery"), equals("group", "drinks")),
        each("text", "typo of a group", typo("group")),
        each("text", "malformed place", text("place", lambda x: x.replace("-", ""))),
        each(
            "text", "lot with a letter too many", text("lot", lambda x: x + "B"), filled("lot"), 2
        ),
        each("text", "unit in the cell", text("quantity", lambda x: f"{x} pcs"), n=2),
        each("text", "misspelt action", put("action", "pikc", "put-away", "cout"), n=2),
        duplicate("scan sent twice", ("scan",)),
        stuck("stuck thermometer", "group", ("room_c",), 8, equals("group", "drinks")),
        gathered(
            "burst of counts", ("worker", "terminal", "article", "place"), nothing, 8, "scanned_at"
        ),
        each("rule", "stock does not add up", add("stock_after", 15, 60, 0)),
        each("rule", "value is not cost times quantity", times("value", 1.5, 0.5)),
        each("rule", "lot without a date", empty("best_before"), filled("best_before"), 2),
        each("value", "quantity times 100", times("quantity", 100.0, decimals=0), n=2),
        each("value", "negative stock", negative("stock_before"), n=2),
        each("value", "wrong digit in an article", wrong_digit("article"), n=2),
        each("value", "battery above full", put("battery_pct", 255.0), n=2),
    ),
    {
        "scanned_at": "%Y-%m-%d %H:%M:%S",
        "best_before": "%Y-%m-%d",
        "unit_cost": ".2f",
        "value": ".2f",
        "room_c": ".1f",
        "battery_pct": ".0f",
        "stock_before": ".0f",
        "quantity": ".0f",
        "stock_after": ".0f",
    },
)
