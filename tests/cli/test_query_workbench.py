"""Usable queries, decisions, filters and reviewed sets on the command line."""

from __future__ import annotations

import json

import pytest

from cdp.base.workspace import Workspace
from tests.cli.support import run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("jobs_here")]


def answer(*words: str) -> dict[str, object]:
    value = json.loads(run(*words, "--json").stdout)
    assert isinstance(value, dict)
    return value


def test_from_ranks_to_a_filtered_and_a_reviewed_set(with_demo: Workspace) -> None:
    before = answer("queries", "review", "demo paraphrase")
    assert (before["n"], before["usable"], before["by"]) == (768, 768, [])
    ranked = answer("queries", "round-trip", "demo paraphrase", "--wait")
    assert ranked["state"] == "finished"
    after = answer("queries", "review", "demo paraphrase")
    assert after["by"] == ["bm25"]
    assert after["reasons"] == {"document not found within 10": 768 - int(str(after["usable"]))}
    made = answer("queries", "filter", "demo paraphrase", "--round-trip-rank", "10", "--usable", "--wait")
    assert made["filter"] == "usable&bm25@10"
    assert made["n_queries"] == after["usable"]
    decided = answer("queries", "review", "demo paraphrase", "reject", "--query", "tides-1", "--query", "tides-2")
    assert decided["queries"] == 2
    run("queries", "review", "demo paraphrase", "edit", "--query", "lighthouse-1", "--text", "what do lighthouses do")
    reviewed = answer("queries", "review", "demo paraphrase", "create", "--name", "by Ada")
    assert (reviewed["left_out"], reviewed["rewritten"]) == (2, 1)
    assert "what do lighthouses do" in run("queries", "show", "by Ada").stdout


# Words after `queries`, and what the refusal says.
REFUSED = (
    (("review", "demo diverse", "reject"), "No query is named"),
    (("review", "demo diverse", "reject", "--query", "nowhere-1"), "nowhere-1"),
    (("review", "demo diverse", "edit", "--query", "tides-1"), "1 to 2,000 characters"),
    (("review", "demo diverse", "create"), "Nothing is decided"),
    (("filter", "demo diverse"), "No filter criterion"),
    (("filter", "demo diverse", "--cross-encoder", "x/y"), "must be set together"),
    (("filter", "demo diverse", "--round-trip-rank", "0"), "round_trip_rank"),
    (("filter", "demo diverse", "--cross-encoder", "minilm", "--at-least", "0.5"), "scores pairs"),
    (("round-trip", "demo diverse", "--by", "bm25:tlh"), "tlh"),
    (
        (
            "round-trip",
            "nothing",
        ),
        "nothing",
    ),
    (("review", "nothing"), "nothing"),
)


def test_what_cannot_be_done_is_one_sentence(with_demo: Workspace) -> None:
    for words, says in REFUSED:
        done = run("queries", *words, code=2)
        assert says in done.stderr, words
        assert len(done.stderr.splitlines()) == 1, words
