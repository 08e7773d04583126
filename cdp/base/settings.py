"""Settings as pydantic fields (``option``): help, unit, range, choices, default's reason; wording of invalid values.

Pydantic validates types and ranges; this adds the facts that it has no place for, and error messages in our words. The
settings themselves are in ``cdp.base.config`` and beside the code that reads them.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError, PydanticUndefined

from cdp.base.errors import ConfigError, nearest
from cdp.base.text import LONGEST_SHOWN, storable
from cdp.base.text import shown as shown

REQUIRED = PydanticUndefined  # the default of a setting that has none
LARGEST_WHOLE = 2**53  # whole numbers are exact up to here in JSON, NumPy and browsers
LONGEST_READ = 400  # characters of a text that is parsed as a number
EMPTY = ("", "none", "auto")  # typed for "nothing" in a setting that may be empty
_TYPES = {str: "text", int: "a whole number", float: "a number", bool: "yes or no"}


@dataclass(frozen=True)
class Setting:
    """The facts of one setting for forms, command line and docs.

    ``reason`` explains the default. ``choices`` may be a registry's ``Names``, which are read at each use. ``advanced``
    settings are folded in forms. ``holds`` is the kind of object that a text names (path, endpoint, model, models,
    retriever, retrievers, benchmark, benchmarks, filters), for access checks; a retriever may be behind an API, a model
    may not. ``kind`` is str, int, float or bool; ``default`` may be ``REQUIRED``.
    """

    help: str
    _: KW_ONLY
    reason: str = ""
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: Sequence[str] = ()
    advanced: bool = False
    holds: str = ""
    name: str = ""
    kind: type = str
    optional: bool = False
    default: Any = REQUIRED

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def about(self) -> str:
        """The help with the reason for the default."""
        return f"{self.help} {self.reason}".strip()


def option(default: Any, help: str, **facts: Any) -> Any:
    """Return a field of a configuration with the facts of ``Setting``; ``default`` is ``REQUIRED`` if it has none."""
    setting = Setting(help, **facts)
    extra: Any = {"setting": setting}
    return Field(default, ge=setting.minimum, le=setting.maximum, json_schema_extra=extra)


# Of the OpenAI protocol: the generator sends the one that a model takes.
CALLED_HERE = dict.fromkeys(("max_tokens", "max_completion_tokens"), "max_output_tokens")


class Config(BaseModel):
    """Base of the configurations: validated when created, immutable.

    The constructor, ``from_dict`` and ``replace`` raise ConfigError, which names all unknown settings and invalid
    values.
    """

    # Built at first use: a command that only lists jobs compiles no validators.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    @classmethod
    @cache
    def settings(cls) -> Mapping[str, Setting]:
        """Return the settings by name, in order of declaration."""
        listed = {}
        for name, field in cls.model_fields.items():
            extra: Any = field.json_schema_extra
            # ``int | None`` has two arguments, ``int`` none.
            kind, *empty = typing.get_args(field.annotation) or (field.annotation,)
            listed[name] = dataclasses.replace(
                extra["setting"], name=name, kind=kind, optional=bool(empty), default=field.default
            )
        return listed

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return a validated configuration from the values of a file, a form or the command line."""
        if not isinstance(values, Mapping):
            raise ConfigError(f"Settings are names with values, not {shown(values)}.")
        return cls.model_validate(dict(values))

    def replace(self, **changes: Any) -> Self:
        """Return this configuration with some settings changed, validated again."""
        return self.from_dict({**self.to_dict(), **changes})

    def to_dict(self) -> dict[str, Any]:
        return self.model_dump()

    def check(self) -> None:
        """Raise ConfigError for contradictions between fields."""

    @field_validator("*", mode="before")
    @classmethod
    def _typed(cls, value: Any, info: ValidationInfo) -> Any:
        """Parse a typed value: numbers and booleans may be texts, and empty ones have several words."""
        # Pydantic would also accept bytes for a text and True for 1.
        setting = cls.settings()[info.field_name or ""]
        if isinstance(value, str):
            if setting.optional and value.strip().lower() in EMPTY:
                return None
            if not storable(value):
                raise PydanticCustomError("text", "must not hold the character NUL or half of a surrogate pair")
            if setting.kind in (int, float) and len(value) <= LONGEST_READ:
                return _number(value, setting.kind)
            return value if setting.kind is str else value.strip()
        if not isinstance(value, int | float | None) or (isinstance(value, bool) and setting.kind is not bool):
            raise PydanticCustomError("type", "is of another type")
        return value

    @field_validator("*", mode="after")
    @classmethod
    def _allowed(cls, value: Any, info: ValidationInfo) -> Any:
        setting = cls.settings()[info.field_name or ""]
        if isinstance(value, int) and abs(value) > LARGEST_WHOLE:
            raise PydanticCustomError("whole", "must be a whole number of at most 2^53")
        if value is not None and setting.choices and value not in setting.choices:
            raise PydanticCustomError("choice", "is not offered")
        return value

    @model_validator(mode="wrap")
    @classmethod
    def _in_words(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            settings = handler(values)
        except ValidationError as error:
            problems = [_problem(cls, detail) for detail in error.errors(include_url=False)]
            raise ConfigError.from_problems(problems) from None
        settings.check()
        return settings


def _number(text: str, kind: type) -> Any:
    """Return a text as a number (``1e3`` as a whole one, too), unchanged if it is none."""
    try:
        number = float(text)
    except ValueError:
        return text
    if kind is float:
        return number
    return int(number) if number.is_integer() else text


def _problem(kind: type[Config], detail: ErrorDetails) -> str:
    """Return one of pydantic's errors in our words: the setting, the allowed values, the given one."""
    settings, value = kind.settings(), detail["input"]
    name = detail["loc"][0] if detail["loc"] else value  # no location: a name that is not even Unicode
    setting = settings.get(str(name))
    if setting is None:
        near = nearest(name[:LONGEST_SHOWN], settings) if isinstance(name, str) else ""
        near = CALLED_HERE.get(str(name), near) if "max_output_tokens" in settings else near
        offered = f"did you mean {near}?" if near else f"there is: {', '.join(settings)}"
        return f"{shown(name)} is not a setting ({offered})"
    unit = f" {setting.unit}" if setting.unit else ""
    match detail["type"]:
        case "missing":
            return f"{name!r} is required"
        case "finite_number":
            return f"{name!r} must be a finite number, not {shown(value)}"
        case _ if value is None:
            return f"{name!r} is missing"
        case "text":
            return f"{name!r} {detail['msg']}"
        case "whole":
            return f"{name!r} {detail['msg']}, not {shown(value)}"
        case "greater_than_equal":
            some = "" if setting.minimum == 1 else unit  # units are plurals
            return f"{name!r} must be at least {setting.minimum:g}{some}, not {shown(value)}"
        case "less_than_equal":
            return f"{name!r} must be at most {setting.maximum:g}{unit}, not {shown(value)}"
        case "choice":
            near = nearest(value[:LONGEST_SHOWN], setting.choices)
            did_you = f" (did you mean {near}?)" if near else ""
            return f"{name!r} must be one of {', '.join(setting.choices)}, not {shown(value)}{did_you}"
    return f"{name!r} must be {_TYPES[setting.kind]}, not {shown(value)}"
