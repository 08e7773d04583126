"""What one setting is: a typed field with its help, unit, range and choices, and a configuration made of such fields.

``from_dict`` checks a whole configuration and names every problem at once. What settings there are stands in
``cdp.config`` and beside the readers of corpora and query sets.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from cdp.errors import ConfigError, nearest


def option(
    default: Any,
    help: str,
    *,
    unit: str = "",
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
    advanced: bool = False,
    holds: str = "",
) -> Any:
    """A dataclass field with what a form, the command line and the docs need to know of it.

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


def _convert(value: Any, kind: type, optional: bool) -> Any:
    """``value`` as ``kind``; ValueError where it is not one. Texts from the command line are read."""
    if value is None or (optional and isinstance(value, str) and value.strip().lower() in ("", "none", "auto")):
        if optional:
            return None
        raise ValueError("is missing")
    if kind is bool:
        if isinstance(value, bool):
            return value
        text = str(value).strip().lower()
        if text in ("1", "true", "yes", "on"):
            return True
        if text in ("0", "false", "no", "off"):
            return False
        raise ValueError(f"must be yes or no, not {value!r}")
    if kind is int:
        number = float(value) if not isinstance(value, bool) else math.nan
        if not number.is_integer():
            raise ValueError(f"must be a whole number, not {value!r}")
        return int(value) if isinstance(value, int) else int(number)
    if kind is float:
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(f"must be a finite number, not {value!r}")
        return number
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {value!r}")
    return value


@dataclass(frozen=True)
class Config:
    """Base of the configurations: reading, checking and writing."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """A checked configuration; ConfigError names every unknown field and every value out of its range."""
        problems: list[str] = []
        known = {f.name: f for f in dataclasses.fields(cls)}
        for name in values:
            if name not in known:
                near = nearest(name, known)
                offered = f"did you mean {near}?" if near else f"there is: {', '.join(known)}"
                problems.append(f"{name!r} is not a setting ({offered})")
        converted: dict[str, Any] = {}
        for name, f in known.items():
            if name not in values:
                if f.default is REQUIRED:
                    problems.append(f"{name!r} is required")
                continue
            kind, optional = field_type(f, cls)
            try:
                value = _convert(values[name], kind, optional)
            except (TypeError, ValueError) as error:
                text = str(error)
                readable = text.startswith(("must", "is missing"))
                problems.append(f"{name!r} {text if readable else f'must be a number, not {values[name]!r}'}")
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
        near = nearest(value, choices)
        return (
            f"{name!r} must be one of {', '.join(choices)}, not {value!r}{f' (did you mean {near}?)' if near else ''}"
        )
    if low is not None and value < low:
        return f"{name!r} must be at least {low:g}{unit}, not {value!r}"
    if high is not None and value > high:
        return f"{name!r} must be at most {high:g}{unit}, not {value!r}"
    return ""
