"""Claims of an insurer: payment follows from claim and deductible, status from dates."""

from __future__ import annotations

import numpy as np
import pandas as pd

from businesses import parts
from businesses.plant import (
    Business,
    accented,
    add,
    between,
    days_after,
    duplicate,
    each,
    empty,
    equals,
    filled,
    gathered,
    mojibake,
    negative,
    nothing,
    put,
    text,
    typo,
    wrong_digit,
)

# Mean claim, and the causes, each with a short text.
LINES = {
    "motor": (
        2800,
        {
            "collision": "Auffahrunfall an der Ampel",
            "glass": "Steinschlag in Windschutzscheibe",
            "theft": "Fahrzeug vom Parkplatz gestohlen",
            "hail": "Hagelschäden an Dach und Haube",
        },
    ),
    "home": (
        3600,
        {
            "fire": "Küchenbrand durch Herdplatte",
            "water": "Rohrbruch im Badezimmer",
            "burglary": "Einbruch über Terrassentür",
            "storm": "Dachziegel durch Sturm gelöst",
        },
    ),
    "liability": (
        1200,
        {"bodily injury": "Sturz auf nassem Boden", "property": "Brille des Nachbarn zerbrochen"},
    ),
    "travel": (
        650,
        {
            "cancellation": "Reise wegen Krankheit storniert",
            "luggage": "Koffer nicht angekommen",
            "illness": "Arztbesuch im Ausland",
        },
    ),
    "legal": (1700, {"dispute": "Streit mit Vermieter", "traffic": "Bußgeldverfahren"}),
    "health": (
        420,
        {"dental": "Zahnersatz", "glasses": "Brille", "hospital": "Stationärer Aufenthalt"},
    ),
}
DEDUCTIBLES = {"motor": 300, "home": 150, "liability": 0, "travel": 100, "legal": 250, "health": 0}
PREFIXES = {
    "motor": "KFZ",
    "home": "HAU",
    "liability": "HAF",
    "travel": "REI",
    "legal": "REC",
    "health": "KRA",
}
ADDED = (", Fotos liegen bei", ", Gutachten folgt", ", Zeuge benannt", ", Rechnung anbei")
REVIEW = 8000


def draw(seed: int, period: int) -> pd.DataFrame:
    world, rng = parts.generators(seed, period)
    n_rows, earlier = parts.n_of_period(period, 3600, 950)
    n_policies = 1600
    line = np.array(list(LINES), dtype=object)[parts.pick(n_policies, len(LINES), world, 0.7)]
    holders, place = parts.people(n_policies, world), parts.places(n_policies, world)
    accounts = np.array([parts.iban("DE", world) for _ in holders], dtype=object)
    begun = pd.Timestamp(2024, 11, 1) - pd.to_timedelta(
        world.integers(0, 5000, n_policies), unit="D"
    )
    letters = world.choice(["AB", "KL", "MX", "TR", "ZU"], n_policies)
    numbers = world.integers(100, 9999, n_policies)
    plates = [
        f"{city[0]}-{pair} {number}"
        for city, pair, number in zip(place["city"], letters, numbers, strict=True)
    ]

    who = rng.integers(0, parts.known_by(period, n_policies), n_rows)
    kind = line[who]
    reported = parts.moments(n_rows, *parts.span(period), rng, parts.office_hours(), 0.15)
    delay = np.minimum(rng.gamma(1.2, 6, n_rows), 55)
    lost = reported.dt.normalize() - pd.to_timedelta(delay.round(), unit="D")
    cause = [str(rng.choice(list(LINES[k][1]))) for k in kind]
    story = [LINES[k][1][c] for k, c in zip(kind, cause, strict=True)]
    mean = np.array([LINES[k][0] for k in kind]) * 1.008**period
    claimed = np.round(mean * rng.lognormal(-0.3, 0.7, n_rows), 2)
    deductible = np.array([DEDUCTIBLES[k] for k in kind])
    status = parts.levels(rng, n_rows, paid=62, open=25, declined=10, withdrawn=3)
    paid = np.where(status == "paid", np.maximum(np.round(claimed - deductible, 2), 0), 0)
    closed = reported.dt.normalize() + pd.to_timedelta(
        (3 + rng.gamma(2, 6, n_rows)).round(), unit="D"
    )
    adjusters = parts.people(14, world)
    return pd.DataFrame(
        {
            "claim_no": parts.numbered("S25-", 31_000 + earlier, n_rows, 6),
            "policy_no": [
                f"{PREFIXES[k]}-{400_000 + 13 * i}" for k, i in zip(kind, who, strict=True)
            ],
            "holder": holders[who],
            "line": kind,
            "cause": cause,
            "policy_start": begun[who],
            "loss_date": lost,
            "reported_at": reported,
            "postcode": place["postcode"].to_numpy()[who],
            "city": place["city"].to_numpy()[who],
            "plate": parts.only_where(kind == "motor", np.array(plates, dtype=object)[who]),
            "description": [x if rng.random() < 0.7 else x + rng.choice(ADDED) for x in story],
            "claimed": claimed,
            "deductible": deductible,
            "paid": paid,
            "reserve": np.where(status == "open", np.round(claimed * 0.9, -1), 0.0),
            "iban": parts.only_where(status == "paid", accounts[who]),
            "adjuster": adjusters[parts.pick(n_rows, 14, rng, 0.4)],
            "needs_review": np.where(claimed >= REVIEW, "Y", "N"),
            "status": status,
            "closed_on": closed.where(status != "open"),
        }
    )


PAID = equals("status", "paid")
BUSINESS = Business(
    "claims",
    draw,
    (
        each("time", "loss after the report", days_after("loss_date", "reported_at", 20, 90)),
        each(
            "time",
            "loss before the policy began",
            days_after("loss_date", "policy_start", -900, -100),
            n=2,
        ),
        each(
            "time",
            "closed before the report",
            days_after("closed_on", "reported_at", -60, -10),
            filled("closed_on"),
        ),
        each(
            "kind",
            "glasses as dear as a fire",
            between("claimed", 5500, 7500),
            lambda rows: rows["cause"].isin(["glasses", "dental"]) & (rows["status"] == "declined"),
            2,
        ),
        each(
            "kind",
            "cause of another line",
            put("cause", "hail", "collision"),
            equals("line", "health", "legal", "travel"),
        ),
        each(
            "kind",
            "policy number of another line",
            text("policy_no", lambda x: "KFZ" + x[3:]),
            equals("line", "home", "travel"),
            2,
        ),
        each("text", "wrong checksum of the IBAN", wrong_digit("iban", 4), PAID),
        each(
            "text",
            "damaged letters in the description",
            mojibake("description"),
            accented("description"),
        ),
        each("text", "typo of a city", typo("city")),
        each("text", "postcode too short", text("postcode", lambda x: x[:4]), n=2),
        each("text", "word as amount", put("claimed", "ca. 2000", "unklar", "k. A."), n=2),
        duplicate("claim twice", ("claim_no",), PAID),
        gathered(
            "claims of one holder at once",
            (
                "holder",
                "policy_no",
                "line",
                "cause",
                "plate",
                "deductible",
                "policy_start",
                "postcode",
                "city",
                "loss_date",
            ),
            nothing,
            5,
            "reported_at",
            equals("status", "open"),
        ),
        each("rule", "paid is not claimed less deductible", add("paid", 100, 900), PAID),
        each("rule", "paid without an account", empty("iban"), PAID),
        each(
            "rule",
            "large claim without review",
            put("needs_review", "N"),
            equals("needs_review", "Y"),
        ),
        each("rule", "declined but paid", put("status", "declined"), PAID, 2),
        each(
            "value",
            "claim times 100",
            lambda row, rng: {"claimed": row["claimed"] * 100, "needs_review": "Y"},
            equals("status", "open"),
        ),
        each(
            "value",
            "negative deductible",
            negative("deductible"),
            lambda rows: rows["deductible"] > 0,
            2,
        ),
    ),
    {
        "policy_start": "%d.%m.%Y",
        "loss_date": "%d.%m.%Y",
        "reported_at": "%d.%m.%Y %H:%M",
        "closed_on": "%d.%m.%Y",
        "claimed": ".2f",
        "paid": ".2f",
        "reserve": ".2f",
    },
)
