"""A synthesis job divided over a crew gives, byte for byte, the set of one machine, and pays for no answer twice."""

from __future__ import annotations

import json
import shutil
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdp import query_sets
from cdp.base.crew import kept
from cdp.base.errors import ConfigError, ProviderError
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, new_id, write_json
from cdp.synthesis import divided, journal, part
from cdp.synthesis.cache import AnswerCache, Entry
from cdp.synthesis.generators import Answer, Usage
from cdp.synthesis.journal import Journal, folder_of, journals
from cdp.synthesis.pricing import PriceRow, write_prices
from cdp.synthesis.run import Run
from cdp.synthesis.spending import Account, OverBudget
from tests.crews import Death, Mortal, Several
from tests.synthesis.conftest import CorpusMaker
from tests.synthesis.server import KEY, MODEL, ChatServer, document_of, numbered
from tests.synthesis.test_run import settings
from tests.synthesis.test_spending import PRICE

TwoJobs = Callable[..., tuple[Job, Job]]


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few documents make several parts. Each thread has a generator of its own, as each Ray worker has."""
    monkeypatch.setattr(divided, "FEWEST_ASKED", 1)

    def of_this_thread(what: str, key: Any, make: Callable[[], Any]) -> Any:
        return kept(f"{what} of {threading.get_ident()}", key, make)

    monkeypatch.setattr(part, "kept", of_this_thread)


@pytest.fixture
def two_jobs(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TwoJobs:
    """The same job in this workspace and in a copy of it as it is now: for one machine, and for several."""
    monkeypatch.setenv("CDP_API_KEY", KEY)

    def make(**config: object) -> tuple[Job, Job]:
        other = Workspace(tmp_path / new_id("copy"))
        shutil.copytree(workspace.root, other.root)
        job_id = new_id("synthesis")
        for place in (workspace, other):
            write_json(place.job(job_id) / "spec.json", {"id": job_id, "kind": "synthesis", "config": config})
        monkeypatch.setenv("CDP_BASE_URL", str(config.get("base_url", "")))
        return Job(workspace.job(job_id)), Job(other.job(job_id))

    return make


def files_of(job: Job, result: dict[str, Any]) -> tuple[bytes, bytes, dict[str, Any]]:
    """Lines and failures as bytes, and what the manifest says but for its time."""
    files = query_sets.files(job.workspace, result["query_set"])
    failures = files.failures.read_bytes() if files.failures.exists() else b""
    manifest = json.loads(files.manifest.read_bytes())
    manifest.pop("created")
    return files.queries.read_bytes(), failures, manifest


def texts_of(job: Job, result: dict[str, Any]) -> list[Any]:
    """The lines but for what each cost: an answer that was there without its line comes from the cache."""
    lines = query_sets.iter_lines(job.workspace, result["query_set"])
    return [{name: value for name, value in line.items() if name != "usage"} for line in lines]


def told(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name not in ("seconds", "attempt")}


def answers_of_all_kinds(prompt: str, m: int) -> str:
    """Refusals, too few queries and good ones, by the document."""
    number = int(document_of(prompt).split()[0].removeprefix("Thing"))
    if number % 7 == 3:
        return "I'm sorry, but I cannot do that."
    return "1. just one query" if number % 7 == 5 else numbered(prompt, m)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "more"), [(30, {}), (30, {"limit": 7, "draw": 3}), (3, {})])
def test_the_template_generator_in_parts(
    make_corpus: CorpusMaker, two_jobs: TwoJobs, n: int, more: dict[str, object]
) -> None:
    rows = [(f"d{i}", "", "..." if i == 2 else f"Wheel {i} turns the device. Nobody sells it.") for i in range(n)]
    alone, several = two_jobs(corpus=make_corpus(rows=rows).id, generator="template", per_doc=3, **more)
    expected = Run(alone).execute()
    crew = Several(2)
    result = Run(several, crew=crew).execute()
    assert files_of(several, result) == files_of(alone, expected)
    assert told(result) == told(expected)
    assert crew.n_parts > 1
    assert not folder_of(several.folder).exists()


@pytest.mark.slow
def test_an_endpoint_in_parts(server: ChatServer, make_corpus: CorpusMaker, two_jobs: TwoJobs) -> None:
    """Unreadable answers, too few queries, refused requests, equal documents and answers that are kept already."""
    server.answer = answers_of_all_kinds
    server.fault_for = {"Thing8": "400", "Thing9": "400"}
    text = "Thing{} is device number {}. It works because a wheel turns."
    rows = [(f"d{i}", "", text.format(i % 18, i % 18)) for i in range(24)]
    corpus = make_corpus(rows=rows)
    alone, several = two_jobs(**settings(server, corpus.id))
    expected = Run(alone).execute()
    asked = server.asked.copy()
    server.asked.clear()
    result = Run(several, crew=Several(3)).execute()
    assert files_of(several, result) == files_of(alone, expected)
    assert told(result) == told(expected)
    assert (result["failures"], result["incomplete"]) == (6, 3)
    assert server.asked == asked
    server.asked.clear()
    _, third = two_jobs(**settings(server, corpus.id))
    again = Run(third, crew=Several(2)).execute()
    refused = Counter({name: n for name, n in asked.items() if name.split()[0] in server.fault_for})
    assert server.asked == refused, "nothing else is asked for again"
    assert (again["n_documents"], again["spent"]["requests"]) == (expected["n_documents"], 0)


@pytest.mark.slow
def test_methods_that_ask_several_times_or_start_from_queries(
    server: ChatServer, make_corpus: CorpusMaker, two_jobs: TwoJobs
) -> None:
    server.answer = lambda prompt, m: f"Summary: x\nQuestion: {numbered(prompt, 1)} {len(prompt)}"
    corpus = make_corpus(6)
    alone, several = two_jobs(**settings(server, corpus.id, method="sap", output="list"))
    expected = Run(alone).execute()
    assert files_of(several, Run(several, crew=Several(2)).execute()) == files_of(alone, expected)
    server.answer = lambda prompt, m: f"A paragraph about wheel {len(prompt)} and its turning."
    more = settings(server, corpus.id, method="reasoning", source=expected["query_set"], output="list")
    alone, several = two_jobs(**more)
    assert files_of(several, Run(several, crew=Several(2)).execute()) == files_of(alone, Run(alone).execute())


def dies(*_: Any) -> None:
    raise Death


def dies_after(monkeypatch: pytest.MonkeyPatch, *records: int) -> None:
    """The workers that write these records, counted over all of them, die instead."""
    lock, n = threading.Lock(), [0]
    add = Journal.add

    def mortal(self: Journal, kind: str, value: Any, **more: Any) -> None:
        with lock:
            n[0] += 1
            dead = n[0] in records
        if dead:
            raise Death
        add(self, kind, value, **more)

    monkeypatch.setattr(Journal, "add", mortal)


@pytest.mark.slow
def test_a_part_whose_worker_dies_is_done_again_and_nothing_is_paid_for_twice(
    server: ChatServer, make_corpus: CorpusMaker, two_jobs: TwoJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer = answers_of_all_kinds
    alone, several = two_jobs(**settings(server, make_corpus(16).id, concurrency=1))
    expected = Run(alone).execute()
    n_asked = len(server.bodies)
    # Before a request, with the answer there and not written down, and before a line.
    dies_after(monkeypatch, 4, 12, 27)
    crew = Mortal(2)
    result = Run(several, crew=crew).execute()
    assert crew.n_deaths == 3
    assert files_of(several, result) == files_of(alone, expected)
    unanswered = result["spent"].pop("unanswered", 0)
    assert len(server.bodies) - 2 * n_asked == unanswered == result["spent"].pop("estimated", 0)
    assert unanswered <= 3
    assert result["spent"]["requests"] == expected["spent"]["requests"]


@pytest.mark.slow
@pytest.mark.parametrize("price", [1.0, 10.0])
def test_a_budget_holds_over_all_workers(
    workspace: Workspace,
    server: ChatServer,
    make_corpus: CorpusMaker,
    two_jobs: TwoJobs,
    price: float,
) -> None:
    write_prices(workspace, [PriceRow(MODEL, price, 10 * price)], PRICE.as_of)
    budget = 0.03
    config = settings(server, make_corpus(80).id, concurrency=2, budget=budget, max_output_tokens=64)
    spent = []
    for job, crew in zip(two_jobs(**config), (None, Several(4)), strict=True):
        with pytest.raises(ConfigError, match="is used up"):
            Run(job, crew=crew).execute()
        spent.append(json.loads((job.results / "synthesis.json").read_bytes()))
    usual = spent[0]["cost"] / spent[0]["spent"]["requests"]
    for result in spent:
        assert budget - 2 * usual < result["cost"] <= budget + usual
        assert result["n_documents"] == result["spent"]["requests"]
    assert len(server.bodies) == sum(result["spent"]["requests"] for result in spent)


def test_a_share_is_never_overshot(workspace: Workspace) -> None:
    most = Usage(100, 90, 1)
    with AnswerCache(workspace) as cache:
        account = Account(cache, "job", price=PRICE, budget=1.5 * PRICE.cost(most), to_the_last=False)
        account.ask("a" * 64, most, most, lambda: Answer("x", usage=most))
        with pytest.raises(OverBudget):
            account.ask("b" * 64, Usage(1, 1, 1), most, lambda: Answer("x", usage=most))
        account.add(most)
        assert account.cost == 2 * PRICE.cost(most)


@pytest.mark.slow
def test_what_a_killed_attempt_left_is_taken_over_once(
    server: ChatServer, make_corpus: CorpusMaker, two_jobs: TwoJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job's own worker is killed: its workers' journals are all that there is of their parts."""
    alone, several = two_jobs(**settings(server, make_corpus(12).id, concurrency=1))
    expected = Run(alone).execute()
    n_asked = len(server.bodies)
    with monkeypatch.context() as patched:
        dies_after(patched, 8)
        patched.setattr(divided.Division, "_take_over", lambda self, name: None)  # it is dead as well
        patched.setattr(shutil, "rmtree", lambda *_, **__: None)
        with pytest.raises(Death):
            Run(several, crew=Several(1)).execute()
    assert journals(folder_of(several.folder))
    with monkeypatch.context() as patched:  # and the next attempt, when its books are written and the lines are not
        patched.setattr(divided, "outcomes", dies)
        with pytest.raises(Death):
            Run(Job(several.folder), crew=Several(2)).execute()
    assert journals(folder_of(several.folder))
    result = Run(Job(several.folder), crew=Several(2)).execute()
    assert texts_of(several, result) == texts_of(alone, expected)
    assert result["spent"]["requests"] == expected["spent"]["requests"] == 12
    assert len(server.bodies) - 2 * n_asked == result["spent"].get("unanswered", 0)
    assert not folder_of(several.folder).exists()


@pytest.mark.slow
def test_a_stop_keeps_the_answers_that_are_on_their_way(
    server: ChatServer, make_corpus: CorpusMaker, two_jobs: TwoJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdp.synthesis.part.LOOK_EVERY_S", 0.0)
    alone, several = two_jobs(**settings(server, make_corpus(12).id, concurrency=1))
    expected = Run(alone).execute()

    def stop_at_the_fifth(prompt: str, m: int) -> str:
        if sum(server.answered.values()) == 12 + 4:
            (several.folder / "stop.request").touch()
        return numbered(prompt, m)

    server.answer = stop_at_the_fifth
    first = Run(several, crew=Several(2)).execute()
    assert 4 < first["n_documents"] < 12
    assert first["spent"]["requests"] == first["n_documents"]
    assert not first["complete"]
    (several.folder / "stop.request").unlink()
    second = Run(Job(several.folder), crew=Several(2)).execute()
    assert files_of(several, second)[0] == files_of(alone, expected)[0]
    assert len(server.bodies) == 24


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "error", "match"),
    [("", ProviderError, "in a row got no answer"), ("no", ConfigError, "answers held no query")],
)
def test_what_ends_a_part_for_good_ends_the_run(
    server: ChatServer,
    make_corpus: CorpusMaker,
    two_jobs: TwoJobs,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    error: type[Exception],
    match: str,
) -> None:
    monkeypatch.setattr(divided, "FEWEST_ASKED", 25)
    server.answer = lambda prompt, m: "I'm sorry, but I cannot do that."
    server.rates = {} if answer else {"500": 1.0}
    _, job = two_jobs(**settings(server, make_corpus(100).id, concurrency=2, retries=0))
    with pytest.raises(error, match=match):
        Run(job, crew=Several(2)).execute()
    assert len(server.bodies) <= 2 * 2 * (20 + 4), "each worker tries so many, and their successors none"
    assert not query_sets.list_query_sets(job.workspace)[0].complete


@pytest.mark.slow
def test_a_part_holds_no_more_than_its_documents(
    make_corpus: CorpusMaker, two_jobs: TwoJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts are made as they are asked for: what is under way does not grow with the corpus."""
    monkeypatch.setattr(divided, "DOCUMENTS_WRITTEN", 5)
    _, job = two_jobs(corpus=make_corpus(100).id, generator="template", per_doc=1)
    most = [0]
    take_over = divided.Division._take_over

    def watched(self: divided.Division, name: str) -> None:
        most[0] = max(most[0], len(self._given))
        take_over(self, name)

    monkeypatch.setattr(divided.Division, "_take_over", watched)
    crew = Several(2)
    Run(job, crew=crew).execute()
    assert crew.n_parts == 20
    assert most[0] <= 2 * crew.size


def test_a_journal_counts_once_until_its_file_is_gone(workspace: Workspace) -> None:
    entries = [Entry("a" * 64, Usage(10, 5, 1), Answer("x")), Entry("b" * 64, Usage(7, 3, 0, 1, 1), lost=True)]
    with AnswerCache(workspace) as cache:
        assert cache.enter("job", "1-000001.ab.jsonl", entries, charged=True) == (1, Usage(17, 8, 1, 1, 1))
        assert cache.enter("job", "1-000001.ab.jsonl", entries, charged=True) == (0, Usage())
        assert cache.spent("job") == Usage(17, 8, 1, 1, 1)
        kept = cache.get("a" * 64)
        assert kept is not None
        assert (kept.text, cache.get("b" * 64)) == ("x", None)
        cache.forget("job", "1-000001.ab.jsonl")  # somebody who was cut off wrote on
        assert cache.enter("job", "1-000001.ab.jsonl", entries[1:], charged=False) == (1, Usage())


def test_a_line_that_was_torn_is_written_again(tmp_path: Path) -> None:
    """A document with too few queries is among the failures before its line is there."""
    writer = Journal(tmp_path, "1-000001", sync=True)
    writer.add(journal.FAILURE, {"position": 4, "kept": 1})
    writer.add(journal.FAILURE, {"position": 5})
    writer.add(journal.LINE, {"position": 6})
    assert journal.Earlier.of([writer.path]).done == {5, 6}
    follower = journal.Follower(tmp_path)
    assert (follower.look(), follower.look()) == (3, 3)
