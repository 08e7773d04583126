"""OpenAI Batch files written and read, which the Batch API and ``vllm run-batch`` both take.

``write_batch`` writes the requests of a job that no answer is kept for yet. ``read_batch`` puts the answers that came
back into the answer cache, each at the address that stands in its ``custom_id``; the same job, started as usual, then
finds them there and asks only for what the batch left open.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cdp.base.config import SynthesisConfig
from cdp.base.errors import SHOWN_PROBLEMS, ConfigError, InputError, WorkspaceError
from cdp.base.text import cut_to_tokens
from cdp.base.workspace import Workspace
from cdp.corpus import load_manifest
from cdp.llm.answers import Malformed, RequestError, read_batch_line
from cdp.llm.cache import AnswerCache, cache_key
from cdp.synthesis.generators.openai_chat import parameters, request_body
from cdp.synthesis.methods import method_of
from cdp.synthesis.work import Work, documents_of

PREFIX = "cdp-"
_CUSTOM_ID = re.compile(rf"{PREFIX}[0-9a-f]{{64}}")
URL = "/v1/chat/completions"
# Per file, the Batch API's limit.
MAX_REQUESTS = 50_000

# Per file, below the Batch API's 200 MB.
MAX_BYTES = 190 * 10**6

# Bytes of an answer; what is longer is several broken ones.
LONGEST_LINE = 32 << 20


@dataclass(frozen=True)
class BatchResult:
    """What was read: answers kept, and lines without a usable answer (counted, the first 20 with their reason)."""

    answers: int
    failed: int
    problems: tuple[str, ...]


def requests(workspace: Workspace, config: SynthesisConfig, cache: AnswerCache | None) -> Iterator[dict[str, Any]]:
    """The batch lines of a job, in corpus order; with a cache, without those whose answer is kept already."""
    method = method_of(config)
    by_schema = config.output == "json"
    limit = method.document_tokens(config.endpoint.max_document_tokens)

    if method.generator:
        raise ConfigError(f"The method {method.name} needs no LLM, so there is nothing to ask in a batch.")

    corpus = load_manifest(workspace, config.corpus)

    work = Work.of(workspace, config, method, corpus)
    groups = work.groups(workspace, corpus) if method.joint else None
    for item in work.items(workspace, groups=groups):
        texts = [cut_to_tokens(document.content, limit) for document in documents_of(item.document)]
        for prompt, sample, _ in method.requests(texts, config.per_doc, item.queries):
            sampling = method.sampling_for(config.per_doc, sample)
            settings = sampling.within(parameters(config))
            key = cache_key(item.document.content_hash, prompt, config.endpoint.model_name, settings)
            if cache is None or cache.get(key) is None:
                body = request_body(config, prompt, config.per_doc, sampling, by_schema=by_schema)
                body = {"model": config.endpoint.model_name, **body}
                yield {"custom_id": PREFIX + key, "method": "POST", "url": URL, "body": body}


def write_batch(
    workspace: Workspace, config: SynthesisConfig, folder: Path, name: str = "batch", *, whole: bool = False
) -> list[Path]:
    """Write the requests of a job that are still open (or, for the ``whole`` job, all) to ``<name>-0001.jsonl`` ….

    They lie in ``folder``, each within the Batch API's limits. Documents with equal content share one request.
    InputError where such a file is there already.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkspaceError(f"{folder} cannot be written: {error.strerror or error}.") from error

    if list(folder.glob(f"{name}-[0-9]*.jsonl")):
        raise InputError(f"There are {name}-….jsonl files in {folder} already.", hint="Choose another folder or name.")

    paths: list[Path] = []
    seen: set[str] = set()
    lines = size = 0
    with AnswerCache(workspace) as cache, ExitStack() as files:
        for request in requests(workspace, config, None if whole else cache):
            if request["custom_id"] in seen:
                continue

            seen.add(request["custom_id"])

            data = (json.dumps(request, ensure_ascii=False) + "\n").encode("utf-8")
            if not paths or lines >= MAX_REQUESTS or size + len(data) > MAX_BYTES:
                files.close()
                paths.append(folder / f"{name}-{len(paths) + 1:04d}.jsonl")
                file = files.enter_context(open(paths[-1], "wb"))
                lines = size = 0

            file.write(data)
            lines, size = lines + 1, size + len(data)

    return paths


def read_batch(workspace: Workspace, path: Path) -> BatchResult:
    """Keep the answers of one output file. Lines that are no answer to our requests are counted as failed."""
    answers, problems = 0, []

    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error

    # Lines as bytes: one that is no UTF-8 must not cost more than itself, since each is an answer that was paid for.
    with AnswerCache(workspace) as cache, file:
        for number, line in enumerate(iter(partial(file.readline, LONGEST_LINE), b""), 1):
            try:
                if line.strip():
                    custom_id, answer = read_batch_line(line.removeprefix(codecs.BOM_UTF8), _CUSTOM_ID)
                    cache.put(custom_id.removeprefix(PREFIX), answer)
                    answers += 1
            except (Malformed, RequestError) as error:
                problems.append(f"Line {number}: {error}.")

    if problems and not answers:
        raise InputError(f"{path} holds no answer to a request of ours. {problems[0]}")

    return BatchResult(answers, len(problems), tuple(problems[:SHOWN_PROBLEMS]))
