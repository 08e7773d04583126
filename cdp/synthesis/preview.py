"""Queries of several methods for one document, in a process of its own; sentences on their problems.

In a process of its own where a method or generator needs torch: the dashboard must not load it, and its memory must be
free again afterwards.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import CdpError, ConfigError, ModelError
from cdp.base.failures import Failures
from cdp.base.records import Document
from cdp.base.redaction import clean, cleaned
from cdp.base.workspace import CODE, Workspace
from cdp.corpus import load_manifest, open_corpus
from cdp.synthesis.generate import generate_for
from cdp.synthesis.generators import Generator, make_generator
from cdp.synthesis.methods import METHODS, Method, method_of
from cdp.synthesis.sentences import is_english
from cdp.synthesis.work import Work, documents_of, related_to

LONGEST_S = 900.0


@dataclass(frozen=True)
class Shown:
    """What one method gave for the document. ``error`` says what went wrong."""

    queries: list[str]
    faults: dict[str, int] = field(default_factory=dict)
    usage: dict[str, int] = field(default_factory=dict)
    prompt: str = ""
    notes: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    together: list[str] = field(default_factory=list)
    """The ids of the other documents that the queries are about too."""
    error: str = ""


def previews(
    workspace: Workspace, config: SynthesisConfig, methods: Sequence[str], document_id: str, *, api_key: str = ""
) -> dict[str, Shown]:
    """What each method gives for one document. Nothing is stored, and nothing comes from the answer cache."""
    document = open_corpus(workspace, config.corpus).get([document_id])[document_id]
    by_method: dict[str, Shown] = {}
    sources: dict[str, Generator] = {}
    failures = Failures(unit="method")
    for name in methods:
        own = config.replace(method=name)
        method = method_of(own)
        if method.generator == "ranking":
            raise ConfigError(f"{method.title} ranks a whole corpus, so there is nothing to show for one document.")

        queries: list[str] = []

        if method.from_queries:
            source_set = Work.of(workspace, own, method, load_manifest(workspace, own.corpus)).source
            lines = query_sets.iter_lines(workspace, source_set)
            queries = next((line["queries"] for line in lines if line["document_id"] == document_id), [])
            if not queries:
                raise ConfigError(f"The query set {source_set} has no query for document {document_id!r}.")

        kind = method.generator or own.endpoint.generator
        source = sources.get(kind) or sources.setdefault(kind, make_generator(own, api_key=api_key))
        source.prepare()

        with failures.item(name, document.content) as attempt:
            asked = document
            if method.joint:
                asked = related_to(workspace, load_manifest(workspace, own.corpus), document.id)
            by_method[name] = _shown(asked, own, method, source, queries)

        if attempt.failed:
            by_method[name] = Shown([], error=attempt.reason)

    return by_method


def _shown(
    document: Document, config: SynthesisConfig, method: Method, source: Generator, queries: Sequence[str]
) -> Shown:
    longest = config.endpoint.max_document_tokens
    generation = generate_for(document, method, config.per_doc, source, max_document_tokens=longest, queries=queries)
    return Shown(
        queries=cleaned(generation.queries),
        faults=dict(generation.problems),
        usage=generation.usage.to_dict(),
        prompt=generation.prompt if source.is_llm else "",
        notes=cleaned(generation.notes),
        sources=generation.sources,
        together=[other.id for other in documents_of(document)[1:]],
    )


def needs_process(config: SynthesisConfig, methods: Sequence[str]) -> bool:
    """Return True if one of the methods, or the generator, needs torch or an index of the corpus."""
    chosen = [method_of(config.replace(method=name)) for name in methods]
    return any(method.generator or method.joint or config.endpoint.local for method in chosen)


def previews_in_process(
    workspace: Workspace, config: SynthesisConfig, methods: Sequence[str], document_id: str, *, api_key: str = ""
) -> dict[str, Shown]:
    """``previews`` in a separate process. The key goes through its stdin."""
    request = [str(workspace.root), config.to_dict(), list(methods), document_id, api_key]
    command = [sys.executable, "-c", f"from {__name__} import serve; serve()"]

    try:
        done = subprocess.run(
            command, input=json.dumps(request), capture_output=True, text=True, timeout=LONGEST_S, cwd=CODE
        )
    except subprocess.TimeoutExpired:
        raise ModelError(f"The preview took longer than {LONGEST_S:.0f} s.", hint="Use a smaller model.") from None

    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise ModelError(f"There is no preview: {clean(said[-1])[:500]}")

    return {name: Shown(**values) for name, values in json.loads(done.stdout.splitlines()[-1]).items()}


def serve() -> None:
    """Answer one request on stdin, both as JSON; what went wrong is the last line on stderr."""
    root, values, methods, document_id, api_key = json.load(sys.stdin)
    try:
        config = SynthesisConfig.from_dict(values)
        shown = previews(Workspace(Path(root)), config, methods, document_id, api_key=api_key)
    except CdpError as error:
        sys.exit(" ".join(str(error).split()))
    print(json.dumps({name: dataclasses.asdict(one) for name, one in shown.items()}))


# Problems of `parsing.Parsed` and `generate` whose names do not say enough.
_WORDS = {
    "too_few": "fewer queries than asked for",
    "over_long": "too long to be a query",
    "stray_line": "lines beside the list",
    "cut_off": "cut off, what it ends with left out (max_output_tokens)",
    "prompt_cut": "prompts that the endpoint counted at far fewer tokens than were sent: it may cut them",
    "repaired": "second attempts",
    "repair_failed": "second attempts that were no better",
}

TEMPLATE_KINDS = ("diverse", "diverse_paper", "paraphrase", "paraphrase_paper")
JOINED = (
    "The template generator joins a diverse query of each document by rule: a stand-in for one that needs them all."
)
IGNORES_PROMPT = "The template generator reads no prompt: for every method these are its diverse queries."
NOT_ENGLISH = "Not read as English: these are words and sentences of the document itself, put in another order."
NO_WORDS = "The document holds no words to build a query from."
UNREADABLE = "No query could be read from the answer."


def problems(found: Mapping[str, int], *, queries: int, template: str, document: Document) -> list[str]:
    """Return sentences on the problems of one method's answer for ``document``.

    ``template`` is the method that the template generator was asked for, empty for every other generator.
    """
    sentences = []
    if not queries:
        sentences.append(NO_WORDS if template else UNREADABLE)
    for kind, n in found.items():
        if queries or kind != "too_few":
            sentences.append(f"{_WORDS.get(kind, kind.replace('_', ' '))}: {n}")

    if not queries or not template:
        return sentences

    if template not in TEMPLATE_KINDS:
        sentences.append(JOINED if METHODS[template].joint else IGNORES_PROMPT)
    if not is_english(document.content):
        sentences.append(NOT_ENGLISH)

    return sentences
