"""Queries that need several documents: which are asked about together, what is paid, and what comes of the queries."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from cdp import query_sets
from cdp.base.config import PromptTuningConfig, SynthesisConfig
from cdp.base.errors import ConfigError, InputError, NotFoundError
from cdp.base.text import estimate_tokens
from cdp.base.workspace import Workspace
from cdp.corpus import CorpusManifest
from cdp.query_sets import QuerySet, exports, usable
from cdp.services import queries, review, tuning
from cdp.services import queries as query_services
from cdp.synthesis.batch import read_batch, write_batch
from cdp.synthesis.generate import generate
from cdp.synthesis.preview import previews
from cdp.synthesis.pricing import estimate
from cdp.synthesis.run import SynthesisRun
from cdp.synthesis.work import grouped, related_groups
from cdp.training.pairs import load_pairs
from tests.synthesis.conftest import CorpusMaker, JobMaker
from tests.synthesis.server import KEY, ChatServer, asked_for
from tests.synthesis.test_batch import answered, read_lines, write_lines
from tests.synthesis.test_run import lines_of, settings

# What belongs together is found by BM25, whose import alone takes a second.
pytestmark = pytest.mark.slow

# Three subjects with two documents each, far apart in the corpus, and one document that is related to none.
TEXTS = {
    "lava": "Basalt is a dark rock that forms where lava of the volcano Krafla cools quickly in Iceland.",
    "bread": "Sourdough bread rises because wild yeast in the dough gives off gas during the night.",
    "comet": "In 1705 Halley found the orbit of the comet and predicted that it returns every 76 years.",
    "alone": "Quokkas xylophone zephyr.",
    "oven": "A baker puts the sourdough bread into a hot oven, and steam keeps the crust of the dough soft.",
    "probe": "Giotto was a probe that flew past the comet of Halley in 1986 and photographed its core.",
    "power": "The power plant at the volcano Krafla drills into hot basalt and lava to heat houses in Iceland.",
}
PAIRS = [["lava", "power"], ["bread", "oven"], ["comet", "probe"]]


@pytest.fixture
def corpus(make_corpus: CorpusMaker) -> CorpusManifest:
    return make_corpus(rows=[(name, "", text) for name, text in TEXTS.items()])


def groups_of(workspace: Workspace, corpus: CorpusManifest) -> list[list[str]]:
    groups = related_groups(workspace, corpus, range(corpus.n_documents))
    return [[name for _, name in group] for group in groups]


def asked_about(server: ChatServer) -> list[set[str]]:
    """Which documents each request held."""
    prompts = [body["messages"][0]["content"] for body in server.bodies]
    return [{name for name, text in TEXTS.items() if text in prompt} for prompt in prompts]


def written(workspace: Workspace, corpus: CorpusManifest, make_job: JobMaker) -> QuerySet:
    job = make_job(corpus=corpus.id, method="multi_document", per_doc=2, generator="template")
    return query_sets.load(workspace, SynthesisRun(job).execute()["query_set"])


# which documents belong together


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(0, 1), (1, 2), (2, 3)], [[0, 1], [2, 3]]),  # the strongest first, each item once
        ([(1, 2), (0, 1), (2, 3)], [[0, 1, 2]]),  # 0 is left over and joins; 3 finds the group full
        ([(0, 9), (9, 0), (1, 2)], [[0, 9], [1, 2]]),
        ([(0, 7), (0, 1)], [[0, 1]]),  # 7 fits with none
        ([], []),
    ],
)
def test_groups_are_disjoint_and_made_of_the_strongest_pairs(
    pairs: list[tuple[int, int]], expected: list[list[int]]
) -> None:
    assert grouped(pairs, lambda one, other: 7 not in (one, other)) == expected


def test_documents_on_one_subject_belong_together(workspace: Workspace, corpus: CorpusManifest) -> None:
    assert groups_of(workspace, corpus) == PAIRS


def test_near_duplicates_and_neighbouring_passages_are_no_pair(workspace: Workspace, make_corpus: CorpusMaker) -> None:
    text = "Basalt is a dark rock that forms where lava of the volcano Krafla cools quickly."
    rows = [
        ("a.pdf#1", "", text),
        ("copy", "", f"{text} Indeed."),
        ("a.pdf#2", "", "The volcano Krafla last gave lava in 1984, and its basalt is young."),
        ("a.pdf#3", "", "Near Krafla a power plant uses the heat of lava and basalt."),
    ]
    corpus = make_corpus(rows=rows)
    cut = replace(corpus, n_cut=1)
    assert groups_of(workspace, cut) == [["a.pdf#1", "a.pdf#3"], ["copy", "a.pdf#2"]]
    assert groups_of(workspace, corpus) == [["a.pdf#1", "a.pdf#2"], ["copy", "a.pdf#3"]], "ids alone say nothing"


def test_a_corpus_without_related_documents_is_refused(make_corpus: CorpusMaker, make_job: JobMaker) -> None:
    rows = [("a", "", "Basalt darkens."), ("b", "", "Yeast rises."), ("c", "", "comets return")]
    made = make_corpus(rows=rows)
    with pytest.raises(InputError, match="without repeating"):
        SynthesisRun(make_job(corpus=made.id, method="multi_document", generator="template")).execute()


# asking


def test_one_request_holds_a_group_and_each_of_its_documents_has_the_queries(
    server: ChatServer, corpus: CorpusManifest, make_job: JobMaker
) -> None:
    job = make_job(**settings(server, corpus.id, method="multi_document"))
    result = SynthesisRun(job, api_key=KEY).execute()
    assert sorted(map(sorted, asked_about(server))) == sorted(map(sorted, PAIRS)), "each document is sent once"
    prompt = server.bodies[0]["messages"][0]["content"]
    assert (prompt.count("<document>\n"), prompt.count("\n</document>")) == (2, 2)
    lines = {str(line["document_id"]): line for line in lines_of(job, result)}
    assert list(lines) == [name for name in TEXTS if name != "alone"], "in the order of the corpus"
    for one, other in PAIRS:
        assert lines[one]["queries"] == lines[other]["queries"]
        assert len(lines[one]["queries"]) == 3
        assert (lines[one]["together"], lines[other]["together"]) == ([other], [one])
        assert "usage" in lines[one]
        assert "usage" not in lines[other], "it was paid once"
    manifest = query_sets.load(job.workspace, result["query_set"])
    assert manifest.complete
    assert (manifest.n_documents, manifest.n_queries, manifest.n_shared, manifest.n_failures) == (6, 18, 9, 1)
    (failure,) = query_sets.iter_failures(job.workspace, manifest.id)
    assert (failure["document_id"], failure["reason"]) == ("alone", "No related document was left for it.")


def test_the_estimate_counts_the_tokens_of_all_documents(
    server: ChatServer, corpus: CorpusManifest, make_job: JobMaker, workspace: Workspace
) -> None:
    values = settings(server, corpus.id, method="multi_document", output="list")
    expected = estimate(workspace, SynthesisConfig.from_dict(values))
    SynthesisRun(make_job(**values), api_key=KEY).execute()
    sent = sum(estimate_tokens(body["messages"][0]["content"]) for body in server.bodies)
    assert (expected.n_documents, expected.requests, len(server.bodies)) == (7, 4, 3), "it cannot know of the odd one"
    frame = estimate_tokens(server.bodies[0]["messages"][0]["content"]) - sum(
        map(estimate_tokens, list(TEXTS.values())[::6])
    )
    assert expected.input_tokens - frame == pytest.approx(sent, rel=0.02)


def test_a_run_that_was_cut_off_asks_and_pays_for_nothing_twice(
    server: ChatServer, corpus: CorpusManifest, make_job: JobMaker
) -> None:
    job = make_job(**settings(server, corpus.id, method="multi_document"))
    first = SynthesisRun(job, api_key=KEY).execute()
    whole = lines_of(job, first)
    path = query_sets.files(job.workspace, first["query_set"]).queries
    kept = path.read_text().splitlines(keepends=True)
    path.write_text("".join(kept[:-3]) + kept[-3][:30])  # documents of two groups, one line torn
    again = SynthesisRun(job, api_key=KEY).execute()
    assert len(server.bodies) == 3
    assert [line["queries"] for line in lines_of(job, again)] == [line["queries"] for line in whole]
    assert again["complete"]


def test_a_change_of_any_document_is_another_question(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    """Also where the change lies behind what a prompt can hold: the answer is about other documents."""
    long = {name: f"{text} " + "The rest goes on. " * 400 for name, text in TEXTS.items()}
    for name in ("one", "two"):
        long["power"] += name
        made = make_corpus(rows=[(key, "", text) for key, text in long.items()], name=name)
        SynthesisRun(
            make_job(**settings(server, made.id, method="multi_document", max_document_tokens=64)), api_key=KEY
        ).execute()
    assert len(server.bodies) == 3 + 1
    bodies = [body["messages"][0]["content"] for body in server.bodies]
    assert len(set(bodies)) == 3, "the prompt is the same"


def test_a_bad_answer_costs_the_documents_of_its_group_alone(
    server: ChatServer, corpus: CorpusManifest, make_job: JobMaker
) -> None:
    server.answer = lambda prompt, m: (
        "I cannot." if "Krafla" in prompt else "\n".join(f"{i}. Query {i}?" for i in range(m))
    )
    job = make_job(**settings(server, corpus.id, method="multi_document"))
    result = SynthesisRun(job, api_key=KEY).execute()
    failures = {line["document_id"]: line for line in query_sets.iter_failures(job.workspace, result["query_set"])}
    assert set(failures) == {"lava", "power", "alone"}
    assert (result["n_documents"], result["failures"], result["complete"]) == (4, 3, True)
    assert sum("usage" in line for line in failures.values()) == 1


def test_a_batch_asks_what_the_job_would(
    server: ChatServer, corpus: CorpusManifest, make_job: JobMaker, workspace: Workspace, tmp_path: Path
) -> None:
    values = settings(server, corpus.id, method="multi_document", output="list")
    (path,) = write_batch(workspace, SynthesisConfig.from_dict(values), tmp_path / "out")
    requests = read_lines(path)
    assert len(requests) == 3
    assert read_batch(workspace, write_lines(tmp_path / "answers.jsonl", answered(requests))).answers == 3
    assert SynthesisRun(make_job(**values), api_key=KEY).execute()["complete"]
    assert not server.bodies


def test_what_cannot_be_asked_about_several_documents_says_so(
    server: ChatServer, workspace: Workspace, corpus: CorpusManifest, make_job: JobMaker
) -> None:
    with pytest.raises(ConfigError, match="groups the documents of a corpus"):
        generate(["One text.", "And another."], method="multi_document")
    config = PromptTuningConfig.from_dict(
        {"corpus": corpus.id, "methods": "diverse,multi_document", "generator": "openai", "base_url": server.url}
    )
    with pytest.raises(ConfigError, match="needs several documents"):
        tuning.start(workspace, config)
    job = make_job(corpus=corpus.id, method="multi_document", generator="recorded")
    with pytest.raises(NotFoundError, match=r"No recording is called 'multi_document'. Use the generator template"):
        SynthesisRun(job).execute()


def test_a_draw_is_grouped_among_itself(make_corpus: CorpusMaker, make_job: JobMaker) -> None:
    words = ["red", "green", "stone", "river", "cloud", "grass", "wheel", "lamp", "salt", "honey"]
    rows = [
        (f"d{i}", "", f"{words[i % 10]} {words[(i + i // 10 + 1) % 10]} and {words[i // 10]} thing{'abc'[i // 10]}")
        for i in range(30)
    ]
    made = make_corpus(rows=rows)
    job = make_job(corpus=made.id, method="multi_document", generator="template", per_doc=1, limit=8, draw=3)
    result = SynthesisRun(job).execute()
    lines = lines_of(job, result)
    named = {str(line["document_id"]) for line in lines}
    assert len(named) + result["failures"] == 8
    assert {other for line in lines for other in line["together"]} <= named


def test_a_set_names_the_requests_behind_it(
    workspace: Workspace, corpus: CorpusManifest, make_job: JobMaker, tmp_path: Path
) -> None:
    made = written(workspace, corpus, make_job)
    done = queries.export(workspace, made.id, "openai-batch", tmp_path / "batch")
    assert done.n == 3


def test_a_preview_takes_the_most_related_document(workspace: Workspace, corpus: CorpusManifest) -> None:
    config = SynthesisConfig.from_dict({"corpus": corpus.id, "per_doc": 2})
    shown = previews(workspace, config, ["multi_document", "diverse"], "oven")
    assert shown["multi_document"].together == ["bread"]
    assert len(shown["multi_document"].queries) == 2
    assert shown["diverse"].together == []
    alone = previews(workspace, config, ["multi_document", "diverse"], "alone")
    assert "no query needs both" in alone["multi_document"].error
    assert alone["diverse"].queries, "the other methods are shown all the same"


def test_a_page_or_command_previews_it_with_what_must_be_said(
    workspace: Workspace, corpus: CorpusManifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process; that one of its own gives the same is tested in ``test_preview``."""
    monkeypatch.setattr(query_services, "previews_in_process", previews)
    shown = query_services.preview(workspace, corpus.id, "comet", methods=["multi_document"], per_doc=1)[
        "multi_document"
    ]
    assert shown.together == ["probe"]
    assert any("joins a diverse query of each document" in problem for problem in shown.problems)


# the queries afterwards


def test_template_queries_ask_for_both(workspace: Workspace, corpus: CorpusManifest, make_job: JobMaker) -> None:
    made = written(workspace, corpus, make_job)
    assert (made.generator, made.model) == ("template", "template")
    lines = {line.document_id: line.queries for line in query_sets.read_queries(workspace, made.id)}
    assert all(" and " in query for texts in lines.values() for query in texts)
    assert "Halley" in lines["comet"][0]
    assert "Giotto" in " ".join(lines["comet"])


def test_exports_have_every_positive(
    workspace: Workspace, corpus: CorpusManifest, make_job: JobMaker, tmp_path: Path
) -> None:
    made = written(workspace, corpus, make_job)
    exports.export(workspace, made.id, "beir", tmp_path / "beir")
    with open(tmp_path / "beir" / "qrels" / "train.tsv", encoding="utf-8") as file:
        rows = [(row["query-id"], row["corpus-id"]) for row in csv.DictReader(file, delimiter="\t")]
    texts = [json.loads(line) for line in (tmp_path / "beir" / "queries.jsonl").read_text().splitlines()]
    assert (len(texts), len(rows)) == (6, 12), "each query once, with a row for each of its documents"
    assert {document for query, document in rows if query == "lava-1"} == {"lava", "power"}
    exports.export(workspace, made.id, "sentence-transformers", tmp_path / "pairs.parquet")
    table = pq.read_table(tmp_path / "pairs.parquet")
    positives = [
        p for a, p in zip(*(table[c].to_pylist() for c in ("anchor", "positive")), strict=True) if a == texts[0]["text"]
    ]
    assert sorted(positives) == sorted(TEXTS[name] for name in PAIRS[0])


def test_training_has_a_pair_per_positive_and_no_document_of_a_query_as_negative(
    workspace: Workspace, corpus: CorpusManifest, make_job: JobMaker
) -> None:
    made = written(workspace, corpus, make_job)

    def never(query_set: str) -> dict[str, set[str]]:
        pairs = load_pairs(workspace, query_set)
        assert pairs.excluded_indices is not None
        rows = zip(pairs.query_ids, pairs.excluded_indices, strict=True)
        return {query: {pairs.documents[i] for i in row if i >= 0} for query, row in rows}

    both = {name: other for one, two in PAIRS for name, other in ((one, two), (two, one))}
    expected = {f"{name}-{n}": {TEXTS[both[name]]} for name in TEXTS if name in both for n in (1, 2)}
    assert never(made.id) == expected
    # A query that was changed at one of its documents alone is still written for both.
    changed = query_sets.derive(
        workspace, made, lambda line: [f"{line.document_id}: {q}" for q in line.queries], "c", {}
    )
    assert never(changed.query_set.id) == expected


def test_a_round_trip_does_not_count_the_other_documents_of_a_query(
    workspace: Workspace, corpus: CorpusManifest, make_job: JobMaker
) -> None:
    from cdp.workers.round_trip import ranks_of

    made = written(workspace, corpus, make_job)
    ranks = ranks_of(make_job(query_set=made.id), made, "bm25")
    assert ranks.tolist() == [1] * 12, "both documents of a group are its queries' first"
    alone = query_sets.derive(
        workspace, made, lambda line: line.queries, "x", {}, of_each=lambda line: {"together": []}
    ).query_set
    again = ranks_of(make_job(query_set=alone.id), alone, "bm25")
    assert np.sum(again > 1) == 6, "else one of them comes second"


def test_a_decision_is_about_the_query_at_all_its_documents(
    workspace: Workspace, corpus: CorpusManifest, make_job: JobMaker
) -> None:
    made = written(workspace, corpus, make_job)
    assert review.decide(workspace, made.id, ["power-1"], "reject") == 2
    assert review.decide(workspace, made.id, ["comet-2"], "edit", text="What did Giotto and Halley find?") == 2
    found = usable.decisions(workspace, made)
    assert found.rejected == {"power-1", "lava-1"}
    assert found.edited == dict.fromkeys(("comet-2", "probe-2"), "What did Giotto and Halley find?")
    shown = usable.document(workspace, made, usable.table(workspace, made), 0)
    assert (shown.id, [other.id for other in shown.together]) == ("lava", ["power"])
    left = review.reviewed(workspace, made.id).query_set
    lines = {line.document_id: line for line in query_sets.read_queries(workspace, left.id)}
    assert [len(lines[name].queries) for name in ("lava", "power")] == [1, 1]
    assert lines["comet"].queries == lines["probe"].queries
    assert review.decide(workspace, left.id, ["lava-1"], "reject") == 2, "also where a query has moved up"


def test_the_set_asks_for_as_many_as_one_of_another_method(
    server: ChatServer, corpus: CorpusManifest, make_job: JobMaker, workspace: Workspace
) -> None:
    job = make_job(**settings(server, corpus.id, method="multi_document", per_doc=5))
    result = SynthesisRun(job, api_key=KEY).execute()
    assert {asked_for(body["messages"][0]["content"]) for body in server.bodies} == {5}
    first = load_pairs(workspace, result["query_set"], per_doc=2)
    assert len(first) == 2 * 6
    assert set(first.queries) == {query for line in lines_of(job, result) for query in line["queries"][:2]}
