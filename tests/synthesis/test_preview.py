"""Several methods side by side for one document, and the process of its own for what needs torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError, ModelError
from cdp.base.workspace import Workspace
from cdp.synthesis.preview import needs_process, previews, previews_in_process
from tests.synthesis.conftest import CorpusMaker
from tests.synthesis.models import tiny_cross_encoder, tiny_writer
from tests.synthesis.server import KEY, MODEL, ChatServer


def test_each_method_is_asked_and_measured(server: ChatServer, workspace: Workspace, make_corpus: CorpusMaker) -> None:
    config = SynthesisConfig(
        corpus=make_corpus(3).id, generator="openai", model=MODEL, base_url=server.url, per_doc=3, output="list"
    )
    shown = previews(workspace, config, ["diverse", "paraphrase"], "d1", api_key=KEY)
    assert [len(found.queries) for found in shown.values()] == [3, 3]
    for body, found in zip(server.bodies, shown.values(), strict=True):
        assert found.prompt == body["messages"][0]["content"]
        assert found.usage["requests"] == 1
        assert found.usage["output_tokens"] > 0


def test_what_needs_torch_gets_a_process() -> None:
    assert not needs_process(SynthesisConfig(corpus="c"), ["diverse", "paraphrase"])
    assert needs_process(SynthesisConfig(corpus="c"), ["diverse", "dragon_s_paper"])
    assert needs_process(SynthesisConfig(corpus="c"), ["multi_document"])
    assert needs_process(SynthesisConfig(corpus="c", generator="transformers"), ["diverse"])


@pytest.mark.slow
def test_a_process_of_its_own_gives_the_same_preview(workspace: Workspace, make_corpus: CorpusMaker) -> None:
    config = SynthesisConfig(corpus=make_corpus(3).id, generator="template", per_doc=3)
    shown = previews_in_process(workspace, config, ["diverse"], "d1")
    assert len(shown["diverse"].queries) == 3
    assert shown == previews(workspace, config, ["diverse"], "d1")


def test_a_method_for_whole_corpora_says_so(workspace: Workspace, make_corpus: CorpusMaker) -> None:
    with pytest.raises(ConfigError, match="ranks a whole corpus"):
        previews(workspace, SynthesisConfig(corpus=make_corpus(2).id), ["dragon_s_faithful"], "d1")
    with pytest.raises(ConfigError, match="existing queries"):
        previews(workspace, SynthesisConfig(corpus=make_corpus(2).id), ["reasoning"], "d1")


@pytest.mark.soak
def test_a_local_model_and_a_cross_encoder_serve_from_another_process(
    workspace: Workspace, make_corpus: CorpusMaker, tmp_path: Path
) -> None:
    corpus = make_corpus(3)
    writer, ranker = tiny_writer(tmp_path / "writer"), tiny_cross_encoder(tmp_path / "ranker")
    config = SynthesisConfig(
        corpus=corpus.id, generator="transformers", model=str(writer), per_doc=2, max_output_tokens=20,
        ranker=str(ranker), gpus=0,
    )  # fmt: skip
    shown = previews_in_process(workspace, config, ["diverse", "dragon_s_paper"], "d1")
    assert shown["diverse"].usage["output_tokens"] > 0
    assert len(shown["dragon_s_paper"].queries) == 2
    wrong = SynthesisConfig(corpus=corpus.id, ranker=str(tmp_path / "none"))
    with pytest.raises(ModelError, match="cannot be loaded"):
        previews_in_process(workspace, wrong, ["dragon_s_paper"], "d1")
