"""Every fault of one answer: the run ends, all other documents have their queries, the one is recorded and asked again.

Before, each of the answers below ended the whole job with a traceback, or was kept and failed at every resume.
"""

from __future__ import annotations

import gzip

import pytest

from cdp import query_sets
from cdp.base.errors import ProviderError
from cdp.base.redaction import CUT
from cdp.llm.answers import Usage, read_completion
from cdp.llm.cache import AnswerCache
from cdp.synthesis.run import SynthesisRun
from tests.synthesis.conftest import CorpusMaker, JobMaker
from tests.synthesis.server import KEY, LOST, MALFORMED, ODD, ChatServer
from tests.synthesis.test_run import documents_of, settings

N = 3
pytestmark = pytest.mark.slow


def test_answers_that_cannot_be_used_are_their_documents_failures(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    """Every second document meets a fault of its own."""
    faults = {f"Thing{2 * i}": fault for i, fault in enumerate(MALFORMED)}
    n = 2 * len(faults)
    server.fault_for = faults
    job = make_job(**settings(server, make_corpus(n).id))
    first = SynthesisRun(job, api_key=KEY).execute()
    assert (first["n_documents"], first["failures"], first["complete"]) == (n // 2, n // 2, True)
    failures = {line["document_id"]: line for line in query_sets.iter_failures(job.workspace, first["query_set"])}
    assert set(failures) == {name.replace("Thing", "d") for name in faults}
    for name, fault in faults.items():
        failure = failures[name.replace("Thing", "d")]
        assert "cannot be used: " in failure["reason"], fault
        assert failure["reason"].isprintable(), fault
        expected = MALFORMED[fault][0][:20].decode("utf-8", "replace")
        assert "".join(failure.get("raw", [])).startswith(expected) or "longer than" in failure["reason"], fault
    with AnswerCache(job.workspace) as cache:
        assert len(cache) == n // 2, "what is no answer is not kept as one"
    asked = len(server.bodies)
    server.fault_for = {}
    second = SynthesisRun(job, api_key=KEY).execute()
    assert len(server.bodies) == asked + n // 2, "only what failed is paid for again"
    assert (second["n_documents"], second["failures"]) == (n, 0)
    assert documents_of(job, second) == [f"d{i}" for i in range(n)]


def test_what_only_describes_an_answer_does_not_make_it_useless(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    n = len(ODD)
    server.fault_for = {f"Thing{i}": fault for i, fault in enumerate(ODD)}
    job = make_job(**settings(server, make_corpus(n).id, per_doc=1))
    result = SynthesisRun(job, api_key=KEY).execute()
    assert (result["n_documents"], result["failures"]) == (n, 0)
    assert documents_of(job, result) == [f"d{i}" for i in range(n)]
    assert result["spent"]["estimated"] == sum(fault.startswith("usage") for fault in ODD)
    again = SynthesisRun(make_job(**job.config), api_key=KEY).execute()
    assert again["usage"]["requests"] == 0
    expected = Usage(150, 30, 1)
    for fault, (body, headers) in ODD.items():
        plain = gzip.decompress(body) if "Content-Encoding" in headers else body
        used = read_completion(plain, expected).usage
        assert (used.input_tokens, used.output_tokens) in ((150, 30), (100, 20), (150, 20)), fault
        assert used.estimated == fault.startswith("usage"), fault


def test_answers_that_get_lost_are_asked_for_again_and_then_their_documents_failures(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    """Also as the very first thing that an endpoint does, which ended the run before."""
    faults = {f"Thing{2 * i}": fault for i, fault in enumerate(LOST)}
    n = 2 * len(faults)
    server.hang = 4.0
    server.fault_for = faults
    job = make_job(**settings(server, make_corpus(n).id, concurrency=1, timeout=1.0, retries=1))
    result = SynthesisRun(job, api_key=KEY).execute()
    assert (result["n_documents"], result["failures"], result["complete"]) == (n // 2, n // 2, True)
    failures = {line["document_id"]: line for line in query_sets.iter_failures(job.workspace, result["query_set"])}
    assert set(failures) == {name.replace("Thing", "d") for name in faults}
    for name, fault in faults.items():
        assert "2 times in a row" in failures[name.replace("Thing", "d")]["reason"], fault
        assert [asked for text, asked in server.asked.items() if text.split()[0] == name] == [2], fault
    assert result["spent"]["unanswered"] == 2 * len(faults), "the endpoint may charge for them"
    server.fault_for = {}
    assert SynthesisRun(job, api_key=KEY).execute()["n_documents"] == n


@pytest.mark.parametrize("fault", ["message null", "reset"])
def test_twenty_documents_in_a_row_stop_the_run(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, fault: str
) -> None:
    server.script = [fault] * 1000
    job = make_job(**settings(server, make_corpus(26).id, retries=0))
    with pytest.raises(ProviderError, match="20 documents in a row"):
        SynthesisRun(job, api_key=KEY).execute()
    assert len(server.bodies) < 26
    server.script = []
    result = SynthesisRun(job, api_key=KEY).execute()
    assert (result["n_documents"], result["failures"]) == (26, 0)


def test_a_key_in_an_unusable_answer_is_not_kept(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = f'{{"choices": null, "debug": "Bearer {KEY}"}}'.encode()
    monkeypatch.setitem(MALFORMED, "choices null", (body, {}))
    server.fault_for = {"Thing1": "choices null"}
    job = make_job(**settings(server, make_corpus(N).id))
    result = SynthesisRun(job, api_key=KEY).execute()
    (failure,) = query_sets.iter_failures(job.workspace, result["query_set"])
    assert CUT in failure["raw"][0]
    assert all(KEY.encode() not in path.read_bytes() for path in job.workspace.root.rglob("*") if path.is_file())
