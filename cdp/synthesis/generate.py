"""Queries for one document: what the preview shows and what the run does, by the same code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cdp.records import Document
from cdp.synthesis.cache import AnswerCache, cache_key
from cdp.synthesis.generators import Answer, Generator, RequestError, Usage
from cdp.synthesis.methods import Method
from cdp.synthesis.parsing import Parsed, parse, select
from cdp.synthesis.tokens import cut

MAX_DOCUMENT_TOKENS = 2048
"""As ``SynthesisConfig.max_document_tokens``."""


@dataclass(frozen=True)
class Generation:
    """What came out for one document.

    ``problems`` are those of the answer that was used (see ``parsing.Parsed``), with ``cut_off`` where it hit the
    token limit and ``repaired`` where it is the second attempt. ``usage`` is what was paid now: nothing for an answer
    from the cache. ``raw`` holds each answer as it came. ``cut`` is (kept, whole) in characters where the document
    was too long for the prompt.
    """

    queries: tuple[str, ...]
    problems: Mapping[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    raw: tuple[str, ...] = ()
    prompt_hash: str = ""
    model: str = ""
    cut: tuple[int, int] | None = None


def generate_for(
    document: Document,
    method: Method,
    m: int,
    generator: Generator,
    *,
    max_document_tokens: int = MAX_DOCUMENT_TOKENS,
    cache: AnswerCache | None = None,
) -> Generation:
    """``m`` queries for ``document``; fewer, with their problems counted, where a second attempt did not help.

    Raises RequestError where this document could not be asked about, ProviderError where none could.
    """
    shortened = cut(document.content, max_document_tokens)
    prompt = method.render(shortened.text, m)

    def ask(text: str) -> Answer:
        if cache is None or not generator.is_llm:
            return generator.generate(text, document, method, m)
        key = cache_key(document.content_hash, text, generator.model, generator.parameters)
        return cache.get_or_ask(key, lambda: generator.generate(text, document, method, m))

    answer = ask(prompt)
    parsed, usage, raw = _read(answer, m), answer.usage, [answer.text]
    if not parsed.usable and generator.is_llm:
        try:
            second = ask(repair_prompt(prompt, m))
        except RequestError:
            parsed = Parsed(parsed.queries, {**parsed.problems, "repair_failed": 1})
        else:
            usage += second.usage
            raw.append(second.text)
            again = _read(second, m)
            if len(again.queries) > len(parsed.queries):
                parsed = Parsed(again.queries, {**again.problems, "repaired": 1})
    return Generation(
        queries=parsed.queries,
        problems=parsed.problems,
        usage=usage,
        raw=tuple(text for text in raw if text),
        prompt_hash=method.prompt_hash,
        model=answer.model or generator.model,
        cut=(shortened.kept, shortened.length) if shortened.was_cut else None,
    )


def repair_prompt(prompt: str, m: int) -> str:
    """The prompt with a reminder before its opened list. The malformed answer is not repeated to the model."""
    body = prompt.rstrip().removesuffix("1.").rstrip()
    noun = "query" if m == 1 else "queries"
    return (
        f"{body}\nAn earlier answer could not be read: it did not hold {m} different {noun} as a numbered list. "
        f"Start each line with its number, and write nothing before or after the list.\n1."
    )


def _read(answer: Answer, m: int) -> Parsed:
    parsed = parse(answer.text, m) if answer.queries is None else select(answer.queries, m)
    if answer.finish_reason == "length":
        return Parsed(parsed.queries, {**parsed.problems, "cut_off": 1})
    return parsed


def to_line(document: Document, position: int, generation: Generation) -> dict[str, Any]:
    """The line of ``queries.jsonl`` for one document; what is empty is left out."""
    line: dict[str, Any] = {"document_id": document.id, "position": position, "queries": list(generation.queries)}
    if generation.problems:
        line["problems"] = dict(generation.problems)
    if generation.usage.requests:
        line["usage"] = generation.usage.to_dict()
    if generation.cut:
        line["cut"] = {"kept": generation.cut[0], "length": generation.cut[1], "unit": "characters"}
    return line
