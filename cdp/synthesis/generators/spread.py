"""The template generator on all processors: several processes, each with one document at a time.

``python -m cdp.synthesis.generators.spread`` is such a process. It reads one request per line and writes one answer
per line, and ends when its input does: with the process that started it, however that one ended.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cdp.base.records import Document
from cdp.llm.answers import Answer
from cdp.synthesis.generators.base import Generator
from cdp.synthesis.generators.template import TemplateGenerator
from cdp.synthesis.methods.base import Method

FEWEST_DOCUMENTS = 1500
"""For fewer, a single process is done before others have started."""

MOST_PROCESSES = 32
"""One process reads and stores what all of them write; it keeps up with about as many."""


@contextmanager
def spread(source: Generator, n_documents: int, processes: int | None = None) -> Iterator[Generator]:
    """``source`` itself, or for the template generator and many documents the same on ``processes`` (all processors).

    What comes out is the same either way.
    """
    at_once = processes_for(n_documents) if processes is None else processes
    if not isinstance(source, TemplateGenerator) or n_documents < FEWEST_DOCUMENTS or at_once < 2:
        yield source
        return
    several = SpreadGenerator(source, at_once)
    try:
        several.prepare()
        yield several
    finally:
        several.close()


def processes_for(n_documents: int, cpus: int | None = None) -> int:
    """How many processes write for so many documents on ``cpus`` processors (this machine's)."""
    return 1 if n_documents < FEWEST_DOCUMENTS else min(processors() if cpus is None else cpus, MOST_PROCESSES)


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class SpreadGenerator:
    """``source``, asked in several processes. Safe to call from as many threads as there are processes, and more."""

    is_llm = False

    def __init__(self, source: TemplateGenerator, processes: int) -> None:
        self._source = source
        self.name, self.model, self.concurrency = source.name, source.model, processes
        self._all: list[subprocess.Popen[str]] = []
        self._idle: queue.SimpleQueue[subprocess.Popen[str]] = queue.SimpleQueue()

    @property
    def parameters(self) -> dict[str, object]:
        return self._source.parameters

    def prepare(self) -> None:
        for _ in range(self.concurrency - len(self._all)):
            self._idle.put(self._start())

    def cancel(self) -> None:
        """Nothing to give up: an answer takes milliseconds."""

    def close(self) -> None:
        """End the processes."""
        for process in self._all:
            process.kill()
            process.communicate()

    def generate(
        self, prompt: str, document: Document, method: Method, m: int, *, sample: int = 0, query: str = ""
    ) -> Answer:
        if method.from_queries:
            return self._source.generate(prompt, document, method, m, sample=sample, query=query)
        process = self._idle.get()
        try:
            queries = self._ask(process, document, method, m)
        except (OSError, ValueError):  # it was killed
            process.kill()
            process = self._start()
            queries = None
        finally:
            self._idle.put(process)
        if queries is None:  # here, whatever is wrong with the document is raised where it can be recorded as it is
            return self._source.generate(prompt, document, method, m, sample=sample, query=query)
        return Answer(queries=tuple(queries), model=self.model)

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, json.dumps(self._source.parameters)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="ascii",
        )
        self._all.append(process)
        return process

    @staticmethod
    def _ask(process: subprocess.Popen[str], document: Document, method: Method, m: int) -> list[str] | None:
        """The queries, None where they could not be written; OSError or ValueError where the process is gone."""
        assert process.stdin is not None
        assert process.stdout is not None
        request = {"id": document.id, "title": document.title, "text": document.text, "method": method.name, "m": m}
        process.stdin.write(f"{json.dumps(request)}\n")
        process.stdin.flush()
        answer: list[str] | None = json.loads(process.stdout.readline())
        return answer


def answer(source: TemplateGenerator, request: dict[str, Any]) -> list[str] | None:
    """The queries for one request; None where they could not be written."""
    document = Document(id=request["id"], text=request["text"], title=request["title"])
    try:
        return source.queries(document, request["method"], request["m"])
    except Exception:  # raised again, and recorded, by the process that asks
        return None


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # the process that asks decides when to stop
        signal.signal(number, signal.SIG_IGN)
    source = TemplateGenerator(**json.loads(sys.argv[1]))
    for line in sys.stdin:
        sys.stdout.write(f"{json.dumps(answer(source, json.loads(line)))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
