"""What one setting is: a typed field with its help, unit, range and choices, and a configuration made of such fields.

``from_dict`` checks a whole configuration and names every problem at once. What settings there are stands in
``cdp.base.config`` and beside the readers of corpora and query sets.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from cdp.base.errors import ConfigError, nearest


def option(
    default: Any,
    help: str,
    *,
    unit: str = "",
    minimum: float | None = None,
    maximum: float | None = None,
    choices: Sequence[str] = (),
    advanced: bool = False,
    holds: str = "",
) -> Any:
    """A dataclass field with what a form, the command line and the docs need to know of it.

    ``choices`` may be a registry's ``Names``, which are read at each use.

    ``advanced`` fields stand folded away in forms. ``holds`` says of a text that names something outside the settings
    what it names (path, endpoint, model, models, benchmark, benchmarks, stopword list), so that a dashboard can check
    whether it may. ``default`` may be ``dataclasses.MISSING`` for a required field.
    """
    metadata = {
        "help": help,
        "unit": unit,
        "minimum": minimum,
        "maximum": maximum,
        "choices": choices,
        "advanced": advanced,
        "holds": holds,
    }
    return field(metadata=metadata) if default is dataclasses.MISSING else field(default=default, metadata=metadata)


REQUIRED = dataclasses.MISSING


def field_type(f: dataclasses.Field[Any], owner: type) -> tuple[type, bool]:
    """The plain type of a field (str, int, float or bool) and whether it may be None."""
    hint = typing.get_type_hints(owner)[f.name]
    if isinstance(hint, types.UnionType):
        inner = [a for a in typing.get_args(hint) if a is not types.NoneType]
        return inner[0], True
    return hint, False


LARGEST_WHOLE = 2**53
"""Whole numbers are exact up to here in every part that takes them: JSON, NumPy, a form in a browser."""

LONGEST_SHOWN = 60
"""Characters of a wrong value that an error repeats."""

LONGEST_READ = 400
"""Characters of a text that is read as a number: as many as the longest double has, and a wide margin."""


def shown(value: Any) -> str:
    """A wrong value as an error repeats it: its beginning, whatever it is, and never an exception of its own."""
    if not isinstance(value, str | int | float | bool | type(None)):
        return f"a {type(value).__name__}"
    try:
        text = repr(value[: LONGEST_SHOWN + 1] if isinstance(value, str) else value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST_SHOWN + 2 else f"{text[:LONGEST_SHOWN]}…"


def storable(text: str) -> bool:
    """Whether a text can be written to files and databases: no NUL in it, and no half of a surrogate pair."""
    if "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(value: Any) -> float:
    """``value`` as a finite float; ValueError where it is none."""
    if isinstance(value, bool) or (isinstance(value, str) and len(value) > LONGEST_READ):
        raise ValueError(f"must be a number, not {shown(value)}")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"must be a number, not {shown(value)}") from None
    if not math.isfinite(number):
        raise ValueError(f"must be a finite number, not {shown(value)}")
    return number


def _convert(value: Any, kind: type, optional: bool) -> Any:
    """``value`` as ``kind``; ValueError, with what it must be, where it is not one. Texts are read as numbers."""
    if value is None or (optional and isinstance(value, str) and value.strip().lower() in ("", "none", "auto")):
        if optional:
            return None
        raise ValueError("is missing")
    if kind is bool:
        if isinstance(value, bool):
            return value
        text = str(value).strip().lower() if isinstance(value, str | int) and len(shown(value)) < 20 else ""
        if text in ("1", "true", "yes", "on"):
            return True
        if text in ("0", "false", "no", "off"):
            return False
        raise ValueError(f"must be yes or no, not {shown(value)}")
    if kind is int:
        number = _number(value)
        if not number.is_integer():
            raise ValueError(f"must be a whole number, not {shown(value)}")
        if abs(number) > LARGEST_WHOLE:
            raise ValueError(f"must be a whole number of at most 2^53, not {shown(value)}")
        return int(number)
    if kind is float:
        return _number(value)
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {shown(value)}")
    if not storable(value):
        raise ValueError("must not hold the character NUL or half of a surrogate pair")
    return value


@dataclass(frozen=True)
class Config:
    """Base of the configurations: reading, checking and writing."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """A checked configuration; ConfigError names every unknown field and every value out of its range."""
        if not isinstance(values, Mapping):
            raise ConfigError(f"Settings are names with values, not {shown(values)}.")
        problems: list[str] = []
        known = {f.name: f for f in dataclasses.fields(cls)}
        for name in values:
            if name not in known:
                near = nearest(str(name)[:LONGEST_SHOWN], known) if isinstance(name, str) else ""
                offered = f"did you mean {near}?" if near else f"there is: {', '.join(known)}"
                problems.append(f"{shown(name)} is not a setting ({offered})")
        converted: dict[str, Any] = {}
        for name, f in known.items():
            if name not in values:
                if f.default is REQUIRED:
                    problems.append(f"{name!r} is required")
                continue
            kind, optional = field_type(f, cls)
            try:
                value = _convert(values[name], kind, optional)
            except ValueError as error:
                problems.append(f"{name!r} {error}")
                continue
            problem = _out_of_range(name, value, f.metadata)
            if problem:
                problems.append(problem)
            converted[name] = value
        if problems:
            raise ConfigError.from_problems(problems)
        config = cls(**converted)
        config.check()
        return config

    def check(self) -> None:
        """What a single field cannot tell: contradictions between fields. Raises ConfigError."""

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def _out_of_range(name: str, value: Any, metadata: Mapping[str, Any]) -> str:
    if value is None:
        return ""
    low, high, choices = metadata["minimum"], metadata["maximum"], metadata["choices"]
    unit = f" {metadata['unit']}" if metadata["unit"] else ""
    if choices and value not in choices:
        near = nearest(value[:LONGEST_SHOWN], choices)
        did_you = f" (did you mean {near}?)" if near else ""
        return f"{name!r} must be one of {', '.join(choices)}, not {shown(value)}{did_you}"
    if low is not None and value < low:
        return f"{name!r} must be at least {low:g}{unit}, not {value!r}"
    if high is not None and value > high:
        return f"{name!r} must be at most {high:g}{unit}, not {value!r}"
    return ""
