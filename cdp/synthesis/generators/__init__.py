"""What writes queries, one module each. Adding a generator is adding a file that declares a ``GeneratorType``."""

from __future__ import annotations

from cdp.base.config import SynthesisConfig
from cdp.base.registry import Registry
from cdp.llm.answers import Answer, Usage
from cdp.synthesis.generators.base import Generator, GeneratorType
from cdp.synthesis.methods import METHODS

GENERATORS: Registry[GeneratorType] = Registry("generator", GeneratorType, __name__)


def make_generator(config: SynthesisConfig, *, api_key: str = "") -> Generator:
    """The generator that ``config`` names, or the one that its method needs instead of any.

    ``api_key`` wins over the environment; it is never stored. Nothing heavy is loaded here, see ``Generator.prepare``.
    """
    method = METHODS.get(config.method)
    own = method.generator if method else ""
    return GENERATORS.named(own if own in GENERATORS else config.generator).make(config, api_key)


# A plug-in that is a generator needs Answer and Usage.
__all__ = ["GENERATORS", "Answer", "Generator", "GeneratorType", "Usage", "make_generator"]
