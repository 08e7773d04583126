"""What a preview says beside its queries: why there are fewer, and what the template generator cannot do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp.base.config import PromptTuningConfig
from cdp.base.errors import ConfigError
from cdp.base.records import Document
from cdp.base.workspace import Workspace
from cdp.services import corpora, queries
from cdp.services.queries import Preview
from cdp.synthesis.candidates import candidates_of
from cdp.synthesis.preview import IGNORES_PROMPT, NO_WORDS, NOT_ENGLISH, UNREADABLE, problems

ROWS = {
    "english": "A lock lifts boats between two levels of a canal. Water flows in from the upper side.",
    "chinese": "长城是中国古代的军事防御工程。明朝是最后一个大修长城的朝代。",
    "none": "🚀🌕 !!!",
}


@pytest.fixture
def corpus(workspace: Workspace, tmp_path: Path) -> str:
    file = tmp_path / "mixed.jsonl"
    file.write_text("".join(json.dumps({"_id": k, "text": v}) + "\n" for k, v in ROWS.items()), encoding="utf-8")
    return corpora.add(workspace, file).corpus.id


def preview(workspace: Workspace, corpus: str, document: str, method: str) -> Preview:
    return queries.preview(workspace, corpus, document, methods=[method], per_doc=3)[method]


def test_the_template_generators_limits_are_said(workspace: Workspace, corpus: str) -> None:
    assert preview(workspace, corpus, "english", "diverse").problems == []
    sap = preview(workspace, corpus, "english", "sap")
    assert sap.problems == [IGNORES_PROMPT]
    assert sap.queries == preview(workspace, corpus, "english", "diverse").queries
    assert NOT_ENGLISH in preview(workspace, corpus, "chinese", "paraphrase").problems
    nothing = preview(workspace, corpus, "none", "diverse")
    assert nothing.queries == []
    assert nothing.problems == [NO_WORDS]


def test_problems_are_said_in_words() -> None:
    found = {"too_few": 1, "duplicate": 2, "something_new": 3}
    said = problems(found, queries=4, template="", document=Document("d", "x"))
    assert said == ["fewer queries than asked for: 1", "duplicate: 2", "something new: 3"]
    said = problems({"too_few": 5, "refusal": 1}, queries=0, template="", document=Document("d", "x"))
    assert said == [UNREADABLE, "refusal: 1"]


@pytest.mark.parametrize("methods", ["diverse,sap", "sap,drama", "diverse,paraphrase,inpars_gbq"])
def test_prompts_are_not_compared_where_none_is_read(methods: str) -> None:
    config = PromptTuningConfig.from_dict({"corpus": "c", "methods": methods, "generator": "template"})
    with pytest.raises(ConfigError, match="writes the same queries"):
        candidates_of(config, {})
