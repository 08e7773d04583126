"""Queries for one document, in preview and run: a list or one by one, second attempts, repair prompt, answers' cost."""

from __future__ import annotations

import collections.abc
import math
import queue
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError, InputError
from cdp.base.records import Document
from cdp.base.text import cut_to_tokens
from cdp.llm.answers import Answer, RequestError, Usage
from cdp.llm.cache import Account, AnswerCache, cache_key
from cdp.synthesis.generators import Generator, make_generator, usual_usage
from cdp.synthesis.methods import Method, method_of
from cdp.synthesis.parsing import Parsed, comparison_key, select, without_cut
from cdp.synthesis.work import documents_of

Ask = Callable[..., Answer]
# As ``SynthesisConfig.max_document_tokens``.
MAX_DOCUMENT_TOKENS = 2048

# Of a prompt, for the frame of a chat and the schema that are sent around it.
ROOM_TOKENS = 100


@dataclass
class Generation:
    """What came out for one document: its ``answers``, added one by one, and the ``queries`` in them.

    ``problems`` are those of the answer that was used (see ``parsing.Parsed``), with ``repaired`` where it is the
    second attempt and ``prompt_cut`` where the endpoint counted far fewer tokens than were sent. ``prompt`` is the
    first request. The lists after ``queries`` have one entry for each of them, or none: ``notes`` are what the method
    keeps beside a query (SAP's summaries), ``sources`` the query behind it for a method that works from existing ones,
    ``logprobs`` the mean token log-probability of its answer, where the endpoint gave any.
    """

    answers: list[Answer] = field(default_factory=list)
    problems: Counter[str] = field(default_factory=Counter)
    queries: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    logprobs: list[float | None] = field(default_factory=list)
    prompt: str = ""

    @property
    def usage(self) -> Usage:
        """What was paid now: nothing for an answer from the cache."""
        return sum((answer.usage for answer in self.answers), Usage())

    @property
    def raw(self) -> tuple[str, ...]:
        """Each answer as it came."""
        return tuple(answer.text for answer in self.answers if answer.text)

    def one_of(self, answer: Answer, method: Method) -> Parsed:
        """Count what is wrong with an answer that holds one query, and return it parsed."""
        self.answers.append(answer)
        parsed = _parsed(answer, method, 1)
        problems = Counter(parsed.problems)
        del problems["too_few"]
        self.problems.update(problems)

        return parsed

    def of(self, m: int) -> Generation:
        """Count what is missing of ``m`` queries."""
        if len(self.queries) < m:
            self.problems["too_few"] = m - len(self.queries)
        return self


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

    texts = [cut_to_tokens(one.content, method.document_tokens(max_document_tokens)) for one in documents]

    requests = method.requests(texts, m, queries)
    prompts_cut, kept, refresh = 0, False, False

    def ask(text: str, sample: int = 0, query: str = "") -> Answer:
        nonlocal prompts_cut, kept
        send = partial(generator.generate, text, document, method, m, sample=sample, query=query)
        if not generator.is_llm:  # it has no tokens to count, and no answer that was paid for
            return send()

        usual = usual_usage(text, method, m)
        if cache is None:
            answer = send()
        else:
            settings = method.sampling_for(m, sample).within(generator.parameters)
            key = cache_key(document.content_hash, text, generator.model, settings)
            most = most_usage(usual, settings)
            paid = send
            if account is not None:
                paid = partial(account.ask, key, usual, most, send)

            answer = cache.get_or_ask(key, paid, keep=account is None, refresh=refresh)
            kept |= answer.usage.requests == 0 and not (account and account.paid_lately(key))

        prompts_cut += answer.usage.lacks(usual)
        return answer

    while True:
        if method.from_queries:
            read = _for_each(ask, requests, method)
        elif method.one_per_call and generator.is_llm:
            read = _one_by_one(ask, requests[0][0], method, m)
        else:
            read = _at_once(ask, requests[0][0], method, m, generator.is_llm)

        # Kept by another run, and still not to be read: what was wrong then may be mended.
        if refresh or not kept or read.queries or any(answer.usage.requests for answer in read.answers):
            break
        refresh = True

    if prompts_cut:
        read.problems["prompt_cut"] = prompts_cut
    if not any(read.notes):
        read.notes = []
    if read.logprobs.count(None) == len(read.logprobs):
        read.logprobs = []

    read.prompt = requests[0][0] if requests else ""
    return read


def most_usage(usual: Usage, settings: Mapping[str, object]) -> Usage:
    """What a request consumes at the most: its prompt, with room for the error of the estimate, and the longest answer
    that it allows.
    """
    longest = settings.get("max_output_tokens")
    output = longest if isinstance(longest, int) else usual.output_tokens
    return Usage(math.ceil(1.2 * usual.input_tokens) + ROOM_TOKENS, max(output, usual.output_tokens), 1)


def _at_once(ask: Ask, prompt: str, method: Method, m: int, is_llm: bool) -> Generation:
    """All M queries from one answer; a malformed one is asked for once more, and the better of the two is used."""
    answers = [ask(prompt)]
    parsed = _parsed(answers[0], method, m)
    problems = Counter(parsed.problems)
    if is_llm and "too_few" in parsed.problems and not answers[0].ends_there_again:
        try:
            answers.append(ask(repair_prompt(prompt, m)))
        except RequestError:
            problems["repair_failed"] = 1
        again = _parsed(answers[-1], method, m)
        if len(again.queries) > len(parsed.queries):
            parsed, problems = again, Counter({**again.problems, "repaired": 1})
    return Generation(answers, problems, list(parsed.queries), list(parsed.notes))


def _one_by_one(ask: Ask, prompt: str, method: Method, m: int) -> Generation:
    """M queries from M answers; for those that repeat one or cannot be read, up to half as many again (at least 2)."""
    read = Generation()
    for sample in range(m + max(2, m // 2)):
        parsed = read.one_of(ask(prompt, sample), method)
        if not parsed.queries:
            continue

        if comparison_key(parsed.queries[0]) in map(comparison_key, read.queries):
            read.problems["duplicate"] += 1
            continue

        read.queries += parsed.queries
        read.notes += parsed.notes or [""]
        read.logprobs.append(read.answers[-1].logprob)

        if len(read.queries) == m:
            break

    return read.of(m)


def _for_each(ask: Ask, requests: Sequence[tuple[str, int, str]], method: Method) -> Generation:
    """One query for each request, asked for once more where it cannot be read.

    Two of them may well come out alike: they belong to different queries, so both are kept.
    """
    read = Generation()
    for prompt, _, query in requests:
        for sample, text in enumerate((prompt, f"{prompt.rstrip()} (one paragraph, nothing else)")):
            parsed = read.one_of(ask(text, sample, query), method)
            if parsed.queries:
                read.queries += parsed.queries
                read.sources.append(query)
                read.logprobs.append(read.answers[-1].logprob)
                break
    return read.of(len(requests))


def repair_prompt(prompt: str, m: int) -> str:
    """The prompt with a reminder before its opened list. The malformed answer is not repeated to the model."""
    body = prompt.rstrip().removesuffix("1.").rstrip()
    noun = "query" if m == 1 else "queries"
    return (
        f"{body}\nAn earlier answer could not be read: it did not hold {m} different {noun} as a numbered list. "
        f"Start each line with its number, and write nothing before or after the list.\n1."
    )


def _parsed(answer: Answer, method: Method, m: int) -> Parsed:
    if answer.queries is not None:
        return select(answer.queries, m)

    from cdp.llm.reader import until

    reading = answer.reading
    # Not every endpoint takes the stop text off, or knows it.
    text, stopped = until(reading.answer, method.sampling_for(m).stop)
    if stopped:
        return method.read(text, m)

    parsed = method.read(answer.text, m)
    if not reading.complete:
        parsed = without_cut(parsed, reading, m)

    return parsed


def to_line(
    document: Document, position: int, generation: Generation, together: Sequence[Document] = ()
) -> dict[str, Any]:
    """The line of ``queries.jsonl`` for one document; what is empty is left out. ``together`` are the documents that
    the same queries were written for."""
    found: dict[str, Any] = {
        "together": [other.id for other in together],
        "problems": dict(generation.problems),
        "usage": generation.usage.to_dict() if generation.usage.requests else {},
        "notes": generation.notes,
        "logprobs": generation.logprobs,
        "sources": generation.sources,
    }
    line = {"document_id": document.id, "position": position, "queries": generation.queries}
    return line | {name: value for name, value in found.items() if value}


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
    needs = ""
    if chosen.joint:
        needs = "groups the documents of a corpus"
    elif chosen.generator == "ranking":
        needs = "ranks a whole corpus"
    elif chosen.from_queries:
        needs = "works from existing queries"
    if needs:
        raise ConfigError(f"{chosen.title} {needs}, so it cannot write queries for texts alone.")

    source = make_generator(config, api_key=api_key)
    source.prepare()

    def queries_of(number: int) -> tuple[int, list[str]]:
        generation = generate_for(
            records[number], chosen, per_doc, source, max_document_tokens=config.endpoint.max_document_tokens
        )
        return number, generation.queries

    workers = 0
    if source.is_llm and source.concurrency > 1:
        workers = source.concurrency

    made = map_unordered(queries_of, range(len(records)), workers, tick=lambda: None, cancel=source.cancel)

    return [queries for _, queries in sorted(made, key=lambda pair: pair[0])]


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
