"""The generators, by name."""

from __future__ import annotations

from cdp.base.config import SynthesisConfig
from cdp.base.errors import NotFoundError
from cdp.synthesis.generators.base import Answer, Cancelled, Generator, RequestError, Usage

GENERATORS: dict[str, str] = {
    "template": "Rules over the document's own phrases; no LLM, no cost",
    "recorded": "Answers that an LLM gave ahead of time for the demo collection",
    "openai": "Any endpoint that speaks the OpenAI chat protocol",
    "transformers": "A local instruct model, on a GPU where there is one",
}
"""What each generator is, for forms and help."""


def make_generator(config: SynthesisConfig, *, api_key: str = "") -> Generator:
    """The generator that ``config`` names, or the one that its method needs instead of any.

    ``api_key`` wins over the environment; it is never stored. Nothing heavy is loaded here, see ``Generator.prepare``.
    """
    if config.method == "dragon_s_paper":
        from cdp.synthesis.generators.cropping import CroppingGenerator

        return CroppingGenerator(config)
    if config.generator == "template":
        from cdp.synthesis.generators.template import TemplateGenerator

        return TemplateGenerator(config.seed)
    if config.generator == "recorded":
        from cdp.synthesis.generators.recorded import RecordedGenerator

        return RecordedGenerator()
    if config.generator == "openai":
        from cdp.synthesis.generators.openai_chat import OpenAIGenerator

        return OpenAIGenerator(config, api_key)
    if config.generator == "transformers":
        from cdp.synthesis.generators.local_model import LocalModelGenerator

        return LocalModelGenerator(config)
    raise NotFoundError("generator", config.generator, known=list(GENERATORS))


__all__ = ["GENERATORS", "Answer", "Cancelled", "Generator", "RequestError", "Usage", "make_generator"]
