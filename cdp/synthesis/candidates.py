"""Prompt candidates on a sample, each with the settings that write its queries; the chosen one's settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
    methods = config.methods
    if OWN in methods:
        raise ConfigError("A prompt of your own is given as text, not by the name own.", hint="Give its file or text.")

    for method in map(get_method, methods):
        if method.from_queries or method.joint:
            needs = "several documents" if method.joint else "existing queries"
            raise ConfigError(f"{method.name} needs {needs}, so it is no candidate.", hint="Leave it out.")

    if config.endpoint.generator == "template" and len(methods) > 1 and not {*methods} <= {"diverse", "paraphrase"}:
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
                f"The generator {config.endpoint.generator} reads no prompts, so yours cannot be tried with it.",
                hint="Choose one that asks a language model.",
            )

    sample = {"limit": config.documents, "draw": config.scoring.seed}
    found = {name: _settings(config, name, "", name=f"Prompt {name}", **sample) for name in methods}
    for name, template in prompts.items():
        found[name] = _settings(config, OWN, template, name=f"Prompt {name}", **sample)

    return found


def _settings(config: PromptTuningConfig, method: str, prompt: str, **more: Any) -> SynthesisConfig:
    written = {"corpus": config.corpus, "per_doc": config.per_doc, "endpoint": config.endpoint}
    return SynthesisConfig.from_dict({**written, "method": method, "prompt": prompt, **more})


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


LINE = 0.5
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Tried:
    """A prompt that was measured. ``distance`` from the target has a 95% bootstrap interval over documents; ``inside``
    is the share of the resamples that meet the target, ``quality`` the mean of Dist-Sim and Len-Sim (None without human
    queries)."""

    name: str
    ce: float
    self_bleu: float
    distance: float
    interval: tuple[float, float]
    inside: float
    quality: float | None = None

    @classmethod
    def of(
        cls, name: str, ce: NDArray[np.float64], self_bleu: NDArray[np.float64], target: str, *,
        quality: float | None = None, seed: int = 0,
    ) -> Self | None:  # fmt: skip
        """From the documents' CE and Self-BLEU, both (n_documents,); NaN marks documents with fewer than two queries.
        None if all are."""
        both = ~(np.isnan(ce) | np.isnan(self_bleu))
        ce, self_bleu = ce[both], self_bleu[both]
        if len(ce) == 0:
            return None
        drawn = np.random.default_rng(seed).integers(0, len(ce), size=(RESAMPLES, len(ce)))
        resampled = distances(ce[drawn].mean(axis=1), self_bleu[drawn].mean(axis=1), target)
        low, high = map(float, np.percentile(resampled, [2.5, 97.5]))
        at = float(ce.mean()), float(self_bleu.mean())
        return cls(name, *at, float(distances(*at, target)), (low, high), float((resampled == 0).mean()), quality)

    @property
    def rank(self) -> tuple[float, float, float]:
        """The order of the choice: the nearest, among equally near ones the best quality, then the deepest inside."""
        depth = 0.0 if self.distance else min(abs(self.ce - LINE), abs(self.self_bleu - LINE))
        return round(self.distance, 6), -round(self.quality or 0.0, 6), -round(depth, 6)


def distances(ce: ArrayLike, self_bleu: ArrayLike, target: str) -> NDArray[np.float64]:
    """Euclidean distances of points in the unit square, each (n,), from the target's corner; 0 inside it."""
    sign = 1.0 if target == "ood" else -1.0
    beyond = (np.maximum(0.0, sign * (np.asarray(values, np.float64) - LINE)) for values in (ce, self_bleu))
    return np.asarray(np.hypot(*beyond))


def choose(tried: Sequence[Tried], target: str, *, ce: str = "CE") -> tuple[str, str]:
    """(name of the chosen prompt, why in sentences) of at least one; ``ce`` is what CE is called: it has a stand-in."""
    first, *others = sorted(tried, key=lambda t: t.rank)
    wanted = "both below 0.5" if target == "ood" else "both above 0.5"
    values = f"{ce} {first.ce:.2f} and Self-BLEU {first.self_bleu:.2f}, {wanted} wanted"
    why = f"It meets the target ({values})."
    if first.distance > 0:
        why = f"It comes nearest to the target but does not meet it: {values}; {first.distance:.2f} away."
    if others:
        why += f" {_against(first, others[0])}"
    return first.name, why


def _against(first: Tried, second: Tried) -> str:
    """What decided against the runner-up."""
    decided = next((i for i, (a, b) in enumerate(zip(first.rank, second.rank, strict=True)) if a != b), None)
    if decided == 0:
        apart = first.interval[1] < second.interval[0]
        sure = "" if apart else ", although their intervals overlap: more documents would make it surer"
        return f"The next, {second.name}, is {second.distance:.2f} away{sure}."
    reasons = {
        1: f"is closer to the human queries ({first.quality or 0:.2f} against {second.quality or 0:.2f})",
        2: "lies further inside it",
        None: "was named first; nothing tells them apart",
    }
    return f"{second.name} is as near; {first.name} {reasons[decided]}."
