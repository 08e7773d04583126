"""The synthesis methods, one module each. Adding a method is adding a file that declares a ``Method``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError, NotFoundError
from cdp.base.registry import Registry
from cdp.synthesis.methods.base import Method, Sampling, fill

OWN = "own"


def own_method(template: str) -> Method:
    """The method with that template; ConfigError names what is missing in it."""
    missing = [name for name in ("{document}", "{M}") if name not in template]
    if missing:
        raise ConfigError(
            f"Your prompt lacks {' and '.join(missing)}.",
            hint="Write {document} where the document goes and {M} for the number of queries.",
        )
    return Method(
        name=OWN,
        title="Your own prompt",
        help="Your own template; its answer is read as a list of M queries.",
        template=template,
        kind="own",
        order=90,
    )


METHODS: Registry[Method] = Registry("synthesis method", Method, __name__)

# Rows of the paper's tables that write no queries: title and help by name.
OTHER_CONDITIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "supervised": ("Supervised", "The human queries of an imported set; nothing is written."),
        "pretrained": ("Pretrained", "No training: the checkpoint as it is, evaluated without any queries."),
    }
)


def get_method(name: str, template: str = "") -> Method:
    """The method of that name; for ``own``, the one with the given template. NotFoundError offers the known ones."""
    if name == OWN:
        return own_method(template)
    if name not in METHODS:
        raise NotFoundError("synthesis method", name, known=[*METHODS, OWN])
    return METHODS[name]


def method_of(config: SynthesisConfig) -> Method:
    """The method that a configuration names, with its prompt and temperature. ConfigError where one does not apply."""
    method = get_method(config.method, config.prompt)
    if config.logprobs and not method.one_per_call:
        single = ", ".join(other.name for other in METHODS.values() if other.one_per_call and not other.generator)
        raise ConfigError(
            f"The method {method.name} asks for all queries at once, so none has a log-probability of its own.",
            hint=f"Those with one query per call: {single}.",
        )
    return method if config.sampling_temperature is None else drawn_at(method, config.sampling_temperature)


def drawn_at(method: Method, temperature: float) -> Method:
    """The method with another temperature wherever it draws; requests that it asks without chance stay as they are."""
    if not method.several.temperature:
        drawing = ", ".join(other.name for other in METHODS.values() if other.several.temperature)
        raise ConfigError(f"The method {method.name} draws nothing, so it has no temperature.", hint=f"{drawing} do.")
    several = dataclasses.replace(method.several, temperature=temperature)
    sampling = dataclasses.replace(method.sampling, temperature=temperature) if method.sampling.temperature else None
    return dataclasses.replace(method, several=several, sampling=sampling or method.sampling)


__all__ = ["METHODS", "OTHER_CONDITIONS", "OWN", "Method", "Sampling", "fill", "get_method", "method_of", "own_method"]
