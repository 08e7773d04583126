"""A folder that would give numbers without meaning is refused: weights, words or an encoder that are not there.

The libraries load each of these folders without an error. What two models differ in, their hash says.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdp.base.errors import ConfigError, ModelError
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.retrievers import load, model_hash, resolve
from cdp.retrievers.encode import Encoding, encode
from cdp.retrievers.load import load_cross_encoder, load_decoder
from cdp.retrievers.resolve import check_cross_encoder
from tests.metrics.models import tiny_cross_encoder
from tests.support_models import tiny_bert, tiny_decoder, tiny_retriever, tiny_static
from tests.synthesis.models import tiny_writer

pytestmark = pytest.mark.slow

LONG = "birds fly over seas " * 40


def rewrite(folder: Path, rename: Callable[[str], str | None]) -> None:
    """Give each tensor of a folder another name; those without one are left out."""
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    tensors = {rename(name): tensor for name, tensor in load_file(path).items()}
    save_file({name: tensor for name, tensor in tensors.items() if name}, path, {"format": "pt"})


def sets(path: Path, **values: Any) -> None:
    write_json(path, {**read_json(path), **values})


# As torch.compile, DistributedDataParallel, trainers with two encoders, and a copy of one module leave them.
@pytest.mark.parametrize("prefix", ["_orig_mod.", "module.", "encoder.", "lm_q.", "0.auto_model."])
def test_weights_by_other_names_are_not_drawn_at_random(prefix: str, workspace: Workspace, tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "model")
    rewrite(folder, lambda name: prefix + name)
    with pytest.raises(ModelError, match=r"lacks 37 weights of BertModel, such as .*; it has ") as error:
        load(resolve(str(folder), workspace), "cpu")
    assert prefix in str(error.value)


def test_a_layer_that_is_not_there_is_missed_in_each_kind_of_model(workspace: Workspace, tmp_path: Path) -> None:
    folders = [tiny_retriever(tmp_path / "retriever"), tiny_decoder(tmp_path / "decoder"), tiny_writer(tmp_path / "w")]
    reads: list[Callable[..., Any]] = [load, load, lambda found, _: load_decoder(found, "float32", spread=False)]
    for folder, read in zip(folders, reads, strict=True):
        resolved = resolve(str(folder), workspace)
        read(resolved, "cpu")
        rewrite(folder, lambda name: None if "layer.1." in name or "layers.1." in name else name)
        with pytest.raises(ModelError, match=r"lacks \d+ weights"):
            read(resolved, "cpu")


def test_an_encoder_needs_no_pooler_and_a_cross_encoder_needs_its_head(workspace: Workspace, tmp_path: Path) -> None:
    encoder = tiny_bert(tmp_path / "encoder")
    before = load(resolve(str(encoder), workspace), "cpu").encode(["a text"])
    rewrite(encoder, lambda name: None if "pooler" in name else name)
    assert (load(resolve(str(encoder), workspace), "cpu").encode(["a text"]) == before).all()

    with pytest.raises(ModelError, match=r"weights of BertForSequenceClassification, such as bert\.pooler"):
        load_cross_encoder(resolve(str(encoder), workspace), "cpu", "float32")
    with pytest.raises(ModelError, match="weights of BertForSequenceClassification, such as classifier"):
        load_cross_encoder(resolve(str(tiny_bert(tmp_path / "whole")), workspace), "cpu", "float32")


def test_an_encoder_is_no_cross_encoder_before_a_job_starts(workspace: Workspace, tmp_path: Path) -> None:
    check_cross_encoder(workspace, str(tiny_cross_encoder(tmp_path / "scorer")))
    check_cross_encoder(workspace, str(tiny_writer(tmp_path / "writer")))
    for folder in (tiny_bert(tmp_path / "bert"), tiny_retriever(tmp_path / "retriever")):
        with pytest.raises(ConfigError, match="a model that scores pairs is needed"):
            check_cross_encoder(workspace, str(folder))


def test_a_cross_encoder_is_no_retriever(workspace: Workspace, tmp_path: Path) -> None:
    resolved = resolve(str(tiny_cross_encoder(tmp_path / "scorer")), workspace)
    load_cross_encoder(resolved, "cpu", "float32")
    with pytest.raises(ModelError, match="'BertForSequenceClassification', which scores or labels texts"):
        load(resolved, "cpu")


def test_a_decoder_reranks_by_two_tokens(workspace: Workspace, tmp_path: Path) -> None:
    """The library asks it for yes and no: two unknown words are one token."""
    writer = tiny_writer(tmp_path / "writer")
    with pytest.raises(ModelError, match="one token for yes and no, so that all pairs would score 0"):
        load_cross_encoder(resolve(str(writer), workspace), "cpu", "float32")

    tokenizer = json.loads((writer / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    second, third = sorted(vocabulary, key=vocabulary.__getitem__)[-2:]
    tokenizer["model"]["vocab"] = {{second: "yes", third: "no"}.get(word, word): i for word, i in vocabulary.items()}
    write_json(writer / "tokenizer.json", tokenizer)
    scores = load_cross_encoder(resolve(str(writer), workspace), "cpu", "float32").predict([("a", "b"), ("c", "d")])
    assert scores[0] != scores[1]


def test_a_tokenizer_without_its_files_is_missed(workspace: Workspace, tmp_path: Path) -> None:
    for folder in (tiny_bert(tmp_path / "encoder"), tiny_cross_encoder(tmp_path / "scorer")):
        vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
        (folder / "tokenizer.json").unlink()
        (folder / "tokenizer_config.json").unlink()
        resolved = resolve(str(folder), workspace)
        read = load_cross_encoder if "scorer" in str(folder) else load
        options = ("float32",) if "scorer" in str(folder) else ()
        with pytest.raises(ModelError, match="knows no words"):
            read(resolved, "cpu", *options)

        # The older form of the same vocabulary is one.
        (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
        read(resolved, "cpu", *options)


def test_texts_are_cut_at_the_last_position(workspace: Workspace, tmp_path: Path) -> None:
    """A folder may name a length beyond; RoBERTa's positions begin after that of the padding."""
    from transformers import RobertaConfig, RobertaModel

    folder = tiny_retriever(tmp_path / "longer")
    expected = load(resolve(str(folder), workspace), "cpu").encode([LONG])
    sets(folder / "sentence_bert_config.json", max_seq_length=512)
    model = load(resolve(str(folder), workspace), "cpu")
    assert model.max_seq_length == 128
    np.testing.assert_array_equal(model.encode([LONG]), expected)

    roberta = tiny_bert(tmp_path / "roberta")
    size = len(json.loads((roberta / "tokenizer.json").read_text())["model"]["vocab"])
    config = RobertaConfig(
        vocab_size=size, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=66, pad_token_id=1,
    )  # fmt: skip
    RobertaModel(config).save_pretrained(roberta)
    for limit in (None, 66):
        assert load(resolve(str(roberta), workspace), "cpu", limit).encode([LONG]).shape == (1, 32)


def truncated(folder: Path) -> None:
    sets(folder / "config_sentence_transformers.json", truncate_dim=8)


def upper_case(folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["normalizer"]["lowercase"] = False
    write_json(folder / "tokenizer.json", tokenizer)


CHANGES: dict[str, Callable[[Path], None]] = {
    "a shorter vector": truncated,
    "a configuration of the same tensors": lambda folder: sets(folder / "config.json", num_attention_heads=4),
    "letters kept as they are": upper_case,
    "a prompt left out of the mean": lambda folder: sets(folder / "1_Pooling" / "config.json", include_prompt=False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_vectors_changes_the_hash(change: str, workspace: Workspace, tmp_path: Path) -> None:
    """Kept embeddings are found by it."""
    folder = tiny_retriever(tmp_path / "one")
    before = model_hash(load(resolve(str(folder), workspace), "cpu"))
    CHANGES[change](folder)
    model = load(resolve(str(folder), workspace), "cpu")
    assert model_hash(model) != before

    copy = tmp_path / "copy"
    model.save(str(copy), create_model_card=False)
    assert model_hash(load(resolve(str(copy), workspace), "cpu")) == model_hash(model)


def test_another_base_of_rotary_positions_is_another_model(workspace: Workspace, tmp_path: Path) -> None:
    """Decoders are made to read longer texts by it, with the tensors that they have."""
    folder = tiny_decoder(tmp_path / "one")
    hashes = [model_hash(load(resolve(str(folder), workspace), "cpu"))]
    for changed in ({"rope_theta": 5000.0}, {"rope_type": "linear", "factor": 4.0}):
        rope = read_json(folder / "config.json")["rope_parameters"]
        sets(folder / "config.json", rope_parameters=rope | changed)
        hashes.append(model_hash(load(resolve(str(folder), workspace), "cpu")))
    assert len(set(hashes)) == 3

    copy = tmp_path / "copy"
    load(resolve(str(folder), workspace), "cpu").save(str(copy), create_model_card=False)
    assert model_hash(load(resolve(str(copy), workspace), "cpu")) == hashes[-1]


def test_an_activation_is_part_of_the_hash(workspace: Workspace, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense

    saved = tmp_path / "with-dense"
    model = SentenceTransformer(str(tiny_retriever(tmp_path / "one")), device="cpu")
    SentenceTransformer(modules=[*model, Dense(32, 8)], device="cpu").save(str(saved), create_model_card=False)
    before = model_hash(load(resolve(str(saved), workspace), "cpu"))
    sets(saved / "2_Dense" / "config.json", activation_function="torch.nn.modules.linear.Identity")
    assert model_hash(load(resolve(str(saved), workspace), "cpu")) != before


def test_options_of_the_modules_behind_an_encoder_are_part_of_the_hash(workspace: Workspace, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Router
    from sentence_transformers.sentence_transformer.modules import LayerNorm, WeightedLayerPooling

    encoder, pooling = SentenceTransformer(str(tiny_retriever(tmp_path / "one")), device="cpu")
    dense = Dense(32, 32)

    def hash_of(*modules: Any) -> str:
        return model_hash(SentenceTransformer(modules=[encoder, *modules, pooling], device="cpu"))

    def layers(start: int) -> Any:
        return WeightedLayerPooling(32, num_hidden_layers=start + 2, layer_start=start)

    def routes(default: str, mappings: dict[Any, str] | None = None) -> Any:
        return Router({"ask": [dense], "tell": [dense]}, default_route=default, route_mappings=mappings)

    assert hash_of(layers(4)) != hash_of(layers(3)), "the same three weights, of other layers"
    usual = hash_of(routes("ask"))
    assert hash_of(routes("tell")) != usual
    asked, told = {("query", None): "ask"}, {("query", None): "tell"}
    assert len({usual, hash_of(routes("ask", asked)), hash_of(routes("ask", told))}) == 3

    norm = LayerNorm(32)
    model = SentenceTransformer(modules=[encoder, pooling, norm], device="cpu")
    before = model_hash(model)
    norm.norm.eps = 1e-12
    assert model_hash(model) != before

    saved = tmp_path / "routed"
    model = SentenceTransformer(modules=[encoder, pooling, routes("tell", told)], device="cpu")
    model.save(str(saved), create_model_card=False)
    assert model_hash(load(resolve(str(saved), workspace), "cpu")) == model_hash(model)


def test_routers_of_version_5_load(workspace: Workspace, tmp_path: Path) -> None:
    """They name a module by its file and its class: `….models.Dense.Dense`."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Router

    model = SentenceTransformer(str(tiny_retriever(tmp_path / "one")), device="cpu")
    router = Router.for_query_document([Dense(32, 8)], [Dense(32, 8)])
    saved = tmp_path / "routed"
    SentenceTransformer(modules=[*model, router], device="cpu").save(str(saved), create_model_card=False)
    expected = load(resolve(str(saved), workspace), "cpu").encode_query(["a text"])

    config = saved / "2_Router" / "router_config.json"
    types = read_json(config)["types"]
    sets(config, types=dict.fromkeys(types, "sentence_transformers.models.Dense.Dense"))
    np.testing.assert_array_equal(load(resolve(str(saved), workspace), "cpu").encode_query(["a text"]), expected)


def test_a_query_by_table_and_a_document_by_transformer_is_cut_where_it_can_be(
    workspace: Workspace, tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Router

    table = SentenceTransformer(str(tiny_static(tmp_path / "table", dimension=32)), device="cpu")
    model = SentenceTransformer(str(tiny_retriever(tmp_path / "one")), device="cpu")
    saved = tmp_path / "routed"
    router = Router.for_query_document([*table], [*model])
    SentenceTransformer(modules=[router], device="cpu").save(str(saved), create_model_card=False)

    cut = load(resolve(str(saved), workspace), "cpu", 8)
    assert np.abs(cut.encode_document([LONG]) - model.encode_document([LONG])).max() > 1e-3
    np.testing.assert_allclose(cut.encode_query([LONG]), table.encode_query([LONG]), atol=1e-6)


def test_an_adapter_alone_says_what_it_is(workspace: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "lora"
    folder.mkdir()
    write_json(folder / "adapter_config.json", {"peft_type": "LORA", "base_model_name_or_path": "people/base"})
    with pytest.raises(ModelError, match="an adapter, which would load its base model") as error:
        resolve(str(folder), workspace)
    assert "merge_and_unload" in str(error.value)


@pytest.mark.parametrize(("name", "known"), [("static-minilm", "cc1d123c56cac70c"), ("minilm", "04bbd88656278b0e")])
def test_the_hashes_of_shipped_models_are_those_of_kept_records(name: str, known: str, workspace: Workspace) -> None:
    """docs/reproduction names them; a finished training of a study is found again by them."""
    assert model_hash(load(resolve(name, workspace), "cpu")) == known


def test_a_tokenizer_of_another_model_is_said_to_be_one(workspace: Workspace, tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "model")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    words = tokenizer["model"]["vocab"]
    words["fly"] = len(words)
    write_json(folder / "tokenizer.json", tokenizer)
    model = load(resolve(str(folder), workspace), "cpu")
    with pytest.raises(ModelError, match="cannot embed these texts: index out of range"):
        encode(model, ["birds fly"], Encoding("", "query"))


def test_routes_by_other_names_are_missed(workspace: Workspace, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Router

    router = Router({"query": [Dense(32, 8)], "doc": [Dense(32, 8)]}, default_route=None, allow_empty_key=False)
    saved = tmp_path / "routed"
    first = SentenceTransformer(str(tiny_retriever(tmp_path / "one")), device="cpu")
    SentenceTransformer(modules=[*first, router], device="cpu").save(str(saved), create_model_card=False)
    model = load(resolve(str(saved), workspace), "cpu")
    with pytest.raises(ModelError, match=r"No route found for task type 'document'.*router name other roles"):
        encode(model, ["birds fly"], Encoding("", "document"))


@pytest.mark.parametrize("name", ["document", "passage", "corpus"])
def test_a_prompt_of_documents_counts_by_each_of_its_names(name: str, workspace: Workspace, tmp_path: Path) -> None:
    """The library looks for the three, and finds an empty one that it has put there itself."""
    folder = tiny_retriever(tmp_path / "one")
    sets(folder / "config_sentence_transformers.json", prompts={"query": "q: ", name: "d: "})
    model = load(resolve(str(folder), workspace), "cpu")
    prompt = model.prompts["document"]
    np.testing.assert_array_equal(model.encode_document(["a text"], prompt=prompt), model.encode(["d: a text"]))
