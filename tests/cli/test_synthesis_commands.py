"""Price, batches and exports on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp import cli, query_sets
from cdp.base.workspace import Workspace
from cdp.corpus import looking
from cdp.services import corpora, queries
from tests.cli.support import answer, refusal, run
from tests.synthesis.server import KEY, MODEL, chat_server

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("jobs_here")]


@pytest.fixture(autouse=True)
def _key(with_demo: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDP_API_KEY", "sk-only-for-the-tests")


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert cli.main(list(words)) == code
    captured = capsys.readouterr()
    return captured.out if code == 0 else captured.err


def test_an_estimate_in_words_and_in_json(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["queries", "estimate", "--corpus", "demo", "--per-doc", "5"]
    found = json.loads(said(capsys, *words, "--json"))
    assert (found["n_documents"], found["requests"], found["output_tokens"]) == (96, 96, 96 * 5 * 18)
    assert found["cost"] == pytest.approx((found["input_tokens"] * 0.15 + found["output_tokens"] * 0.60) / 1e6)
    assert found["batch_cost"] == pytest.approx(found["cost"] / 2)
    text = said(capsys, *words)
    assert "requests: 96 for 96 documents" in text
    assert "prices as of" in text
    assert "cost: nothing" in said(capsys, *words, "--generator", "template")
    assert "has no price" in said(capsys, *words, "--set", "model=my-own")
    nowhere = said(capsys, *words, "--set", "base_url=http://127.0.0.1:abc/v1", code=2)
    assert "is not the address of an endpoint" in nowhere


def test_the_parameters_of_an_address_are_sent_with_every_request(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Azure's address, in the environment, with its key."""
    with chat_server() as server:
        address = f"{server.url.removesuffix('/v1')}/openai/deployments/gpt?api-version=2025-04-01-preview"
        monkeypatch.setenv("CDP_BASE_URL", address)
        monkeypatch.setenv("CDP_API_KEY", KEY)
        said(capsys, "doctor")
        words = ["--corpus", "demo", "--generator", "openai", "--set", f"model={MODEL}"]
        assert "fact 1" in said(capsys, "queries", "preview", *words)
        said(capsys, "queries", "generate", *words, "--per-doc", "2", "--set", "limit=3", "--wait")
        path, _, query = address.partition("?")
        assert set(server.paths) == {f"/{path.split('/', 3)[3]}/chat/completions?{query}"}
        assert len(server.paths) == 2 + 3


def test_methods_are_priced_by_their_requests(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    for method, requests in {"sap": 96 * 4, "dragon_s_paper": 0}.items():
        words = ["queries", "estimate", "--corpus", "demo", "--per-doc", "4", "--method", method, "--json"]
        assert json.loads(said(capsys, *words))["requests"] == requests
    source = next(q for q in queries.list_query_sets(workspace) if q.method == "diverse")
    words = ["queries", "estimate", "--corpus", "demo", "--per-doc", "3", "--method", "reasoning"]
    found = json.loads(said(capsys, *words, "--set", f"source={source.id}", "--json"))
    assert found["requests"] == 96 * 3
    assert "existing queries" in said(capsys, *words, code=2)


def test_every_export_format(workspace: Workspace, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source = next(q for q in queries.list_query_sets(workspace) if q.method == "diverse")
    for form in ("beir", "sentence-transformers", "flagembedding", "openai-batch"):
        words = ["queries", "export", source.id, "--format", form, "--out", str(tmp_path / form)]
        done = json.loads(said(capsys, *words, "--per-doc", "2", "--json"))
        assert done["n"] == (96 if form == "openai-batch" else 192), form
        assert all(Path(path).exists() for path in done["paths"]), form
        if form == "openai-batch":
            lines = [json.loads(line) for line in Path(done["paths"][0]).read_text(encoding="utf-8").splitlines()]
            assert {line["body"]["model"] for line in lines} == {"gpt-4o-mini"}
            assert all("Write exactly 2 queries" in line["body"]["messages"][0]["content"] for line in lines)
    assert "already" in said(capsys, *words, code=2)


def test_a_batch_goes_out_and_comes_back(
    workspace: Workspace, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    job = ["--corpus", "demo", "--per-doc", "2", "--set", "limit=5"]
    words = ["queries", "batch-write", *job, "--out", str(tmp_path / "b"), "--json"]
    done = json.loads(said(capsys, *words))
    assert done["n"] == 5
    requests = [json.loads(line) for line in Path(done["paths"][0]).read_text(encoding="utf-8").splitlines()]
    back = [
        {
            "custom_id": request["custom_id"],
            "response": {"status_code": 200, "body": {"choices": [{"message": {"content": "1. a b?\n2. c d?"}}]}},
        }
        for request in requests[:4]
    ]
    path = tmp_path / "back.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [*back, {"custom_id": "x", "response": {}}]))
    read = json.loads(said(capsys, "queries", "batch-read", str(path), "--json"))
    assert (read["answers"], read["failed"]) == (4, 1)
    rest = json.loads(said(capsys, *words[:-3], "--out", str(tmp_path / "rest"), "--json"))
    assert rest["n"] == 1


def test_an_imported_set_has_no_requests_behind_it(
    workspace: Workspace, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    first = next(iter(queries.page(workspace, queries.list_query_sets(workspace)[0].id, 0, 1)))[0]
    path = tmp_path / "human.csv"
    path.write_text(f"document_id,query\n{first},mine\n")
    made = queries.import_file(workspace, path, "demo").query_set
    words = ["queries", "export", made.id, "--format", "openai-batch", "--out", str(tmp_path / "x")]
    assert "no prompt behind it" in said(capsys, *words, code=2)


def test_the_fields_of_an_import_are_said_and_the_nearest_is_offered(
    workspace: Workspace, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    first = queries.page(workspace, queries.list_query_sets(workspace)[0].id, 0, 1)[0][0]
    path = tmp_path / "asked.json"
    path.write_text(json.dumps([{"passage": first, "ask": "Why?", "text": "no query"}]), encoding="utf-8")
    words = ["queries", "import", str(path), "--corpus", "demo", "--document-field", "passage"]
    made = json.loads(said(capsys, *words, "--query-field", "ask", "--json"))
    assert (made["n_queries"], made["n_rejected"]) == (1, 0)
    assert queries.page(workspace, made["id"]) == [(first, ["Why?"])]
    again = json.loads(said(capsys, *words, "--set", "query_field=ask", "--json"))
    assert again["id"] == made["id"]
    assert "field aks; did you mean ask?" in said(capsys, *words, "--query-field", "aks", code=2)
    assert "did you mean encoding?" in said(capsys, *words, "--set", "encodng=utf-8", code=2)


def test_a_query_set_is_shown_with_what_it_lacks(workspace: Workspace, tmp_path: Path) -> None:
    rows = [{"_id": f"d{i}", "text": "🚀" if i % 2 else f"Lock {i} lifts boats in a canal."} for i in range(50)]
    file = tmp_path / "half.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run("corpus", "add", str(file))
    made = answer("queries", "generate", "--corpus", "half", "--per-doc", "2", "--wait")["query_set"]
    shown = answer("queries", "show", made)
    assert (shown["id"], shown["failures"]["n"], len(shown["failures"]["first"])) == (made, 25, 20)
    assert [example["document_id"] for example in shown["examples"]] == ["d0", "d2", "d4"]
    text = run("queries", "show", made).stdout
    assert "queries: 50 for 25 documents of half-" in text
    assert "  d1: The document holds no words to build a query from." in text
    assert "  and 5 more" in text
    assert "No query set is called" in refusal("queries", "show", "nothing")


def test_one_is_not_many_and_the_rest_is_counted(workspace: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    file.write_text('{"_id": "1", "text": "Salt."}\n' + "broken\n" * 25, encoding="utf-8")
    text = run("corpus", "add", str(file)).stdout
    assert ": 1 document\n" in text
    assert "rejected: 25\n" in text
    assert text.count("broken JSON") == 20
    assert "  and 5 more\n" in text


def test_q_doc_is_said_to_count_passages_where_files_were_cut(
    workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.txt").write_text(" ".join(f"On day {n} the ship sailed {n} miles." for n in range(100)))
    cut = corpora.add(workspace, tmp_path / "log.txt").corpus
    made = query_sets.import_queries([("log.txt#1", ["How far on day 3?"])], workspace, cut.id).query_set
    whole = next(q for q in queries.list_query_sets(workspace) if q.corpus_id != cut.id)
    for name, said_so in ((made.id, True), (whole.id, False)):
        assert cli.main(["queries", "show", name]) == 0
        assert ("queries per passage" in capsys.readouterr().err) == said_so


def test_queries_of_several_documents_are_counted(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    whole = corpora.list_corpora(workspace)[0]
    first, second = (document.id for document in looking.page(workspace, whole.id, 0, 2))
    pairs = [(first, ["Which tide is it?"]), (second, ["Which tide is it?", "Who keeps the light?"])]
    made = query_sets.import_queries(pairs, workspace, whole.id).query_set
    assert cli.main(["queries", "show", made.id]) == 0
    assert "shared: 1 query of several documents. All of these count as answers;" in capsys.readouterr().out
