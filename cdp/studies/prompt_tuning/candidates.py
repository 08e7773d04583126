"""What is tried, and on what: the candidate prompts and the sample of documents that all of them get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from cdp.base.config import PromptTuningConfig
from cdp.base.errors import ConfigError
from cdp.base.records import Document
from cdp.base.workspace import Workspace
from cdp.corpus import get_documents, load_documents
from cdp.synthesis.generators import make_generator
from cdp.synthesis.methods import METHODS, OWN, Method, get_method


@dataclass(frozen=True)
class PromptCandidate:
    """One prompt to be tried: a method of the table, or a template of the user's own (``prompt``)."""

    name: str
    method: Method
    prompt: str = ""


def candidates_of(config: PromptTuningConfig, prompts: Mapping[str, str]) -> list[PromptCandidate]:
    """The methods that ``config`` names, then the user's ``prompts`` (name → template), each checked.

    NotFoundError for an unknown method; ConfigError for a prompt without its fields, a method that cannot be tried on
    documents alone, a prompt of one's own where nothing reads it, fewer than two candidates, or one named twice.
    """
    names = [name.strip() for name in config.methods.split(",") if name.strip()]
    candidates = [PromptCandidate(name, get_method(name)) for name in names if name != OWN]
    if OWN in names:
        raise ConfigError("A prompt of your own is given as text, not by the name own.", hint="Give its file or text.")
    for candidate in candidates:
        if candidate.method.from_queries:
            raise ConfigError(
                f"The method {candidate.name} rewrites existing queries, so it is no candidate.", hint="Leave it out."
            )
    if config.generator == "template" and len(names) > 1 and not {*names} <= {"diverse", "paraphrase"}:
        raise ConfigError(
            "The generator template reads no prompts: of other methods than paraphrase it writes the same queries.",
            hint="Try diverse and paraphrase, or choose a generator that asks a language model.",
        )
    if prompts and not make_generator(config.synthesis(OWN, next(iter(prompts.values())))).is_llm:
        raise ConfigError(
            f"The generator {config.generator} reads no prompts, so yours cannot be tried with it.",
            hint="Choose one that asks a language model.",
        )
    for name, template in prompts.items():
        try:
            candidates.append(PromptCandidate(name, get_method(OWN, template), template))
        except ConfigError as error:
            raise ConfigError(f"{name}: {error.message}", hint=error.hint) from error
    twice = {c.name for c in candidates if sum(c.name == other.name for other in candidates) > 1}
    if twice:
        raise ConfigError(f"More than one candidate is called {', '.join(sorted(twice))}.", hint="Rename one of them.")
    if len(candidates) < 2:
        raise ConfigError(
            "Choosing needs at least two candidates.", hint=f"Name methods ({', '.join(METHODS)}) or add prompts."
        )
    return candidates


def sample_documents(workspace: Workspace, config: PromptTuningConfig) -> tuple[list[Document], int]:
    """Documents drawn at random, in the order of the corpus, and how many the corpus has."""
    ids = load_documents(workspace, config.corpus, columns=["id"]).column("id")
    rows = sorted(Random(config.seed).sample(range(len(ids)), min(config.documents, len(ids))))
    return list(get_documents(workspace, config.corpus, [ids[i].as_py() for i in rows]).values()), len(ids)
