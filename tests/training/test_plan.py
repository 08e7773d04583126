"""What a training would do, said before it starts, against what it then does."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.config import TrainingConfig
from cdp.base.errors import CdpError, InputError
from cdp.base.workspace import Workspace
from cdp.services import training
from cdp.training.plan import DEFAULT_SPEEDS, STARTING_S, notes_of, prepare

pytestmark = pytest.mark.slow  # to load torch takes longer than all of them


def test_pairs_and_steps_are_said_exactly(workspace: Workspace, query_set: str) -> None:
    config = TrainingConfig(query_set=query_set, batch_size=8, per_doc=3)
    found, data = training.plan(workspace, config), prepare(config, workspace)
    assert (found.pairs, found.documents, found.steps) == (39, 13, 12)
    assert (len(data.pairs), data.pairs.n_documents) == (39, 12)  # two documents have the same text
    assert found.settings.learning_rate == data.settings.learning_rate == 5e-3
    for notes in (found.notes, notes_of(data)):
        assert any("leaves out 7 pairs" in note for note in notes)
    assert training.plan(workspace, config.replace(batch_size=1000)).steps == 3
    larger = notes_of(prepare(config.replace(batch_size=1000), workspace))
    assert any("larger than the data" in note for note in larger)


def test_what_is_wrong_is_found_without_a_model(workspace: Workspace, query_set: str) -> None:
    with pytest.raises(CdpError, match="none-such"):
        prepare(TrainingConfig(query_set="none-such"), workspace)
    with pytest.raises(CdpError, match="needs 'reasoning'"):
        prepare(TrainingConfig(query_set=query_set, weighting="ri"), workspace)
    with pytest.raises(CdpError, match="'document_sparsity' applies to a sparse retriever, and minilm is dense"):
        prepare(TrainingConfig(query_set=query_set, retriever="minilm", document_sparsity=0.1), workspace)


def test_weights_that_are_zero_are_told_and_refused_where_all_are(
    workspace: Workspace, query_set: str, tmp_path: Path
) -> None:
    file = tmp_path / "w.csv"
    config = TrainingConfig(query_set=query_set, weighting="column", weights=str(file))

    def write(zeros: int) -> None:
        ids = [f"d{i}-{j}" for i in range(12) for j in (1, 2, 3)] + ["twin-1", "twin-2", "twin-3"]
        lines = [f"{query_id},{0 if i < zeros else 2}\n" for i, query_id in enumerate(ids)]
        file.write_text("query_id,weight\n" + "".join(lines), encoding="utf-8")

    write(zeros=5)
    data = prepare(config, workspace)
    assert (data.weights == 0).sum() == 5
    assert any("5 pairs have weight zero" in note for note in notes_of(data))
    write(zeros=39)
    with pytest.raises(
        InputError, match="The weighting column gives every query of small-queries the weight 0"
    ) as caught:
        prepare(config, workspace)
    assert "another weighting" in caught.value.hint


def test_the_licences_of_what_a_training_uses_are_named(workspace: Workspace, query_set: str) -> None:
    found = training.plan(workspace, TrainingConfig(query_set=query_set, per_doc=3)).licences
    assert found["model"] == "Apache 2.0."
    assert found["documents"].startswith("not recorded")
    assert found["queries"].startswith("not recorded; written by unknown")


def test_the_time_is_that_of_the_last_training_of_this_retriever_here(
    workspace: Workspace, query_set: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TrainingConfig(query_set=query_set, batch_size=8, per_doc=3)
    shipped = training.plan(workspace, config).seconds
    assert shipped == pytest.approx(STARTING_S + 12 * 8 / DEFAULT_SPEEDS["static-minilm"].pairs_per_second)
    rows = [
        {"retriever": name, "result": {"pairs_per_second": rate}}
        for name, rate in (("minilm", 5), ("static-minilm", 2))
    ]
    monkeypatch.setattr(training.catalog, "trainings", lambda _: rows)
    assert training.plan(workspace, config).seconds == pytest.approx(STARTING_S + 12 * 8 / 2)
    assert training.plan(workspace, config.replace(retriever="minilm", lora_rank=2)).seconds is not None
