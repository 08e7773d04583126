"""Query sets that nothing can be learnt from are refused in a sentence, not trained to a loss of 0."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from cdp.base.config import TrainingConfig
from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.corpus import read_documents, store
from cdp.query_sets import import_queries
from cdp.services import training
from cdp.training.plan import notes_of, prepare

pytestmark = pytest.mark.slow  # to load torch takes longer than all of them

Make = Callable[[Sequence[str], Mapping[str, list[str]]], TrainingConfig]


@pytest.fixture
def make(workspace: Workspace, tmp_path: Path) -> Make:
    def make(texts: Sequence[str], queries: Mapping[str, list[str]]) -> TrainingConfig:
        """A training on documents d0, d1 … of these texts and their queries."""
        source = tmp_path / "documents.jsonl"
        lines = [json.dumps({"_id": f"d{i}", "text": text}) + "\n" for i, text in enumerate(texts)]
        source.write_text("".join(lines), encoding="utf-8")
        with read_documents(source) as result:
            corpus = store(result, "few", workspace)
        made = import_queries(queries.items(), workspace, corpus.id, "set")
        return TrainingConfig(query_set=made.query_set.id, batch_size=8)

    return make


TEXTS = [f"all about the {topic}" for topic in ("glacier", "volcano", "harbour", "orchard", "bakery", "quarry")]
REFUSED = {
    "queries shared by all documents": (TEXTS, {f"d{i}": ["what is it", "What is it?", "why"] for i in range(6)}),
    "all queries equal": (TEXTS, {f"d{i}": ["what is it"] for i in range(6)}),
    "documents with one text": (["all about the glacier"] * 6, {f"d{i}": [f"what is {i}"] for i in range(6)}),
    "one document": (TEXTS, {"d0": ["what is it", "why"]}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_set_without_a_negative_is_refused_before_anything_starts(
    workspace: Workspace, make: Make, name: str
) -> None:
    config = make(*REFUSED[name])
    for refused in (training.start, training.plan):
        with pytest.raises(CdpError, match="negative to learn from") as caught:
            refused(workspace, config)
        assert "Training needs queries" in caught.value.hint
    assert not list(workspace.jobs.glob("*"))


def test_a_batch_of_one_is_refused_and_so_are_weights_that_are_all_zero(workspace: Workspace, make: Make) -> None:
    config = make(TEXTS, {f"d{i}": [f"what is it {'and ' * i}"] for i in range(6)})
    assert training.plan(workspace, config).pairs == 6
    with pytest.raises(CdpError, match="at least 2"):
        training.start(workspace, config.replace(batch_size=1))
    with pytest.raises(CdpError, match="The weighting cw gives every query of set the weight 0"):
        training.start(workspace, config.replace(weighting="cw"))
    assert not list(workspace.jobs.glob("*"))


def test_pairs_without_a_negative_among_others_are_counted(workspace: Workspace, make: Make) -> None:
    config = make(TEXTS, {f"d{i}": ["what is it", f"who owns {i}"] for i in range(6)})
    assert training.plan(workspace, config).pairs == 12
    notes = notes_of(prepare(config, workspace))
    assert "6 pairs have no negative, and teach nothing: their queries are for all documents." in notes
