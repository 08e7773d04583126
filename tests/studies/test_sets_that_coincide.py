"""A test of diverse queries against paraphrases refuses two sets that are nearly one, and says why."""

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


@pytest.mark.parametrize(("same", "refused"), [(6, False), (7, True), (60, True)])
def test_more_than_a_tenth_of_the_documents_is_too_much(
    workspace: Workspace, tmp_path: Path, same: int, refused: bool
) -> None:
    sources = written(workspace, tmp_path, same)
    assert bool(alike(workspace, sources, 5)) is refused
    config = TrialConfig.from_dict({"corpus": "papers", "generator": "template", "retriever": "static-minilm"})
    if refused:
        with pytest.raises(ConfigError, match=f"Of 60 documents {same} have the same queries in both sets"):
            trial.plan(workspace, config)
    else:
        assert trial.plan(workspace, config).plan.trainings


@pytest.mark.parametrize("text", ["Go on. Stop it.", "and so it was. but then they came and went", "Ach so. Na gut."])
def test_two_sentences_give_queries(text: str) -> None:
    document = Document("d", text)
    assert len(TemplateGenerator().queries(document, "diverse", 5)) >= 1
    assert TemplateGenerator().queries(document, "paraphrase", 5)
