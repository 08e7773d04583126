"""Who wrote imported queries: people, a language model (which one, by which prompt) or unknown; their licence.

Nothing in a file of queries says so, and the answer changes what may be concluded (human queries were not written to
differ) and what may be done with a model trained on them: it is asked, and unknown until it is answered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from cdp.base.errors import ConfigError

HUMAN, LLM, UNKNOWN = "human", "llm", "unknown"
ORIGINS = (HUMAN, LLM, UNKNOWN)
# What a set's `kind` says of each.
KIND_OF = {HUMAN: "human", LLM: "synthetic", UNKNOWN: "unknown"}


def check_origin(origin: str, model: str, prompt: str) -> None:
    """ConfigError where an unknown origin is named, or a model or prompt for queries that no model wrote."""
    if origin not in ORIGINS:
        raise ConfigError(f"The origin must be one of {', '.join(ORIGINS)}, not {origin!r}.")
    if origin != LLM and (model or prompt):
        raise ConfigError(
            f"A {'model' if model else 'prompt'} is named for queries of origin {origin}.",
            hint="Set the origin to llm where a language model wrote them.",
        )


def described(origin: str, model: str, prompt: str, licence: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a manifest that say where imported queries are from; the other parameters stay."""
    check_origin(origin, model, prompt)
    others = {name: value for name, value in parameters.items() if name != "prompt"}
    return {
        "kind": KIND_OF[origin],
        "model": model,
        "licence": licence,
        "prompt_hash": hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest() if prompt else "",
        "parameters": {**others, **({"prompt": prompt} if prompt else {})},
    }


def written_by(kind: str, generator: str, model: str) -> str:
    """Who wrote a set's queries, in words."""
    if kind == "human":
        return "people"
    if kind == "unknown":
        return "unknown: who wrote them was not recorded"
    if generator == "import":
        return f"{model} (imported)" if model else "a language model that was not named (imported)"
    if generator == "recorded":
        return "a language model whose name was not recorded, ahead of time"
    if generator == "template":
        return "the template generator, from the documents' own words"
    if generator == "ranking":
        return "no one: they are sentences of the documents"
    return model or generator or "unknown: who wrote them was not recorded"
