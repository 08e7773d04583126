"""A static model is read, used and written without sentence-transformers, and as sentence-transformers does it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdp.base.workspace import Workspace
from cdp.retrievers import load, model_hash, resolve, spelling
from cdp.retrievers.load import set_max_length
from cdp.retrievers.static import TokenMemo
from tests.support import REPOSITORY
from tests.support_models import tiny_retriever, tiny_static

pytestmark = pytest.mark.slow

TEXTS = ["how tall is a lighthouse", "", "ΑΒΓ 7", "a " * 300, "tall lighthouse"]
PROMPTS = {"query": "query: ", "document": "passage: "}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A table with prompts, saved by sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(tiny_static(tmp_path / "tiny")), device="cpu", prompts=PROMPTS)
    model.similarity_fn_name = "dot"
    model.save(str(tmp_path / "saved"), create_model_card=False)
    return tmp_path / "saved"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_embeds_and_saves_as_sentence_transformers_does(saved: Path, workspace: Workspace, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    theirs, ours = SentenceTransformer(str(saved), device="cpu"), load(resolve(str(saved), workspace), "cpu")
    assert type(ours).__name__ == "StaticModel"
    assert (ours.prompts, ours.similarity_fn_name) == (theirs.prompts, theirs.similarity_fn_name)
    assert (ours.max_seq_length, ours.device) == (theirs.max_seq_length, theirs.device)
    assert ours.get_embedding_dimension() == theirs.get_embedding_dimension()
    assert model_hash(ours) == model_hash(theirs)
    for limit in (None, 16):
        if limit is not None:
            set_max_length(ours, limit)
            set_max_length(theirs, limit)
        for name in ("encode", "encode_query", "encode_document"):
            assert np.array_equal(getattr(ours, name)(TEXTS, batch_size=2), getattr(theirs, name)(TEXTS))
        assert np.array_equal(ours.encode_query(TEXTS, prompt=""), theirs.encode_query(TEXTS, prompt=""))
    with pytest.raises(TypeError, match="a list of texts"):
        ours.encode(TEXTS[0])

    for name, model in (("ours", ours), ("theirs", theirs)):
        spelling.save(model, tmp_path / name)
    assert contents(tmp_path / "ours") == contents(tmp_path / "theirs")


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("modules.json", lambda modules: [*modules, {"idx": 1, "name": "1", "path": "", "type": "x.Normalize"}]),
        ("modules.json", lambda modules: [{**modules[0], "type": "someones_own.StaticEmbedding"}]),
        ("config_sentence_transformers.json", lambda config: {**config, "truncate_dim": 4}),
        ("config_sentence_transformers.json", lambda config: {**config, "default_prompt_name": "query"}),
    ],
)
def test_what_says_more_than_a_table_is_left_to_the_library(saved: Path, file: str, change: object) -> None:
    from cdp.retrievers.static import StaticModel

    assert StaticModel.load(saved) is not None
    assert callable(change)
    (saved / file).write_text(json.dumps(change(json.loads((saved / file).read_text()))))
    assert StaticModel.load(saved) is None


def test_a_transformer_is_no_table(tmp_path: Path, workspace: Workspace) -> None:
    model = load(resolve(str(tiny_retriever(tmp_path / "tiny")), workspace), "cpu")
    assert type(model).__name__ == "SentenceTransformer"


TRAIN = """
import sys
import cdp.training, cdp.training.pairs, cdp.training.plan, cdp.evaluation.card
assert "torch" not in sys.modules, "a plan needs no torch"
import torch
from cdp.workers import evaluation, training
from cdp.retrievers import load, resolve
from cdp.base.workspace import Workspace
from cdp.training import loop, tokens
from cdp.training.engine import adamw
load(resolve("static-minilm", Workspace.default()), "cpu").encode(["text"])
layer = torch.nn.Linear(2, 1)
layer(torch.ones(2)).backward()
optimiser = adamw(layer, 0.1, 0.01)
optimiser.step()
optimiser.load_state_dict(optimiser.state_dict())
optimiser.zero_grad()
names = {*sys.modules, *(name.partition(".")[0] for name in sys.modules)}
print(sorted(names & {"sentence_transformers", "transformers", "sklearn", "torch._dynamo"}))
"""


def test_embedding_and_training_with_a_table_load_no_transformers_and_no_compiler(
    workspace: Workspace,
) -> None:
    done = subprocess.run([sys.executable, "-c", TRAIN], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_with_a_memo_a_text_is_tokenised_once_and_embedded_alike(saved: Path, workspace: Workspace) -> None:
    class Counted:
        """A tokenizer that counts what it is asked for."""

        def __init__(self, tokenizer: Any) -> None:
            self.tokenizer, self.asked = tokenizer, []

        def __getattr__(self, name: str) -> Any:
            return getattr(self.tokenizer, name)

        def encode_batch(self, texts: list[str], **options: Any) -> Any:
            self.asked += texts
            return self.tokenizer.encode_batch(texts, **options)

    def loaded(memo: TokenMemo | None) -> Any:
        model = load(resolve(str(saved), workspace), "cpu", memo=memo)
        model[0].tokenizer = Counted(model[0].tokenizer)
        return model

    memo = TokenMemo()
    plain, first, second = loaded(None), loaded(memo), loaded(memo)
    for model in (first, second):
        for batch_size in (1, 2, 64):
            got = model.encode_query([*TEXTS, *TEXTS], batch_size=batch_size)
            assert np.array_equal(got, plain.encode_query([*TEXTS, *TEXTS]))
    assert first[0].tokenizer.asked == [f"query: {text}" for text in TEXTS]
    assert second[0].tokenizer.asked == []

    set_max_length(second, 3)  # cut at another length, the ids are others
    set_max_length(plain, 3)
    assert np.array_equal(second.encode_query(TEXTS), plain.encode_query(TEXTS))
    assert not np.array_equal(second.encode_query(TEXTS), first.encode_query(TEXTS))


def test_a_memo_keeps_no_more_than_it_may_and_is_right_beyond(saved: Path, workspace: Workspace) -> None:
    plain = load(resolve(str(saved), workspace), "cpu")
    for limit in (0, 1000):
        memo = TokenMemo(limit_bytes=limit)
        model = load(resolve(str(saved), workspace), "cpu", memo=memo)
        for _ in range(2):
            assert np.array_equal(model.encode(TEXTS), plain.encode(TEXTS))
            assert memo.nbytes <= limit
        assert (memo.nbytes > 0) == (limit > 0)


def test_models_with_other_vocabularies_do_not_share_a_memos_ids(saved: Path, workspace: Workspace) -> None:
    other = saved.parent / "other"
    shutil.copytree(saved, other)
    words = json.loads((other / "tokenizer.json").read_text())
    vocabulary = words["model"]["vocab"]
    named = list(vocabulary)
    swapped = dict(zip(named, [vocabulary[name] for name in reversed(named)], strict=True))
    words["model"]["vocab"] = swapped
    (other / "tokenizer.json").write_text(json.dumps(words))
    memo = TokenMemo()
    for folder in (saved, other):
        with_memo = load(resolve(str(folder), workspace), "cpu", memo=memo)
        assert np.array_equal(with_memo.encode(TEXTS), load(resolve(str(folder), workspace), "cpu").encode(TEXTS))
