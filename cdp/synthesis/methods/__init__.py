"""The synthesis methods, one module each. Adding a method is adding a file that declares a ``Method``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError, NotFoundError
from cdp.base.registry import Registry
from cdp.synthesis.methods.base import Method, Sampling, fill
from cdp.synthesis.methods.examples import read_examples

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


def get_method(name: str, template: str = "", examples: str = "") -> Method:
    """The method of that name; for ``own``, the one with the given template. NotFoundError offers the known ones.

    ``examples`` (see ``read_examples``) stand in place of the project's in a few-shot method's prompt, which thereby
    gets another hash; ConfigError where they cannot be used or the method shows none.
    """
    if name == OWN:
        return own_method(template)
    if name not in METHODS:
        raise NotFoundError("synthesis method", name, known=[*METHODS, OWN])
    method = METHODS[name]
    if not examples.strip():
        return method
    if method.few_shot is None:
        shown = ", ".join(other.name for other in METHODS.values() if other.few_shot)
        raise ConfigError(f"The method {name} shows no examples.", hint=f"Those that do: {shown}.")
    return dataclasses.replace(method, template=method.few_shot(read_examples(examples, method.shown)))


def method_of(config: SynthesisConfig) -> Method:
    """The method that a configuration names, with its prompt, examples and temperature. ConfigError where one does
    not apply."""
    method = get_method(config.method, config.prompt, config.examples)
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
