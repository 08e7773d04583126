"""What a recommendation comes to for a user: its price, and the study that would settle it, ready to start."""

from __future__ import annotations

from dataclasses import dataclass

from cdp.base.config import SynthesisConfig
from cdp.base.errors import CdpError
from cdp.base.records import Document
from cdp.base.workspace import Workspace
from cdp.corpus import CorpusManifest, resolve_corpus
from cdp.llm import prices
from cdp.llm.tokens import estimate_tokens
from cdp.principle import Recommendation
from cdp.services import commands
from cdp.services.advice.complexity import Profiled
from cdp.services.queries import synthesis
from cdp.services.queries.writers import EXAMPLE, Writer, writer
from cdp.studies import StudyConfig
from cdp.synthesis.estimate import expected_usage
from cdp.synthesis.methods import get_method

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


def decide(
    workspace: Workspace, queries: Profiled, answer: Recommendation, *, corpus: str = "", chosen: Writer | None = None
) -> Decision:
    """Price and experiment of a recommendation for these target queries, on a corpus if one is named; for the
    ``chosen`` writer, or the one that was used last."""
    manifest = resolve_corpus(workspace, corpus) if corpus else None
    writes = writer(workspace, manifest.id if manifest else "", chosen)
    price = _price(workspace, answer, manifest, writes)
    settings: dict[str, str] = dict(answer.experiment.changes)
    settings |= {"methods": "diverse", "benchmarks": queries.benchmark}
    if manifest is not None:
        offered = writes.generator in StudyConfig.settings()["generator"].choices
        settings |= {"corpus": manifest.id, **(writes if offered else Writer.of({"generator": EXAMPLE})).settings}
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
        command=commands.line("study", "plan", answer.plan, set=[f"{name}={value}" for name, value in given.items()]),
        missing=f"It still needs {' and '.join(lacking)}." if lacking else "",
    )


def _price(workspace: Workspace, answer: Recommendation, manifest: CorpusManifest | None, writes: Writer) -> str:
    """What the suggested queries cost, in words."""
    if writes.free:
        return f"Price: free, with {writes.name} ({writes.basis})."
    per_doc = answer.suggestion.per_doc
    by = f"with {writes.model} ({writes.basis})"
    try:
        if manifest is not None:
            documents = min(answer.suggestion.documents or manifest.n_documents, manifest.n_documents)
            values = {"corpus": manifest.id, "method": "diverse", "per_doc": per_doc, **writes.settings}
            estimate = synthesis.estimate(workspace, SynthesisConfig.from_dict({**values, "limit": documents}))
            if estimate.cost is None:
                return f"The price is not known: the price table has no {writes.model}."
            noun = "document" if documents == 1 else "documents"
            return f"Price: about {prices.dollars(estimate.cost)} {by} for {documents:,} {noun} of {manifest.name}."
        price = prices.load_price(writes.model, prices.price_file(workspace))
    except CdpError as error:
        return f"The price is not known: {error.message.rstrip('.')}."
    if price is None:
        return f"The price is not known: the price table has no {writes.model}."
    method = get_method("diverse")
    text = Document("typical", "paragraph " * TYPICAL_WORDS).content
    usage = expected_usage(method, estimate_tokens(method.render(text, per_doc)), PER, PER * per_doc)
    return f"Price: about {prices.dollars(price.cost(usage))} {by} per {PER:,} documents of {TYPICAL_WORDS} words."
