"""Whether a task lies inside what the published line was fitted on. Outside of it, no number comes from the line."""

from __future__ import annotations

from dataclasses import dataclass

from cdp.principle.differences import differences
from cdp.principle.kinds import KINDS, MULTI_HOP_QA

GENERATOR = "gpt-4o-mini"
LANGUAGE = "en"


@dataclass(frozen=True, slots=True)
class Scope:
    """``outside`` are the reasons why the line says nothing of a task, ``unknown`` what was not said about it.

    A task is ``inside`` if neither holds: multi-hop questions in English, CW within the four datasets', queries written
    by the generator of the evidence. Where only the kind is unknown, what the line says is conditional on it.
    """

    outside: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def inside(self) -> bool:
        return not self.outside and not self.unknown

    @property
    def text(self) -> str:
        """In a sentence; empty for a task inside the evidence."""
        if self.outside:
            return f"The published rule has no evidence for such a task: {'; '.join(self.outside)}."
        return " ".join(self.unknown)


def evidence_range() -> tuple[float, float]:
    """The smallest and the largest mean CW among the datasets of the published line."""
    cw = [d.cw for d in differences()]
    return min(cw), max(cw)


def scope_of(mean_cw: float, *, language: str, domain: str, task: str, generator: str) -> Scope:
    """How a task relates to the evidence behind the line."""
    low, high = evidence_range()
    outside, unknown = [], []
    if domain == "in-domain":
        # What the published in-domain sets say is another matter, and CW or the kind of task play no part in it.
        task, mean_cw = MULTI_HOP_QA, low
        outside.append("the line is about queries unlike the training queries, and these resemble them")
    if language != LANGUAGE:
        outside.append("the line was fitted on English queries, and counts in other languages are not comparable")
    if task and task != MULTI_HOP_QA:
        outside.append(f"the line was fitted on multi-hop question answering, not on {KINDS[task].lower()}")
    if not low <= mean_cw <= high:
        outside.append(f"the line covers mean CW from {low:.2f} to {high:.2f}, and {mean_cw:.2f} lies outside")
    if generator and not generator.startswith(GENERATOR):
        outside.append(
            f"the line is from queries by GPT-4o-mini, not by {generator}; with a weaker generator (Mistral-7B) it "
            "was reversed"
        )
    if not task:
        unknown.append(
            "The kind of task is not said: the published line holds for multi-hop question answering and for nothing "
            "else."
        )
    return Scope(tuple(outside), tuple(unknown))
