"""This program at one server, by its command line: preview, writing and evaluating with kills, judging."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdp.base.workspace import Workspace
from tests.endpoints.counterparts import Server
from tests.endpoints.counting import Counting, counting
from tests.gauntlet.typed import OneProcess
from tests.jobs.support import state, status, until_state
from tests.synthesis.server import ChatServer, document_of, numbered

KILLS = 5
DOCUMENTS = 40
CONCURRENCY = 2
# Requests that are answered between a start and its kill, and at least how long each takes.
BETWEEN_KILLS = 4
LATENCY_S = 0.2
JUDGED_QUERIES, DEPTH = 3, 4
# Documents that are evaluated: 32 go into a request, eight requests at once.
PASSAGES = 6000
QUERIES = 20
PATIENCE_S = 180.0

# What comes of one in so many requests at the server behind a proxy.
RATES = {"429": 0.04, "500": 0.04, "malformed": 0.04, "usage null": 0.04}

SUBJECTS = ("river", "bee", "bridge", "winter", "garden", "stone", "language", "school", "music", "paper")
ENDED = ("finished", "failed", "stopped", "lost")


def text_of(number: int) -> str:
    """Return a short document; its first word is its own."""
    subject, other = SUBJECTS[number % len(SUBJECTS)], SUBJECTS[number // len(SUBJECTS) % len(SUBJECTS)]
    return f"Report{number} is about the {subject} and the {other}. People saw it in the year {1900 + number % 100}."


# Rows of the table *Tried* about this program, the same at each run that has no fault.
PREVIEW = "our preview"
WRITTEN = f"{DOCUMENTS} documents written, {KILLS} kills"
JUDGED = f"{JUDGED_QUERIES * DEPTH} pairs judged"
EVALUATED = f"{PASSAGES + QUERIES:,} texts embedded, {KILLS} kills"


@dataclass
class Came:
    """What came of one counterpart.

    ``cells`` are those of the table; ``notes`` the counts behind them; ``faults`` what this program did wrong there;
    ``reasons`` why documents and pairs failed, as this program says it.
    """

    cells: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Course:
    """One server's way through this program, in a workspace of its own."""

    def __init__(self, server: Server, between: Counting, folder: Path) -> None:
        self.server, self.between, self.folder = server, between, folder
        self.typed = OneProcess(folder / "workspace")
        self.workspace = Workspace(folder / "workspace")
        self.model = server.counterpart.model
        self.came = Came()

    def cdp(self, *words: str) -> Any:
        return self.typed(self.server.counterpart.name, *words)

    def run(self) -> Came:
        """Return what came of it."""
        began = time.monotonic()
        texts = self._jsonl("documents", ({"_id": f"d{n}", "text": text_of(n)} for n in range(DOCUMENTS)))
        corpus = (self.cdp("corpus", "add", str(texts)) or {}).get("id", "")
        counterpart = self.server.counterpart
        chatting = {PREVIEW: self._previewed, WRITTEN: self._written, JUDGED: self._judged}
        steps: dict[str, Callable[[str], str]] = chatting if counterpart.chats else {}
        for row, step in {**steps, **({EVALUATED: self._evaluated} if counterpart.embeds else {})}.items():
            try:
                self.came.cells[row] = step(corpus)
            except Exception as error:  # what comes after is tried all the same
                self.came.cells[row] = "**fault**"
                self.came.faults.append(f"{row}: {type(error).__name__}: {error}")
        self.came.faults += [f"{fault.command}: {fault.said}" for fault in self.typed.faults]
        self.came.seconds = time.monotonic() - began
        return self.came

    def _previewed(self, corpus: str) -> str:
        found = self._answer(
            "queries", "preview", "--corpus", corpus, "--methods", "diverse", "--per-doc", "2", *self._endpoint()
        )
        assert found, "no preview"
        return "shown"

    def _written(self, corpus: str) -> str:
        done = self._killed(
            "queries", "generate", "--corpus", corpus, "--method", "diverse", "--per-doc", "2", *self._endpoint(),
            "--set", f"concurrency={CONCURRENCY}", "--set", "retries=2",
        )  # fmt: skip
        self._accounted("documents", DOCUMENTS, done["n_documents"], done)
        return "each has queries or a reason; none paid twice"

    def _judged(self, corpus: str) -> str:
        """Have pairs judged. A random model gives no grade: then the job has failed, with a reason for each pair."""
        queries = self.folder / "log.txt"
        queries.write_text("".join(f"what was seen of the {subject}\n" for subject in SUBJECTS[:JUDGED_QUERIES]))
        self.between.forget()
        done = self._answer(
            "benchmarks", "judge", "--corpus", corpus, "--queries", str(queries), "--retrievers", "bm25",
            "--depth", str(DEPTH), "--name", "judged", "--generator", "openai", "--model", self.model,
            "--base-url", self.between.url, "--set", f"concurrency={CONCURRENCY}", "--set", "max_output_tokens=64",
            "--wait",
        )  # fmt: skip
        self._accounted("pairs", JUDGED_QUERIES * DEPTH, done.get("judged", 0), done)
        return "each has a grade or a reason; none paid twice"

    def _evaluated(self, _: str) -> str:
        if self.server.upstream is not None:
            self.server.upstream.rates = {fault: RATES[fault] for fault in ("429", "500")}
        folder = self.folder / "passages"
        (folder / "qrels").mkdir(parents=True)
        self._jsonl("passages/corpus", ({"_id": f"d{n}", "title": "", "text": text_of(n)} for n in range(PASSAGES)))
        self._jsonl("passages/queries", ({"_id": f"q{n}", "text": f"report{n}"} for n in range(QUERIES)))
        judged = "".join(f"q{n}\td{n}\t1\n" for n in range(QUERIES))
        (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
        self.cdp("benchmarks", "add", str(folder))
        done = self._killed("evaluate", f"api:{self.model}@{self.between.url}", "--benchmark", "passages")
        assert done["state"] == "finished", done
        n, twice = len(self.between.paid), self.between.twice
        self.came.notes.append(f"{n:,} texts embedded, {twice} paid twice, {len(self.between.lost)} lost at kills")
        assert (n, twice) == (PASSAGES + QUERIES, 0), self.came.notes[-1]
        return "each has a vector; none paid twice"

    def _accounted(self, what: str, n: int, whole: int, done: dict[str, Any]) -> None:
        """Each of ``n`` items is whole or failed with a reason, and none was paid twice; else AssertionError."""
        failed, lines, twice = done["failed"]["n"], done["failed"]["first"], self.between.twice
        lost = len(self.between.lost)
        self.came.notes.append(
            f"{n} {what}: {whole} whole, {failed} failed; {twice} requests paid twice, {lost} lost at kills"
        )
        self.came.reasons += sorted({str(line.get("reason")) for line in lines})
        assert (whole + failed, twice) == (n, 0), self.came.notes[-1]
        assert all(line.get("reason") for line in lines), f"{what}: a failure without a reason"
        assert (done["state"] == "finished") == (whole > 0), f"{what}: {whole} whole, the job {done['state']}"

    def _killed(self, *words: str) -> dict[str, Any]:
        """Start a job, kill its worker ``KILLS`` times, resume it each time, and follow it to its end.

        Return its answer. Raises AssertionError where it could not be killed so often.
        """
        self.between.forget()
        job = self._begun(*words)
        for kill in range(KILLS):
            self._until_answered(self.between.answered + BETWEEN_KILLS, job)
            self._kill(job)
            assert self._state(job) == "failed", f"{job} was {self._state(job)} at kill {kill + 1} of {KILLS}"
            self.between.settle()
            if kill < KILLS - 1:
                self._begun("jobs", "resume", job)
        return self._answer("jobs", "resume", job, "--wait")

    def _begun(self, *words: str) -> str:
        """Return the id of the job that a command starts, and that goes on without it."""
        return str(self._answer(*words)["id"])

    def _answer(self, *words: str) -> dict[str, Any]:
        """Return what a command answers, whichever way its job ends. Raises AssertionError where it answers nothing."""
        _, out, err = self.typed.type(*words, "--json")
        assert out, f"cdp {' '.join(words)}: {err[-2000:]}"
        answer: dict[str, Any] = json.loads(out)
        return answer

    def _kill(self, job: str) -> None:
        """Kill the job's worker and wait until the job has ended."""
        pid = int(status(self.workspace, job).get("worker_pid") or 0)
        assert pid, f"{job} has no worker"
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        self.between.client_killed()
        until_state(self.workspace, job, *ENDED)

    def _endpoint(self) -> tuple[str, ...]:
        named = ("--generator", "openai", "--set", f"model={self.model}", "--set", f"base_url={self.between.url}")
        # A random model that takes the likeliest token repeats it.
        return (*named, "--set", "max_output_tokens=64", "--set", "temperature=1.0")

    def _jsonl(self, name: str, rows: Iterator[dict[str, Any]]) -> Path:
        path = self.folder / f"{name}.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return path

    def _state(self, job: str) -> str:
        return state(self.workspace, job)

    def _until_answered(self, n: int, job: str) -> None:
        """Wait until so many requests are answered, or the job ends."""
        deadline = time.monotonic() + PATIENCE_S
        while self.between.answered < n and self._state(job) not in ENDED and time.monotonic() < deadline:
            time.sleep(0.02)


def faulty(upstream: ChatServer) -> None:
    """Have the server behind a proxy fail now and then, and grade where it is asked for a grade."""

    def answer(prompt: str, m: int) -> str:
        if "<passage>\n" in prompt:
            return json.dumps({"reason": "It names it.", "grade": len(document_of(prompt)) % 4})
        return numbered(prompt, m)

    upstream.rates, upstream.answer = RATES, answer


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def gone_through(server: Server, folder: Path) -> Came:
    """Take one started server through the course."""
    if server.upstream is not None:
        faulty(server.upstream)
    with counting(server.url, latency_s=LATENCY_S) as between:
        with _environment(CDP_BASE_URL=between.url, CDP_API_KEY=server.key):
            return Course(server, between, folder).run()
