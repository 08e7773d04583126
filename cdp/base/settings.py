"""What a setting is: a typed field with help, unit, range, choices and the reason for its default, in a pydantic model.

Pydantic checks types and ranges and writes the JSON schema; here are the facts that it has no word for, and the words
in which a wrong configuration is told. The settings themselves are in ``cdp.base.config``, beside the readers of
corpora and query sets, and in ``cdp.studies.config``.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

# The default of a setting that has none.
REQUIRED = PydanticUndefined

# Whole numbers are exact up to here in every part that takes them: JSON, NumPy, a form in a browser.
LARGEST_WHOLE = 2**53

# Characters of a text that is read as a number: as many as the longest double has, and a wide margin.
LONGEST_READ = 400

# What somebody types for "nothing" in a setting that may be empty.
EMPTY = ("", "none", "auto")


@dataclass(frozen=True)
class Setting:
    """All there is to know of one setting. ``kind`` is str, int, float or bool; ``default`` may be ``REQUIRED``."""

    help: str
    reason: str
    unit: str
    minimum: float | None
    maximum: float | None
    choices: Sequence[str]
    advanced: bool
    holds: str
    name: str = ""
    kind: type = str
    optional: bool = False
    default: Any = REQUIRED

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def about(self) -> str:
        """The help with the reason for the default, as a form and the command line show it."""
        return f"{self.help} {self.reason}".strip()

    def __call__(self, schema: dict[str, Any]) -> None:
        """Add to the setting's JSON schema what pydantic does not know. It calls this when it writes the schema."""
        facts = {"enum": list(self.choices), "unit": self.unit, "reason": self.reason}
        schema.update({name: value for name, value in facts.items() if value})


def option(
    default: Any,
    help: str,
    *,
    reason: str = "",
    unit: str = "",
    minimum: float | None = None,
    maximum: float | None = None,
    choices: Sequence[str] = (),
    advanced: bool = False,
    holds: str = "",
) -> Any:
    """A field of a configuration with what a form, the command line and the docs need to know of it.

    ``reason`` says why the default is what it is: a test asks it of every setting that has one. ``choices`` may be a
    registry's ``Names``, which are read at each use. ``advanced`` fields stand folded away in forms. ``holds`` says of
    a text that names something outside the settings what it names (path, endpoint, model, models, benchmark,
    benchmarks, filters), so that it can be checked. ``default`` is ``REQUIRED`` for a field without one.
    """
    facts = Setting(help, reason, unit, minimum, maximum, choices, advanced, holds)
    return Field(default, description=help, ge=minimum, le=maximum, json_schema_extra=facts)


@cache
def _settings(kind: type[Config]) -> Mapping[str, Setting]:
    listed = {}
    for name, field in kind.model_fields.items():
        facts, hint = field.json_schema_extra, field.annotation
        assert isinstance(facts, Setting), f"{kind.__name__}.{name} is not made by option()"
        python_type, *empty = typing.get_args(hint) or (hint,)  # ``int | None`` has two arguments, ``int`` none
        listed[name] = dataclasses.replace(
            facts, name=name, kind=python_type, optional=bool(empty), default=field.default
        )
    return listed


class Config(BaseModel):
    """Base of the configurations: checked when made, and never changed after that.

    Whatever makes one (the constructor, ``from_dict``, ``replace``) raises ConfigError, which names every unknown
    setting and every value that is not allowed.
    """

    # Built at first use: a command that only lists jobs does not compile nine validators.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    @classmethod
    def settings(cls) -> Mapping[str, Setting]:
        """The settings by name, in the order in which they are declared."""
        return _settings(cls)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """A checked configuration of what a file, a form or the command line gives."""
        if not isinstance(values, Mapping):
            raise ConfigError(f"Settings are names with values, not {shown(values)}.")
        return cls.model_validate(dict(values))

    def replace(self, **changes: Any) -> Self:
        """This configuration with some settings changed, checked again."""
        return self.from_dict({**self.to_dict(), **changes})

    def to_dict(self) -> dict[str, Any]:
        return self.model_dump()

    def check(self) -> None:
        """What a single field cannot tell: contradictions between fields. Raises ConfigError."""

    @field_validator("*", mode="before")
    @classmethod
    def _typed(cls, value: Any, info: ValidationInfo) -> Any:
        """A value as it is typed: numbers and yes or no may be texts, and what may be empty has several words for it.

        Pydantic would also take bytes for a text and True for 1; neither is what somebody meant.
        """
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
    """A text as the number it stands for, ``1e3`` as a whole one too; as it is where it stands for none."""
    try:
        number = float(text)
    except ValueError:
        return text
    if kind is float:
        return number
    return int(number) if number.is_integer() else text


_TYPES = {str: "text", int: "a whole number", float: "a number", bool: "yes or no"}


def _problem(kind: type[Config], detail: ErrorDetails) -> str:
    """One of pydantic's errors in our words: the setting's name, what is allowed, what was given."""
    settings, value = kind.settings(), detail["input"]
    name = detail["loc"][0] if detail["loc"] else value  # no location: a name that is not even Unicode
    setting = settings.get(str(name))
    if setting is None:
        near = nearest(name[:LONGEST_SHOWN], settings) if isinstance(name, str) else ""
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
            return f"{name!r} must be at least {setting.minimum:g}{unit}, not {shown(value)}"
        case "less_than_equal":
            return f"{name!r} must be at most {setting.maximum:g}{unit}, not {shown(value)}"
        case "choice":
            near = nearest(value[:LONGEST_SHOWN], setting.choices)
            did_you = f" (did you mean {near}?)" if near else ""
            return f"{name!r} must be one of {', '.join(setting.choices)}, not {shown(value)}{did_you}"
    return f"{name!r} must be {_TYPES[setting.kind]}, not {shown(value)}"
