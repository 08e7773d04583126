"""Queries for one document: what the preview shows and what the run does, by the same code."""

from __future__ import annotations

import collections.abc
import math
import queue
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError, InputError
from cdp.base.records import Document
from cdp.llm.answers import Answer, RequestError, Usage
from cdp.llm.cache import Account, AnswerCache, cache_key
from cdp.llm.tokens import cut
from cdp.synthesis.generators import Generator, make_generator, usual_usage
from cdp.synthesis.grouping import documents_of
from cdp.synthesis.methods import Method, method_of
from cdp.synthesis.parsing import Parsed, comparison_key, select

Ask = Callable[..., Answer]
# As ``SynthesisConfig.max_document_tokens``.
MAX_DOCUMENT_TOKENS = 2048

# Of a prompt, for the frame of a chat and the schema that are sent around it.
ROOM_TOKENS = 100


@dataclass(frozen=True)
class Generation:
    """What came out for one document.

    ``problems`` are those of the answer that was used (see ``parsing.Parsed``), with ``cut_off`` where it hit the
    token limit and ``repaired`` where it is the second attempt. ``usage`` is what was paid now: nothing for an answer
    from the cache. ``raw`` holds each answer as it came. ``cut`` is (kept, whole) in characters where the document
    was too long for the prompt. ``notes`` are what the method keeps beside each query (SAP's summaries).
    """

    queries: tuple[str, ...]
    problems: Mapping[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    raw: tuple[str, ...] = ()
    prompt_hash: str = ""
    model: str = ""
    cut: tuple[int, int] | None = None
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    """For a method that works from existing queries: the one behind each of ``queries``."""
    logprobs: tuple[float | None, ...] = ()
    """The mean token log-probability of the answer behind each query; empty if the endpoint returned none."""


def generate_for(
    document: Document,
    method: Method,
    m: int,
    generator: Generator,
    *,
    max_document_tokens: int = MAX_DOCUMENT_TOKENS,
    cache: AnswerCache | None = None,
    account: Account | None = None,
    queries: Sequence[str] = (),
) -> Generation:
    """``m`` queries for ``document``; fewer, with their problems counted, where a second attempt did not help.

    For a method that works from existing queries, one for each of the first ``m`` of ``queries``; a joint one
    takes a ``Group``. What is asked and paid stands in the ``account``, where there is one.

    Raises RequestError where this document could not be asked about, ProviderError where none could, ConfigError for
    a joint method and one document.
    """
    documents = documents_of(document)
    if method.joint and len(documents) < 2:
        raise ConfigError(f"{method.title} needs two or three related documents, and here is one.")
    limit = min(max_document_tokens, method.max_document_tokens or max_document_tokens)
    cuts = [cut(one.content, limit) for one in documents]
    texts = [one.text for one in cuts]

    def ask(text: str, sample: int = 0, query: str = "") -> Answer:
        def send() -> Answer:
            return generator.generate(text, document, method, m, sample=sample, query=query)

        if cache is None or not generator.is_llm:
            return send()
        settings = {**generator.parameters, **method.sampling_for(m, sample).to_dict()}
        key = cache_key(document.content_hash, text, generator.model, settings)
        if account is None:
            return cache.get_or_ask(key, send)
        usual = usual_usage(text, method, m)
        most = most_usage(usual, settings)
        return cache.get_or_ask(key, lambda: account.ask(key, usual, most, send), keep=False)

    sources: list[str] = []
    if method.from_queries:
        prompts = [(query, method.render(texts, m, query)) for query in queries[:m]]
        read, answers, sources = _for_each(ask, prompts, method)
    else:
        read_all = _one_by_one if method.one_per_call and generator.is_llm else _at_once
        read, answers = read_all(ask, method.render(texts, m), method, m, generator)
    return Generation(
        queries=read.queries,
        problems=read.problems,
        usage=sum((answer.usage for answer in answers), Usage()),
        raw=tuple(answer.text for answer in answers if answer.text),
        prompt_hash=method.prompt_hash,
        model=(answers[0].model if answers else "") or generator.model,
        cut=(sum(one.kept for one in cuts), sum(one.length for one in cuts)) if any(c.was_cut for c in cuts) else None,
        notes=read.notes if any(read.notes) else (),
        sources=tuple(sources),
        logprobs=_logprobs(read.queries, answers, method),
    )


def _logprobs(queries: Sequence[str], answers: Sequence[Answer], method: Method) -> tuple[float | None, ...]:
    """Return the log-probability of each query's answer; empty if no answer has one."""
    if not method.one_per_call or all(answer.logprob is None for answer in answers):
        return ()
    logprob_of: dict[str, float | None] = {}
    for answer in answers:
        for query in _read(answer, method, 1).queries:
            logprob_of.setdefault(query, answer.logprob)
    return tuple(logprob_of.get(query) for query in queries)


def most_usage(usual: Usage, settings: Mapping[str, object]) -> Usage:
    """What a request consumes at the most: its prompt, with room for the error of the estimate, and the longest answer
    that it allows.
    """
    longest = settings.get("max_output_tokens")
    output = longest if isinstance(longest, int) else usual.output_tokens
    return Usage(math.ceil(1.2 * usual.input_tokens) + ROOM_TOKENS, max(output, usual.output_tokens), 1)


def _at_once(ask: Ask, prompt: str, method: Method, m: int, generator: Generator) -> tuple[Parsed, list[Answer]]:
    """All M queries from one answer; a malformed one is asked for once more, and the better of the two is used."""
    first = ask(prompt)
    parsed = _read(first, method, m)
    if parsed.usable or not generator.is_llm:
        return parsed, [first]
    try:
        second = ask(repair_prompt(prompt, m))
    except RequestError:
        return Parsed(parsed.queries, {**parsed.problems, "repair_failed": 1}), [first]
    again = _read(second, method, m)
    if len(again.queries) > len(parsed.queries):
        parsed = Parsed(again.queries, {**again.problems, "repaired": 1}, again.notes)
    return parsed, [first, second]


def _one_by_one(ask: Ask, prompt: str, method: Method, m: int, generator: Generator) -> tuple[Parsed, list[Answer]]:
    """M queries from M answers; for those that repeat one or cannot be read, up to half as many again (at least 2)."""
    problems: Counter[str] = Counter()
    queries: list[str] = []
    notes: list[str] = []
    answers: list[Answer] = []
    for sample in range(m + max(2, m // 2)):
        answer = ask(prompt, sample)
        answers.append(answer)
        parsed = _read(answer, method, 1)
        problems.update({name: count for name, count in parsed.problems.items() if name != "too_few"})
        for query, note in zip(parsed.queries, parsed.notes or ("",) * len(parsed.queries), strict=True):
            if comparison_key(query) in map(comparison_key, queries):
                problems["duplicate"] += 1
            else:
                queries.append(query)
                notes.append(note)
        if len(queries) == m:
            break
    if len(queries) < m:
        problems["too_few"] = m - len(queries)
    return Parsed(tuple(queries), dict(problems), tuple(notes)), answers


def _for_each(ask: Ask, prompts: Sequence[tuple[str, str]], method: Method) -> tuple[Parsed, list[Answer], list[str]]:
    """One query for each (query, prompt), asked for once more where it cannot be read; the last value says for which.

    Two of them may well come out alike: they belong to different queries, so both are kept.
    """
    problems: Counter[str] = Counter()
    queries: list[str] = []
    sources: list[str] = []
    answers: list[Answer] = []
    for query, prompt in prompts:
        for sample, text in enumerate((prompt, f"{prompt.rstrip()} (one paragraph, nothing else)")):
            answer = ask(text, sample, query)
            answers.append(answer)
            parsed = _read(answer, method, 1)
            problems.update({name: count for name, count in parsed.problems.items() if name != "too_few"})
            if parsed.queries:
                queries.append(parsed.queries[0])
                sources.append(query)
                break
    if len(queries) < len(prompts):
        problems["too_few"] = len(prompts) - len(queries)
    return Parsed(tuple(queries), dict(problems)), answers, sources


def repair_prompt(prompt: str, m: int) -> str:
    """The prompt with a reminder before its opened list. The malformed answer is not repeated to the model."""
    body = prompt.rstrip().removesuffix("1.").rstrip()
    noun = "query" if m == 1 else "queries"
    return (
        f"{body}\nAn earlier answer could not be read: it did not hold {m} different {noun} as a numbered list. "
        f"Start each line with its number, and write nothing before or after the list.\n1."
    )


def _read(answer: Answer, method: Method, m: int) -> Parsed:
    parsed = method.read(answer.text, m) if answer.queries is None else select(answer.queries, m)
    if answer.finish_reason == "length":
        return Parsed(parsed.queries, {**parsed.problems, "cut_off": 1}, parsed.notes)
    return parsed


def to_line(
    document: Document, position: int, generation: Generation, together: Sequence[Document] = ()
) -> dict[str, Any]:
    """The line of ``queries.jsonl`` for one document; what is empty is left out. ``together`` are the documents that
    the same queries were written for."""
    line: dict[str, Any] = {"document_id": document.id, "position": position, "queries": list(generation.queries)}
    if together:
        line["together"] = [other.id for other in together]
    if generation.problems:
        line["problems"] = dict(generation.problems)
    if generation.usage.requests:
        line["usage"] = generation.usage.to_dict()
    if generation.notes:
        line["notes"] = list(generation.notes)
    if generation.logprobs:
        line["logprobs"] = list(generation.logprobs)
    if generation.sources:
        line["sources"] = list(generation.sources)
    if generation.cut:
        line["cut"] = {"kept": generation.cut[0], "length": generation.cut[1], "unit": "characters"}
    return line


def generate(
    documents: Sequence[str | Document],
    *,
    method: str = "diverse",
    per_doc: int = 5,
    generator: str = "template",
    api_key: str = "",
    **settings: Any,
) -> list[list[str]]:
    """Queries for each document, in the documents' order: at most ``per_doc``, fewer where an answer held no more.

    ``documents`` are texts or records. ``method`` and ``generator`` are names in the registries; ``template`` needs no
    LLM. ``settings`` are further ones of ``SynthesisConfig``: ``model``, ``base_url``, ``temperature`` … The key is
    else ``CDP_API_KEY`` or ``OPENAI_API_KEY``. ConfigError for settings that do not fit, InputError for a text that is
    empty, ProviderError where a request failed for good: nothing is left out silently.
    """
    if isinstance(documents, str):
        raise InputError("This is one text; a list of texts is needed.")
    records = [item if isinstance(item, Document) else Document(str(i), item) for i, item in enumerate(documents)]
    for i, record in enumerate(records):
        if not record.content.strip():
            raise InputError(f"Document {i} is empty.")
    config = SynthesisConfig.from_dict(
        {"corpus": "texts", "method": method, "per_doc": per_doc, "generator": generator, **settings}
    )
    chosen = method_of(config)
    if chosen.generator == "ranking" or chosen.from_queries or chosen.joint:
        needs = "ranks a whole corpus" if chosen.generator else "works from existing queries"
        needs = "groups the documents of a corpus" if chosen.joint else needs
        raise ConfigError(f"{chosen.title} {needs}, so it cannot write queries for texts alone.")
    source = make_generator(config, api_key=api_key)
    source.prepare()

    def queries_of(record: Document) -> list[str]:
        generation = generate_for(record, chosen, per_doc, source, max_document_tokens=config.max_document_tokens)
        return list(generation.queries)

    if source.concurrency == 1 or not source.is_llm:
        return [queries_of(record) for record in records]
    with ThreadPoolExecutor(source.concurrency) as pool:
        try:
            return list(pool.map(queries_of, records))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            source.cancel()
            raise


Item = TypeVar("Item")
Result = TypeVar("Result")

TICK_S = 0.5


def map_unordered(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int,
    *,
    tick: Callable[[], None],
    cancel: Callable[[], None],
) -> collections.abc.Generator[Result, None, None]:
    """Results as they come; at most two items per worker are taken from ``items`` ahead of their results.

    ``tick`` is called at least every half second while results are waited for. When a call raises, ``cancel`` is
    called, the calls under way are waited for and their results still given, and then the first error is raised.
    Close the iterator if it is left early. With no workers everything runs in the caller's thread.
    """
    if workers == 0:
        yield from map(function, items)
        return
    done: queue.SimpleQueue[Future[Result]] = queue.SimpleQueue()
    failure: BaseException | None = None
    waiting = 0
    source = iter(items)
    pool = ThreadPoolExecutor(workers, thread_name_prefix="synthesis")
    try:
        while True:
            while failure is None and waiting < 2 * workers:
                try:
                    item = next(source)
                except StopIteration:
                    break
                pool.submit(function, item).add_done_callback(done.put)
                waiting += 1
            if not waiting:
                break
            try:
                future = done.get(timeout=TICK_S)
            except queue.Empty:
                tick()
                continue
            waiting -= 1
            if future.cancelled():
                continue
            error = future.exception()
            if error is None:
                yield future.result()
            elif failure is None:
                failure = error
                cancel()
                pool.shutdown(wait=False, cancel_futures=True)
    finally:
        if waiting:
            cancel()
        pool.shutdown(wait=True, cancel_futures=True)
    if failure is not None:
        raise failure
