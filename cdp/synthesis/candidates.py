"""Prompts that are tried on a sample: each candidate with the settings that write its queries, and the one chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdp.base.config import PromptTuningConfig, SynthesisConfig
from cdp.base.errors import ConfigError, InputError
from cdp.base.records import Real, fields
from cdp.synthesis.generators import make_generator
from cdp.synthesis.methods import METHODS, OWN, get_method


def candidates_of(config: PromptTuningConfig, prompts: Mapping[str, str]) -> dict[str, SynthesisConfig]:
    """{candidate: the settings that write its queries}: the methods that ``config`` names, then the user's ``prompts``
    (name → template), each checked.

    NotFoundError for an unknown method; ConfigError for a prompt without its fields, a method that cannot be tried on
    single documents, a prompt that nothing reads, fewer than two candidates, or one named twice.
    """
    methods = [name.strip() for name in config.methods.split(",") if name.strip()]
    if OWN in methods:
        raise ConfigError("A prompt of your own is given as text, not by the name own.", hint="Give its file or text.")
    for method in map(get_method, methods):
        if method.from_queries or method.joint:
            needs = "several documents" if method.joint else "existing queries"
            raise ConfigError(f"{method.name} needs {needs}, so it is no candidate.", hint="Leave it out.")
    if config.generator == "template" and len(methods) > 1 and not {*methods} <= {"diverse", "paraphrase"}:
        raise ConfigError(
            "The generator template reads no prompts: of other methods than paraphrase it writes the same queries.",
            hint="Try diverse and paraphrase, or choose a generator that asks a language model.",
        )
    names = [*methods, *prompts]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigError(f"More than one candidate is called {', '.join(sorted(twice))}.", hint="Rename one of them.")
    if len(names) < 2:
        raise ConfigError(
            "Choosing needs at least two candidates.", hint=f"Name methods ({', '.join(METHODS)}) or add prompts."
        )
    for name, template in prompts.items():
        try:
            get_method(OWN, template)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error.message}", hint=error.hint) from error
        if not make_generator(_settings(config, OWN, template)).is_llm:
            raise ConfigError(
                f"The generator {config.generator} reads no prompts, so yours cannot be tried with it.",
                hint="Choose one that asks a language model.",
            )
    sample = {"limit": config.documents, "draw": config.seed}
    return {
        name: _settings(
            config, OWN if name in prompts else name, prompts.get(name, ""), name=f"Prompt {name}", **sample
        )
        for name in names
    }


def _settings(config: PromptTuningConfig, method: str, prompt: str, **more: Any) -> SynthesisConfig:
    shared = ("corpus", "per_doc", "generator", "model", "base_url")
    values = {name: value for name in shared if (value := getattr(config, name)) != ""}
    return SynthesisConfig.from_dict({**values, "method": method, "prompt": prompt, **more})


_CANDIDATE = fields(
    {"name": str, "method": str, "prompt": str}, query_set=str, error=str, distance=Real | None, inside=Real | None,
    corpus_cost=Real | None, measures=list[fields({"name": str, "value": Real | None})],  # type: ignore[misc]
)  # fmt: skip
# ``results/prompts.json``.
_FOUND = fields(
    {"config": dict[str, Any], "scorer": fields({"measure": str, "model": str, "note": str}), "choice": str,
     "why": str, "candidates": list[_CANDIDATE]},  # type: ignore[valid-type]
)  # fmt: skip


def synthesis_of(found: Mapping[str, Any]) -> SynthesisConfig:
    """The settings that write queries for the whole corpus with the prompt that was chosen."""
    chosen = next((c for c in found["candidates"] if c["name"] == found["choice"]), None)
    if chosen is None:
        raise InputError(f"The prompt {found['choice']!r} is not among the candidates of its job.")
    return _settings(PromptTuningConfig.from_dict(found["config"]), chosen["method"], chosen["prompt"])
