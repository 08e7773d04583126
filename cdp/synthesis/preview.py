"""Queries of several methods for one document: ``python -m cdp.synthesis.preview``, a request on stdin, JSON on stdout.

The dashboard runs it as a process of its own where a method or generator needs torch, which the dashboard must not load
and whose memory must be free again afterwards.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import CdpError, ConfigError, ModelError
from cdp.base.failures import Failures
from cdp.base.records import Document
from cdp.base.workspace import CODE, Workspace
from cdp.corpus import get_documents, load_manifest
from cdp.synthesis.generate import generate_for
from cdp.synthesis.generators import GENERATORS, Generator, make_generator
from cdp.synthesis.grouping import documents_of, related_to
from cdp.synthesis.methods import Method, method_of
from cdp.synthesis.work import Work

LONGEST_S = 900.0


@dataclass(frozen=True)
class Shown:
    """What one method gave for the document. ``seconds`` is how long it took, all its requests together.

    ``error`` says what went wrong with this document where something did, and ``traceback`` where in our code.
    """

    queries: list[str]
    faults: dict[str, int] = field(default_factory=dict)
    usage: dict[str, int] = field(default_factory=dict)
    prompt: str = ""
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    together: list[str] = field(default_factory=list)
    """The ids of the other documents that the queries are about too."""
    error: str = ""
    traceback: str = ""


def previews(
    workspace: Workspace, config: SynthesisConfig, methods: Sequence[str], document_id: str, *, api_key: str = ""
) -> dict[str, Shown]:
    """What each method gives for one document. Nothing is stored, and nothing comes from the answer cache."""
    document = get_documents(workspace, config.corpus, [document_id])[document_id]
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
        kind = method.generator or own.generator
        source = sources.get(kind) or sources.setdefault(kind, make_generator(own, api_key=api_key))
        source.prepare()
        with failures.item(name, document.content) as attempt:
            asked = document
            if method.joint:
                asked = related_to(workspace, own, load_manifest(workspace, own.corpus), document.id)
            by_method[name] = _shown(asked, own, method, source, queries)
        if attempt.failed:
            line = failures.first[-1]
            by_method[name] = Shown([], error=attempt.reason, traceback=line.get("traceback", ""))
    return by_method


def _shown(
    document: Document, config: SynthesisConfig, method: Method, source: Generator, queries: Sequence[str]
) -> Shown:
    began = time.monotonic()
    generation = generate_for(
        document, method, config.per_doc, source, max_document_tokens=config.max_document_tokens, queries=queries
    )
    return Shown(
        queries=list(generation.queries),
        faults=dict(generation.problems),
        usage=generation.usage.to_dict(),
        prompt=generation.prompt if source.is_llm else "",
        seconds=time.monotonic() - began,
        notes=list(generation.notes),
        sources=list(generation.sources),
        together=[other.id for other in documents_of(document)[1:]],
    )


def needs_process(config: SynthesisConfig, methods: Sequence[str]) -> bool:
    """Return True if one of the methods, or the generator, needs torch or an index of the corpus."""
    chosen = [method_of(config.replace(method=name)) for name in methods]
    llm = any(not method.generator for method in chosen)
    return any(method.generator or method.joint for method in chosen) or (llm and GENERATORS[config.generator].local)


def previews_in_process(
    workspace: Workspace, config: SynthesisConfig, methods: Sequence[str], document_id: str, *, api_key: str = ""
) -> dict[str, Shown]:
    """``previews`` in a separate process. The key goes through its stdin."""
    request = {
        "workspace": str(workspace.root),
        "config": config.to_dict(),
        "methods": list(methods),
        "document": document_id,
        "api_key": api_key,
    }
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            cwd=CODE,
        )
    except subprocess.TimeoutExpired:
        raise ModelError(f"The preview took longer than {LONGEST_S:.0f} s.", hint="Use a smaller model.") from None
    answer = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else None
    if answer is None:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise ModelError(f"The preview ended without an answer ({last[0][:300]}).")
    if "error" in answer:
        raise ModelError(answer["error"], hint=answer["hint"])
    return {name: Shown(**values) for name, values in answer["methods"].items()}


def main() -> None:
    request = json.loads(sys.stdin.read())
    try:
        shown = previews(
            Workspace(Path(request["workspace"])),
            SynthesisConfig.from_dict(request["config"]),
            request["methods"],
            request["document"],
            api_key=request["api_key"],
        )
        answer: dict[str, Any] = {"methods": {name: dataclasses.asdict(value) for name, value in shown.items()}}
    except CdpError as error:
        answer = {"error": error.message, "hint": error.hint}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
