"""Units of numbers in texts: currencies, percent, measures and magnitudes."""

from __future__ import annotations

import math
import re
from functools import lru_cache

# Currency signs: $, €, £, ¥, ₹, …
SIGNS = "$¢£¤¥฿" + "".join(map(chr, range(0x20A0, 0x20C1)))
_CURRENCY_CODES = (
    "AED ARS AUD BGN BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HRK HUF IDR ILS INR ISK JPY "
    "KES KRW MAD MXN MYR NGN NOK NZD PEN PHP PKR PLN QAR RMB RON RSD RUB SAR SEK SGD THB TRY TWD "
    "UAH USD VND ZAR BTC ETH"
)
_LOCAL_CURRENCIES = "kr Kr Kr. kr. Rs Rs. Fr Fr. SFr. zł Kč Ft лв руб руб. грн RM Rp TL Euro euro"
_CURRENCIES = frozenset(f"{_CURRENCY_CODES} {_LOCAL_CURRENCIES}".split())
_CURRENCY_SIGN = re.compile(rf"[A-Za-z]{{0,3}}[{re.escape(SIGNS)}]")
# Two ways to write one currency.
_SAME = {"€": "EUR", "euro": "EUR", "Euro": "EUR", "£": "GBP", "US$": "$", "USD": "$", "₹": "INR"}
_SAME |= {"Kr": "kr", "kr.": "kr", "Kr.": "kr", "руб.": "руб", "Rs": "INR", "Rs.": "INR"}
_SAME |= {"SFr.": "CHF", "Fr.": "CHF", "Fr": "CHF", "zł": "PLN"}

_PREFIXES = {"": 1.0, "n": 1e-9, "µ": 1e-6, "μ": 1e-6, "u": 1e-6, "m": 1e-3, "c": 1e-2, "d": 1e-1}
_PREFIXES |= {"h": 1e2, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_SCALED = "m g s Hz N Pa J W V A F Ω ohm S C mol cd lm lx Bq Gy Sv l L eV Wh Ah VA var bar cal B b"
_SCALED_UNITS = {prefix + unit for prefix in _PREFIXES for unit in (*_SCALED.split(), "bit", "t")}
_OTHER_UNITS = (
    "% ‰ ° °C °F °K ℃ ℉ K F min mins h hr hrs sec secs d day days wk w mo mth y yr yrs in ft yd mi "
    "nmi mph kph kmh kn kt kts oz lb lbs st gal pt qt rpm ppm ppb dB dBm dBA px pcs pc ea psi mmHg "
    "bpm fps IU U mU ha ac PS hp MiB KiB GiB TiB Mbps Gbps kbps kWp kVAr Nm pH second seconds "
    "minute minutes hour hours week weeks month months year years percent"
)
_UNITS = frozenset(_SCALED_UNITS | set(_OTHER_UNITS.split()))
# Units that differ in nothing but case, such as mW and MW.
_CASE_MATTERS = frozenset(
    text.lower() for text in _SCALED_UNITS if text.swapcase() != text and text[0] in "mMbB"
)
_POWER = re.compile(r"(?:²|³|\^?[23])$")
# AM and PM make times of numbers.
_WORD = re.compile(r"(?!(?i:[ap]\.?m)$)[^\W\d_]{2,}")

# Factors by magnitude letter.
MAGNITUDES = {"": 1.0, "k": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
_MAGNITUDE_WORDS = {
    **{"k": "k", "K": "k", "tsd": "k", "Tsd": "k", "thousand": "k"},
    **{"M": "M", "mn": "M", "Mn": "M", "Mio": "M", "mio": "M", "million": "M", "mln": "M"},
    **{"B": "B", "bn": "B", "Bn": "B", "Mrd": "B", "mrd": "B", "billion": "B"},
    **{"G": "G", "T": "T"},
}
_MAGNITUDE = re.compile(rf"({'|'.join(sorted(_MAGNITUDE_WORDS, key=len, reverse=True))})\.? ?(.*)")


@lru_cache(maxsize=4096)
def currency(text: str) -> str | None:
    """Return the currency that a text before a number means, or None if it is not one."""
    if text in _SAME:
        return _SAME[text]
    is_known = text in _CURRENCIES or text.upper() in _CURRENCIES or _CURRENCY_SIGN.fullmatch(text)
    return text if is_known or text == "%" else None


@lru_cache(maxsize=4096)
def unit(text: str, after_blank: bool) -> tuple[str, str] | None:
    """Return the unit and the magnitude letter that a text after a number means, or None.

    The unit is the same for "1 day" and "2 days", and for "kg" and "KG"; the magnitude is "" if
    there is none. After a blank any word may be a unit ("36 months", "5 apples"); "5more" is no
    number.
    """
    if text not in _MAGNITUDE_WORDS and (known := _known(text)) is not None:
        return known, ""
    match = _MAGNITUDE.fullmatch(text)
    if match and (not match[2] or currency(match[2]) is not None):
        return (currency(match[2]) or "") if match[2] else "", _MAGNITUDE_WORDS[match[1]]
    word = text.removesuffix(".")
    if after_blank and _WORD.fullmatch(word):
        return _fold(word), ""
    return None


def is_thing(unit: str) -> bool:
    """Return whether a unit is a word for what is counted, such as "vehicle"."""
    is_known = unit in map(_fold, _UNITS) or currency(unit) is not None
    return bool(_WORD.fullmatch(unit)) and not is_known


def without_magnitude(text: str) -> str:
    """Return what is after a number without its magnitude: " €" for "k €"."""
    bare = text.strip()
    match = _MAGNITUDE.fullmatch(bare)
    if bare not in _MAGNITUDE_WORDS and (_known(bare) is not None or match is None):
        return text
    return "" if match is None or not match[2] else f" {match[2]}"


def _known(text: str) -> str | None:
    """Return a known unit, also one divided by another (km/h) or of a power (m²); None if not."""
    text = text.removesuffix(".") if text not in _CURRENCIES else text
    above, slash, below = text.partition("/")
    if slash:
        parts = (_known(above.strip()), _known(below.strip().lstrip("0123456789 ")))
        return None if parts[0] is None or parts[1] is None else f"{parts[0]}/{below.strip()}"
    if (money := currency(text)) is not None:
        return money
    if text in _UNITS or text.lower() in _UNITS:
        return _fold(text)
    power = _POWER.search(text)
    if power is None or text[: power.start()] not in _UNITS:
        return None
    return text[: power.start()] + ("2" if power[0][-1] in "2²" else "3")


def conversion(unit: str, other: str) -> float:
    """Return the factor from numbers of a unit to those of another; NaN if there is none."""
    if unit == other:
        return 1.0
    (base, factor), (other_base, other_factor) = (
        _FACTORS.get(name, (name, 1.0)) for name in (unit, other)
    )
    return factor / other_factor if base == other_base else math.nan


def _fold(text: str) -> str:
    """Return a unit in one spelling: lower case where case does not matter, without a plural s."""
    if text.lower() in _CASE_MATTERS:
        return text
    lower = text.casefold()
    return lower.removesuffix("s") if len(lower) > 2 else lower


def _factors() -> dict[str, tuple[str, float]]:
    """Return the base unit of each unit with a prefix, and the factor between them."""
    found = {"min": ("s", 60.0), "h": ("s", 3600.0)}
    for prefix, factor in _PREFIXES.items():
        for name in _SCALED.split():
            if name != "b":  # Gb and GB are in one spelling
                found.setdefault(_fold(prefix + name), (_fold(name), factor))
    return found


_FACTORS = _factors()
