"""Settings that nest (`option`, `member`): help, unit, range, choices, default's reason, lists; words for invalid ones.

Pydantic validates types; this adds the facts that it has no place for, and error messages in our words. The settings
themselves are in ``cdp.base.config`` and beside the code that reads them.

A field may be another configuration, its *member*: ``endpoint: EndpointSettings = member()``. Code reads
``config.endpoint.model``. Files, forms, commands and stored jobs know the settings of members by their own names,
beside the others: ``model``. A field of ``tuple[int, ...]`` is a list, which they write as text with commas.
"""

from __future__ import annotations

import dataclasses
import re
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
    ValidatorFunctionWrapHandler,
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
_LISTS = {str: "texts", int: "whole numbers", float: "numbers"}
COMMA = ", "  # between the entries of a list in a text


@dataclass(frozen=True)
class Setting:
    """The facts of one setting for forms, command line and docs.

    ``reason`` explains the default. ``choices`` may be a registry's ``Names``, which are read at each use. ``advanced``
    settings are folded in forms. ``holds`` is the kind of object that a text names (path, endpoint, model, retriever,
    benchmark), for access checks; a retriever may be behind an API, a model may not. ``kind`` is str, int, float or
    bool; ``default`` may be ``REQUIRED``. A list is a text (``kind`` str) whose entries are of the kind ``entries``;
    what it holds, its range and its choices are those of an entry.
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
    entries: type | None = None
    optional: bool = False
    default: Any = REQUIRED

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def untouched(self) -> Any:
        """The value of an empty widget: the default, None where there is none."""
        return None if self.required else self.default

    @property
    def about(self) -> str:
        """The help with the reason for the default."""
        return f"{self.help} {self.reason}".strip()


def option(default: Any, help: str, **facts: Any) -> Any:
    """Return a field of a configuration with the facts of ``Setting``; ``default`` is ``REQUIRED`` if it has none."""
    extra: Any = {"setting": Setting(help, **facts)}
    return Field(default, json_schema_extra=extra)


def member() -> Any:
    """Return a field that is a configuration itself; it is made of its settings among those of the whole."""
    return Field(None)


def altered(kind: type[Config], name: str, **facts: Any) -> Any:
    """Return a setting of ``kind`` with some facts replaced (``default`` is one): another default or help in one place.

    A member is altered in a class that inherits from its own.
    """
    setting = dataclasses.replace(kind.settings()[name], **facts)
    extra: Any = {"setting": setting, "of": (kind, name)}
    return Field(setting.default, json_schema_extra=extra)


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
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Raise TypeError for a class that has two settings of one name."""
        kinds = cls.members().values()
        names = [*cls.model_fields, *(name for kind in kinds for name in (*kind.settings(), *kind.members()))]
        if twice := {name for name in names if names.count(name) > 1}:
            raise TypeError(f"{cls.__name__} has two settings of one name: {', '.join(sorted(twice))}")

    @classmethod
    @cache
    def members(cls) -> Mapping[str, type[Config]]:
        """Return the fields that are configurations themselves, by name."""
        kinds = {name: field.annotation for name, field in cls.model_fields.items()}
        return {name: kind for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, Config)}

    @classmethod
    @cache
    def settings(cls) -> Mapping[str, Setting]:
        """Return the settings by name, those of members among them, in order of declaration."""
        listed: dict[str, Setting] = {}
        for name, field in cls.model_fields.items():
            if name in cls.members():
                listed |= cls.members()[name].settings()
                continue

            extra: Any = field.json_schema_extra
            # ``int | None`` and ``tuple[int, ...]`` have two arguments, ``int`` none.
            kind, *more = typing.get_args(field.annotation) or (field.annotation,)
            facts: dict[str, Any] = {"kind": kind, "optional": bool(more), "default": field.default}
            if more == [Ellipsis]:
                facts = {"kind": str, "entries": kind, "default": _as_text(field.default)}
            listed[name] = dataclasses.replace(extra["setting"], name=name, **facts)
        return listed

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return a validated configuration from the values of a file, a form or the command line.

        A setting of a member may stand by its own name, as ``member.name``, or in the member's values: a mapping, a
        configuration, or a text such as ``name=value, name=value``. Of two values of one setting the later one holds.
        """
        if not isinstance(values, Mapping):
            raise ConfigError(f"Settings are names with values, not {shown(values)}.")
        return cls.model_validate(dict(values))

    def replace(self, **changes: Any) -> Self:
        """Return this configuration with some settings changed, validated again."""
        return self.model_validate({**self.to_dict(), **changes})

    def to_dict(self) -> dict[str, Any]:
        """Return the settings by name as they are stored: those of members among them, lists as text with commas."""
        values: dict[str, Any] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            values |= value.to_dict() if isinstance(value, Config) else {name: _as_text(value)}
        return values

    def check(self) -> None:
        """Raise ConfigError for contradictions between fields."""

    @field_validator("*", mode="wrap")
    @classmethod
    def _read(cls, value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        """Parse a typed value (numbers and booleans may be texts; empty ones have several words); check its range."""
        setting = cls.settings().get(info.field_name or "")
        if setting is None:  # a member
            return handler(value)

        if setting.entries is None:
            value = handler(_parsed(value, setting))
            entries = () if value is None else (value,)
        else:
            value = entries = handler(_entries(value, setting))

        unit = f" {setting.unit}" if setting.unit else ""
        for entry in entries:
            if isinstance(entry, int) and abs(entry) > LARGEST_WHOLE:
                raise PydanticCustomError("wrong", f"must be a whole number of at most 2^53, not {shown(entry)}")
            if setting.minimum is not None and entry < setting.minimum:
                some = "" if setting.minimum == 1 else unit  # units are plurals
                raise PydanticCustomError("wrong", f"must be at least {setting.minimum:g}{some}, not {shown(entry)}")
            if setting.maximum is not None and entry > setting.maximum:
                raise PydanticCustomError("wrong", f"must be at most {setting.maximum:g}{unit}, not {shown(entry)}")
            if setting.choices and entry not in setting.choices:
                near = nearest(entry[:LONGEST_SHOWN], setting.choices)
                said = f"must be one of {', '.join(setting.choices)}, not {shown(entry)}"
                raise PydanticCustomError("wrong", f"{said} (did you mean {near}?)" if near else said)
        return value

    @model_validator(mode="wrap")
    @classmethod
    def _in_words(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Make the members of their values, then the whole. ConfigError names what is wrong in any of them."""
        if isinstance(values, cls):  # a member, made below
            return values

        problems: list[str] = []
        if isinstance(values, Mapping):
            values, parts = cls._by_member(values, problems)
            for member, kind in cls.members().items():
                try:
                    values[member] = kind.model_validate(parts[member])
                except ConfigError as error:
                    problems += error.problems or [str(error).removesuffix(".")]

        try:
            settings = handler(values)
        except ValidationError as error:
            problems += [_problem(cls, detail) for detail in error.errors(include_url=False)]
        if problems:
            raise ConfigError.from_problems(problems)

        settings.check()
        return settings

    @classmethod
    def _by_member(
        cls, values: Mapping[Any, Any], problems: list[str]
    ) -> tuple[dict[Any, Any], dict[str, dict[Any, Any]]]:
        """Return the values of the whole, and those of each member; what cannot be read is added to ``problems``."""
        members = cls.members()
        place = {name: member for member, kind in members.items() for name in (*kind.settings(), *kind.members())}
        own: dict[Any, Any] = {}
        parts: dict[str, dict[Any, Any]] = {member: {} for member in members}

        for name, value in values.items():
            first, dot, rest = name.partition(".") if isinstance(name, str) else (name, "", "")
            if dot and first in members:
                parts[first][rest] = value
            elif first in members:
                parts[first] |= _values(first, value, problems)
            elif first in place:
                parts[place[first]][name] = value
            else:
                own[name] = value

        return own, parts


def _values(name: str, value: Any, problems: list[str]) -> dict[Any, Any]:
    """Return the values of a member: of a mapping, a configuration, or a text such as ``name=value, name=value``."""
    if isinstance(value, Config):
        return value.to_dict()
    if isinstance(value, Mapping):
        return dict(value)

    problem = f"{name!r} must hold entries like name=value, not {shown(value)}"
    if not isinstance(value, str):
        problems.append(problem)
        return {}

    found: dict[Any, Any] = {}
    for pair in value.split(","):
        key, sign, text = pair.partition("=")
        if sign:
            found[key.strip()] = text.strip()
        elif pair.strip():
            problems.append(problem)
            return {}

    return found


def _as_text(value: Any) -> Any:
    """Return a list as text with commas, and any other value as it is."""
    return COMMA.join(map(str, value)) if isinstance(value, tuple) else value


def _entries(value: Any, setting: Setting) -> tuple[Any, ...]:
    """Return the entries of a list, each once: of a text with commas (numbers: or semicolons), a list, or one value."""
    entries = value
    if isinstance(value, str):
        entries = re.split("," if setting.entries is str else "[,;]", value)
    elif not isinstance(value, list | tuple):
        entries = [value]

    one = dataclasses.replace(setting, kind=setting.entries or str)
    found: dict[Any, None] = {}
    for entry in entries:
        if isinstance(entry, str):
            if "," in entry:
                raise PydanticCustomError("wrong", f"holds {shown(entry)}: an entry cannot contain a comma")
            entry = entry.strip()

        if entry != "":
            found[_parsed(entry, one)] = None

    return tuple(found)


def _parsed(value: Any, setting: Setting) -> Any:
    """Return a value of a simple kind, read from its text where it is one."""
    # Pydantic would also accept bytes for a text and True for 1.
    if isinstance(value, str):
        if setting.optional and value.strip().lower() in EMPTY:
            return None
        if not storable(value):
            raise PydanticCustomError("wrong", "must not hold the character NUL or half of a surrogate pair")
        if setting.kind not in (int, float) or len(value) > LONGEST_READ:
            return value if setting.kind is str else value.strip()

        try:
            number = float(value)
        except ValueError:  # pydantic refuses it, in our words
            return value
        if setting.kind is int:  # ``1e3``, too
            return int(number) if number.is_integer() else value
        return number
    if not isinstance(value, int | float | None) or (isinstance(value, bool) and setting.kind is not bool):
        raise PydanticCustomError("type", "is of another type")
    return value


def _problem(kind: type[Config], detail: ErrorDetails) -> str:
    """Return one of pydantic's errors in our words: the setting, the allowed values, the given one."""
    settings, value = kind.settings(), detail["input"]
    name = detail["loc"][0] if detail["loc"] else value  # no location: a name that is not even Unicode
    setting = settings.get(str(name))
    if setting is None:
        near = ""
        if isinstance(name, str):
            near = nearest(name[:LONGEST_SHOWN], settings)
        if "max_output_tokens" in settings:
            near = CALLED_HERE.get(str(name), near)

        offered = f"did you mean {near}?" if near else f"there is: {', '.join(settings)}"
        return f"{shown(name)} is not a setting ({offered})"

    match detail["type"]:
        case "missing":
            return f"{name!r} is required"
        case "finite_number":
            return f"{name!r} must be a finite number, not {shown(value)}"
        case "wrong":
            return f"{name!r} {detail['msg']}"
        case _ if value is None:
            return f"{name!r} is missing"

    wanted = _TYPES[setting.kind] if setting.entries is None else _LISTS[setting.entries]
    return f"{name!r} must be {wanted}, not {shown(value)}"
