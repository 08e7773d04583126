"""What a recommendation comes to for a user: its price, and the study that would settle it, ready to start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cdp.base.config import SynthesisConfig
from cdp.base.errors import CdpError
from cdp.base.records import Document
from cdp.base.workspace import Workspace
from cdp.corpus import resolve_corpus
from cdp.principle import Recommendation
from cdp.services import commands
from cdp.services.advice.complexity import Profiled
from cdp.services.queries import synthesis
from cdp.synthesis import pricing
from cdp.synthesis.generators import Usage
from cdp.synthesis.methods import get_method
from cdp.synthesis.tokens import estimate_tokens

MODEL = "gpt-4o-mini"
TYPICAL_WORDS = 120
"""Words of a document where none is named: about a paragraph of an encyclopaedia."""
PER = 1000


@dataclass(frozen=True)
class Decision:
    """``sentence`` is what to act on: which, how many, at what price, how sure, and what would settle it.

    ``price`` is in words, ``settings`` the changes to the ready-made plan ``plan`` for ``study plan``, ``command`` that
    command. ``missing`` says what the study still lacks, in a sentence; empty where it can start.
    """

    sentence: str
    price: str
    plan: str
    settings: dict[str, str]
    command: str
    missing: str


def decide(workspace: Workspace, queries: Profiled, answer: Recommendation, *, corpus: str = "") -> Decision:
    """Price and experiment of a recommendation for these target queries, on a corpus if one is named."""
    manifest = resolve_corpus(workspace, corpus) if corpus else None
    price = _price(workspace, answer, manifest)
    settings: dict[str, str] = dict(answer.experiment.changes)
    settings |= {"methods": "diverse", "benchmarks": queries.benchmark}
    if manifest is not None:
        # The demo's queries are recorded; for other documents they are written first.
        settings |= {"corpus": manifest.id, "generator": "recorded" if manifest.name == "demo" else "openai"}
        settings["model"] = MODEL
    if queries.language != "en":
        settings["language"] = queries.language
    lacking = [
        *([] if manifest else ["a corpus to write queries for"]),
        *([] if queries.benchmark else ["a benchmark: queries of your task with judgments"]),
    ]
    given = {name: value for name, value in settings.items() if value}
    sentence = f"{answer.suggestion.text} {price} {answer.suggestion.sure} To settle it: {answer.experiment.text}"
    return Decision(
        sentence=" ".join(sentence.split()),
        price=price,
        plan=answer.plan,
        settings=given,
        command=commands.line("study", "plan", answer.plan, *commands.given(given)),
        missing=f"It still needs {' and '.join(lacking)}." if lacking else "",
    )


def _price(workspace: Workspace, answer: Recommendation, manifest: Any) -> str:
    """What the suggested queries cost, in words."""
    per_doc = answer.suggestion.per_doc
    try:
        if manifest is not None:
            documents = min(answer.suggestion.documents or manifest.n_documents, manifest.n_documents)
            values = {"corpus": manifest.id, "method": "diverse", "per_doc": per_doc, "generator": "openai"}
            config = SynthesisConfig.from_dict({**values, "model": MODEL, "limit": documents})
            estimate = synthesis.estimate(workspace, config)
            noun = "document" if documents == 1 else "documents"
            return f"Price: about {_dollars(estimate.cost)} with {MODEL} for {documents:,} {noun} of {manifest.name}."
        price = pricing.load_price(MODEL, pricing.price_file(workspace))
    except CdpError as error:
        return f"The price is not known: {error.message.rstrip('.')}."
    if price is None:
        return f"The price is not known: the price table has no {MODEL}."
    method = get_method("diverse")
    text = Document("typical", "paragraph " * TYPICAL_WORDS).content
    usage = Usage(
        PER * estimate_tokens(method.render(text, per_doc)), round(PER * per_doc * method.tokens_per_query), PER
    )
    return f"Price: about {_dollars(price.cost(usage))} with {MODEL} per {PER:,} documents of {TYPICAL_WORDS} words."


def _dollars(value: float | None) -> str:
    return "nothing known" if value is None else pricing.dollars(value)
