"""What stands beside a query set is of that set as it is, its Q/Doc and the human set chosen, or is not shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdp import catalog, query_sets
from cdp.base.workspace import Workspace, write_json
from cdp.corpus import read_documents, store
from cdp.services import metrics
from tests.catalog.support import add_job
from tests.cli.support import answer

pytestmark = pytest.mark.slow


@pytest.fixture
def sets(workspace: Workspace, tmp_path: Any) -> tuple[str, str, str]:
    """A set of three queries a document, and two human ones of unlike length."""
    source = tmp_path / "d.jsonl"
    source.write_text("".join(json.dumps({"_id": f"d{i}", "text": f"tide number {i}"}) + "\n" for i in range(2)))
    with read_documents(source) as result:
        corpus = store(result, "small", workspace).id
    written = [(f"d{i}", [f"what is tide {i}", f"when turns tide {i}", f"tide {i}"]) for i in range(2)]
    short, long = ([(f"d{i}", [text]) for i in range(2)] for text in ("tide", "when does the tide turn at the pier"))
    return tuple(
        query_sets.import_queries(iter(pairs), workspace, corpus, name, language="en").query_set.id
        for name, pairs in (("made", written), ("short", short), ("long", long))
    )  # type: ignore[return-value]


def job_of(workspace: Workspace, name: str, query_set: str, **of: Any) -> None:
    """The result of a metric job as its worker writes it: CE and Dist-Sim."""
    add_job(workspace, name, "metrics")
    about = query_sets.load(workspace, query_set)
    values = [
        {"name": key, "value": of[key], "interval": None, "per_doc": of["per_doc"], "n_documents": 2, "n_queries": 6,
         "model": "m", "threshold": 0.5, "sampled_from": None, "reason": ""}
        for key in ("paraphrase_ratio", "dist_sim")
    ]  # fmt: skip
    facts = {"query_set": query_set, "query_set_hash": about.content_hash, "method": "imported", "human": of["human"],
             "created": of["created"], **of.get("more", {})}  # fmt: skip
    write_json(workspace.job(name) / "results" / "metrics.json", {**facts, "measures": values})


def test_the_newest_measurement_is_not_taken_for_another_q_doc_or_human_set(
    workspace: Workspace, sets: tuple[str, str, str]
) -> None:
    made, short, long = sets
    job_of(workspace, "m-1", made, per_doc=3, paraphrase_ratio=0.792, dist_sim=0.4, human=short, created="2026-01-01")
    job_of(workspace, "m-2", made, per_doc=2, paraphrase_ratio=0.875, dist_sim=0.6, human=short, created="2026-01-02")
    job_of(workspace, "m-3", made, per_doc=3, paraphrase_ratio=0.792, dist_sim=0.9, human=long, created="2026-01-03")
    old = {"query_set_hash": "another"}
    job_of(workspace, "m-4", made, per_doc=3, paraphrase_ratio=0.1, dist_sim=0.1, human=short, created="2026-01-04",
           more=old)  # fmt: skip

    beside = {human: metrics.fitting(workspace, metrics.quick(workspace, made, human=human)) for human in (short, long)}
    assert {human: found["dist_sim"]["value"] for human, found in beside.items()} == {short: 0.4, long: 0.9}
    assert all(found["paraphrase_ratio"]["value"] == 0.792 for found in beside.values())
    assert beside[short]["len_sim"]["value"] != beside[long]["len_sim"]["value"]

    alone = metrics.fitting(workspace, metrics.quick(workspace, made))
    assert "paraphrase_ratio" in alone
    assert "dist_sim" not in alone
    two = metrics.fitting(workspace, metrics.quick(workspace, made, human=short, per_doc=2))
    assert (two["paraphrase_ratio"]["value"], two["dist_sim"]["value"]) == (0.875, 0.6)


def test_every_measure_is_a_row_that_sql_finds(workspace: Workspace, sets: tuple[str, str, str]) -> None:
    made, short, _ = sets
    metrics.quick(workspace, made, human=short)
    job_of(workspace, "m-1", made, per_doc=3, paraphrase_ratio=0.5, dist_sim=0.4, human=short, created="2026-01-01")
    sql = f"SELECT measure, per_doc, human = '{short}' FROM metrics WHERE query_set = '{made}' ORDER BY ALL"
    rows = catalog.query(workspace, sql).rows
    assert rows == [
        ("cw", 3, True), ("dist_sim", 3, True), ("len_sim", 3, True), ("paraphrase_ratio", 3, True),
        ("self_bleu", 2, True), ("self_bleu", 3, True),
    ]  # fmt: skip


def test_quick_measures_are_of_the_q_doc_that_was_asked_for(workspace: Workspace, sets: tuple[str, str, str]) -> None:
    shown = {m: answer("metrics", sets[0], "--quick", "--set", f"per_doc={m}") for m in ("1", "2", "3")}
    assert {key: value["measures"][0]["n_queries"] for key, value in shown.items()} == {"1": 2, "2": 4, "3": 6}
    assert shown["1"]["measures"][0]["value"] is None  # Self-BLEU of single queries
