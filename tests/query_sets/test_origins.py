"""Who wrote imported queries, under which licence, and their reasoned forms: asked, kept, shown, changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp import query_sets
from cdp.__main__ import main
from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.query_sets import ImportOptions, import_queries, usable
from cdp.training.plan import licence_notes, prepare
from tests.synthesis.conftest import CorpusMaker

ROWS = [
    {"id": "d0", "q": "why do tides rise", "thought": "why does water rise twice a day, which pull causes it"},
    {"id": "d1", "q": "bread dough", "thought": "what makes dough of flour and water rise before it is baked"},
    {"id": "d1", "q": "is yeast alive", "thought": ""},
    {"id": "d2", "q": "bees", "thought": "bees"},
]
FIELDS = {"query_field": "q", "document_field": "id"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ({}, "unknown", "unknown"),
        ({"origin": "human"}, "human", "people"),
        ({"origin": "llm"}, "synthetic", "a language model that was not named"),
        ({"origin": "llm", "model": "gpt-4o-mini", "prompt": "Write M."}, "synthetic", "gpt-4o-mini (imported)"),
    ],
)
def test_an_import_is_what_was_said_of_it_and_unknown_unasked(
    workspace: Workspace, make_corpus: CorpusMaker, said: dict[str, str], kind: str, words: str
) -> None:
    options = ImportOptions.from_dict({**said, "licence": "CC BY 4.0"})
    made = import_queries([("d0", "one"), ("d1", "two")], workspace, make_corpus(3).id, options=options).query_set
    stored = query_sets.load(workspace, made.id)
    assert (stored.kind, stored.model, stored.licence) == (kind, said.get("model", ""), "CC BY 4.0")
    assert stored.written_by.startswith(words)
    assert stored.parameters.get("prompt", "") == said.get("prompt", "")
    assert bool(stored.prompt_hash) == ("prompt" in said)
    config = TrainingConfig(query_set=made.id)
    data = prepare(config, workspace)
    assert licence_notes(data.retriever, data.pairs.query_set, workspace)["queries"] == "CC BY 4.0"


def test_a_model_is_only_named_for_queries_of_a_model() -> None:
    for said in ({"model": "gpt-4o-mini"}, {"origin": "human", "prompt": "Write"}, {"origin": "monkeys"}):
        with pytest.raises(ConfigError, match="origin"):
            ImportOptions.from_dict(said)


def test_sets_of_unknown_origin_may_serve_as_human(workspace: Workspace, make_corpus: CorpusMaker) -> None:
    corpus = make_corpus(3).id
    old = import_queries([("d0", "one")], workspace, corpus, "old").query_set
    said = import_queries([("d0", "two")], workspace, corpus, "said", options=ImportOptions(origin="human")).query_set
    found = query_sets.list_query_sets(workspace)
    assert usable.references(found) == {said.id: "said", old.id: "old (origin unknown)"}


def test_saying_it_with_a_second_import_changes_the_set_that_is_there(
    workspace: Workspace, make_corpus: CorpusMaker
) -> None:
    corpus = make_corpus(2).id
    first = import_queries([("d0", "one")], workspace, corpus, "mine").query_set
    said = ImportOptions(origin="llm", model="m", licence="CC0")
    again = import_queries([("d0", "one")], workspace, corpus, "mine", options=said).query_set
    assert again.id == first.id
    assert (again.kind, again.model, again.licence) == ("synthetic", "m", "CC0")
    assert import_queries([("d0", "one")], workspace, corpus, "mine").query_set == again  # silence changes nothing


def test_the_command_line_asks_shows_and_changes_it(
    workspace: Workspace, make_corpus: CorpusMaker, source: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("CDP_WORKSPACE", str(workspace.root))
    corpus = make_corpus(3).id
    fields = ["--query-field", "q", "--document-field", "id"]
    assert main(["queries", "import", str(source), "--corpus", corpus, "--name", "mine", *fields]) == 0
    out = capsys.readouterr().out
    assert "written by: unknown" in out
    name = next(q.id for q in query_sets.list_query_sets(workspace) if q.name == "mine")
    assert main(["metrics", name, "--human", name, "--quick"]) == 0
    assert "mine stands for human queries, and is not known to be" in capsys.readouterr().err
    said = ["--origin", "llm", "--model", "gpt-4o-mini", "--licence", "CC0"]
    assert main(["queries", "import", str(source), "--corpus", corpus, "--name", "mine", *fields, *said]) == 0
    capsys.readouterr()
    assert main(["queries", "show", name]) == 0
    assert "written by: gpt-4o-mini (imported)\nlicence: CC0\n" in capsys.readouterr().out
