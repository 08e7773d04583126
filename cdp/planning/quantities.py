"""Numbers of any size, as people write and read them: 8.8M documents, 3.4 TB, 12 days."""

from __future__ import annotations

import math
import re

from cdp.base.errors import ConfigError

_MULTIPLES = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12}
_WORDS = {"thousand": "k", "million": "m", "billion": "b"}
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*(k|m|b|g|t|thousand|million|billion|)", re.IGNORECASE)
LARGEST = 10**15
"""Nobody has more documents; beyond it a typing error is likelier."""

MINUTE, HOUR, DAY, YEAR = 60.0, 3600.0, 86400.0, 365.25 * 86400.0


def read_count(text: str | int, what: str = "documents") -> int:
    """``8.8M``, ``80 thousand``, ``1B`` or ``8,841,823`` as a number. ConfigError for anything else."""
    match = _NUMBER.fullmatch(str(text).replace(",", "").replace("_", "").strip())
    if match is None:
        raise ConfigError(f"{what}: {str(text)[:40]!r} does not say how many.", hint="Write 8000, 80k, 8.8M or 1B.")
    unit = match[2].lower()
    value = float(match[1]) * _MULTIPLES[_WORDS.get(unit, unit)]
    if not 0.5 < value <= LARGEST:  # before rounding: hundreds of digits are infinite
        raise ConfigError(f"{what} must be between 1 and {LARGEST:,}, not {str(text)[:40]!r}.")
    return round(value)


def short_count(value: float) -> str:
    """``8,000``, ``8.8 million``, ``1 billion``: three significant digits from a million on."""
    for limit, name in ((1e15, "quadrillion"), (1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if value >= limit:
            return f"{_three(value / limit)} {name}"
    return f"{value:,.0f}" if value >= 100 or value == round(value) else _three(value)


def long_time(seconds: float | None) -> str:
    """``8 s``, ``3 min``, ``5.2 h``, ``12 days``, ``3.1 years``; a dash where it is unknown."""
    if seconds is None:
        return "–"
    for limit, name in ((2 * YEAR, "years"), (2 * DAY, "days"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= limit:
            unit = {"years": YEAR, "days": DAY, "h": HOUR, "min": MINUTE}[name]
            return f"{_three(seconds / unit)} {name}"
    return f"{_three(seconds)} s"


def _three(value: float) -> str:
    """Three significant digits without an exponent or idle zeros."""
    if value <= 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(value)))
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
