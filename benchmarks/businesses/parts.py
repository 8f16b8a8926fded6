"""Parts of rows: people, account numbers, contacts, and times of a period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd


def words(text: str, separator: str = " ") -> list[str]:
    return text.split(separator)


FIRST = words(
    "Anna Jörg Marie Paul Sofía Lukas Émile Zoë Jan Petra Håkon Ingrid Tomáš Lena Omar Chloé "
    "Nils Björn Eva Milan Renée Klaus Ida Mateusz Agnès Félix Greta Hugo Núria Oskar"
)
LAST = words(
    "Müller Novák García Jansen Dubois Rossi Kowalski Schäfer Andersen Lefèvre Weber Nagy "
    "Öztürk Bauer Peeters Moreau Lindström Fischer Horvát Conti Meyer Strauß Brandt Ferreira "
    "Köhler Hansen Bernard Vogel Smit Krüger Ruiz Lang Böhm Wolff Marchetti Olsen"
)
# Name, first digits of the postcode, latitude, longitude.
CITIES = (
    ("Berlin", "10", 52.52, 13.40),
    ("Hamburg", "20", 53.55, 9.99),
    ("Hannover", "30", 52.37, 9.73),
    ("Düsseldorf", "40", 51.23, 6.78),
    ("Köln", "50", 50.94, 6.96),
    ("Frankfurt", "60", 50.11, 8.68),
    ("Stuttgart", "70", 48.78, 9.18),
    ("München", "80", 48.14, 11.58),
    ("Nürnberg", "90", 49.45, 11.08),
    ("Leipzig", "04", 51.34, 12.37),
    ("Dresden", "01", 51.05, 13.74),
    ("Münster", "48", 51.96, 7.63),
)
_ASCII = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "Ö": "Oe", "é": "e", "É": "E", "è": "e"}
    | {"í": "i", "á": "a", "š": "s", "å": "a", "ë": "e", "ú": "u"}
)


def generators(seed: int, period: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Return the generator of what stays (customers, devices) and that of a period's rows."""
    return np.random.default_rng([seed, 999]), np.random.default_rng([seed, period])


def span(period: int) -> tuple[pd.Timestamp, pd.Timestamp]:
    """Return the first day of a period and the day after it: 0 is a quarter, 1 the next month."""
    first = pd.Timestamp(2025, 1, 1)
    if not period:
        return first, first + pd.DateOffset(months=3)
    return first + pd.DateOffset(months=2 + period), first + pd.DateOffset(months=3 + period)


def n_of_period(period: int, normal: int, later: int) -> tuple[int, int]:
    """Return the rows of a period and those of all earlier ones; later months grow by 2 %."""
    counts = [normal, *(round(later * 1.02**i) for i in range(period))]
    return counts[period], sum(counts[:period])


def moments(
    n_rows: int,
    first: pd.Timestamp,
    end: pd.Timestamp,
    rng: np.random.Generator,
    hours: Mapping[int, float],
    weekend: float = 1.0,
) -> pd.Series:
    """Draw sorted times: hours by their weights, days of the weekend by a weight against others."""
    days = pd.date_range(first, end - pd.Timedelta(days=1), freq="D")
    weights = np.where(days.day_of_week >= 5, weekend, 1.0)
    day = days[rng.choice(len(days), n_rows, p=weights / weights.sum())]
    hour = rng.choice(list(hours), n_rows, p=np.array(list(hours.values())) / sum(hours.values()))
    seconds = 3600 * hour + rng.integers(3600, size=n_rows)
    return pd.Series(np.sort(day + pd.to_timedelta(seconds, unit="s")))


def office_hours() -> dict[int, float]:
    return {hour: 3.0 if 9 <= hour < 17 else 1.0 for hour in range(7, 20)}


def evening_hours() -> dict[int, float]:
    return {hour: 4.0 if 18 <= hour < 23 else 2.0 for hour in range(6, 24)} | {0: 0.5}


def pick(n_rows: int, n_kinds: int, rng: np.random.Generator, skew: float = 0.7) -> np.ndarray:
    """Draw positions, small ones more often."""
    weights = 1 / np.arange(1, n_kinds + 1) ** skew
    return rng.choice(n_kinds, n_rows, p=weights / weights.sum())


def known_by(period: int, n_kinds: int) -> int:
    """Return how many of all customers a business has by a period: 2 % more each."""
    return round(n_kinds * min(1.0, 0.88 + 0.02 * period))


def people(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.array([f"{rng.choice(FIRST)} {rng.choice(LAST)}" for _ in range(n)], dtype=object)


def emails(names: Sequence[str], rng: np.random.Generator) -> np.ndarray:
    hosts = ["gmail.com", "web.de", "gmx.net", "outlook.com", "posteo.de"]
    local = [name.translate(_ASCII).lower().replace(" ", ".") for name in names]
    return np.array([f"{x}{rng.integers(1, 99)}@{rng.choice(hosts)}" for x in local], dtype=object)


def phones(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.array(
        [f"+49 1{rng.integers(50, 80)} {rng.integers(10**6, 10**7)}" for _ in range(n)],
        dtype=object,
    )


def digits(n: int, rng: np.random.Generator) -> str:
    return "".join(map(str, rng.integers(10, size=n)))


def iban(country: str, rng: np.random.Generator) -> str:
    """Return a number of an account with a right checksum."""
    account = {"DE": 18, "AT": 16, "ES": 20, "FR": 23}
    body = "INGB" + digits(10, rng) if country == "NL" else digits(account[country], rng)
    number = int("".join(str(int(c, 36)) for c in f"{body}{country}00"))
    return f"{country}{98 - number % 97:02d}{body}"


def places(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw cities with postcodes and coordinates that belong together."""
    chosen = [CITIES[i] for i in pick(n, len(CITIES), rng, 0.5)]
    return pd.DataFrame(
        {
            "city": [city for city, *_ in chosen],
            "postcode": [start + digits(3, rng) for _, start, *_ in chosen],
            "lat": np.round([x[2] for x in chosen] + rng.normal(0, 0.04, n), 5),
            "lon": np.round([x[3] for x in chosen] + rng.normal(0, 0.06, n), 5),
        }
    )


def levels(rng: np.random.Generator, n_rows: int, **shares: float) -> np.ndarray:
    """Draw levels by their shares."""
    p = np.array(list(shares.values()))
    return rng.choice(np.array(list(shares), dtype=object), n_rows, p=p / p.sum())


def numbered(prefix: str, first: int, n: int, width: int) -> list[str]:
    """Return running identifiers."""
    return [f"{prefix}{first + i:0{width}d}" for i in range(n)]


def only_where(mask: np.ndarray | pd.Series, values: Sequence[object] | pd.Series) -> pd.Series:
    """Return the values where the mask holds, and empty cells elsewhere."""
    return pd.Series(values, dtype=object).where(np.asarray(mask), None)
