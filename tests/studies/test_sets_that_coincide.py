"""A test of diverse queries against paraphrases leaves out documents on which both sets coincide; most are too many."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.errors import ConfigError
from cdp.base.records import Document
from cdp.base.workspace import Workspace
from cdp.services import trial
from cdp.studies.config import TrialConfig
from cdp.studies.plan import StudySource, alike, counted
from cdp.synthesis.generators.template import TemplateGenerator
from tests.services.test_trial import corpus, human, two_sets

pytestmark = pytest.mark.slow


def written(workspace: Workspace, folder: Path, same: int) -> list[StudySource]:
    """Diverse queries and paraphrases of sixty documents, ``same`` of which have the same in both."""
    manifest = corpus(workspace, folder)
    human(workspace, manifest)
    ids = zip(("diverse", "paraphrase"), two_sets(workspace, manifest, same), strict=True)
    return [counted(workspace, StudySource(method, method, name)) for method, name in ids]


@pytest.mark.parametrize(
    ("same", "left_out", "refused"), [(6, 0, False), (7, 7, False), (30, 30, False), (31, 0, True)]
)
def test_few_are_borne_more_are_left_out_and_most_are_refused(
    workspace: Workspace, tmp_path: Path, same: int, left_out: int, refused: bool
) -> None:
    sources = written(workspace, tmp_path, same)
    (found,) = alike(workspace, sources, 5).values()
    assert (len(found.documents), len(found.left_out), found.refused) == (same, left_out, refused)

    config = TrialConfig.from_dict({"corpus": "papers", "generator": "template", "retriever": "static-minilm"})
    said = f"Of 60 documents {same} have the same queries in both sets"
    if refused:
        with pytest.raises(ConfigError, match=said):
            trial.plan(workspace, config)
        return

    planned = trial.plan(workspace, config)
    assert planned.plan.trainings
    assert any(note.startswith(said) for note in planned.notes) is bool(left_out)
    assert {source.n_documents for source in planned.plan.sources} == {60 - left_out}


@pytest.mark.parametrize("text", ["Go on. Stop it.", "and so it was. but then they came and went", "Ach so. Na gut."])
def test_two_sentences_give_queries(text: str) -> None:
    document = Document("d", text)
    assert len(TemplateGenerator().queries(document, "diverse", 5)) >= 1
    assert TemplateGenerator().queries(document, "paraphrase", 5)
