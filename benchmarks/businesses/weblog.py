"""Log of a web server: size and time by path, sessions of users; days as periods."""

from __future__ import annotations

import numpy as np
import pandas as pd

from businesses import parts
from businesses.plant import (
    Business,
    Change,
    Row,
    Where,
    between,
    duplicate,
    each,
    empty,
    equals,
    gathered,
    in_year,
    negative,
    put,
)

# Mean bytes, milliseconds, method, weight. {} is a number.
PATHS = {
    "/": (18_000, 60, "GET", 10),
    "/login": (4_200, 90, "POST", 4),
    "/logout": (900, 30, "GET", 2),
    "/search?q={}": (26_000, 240, "GET", 8),
    "/products/{}": (32_000, 120, "GET", 14),
    "/cart": (7_000, 70, "GET", 5),
    "/cart/add": (1_100, 80, "POST", 5),
    "/checkout": (12_000, 310, "POST", 2),
    "/orders/{}": (9_000, 110, "GET", 3),
    "/api/v1/stock/{}": (480, 15, "GET", 9),
    "/api/v1/price/{}": (420, 14, "GET", 9),
    "/static/app.js": (210_000, 12, "GET", 6),
    "/static/style.css": (46_000, 8, "GET", 6),
    "/images/{}.jpg": (95_000, 20, "GET", 12),
    "/help": (15_000, 50, "GET", 2),
    "/blog/{}": (38_000, 95, "GET", 3),
    "/health": (16, 2, "GET", 4),
}
WORDS = ["lampe", "schuh", "tasse", "rad", "buch", "tisch", "zelt", "hose", "uhr", "ball"]
AGENTS = (
    "Mozilla/5.0 (Windows NT 10.0) Chrome/131.0",
    "Mozilla/5.0 (iPhone; iOS 18_2) Safari/605.1",
    "Mozilla/5.0 (X11; Linux) Firefox/133.0",
    "Mozilla/5.0 (Macintosh) Safari/605.1",
    "Mozilla/5.0 (Android 14) Chrome/131.0",
    "Googlebot/2.1",
    "Prometheus/2.55",
)


def draw(seed: int, period: int) -> pd.DataFrame:
    world, rng = parts.generators(seed, period)
    n_rows, earlier = parts.n_of_period(period, 4000, 1050)
    n_users = 260
    blocks = world.choice(["84.17", "91.64", "188.103", "77.20", "213.47"], n_users)
    ips = np.array(
        [f"{b}.{world.integers(1, 255)}.{world.integers(1, 255)}" for b in blocks], dtype=object
    )
    agents = parts.pick(n_users, 5, world, 0.6)
    countries = world.choice(
        ["DE", "AT", "CH", "NL", "US"], n_users, p=[0.75, 0.1, 0.08, 0.05, 0.02]
    )
    logins = np.array([f"user{1000 + 17 * i}" for i in range(n_users)], dtype=object)

    first = pd.Timestamp(2025, 3, 3) + pd.Timedelta(days=0 if not period else 3 + period)
    end = first + pd.Timedelta(days=1 if period else 4)
    at = parts.moments(
        n_rows, first, end, rng, parts.evening_hours() | dict.fromkeys(range(1, 6), 0.3)
    )
    who = parts.pick(n_rows, parts.known_by(period, n_users), rng, 0.3)
    weights = np.array([w for *_, w in PATHS.values()], dtype=float)
    kind = np.array(list(PATHS), dtype=object)[
        rng.choice(len(PATHS), n_rows, p=weights / weights.sum())
    ]
    bytes_, millis, method, _ = (
        np.array(x, dtype=object) for x in zip(*(PATHS[k] for k in kind), strict=True)
    )
    agent = np.array(AGENTS, dtype=object)[agents[who]]
    is_probe, is_bot = kind == "/health", (kind == "/blog/{}") & (rng.random(n_rows) < 0.3)
    agent = np.where(is_probe, AGENTS[6], np.where(is_bot, AGENTS[5], agent))
    ip = np.where(is_probe, "10.0.0.12", np.where(is_bot, "66.249.66.1", ips[who]))
    status = np.where(
        rng.random(n_rows) < 0.03,
        rng.choice([304, 404, 500, 302], n_rows, p=[0.5, 0.3, 0.05, 0.15]),
        200,
    )
    size = np.round(bytes_.astype(float) * rng.lognormal(0, 0.25, n_rows))
    size = np.select(
        [status == 304, status == 404, status == 302, kind == "/health"], [0, 1162, 0, 16], size
    )
    is_static = np.array([k.startswith(("/static", "/images")) for k in kind])
    cached = is_static & (rng.random(n_rows) < 0.8)
    needs_login = np.isin(kind, ["/cart", "/cart/add", "/checkout", "/orders/{}", "/logout"])
    path = [k.format(rng.choice(WORDS) if "?q" in k else rng.integers(100, 900)) for k in kind]
    return pd.DataFrame(
        {
            "request": 90_417_000 + earlier + np.arange(n_rows),
            "time": at,
            "ip": ip,
            "country": np.where(is_probe, "", np.where(is_bot, "US", countries[who])),
            "user": parts.only_where(
                needs_login | (~is_probe & ~is_bot & (who % 3 == 0)), logins[who]
            ),
            "method": method,
            "path": path,
            "protocol": np.where(
                is_probe, "HTTP/1.1", rng.choice(["HTTP/2.0", "HTTP/1.1"], n_rows, p=[0.9, 0.1])
            ),
            "status": status,
            "bytes": size.astype(int),
            "duration_ms": np.maximum(
                1, np.round(millis.astype(float) * rng.lognormal(0, 0.4, n_rows))
            ).astype(int),
            "referer": parts.only_where(
                ~is_probe & ~is_bot & (rng.random(n_rows) < 0.7),
                rng.choice(
                    [
                        "https://shop.example.com/",
                        "https://www.google.com/",
                        "https://shop.example.com/search",
                        "https://news.example.org/deals",
                    ],
                    n_rows,
                    p=[0.6, 0.2, 0.17, 0.03],
                ),
            ),
            "user_agent": agent,
            "host": rng.choice(["web-1", "web-2", "web-3"], n_rows),
            "cache": np.where(is_static, np.where(cached, "HIT", "MISS"), "-"),
            "tls": np.where(
                is_probe, "", rng.choice(["TLSv1.3", "TLSv1.2"], n_rows, p=[0.93, 0.07])
            ),
        }
    )


def _path(*paths: str) -> Change:
    return put("path", *paths)


def _starts(start: str) -> Where:
    return lambda rows: rows["path"].str.startswith(start)


def _failed_login(row: Row, rng: np.random.Generator) -> dict[str, object]:
    return {
        "path": "/login",
        "method": "POST",
        "status": 401,
        "bytes": 312,
        "user": None,
        "cache": "-",
    }


BUSINESS = Business(
    "weblog",
    draw,
    (
        each("time", "clock reset", in_year("time", 1970, 2038)),
        each(
            "kind",
            "slow answer of a fast path",
            between("duration_ms", 300, 700, 0),
            _starts("/api"),
            3,
        ),
        each(
            "kind",
            "large answer of a small path",
            between("bytes", 150_000, 260_000, 0),
            _starts("/api"),
            2,
        ),
        each(
            "kind",
            "probe from outside",
            put("ip", "45.155.204.7", "194.26.29.9"),
            equals("path", "/health"),
            2,
        ),
        each(
            "text",
            "injection in a search",
            _path(
                "/search?q=1%27%20OR%20%271%27=%271",
                "/search?q=<script>alert(1)</script>",
                "/search?q=1;DROP TABLE users--",
            ),
            _starts("/search"),
        ),
        each(
            "text",
            "path leaves the folder",
            _path("/static/../../../../etc/passwd", "/images/..%2f..%2f.env"),
            n=3,
        ),
        each(
            "text",
            "path of another system",
            _path("/wp-login.php", "/phpmyadmin/index.php", "/.git/config", "/cgi-bin/luci"),
            n=3,
        ),
        each(
            "text",
            "odd client",
            put("user_agent", "sqlmap/1.7", "masscan/1.3", "() { :;}; /bin/bash", "-"),
            n=3,
        ),
        each("text", "malformed address", put("ip", "84.17.300.12", "84.17.12", "localhost?"), n=2),
        each("text", "typo of a method", put("method", "GTE", "PSOT", "get"), n=2),
        duplicate("request twice", ("request",), equals("method", "POST")),
        gathered(
            "burst of failed logins",
            ("ip", "country", "user_agent"),
            _failed_login,
            8,
            "time",
            lambda rows: rows["country"].eq("DE"),
        ),
        each(
            "rule",
            "checkout without a user",
            empty("user"),
            lambda rows: rows["path"].isin(["/checkout", "/cart/add", "/cart"]),
        ),
        each("rule", "page from the cache of files", put("cache", "HIT"), _starts("/products"), 2),
        each(
            "rule",
            "not modified with a body",
            put("status", 304),
            lambda rows: rows["bytes"] > 20_000,
            2,
        ),
        each("value", "request of minutes", between("duration_ms", 60_000, 300_000, 0)),
        each("value", "negative size", negative("bytes"), lambda rows: rows["bytes"] > 0, 2),
        each("value", "status that does not exist", put("status", 0, 999, 20), n=2),
    ),
    {"time": "%Y-%m-%d %H:%M:%S", "bytes": ".0f", "duration_ms": ".0f"},
)
