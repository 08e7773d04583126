"""The synthesis methods, one module each. Adding a method is adding a file here that defines ``METHOD``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from cdp.errors import NotFoundError
from cdp.synthesis.methods.base import Method, Sampling, fill
from cdp.synthesis.methods.own import NAME as OWN
from cdp.synthesis.methods.own import own_method


def _registry() -> dict[str, Method]:
    modules = (importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__))
    methods = [module.METHOD for module in modules if hasattr(module, "METHOD")]
    return {method.name: method for method in sorted(methods, key=lambda method: (method.order, method.name))}


METHODS: Mapping[str, Method] = MappingProxyType(_registry())
"""Every method by its name, in the order in which they are shown."""


def get_method(name: str, template: str = "") -> Method:
    """The method of that name; for ``own``, the one with the given template. NotFoundError offers the known ones."""
    if name == OWN:
        return own_method(template)
    try:
        return METHODS[name]
    except KeyError:
        raise NotFoundError("synthesis method", name, known=[*METHODS, OWN]) from None


__all__ = ["METHODS", "OWN", "Method", "Sampling", "fill", "get_method", "own_method"]
