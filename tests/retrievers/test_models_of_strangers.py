"""A model that came from somebody else is data: what acts in its folder is refused before a library sees it."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from cdp.base.errors import ModelError
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.corpus import read_documents, store
from cdp.retrievers import load, model_files, resolve
from cdp.retrievers.load import load_cross_encoder, load_decoder
from cdp.retrievers.resolve import ResolvedRetriever
from cdp.retrievers.static import StaticModel
from tests.benchmarks.hub_server import Hub, Server
from tests.cli.support import run
from tests.metrics.models import tiny_cross_encoder
from tests.services.test_strangers_workspace import job
from tests.support import REPOSITORY
from tests.support_models import tiny_bert, tiny_retriever, tiny_static
from tests.synthesis.models import tiny_writer
from tests.training.conftest import write_queries

pytestmark = pytest.mark.slow

Change = Callable[[Path], None]


def sets(file: str, **values: Any) -> Change:
    """Set keys of a JSON file in the folder, which may not be there yet."""

    def change(folder: Path) -> None:
        path = folder / file
        path.parent.mkdir(exist_ok=True)
        write_json(path, {**(read_json(path) if path.is_file() else {}), **values})

    return change


def module(**values: str) -> Change:
    """Change the second module of a retriever."""

    def change(folder: Path) -> None:
        first, second = json.loads((folder / "modules.json").read_text())
        write_json(folder / "modules.json", [first, {**second, **values}])

    return change


def writes(file: str, text: str) -> Change:
    return lambda folder: (folder / file).write_text(text) and None


def leads_out(folder: Path) -> None:
    outside = folder.parent / "outside.txt"
    outside.write_text("of the operator")
    (folder / "vocab.txt").symlink_to(outside)


def indexed(**weights: str) -> Change:
    """Weights in files that an index names."""

    def change(folder: Path) -> None:
        (folder / "model.safetensors").rename(folder / "shard.safetensors")
        shutil.copy(folder / "shard.safetensors", folder.parent / "out.safetensors")
        (folder / "shard.dat").write_bytes(pickle.dumps({}))
        write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": weights})

    return change


def only_pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({}))


POOLING, SETTINGS, USAGE = "1_Pooling", "sentence_bert_config.json", "config_sentence_transformers.json"
LAST = "sentence_transformers.models.Pooling"
TRANSFORMER = "sentence_transformers.models.Transformer"

# What somebody may have written, and a part of the sentence that refuses it.
REFUSED: dict[str, tuple[Change, str]] = {
    "code beside the model": (module(type="own.Pooling"), "the module 'own.Pooling' is not among"),
    "a function of the library": (module(type="sentence_transformers.util.fullname"), "is not among"),
    "a class that reads other files": (module(type="sentence_transformers.models.WordEmbeddings"), "is not among"),
    "a class of a deeper module": (module(type="sentence_transformers.models.a.b.Pooling"), "is not among"),
    "a module above the folder": (module(path="../1_Pooling"), "'../1_Pooling' is no folder in it"),
    "a module at an absolute path": (module(path="/1_Pooling"), "is no folder in it"),
    "a module by a Windows path": (module(path="..\\1_Pooling"), "is no folder in it"),
    "modules that are no list": (writes("modules.json", "{}"), "no list of modules"),
    "modules without an end": (writes("modules.json", "[" * 100_000), "cannot be read"),
    "a router to a router": (module(type="sentence_transformers.models.Router"), "router_config.json: it leads to"),
    "a folder to write to": (sets(SETTINGS, model_args={"offload_folder": "../here"}), "'offload_folder'"),
    "the order to unpickle": (sets(SETTINGS, model_kwargs={"weights_only": False}), "'weights_only'"),
    "pickles first": (sets(SETTINGS, model_args={"use_safetensors": False}), "'use_safetensors'"),
    "a cache elsewhere": (sets(SETTINGS, tokenizer_args={"cache_dir": "../here"}), "'cache_dir'"),
    "a kernel as an argument": (sets(SETTINGS, config_args={"attn_implementation": "a/kernel"}), "attn_implementation"),
    "nested arguments": (sets(SETTINGS, config_kwargs={"dtype": {"a": 1}}), "'dtype'"),
    "arguments in a legacy file": (sets("sentence_roberta_config.json", model_args={"gguf_file": "x"}), "'gguf_file'"),
    "arguments that are a list": (sets(SETTINGS, model_args=[1]), "model_args is a list"),
    "a tokenizer elsewhere": (sets(SETTINGS, tokenizer_name_or_path="/etc"), "'tokenizer_name_or_path', which would"),
    "any method of a model": (
        sets(SETTINGS, modality_config={"text": {"method": "save_pretrained"}}),
        "would be called",
    ),
    "files to fetch for each text": (sets(SETTINGS, processing_kwargs={"text": {"images": "a"}}), "has 'images'"),
    "any class of the library": (sets(SETTINGS, transformer_task="retrieval"), "transformer_task is 'retrieval'"),
    "weights by another name": (sets("config.json", transformers_weights="adapter_model.bin"), "transformers_weights"),
    "another configuration": (sets("config.json", configuration_files=["config.9.9.9.json"]), "configuration_files"),
    "code for layers": (sets("config.json", text_config={"fusion_config": {"a": True}}), "fusion_config"),
    "a kernel from the hub": (sets("config.json", attn_implementation="someone/kernel"), "is code to download"),
    "a kernel for a part": (sets("config.json", text_config={"_attn_implementation": "a/b"}), "is code to download"),
    "a quantisation of its own": (sets("config.json", quantization_config={"quant_method": "own"}), "'own' is none of"),
    "an architecture that loads others": (sets("config.json", model_type="rag"), "architecture 'rag'"),
    "an unknown architecture": (sets("config.json", model_type="own"), "architecture 'own'"),
    "a configuration that is a list": (writes("config.json", "[]"), "no JSON object"),
    "files to open by a tokenizer": (sets("tokenizer_config.json", init_inputs=["/etc/hostname"]), "init_inputs"),
    "a vocabulary elsewhere": (sets("tokenizer_config.json", vocab_file="/etc/hostname"), "vocab_file leads to"),
    "a tokenizer elsewhere by the legacy map": (
        sets("special_tokens_map.json", tokenizer_file="/etc/hostname"),
        "has 'tokenizer_file', which is no special token",
    ),
    "a tokenizer elsewhere in a part": (
        sets("qformer_tokenizer/tokenizer_config.json", vocab_file="/etc/hostname"),
        "vocab_file leads to",
    ),
    "any class as the tokenizer": (
        sets("tokenizer_config.json", tokenizer_class="AutoModel"),
        "tokenizer_class is 'AutoModel'",
    ),
    "parts of a tokenizer": (sets("tokenizer_config.json", tokenizer_class="RagTokenizer"), "is 'RagTokenizer'"),
    "any class as the configuration's tokenizer": (sets("config.json", tokenizer_class="AutoModel"), "is 'AutoModel'"),
    "any class as the processor": (sets("config.json", processor_class="AutoModel"), "processor_class is 'AutoModel'"),
    "a class that is a number": (sets("tokenizer_config.json", tokenizer_class=7), "tokenizer_class is 7"),
    "a name longer than names can be": (module(path="x" * 5000), "is no folder in it"),
    "a model as a tokenizer": (sets("tokenizer_config.json", gguf_file="x.gguf"), "gguf_file"),
    "an option of a dictionary": (sets("tokenizer_config.json", a={"mecab_option": "-r /etc/x"}), "mecab_option leads"),
    "tokenizers of other versions": (sets("tokenizer_config.json", fast_tokenizer_files=["../t.json"]), "leads to"),
    "vectors by code": (sets("config.json", auto_map={"AutoModel": "own--modeling.Own"}), "by code of its own"),
    "another base model": (sets("adapter_config.json", base_model_name_or_path="/etc"), "an adapter"),
    "prompts as a list": (sets(USAGE, prompts=[1]), "prompts are no texts"),
    "a prompt that is a number": (sets(USAGE, prompts={"query": 1}), "prompts are no texts"),
    "a length that is a text": (sets(SETTINGS, max_seq_length="many"), "max_seq_length"),
    "a link that leads out": (leads_out, "a link that leads out"),
    "a pickle named by an index": (indexed(a="shard.dat"), "'shard.dat', which is no .safetensors file beside it"),
    "weights above the folder": (indexed(a="../out.safetensors"), "which is no .safetensors file beside it"),
    "a missing shard": (indexed(a="shard.safetensors", b="other.safetensors"), "is not there"),
    "an index that is a list": (writes("model.safetensors.index.json", "[]"), ""),
    "pickled weights alone": (only_pickled, "pytorch_model.bin is a format of which reading could run code"),
}


@pytest.fixture
def retriever(tmp_path: Path) -> Path:
    folder = tiny_retriever(tmp_path / "tiny")
    write_json(folder / POOLING / "router_config.json", {"types": {"a": "sentence_transformers.models.Asym"}})
    return folder


@pytest.mark.parametrize("attack", [name for name in REFUSED if name != "an index that is a list"])
def test_what_acts_in_a_folder_is_refused_and_named(workspace: Workspace, retriever: Path, attack: str) -> None:
    change, words = REFUSED[attack]
    change(retriever)
    with pytest.raises(ModelError) as error:
        load(resolve(str(retriever), workspace), "cpu")
    assert words in str(error.value)


def test_without_the_attack_the_same_folder_is_a_retriever(workspace: Workspace, retriever: Path) -> None:
    assert load(resolve(str(retriever), workspace), "cpu").encode(["a text"]).shape == (1, 32)


def test_architectures_that_are_no_list_name_none(retriever: Path) -> None:
    write_json(retriever / "config.json", {**read_json(retriever / "config.json"), "architectures": True})
    (retriever / "modules.json").unlink()
    assert model_files.check(retriever, model_files.ENCODER) == [retriever]
    assert model_files.kind_of(retriever) == "dense"


def test_an_index_of_another_shape_is_refused(workspace: Workspace, retriever: Path) -> None:
    indexed(a="shard.safetensors")(retriever)
    writes("model.safetensors.index.json", "[]")(retriever)
    with pytest.raises(ModelError, match="no JSON object"):
        resolve(str(retriever), workspace)


@pytest.mark.parametrize("attack", ["the order to unpickle", "a pickle named by an index", "another base model"])
def test_generators_and_cross_encoders_come_by_the_same_way(workspace: Workspace, tmp_path: Path, attack: str) -> None:
    change, words = REFUSED[attack]
    folders = [tiny_writer(tmp_path / "writer"), tiny_cross_encoder(tmp_path / "scorer")]
    resolved = [resolve(str(folder), workspace) for folder in folders]
    for folder in folders:
        change(folder)
    with pytest.raises(ModelError) as of_writer:
        load_decoder(resolved[0], "float32", spread=False)
    with pytest.raises(ModelError) as of_scorer:
        load_cross_encoder(resolved[1], "cpu", "float32")
    assert words in str(of_writer.value)
    assert words in str(of_scorer.value)


def behind_sound_modules(model_type: str | None) -> Change:
    """List the model's own copy as its modules; in the folder itself a kernel, for readers of another class."""

    def change(folder: Path) -> None:
        inner = folder / "0_Transformer"
        inner.mkdir()
        for file in list(folder.iterdir()):
            if file.is_file():
                shutil.copy(file, inner / file.name)
        write_json(folder / "modules.json", [{"name": "0", "path": inner.name, "type": TRANSFORMER}])
        sets(USAGE, model_type=model_type)(folder)
        sets("config.json", attn_implementation="someone/kernel")(folder)

    return change


READERS: dict[str, tuple[Callable[[Path], Path], str | None, Callable[[ResolvedRetriever], Any]]] = {
    "encoder of no class": (tiny_retriever, None, lambda found: load(found, "cpu")),
    "encoder": (tiny_retriever, "CrossEncoder", lambda found: load(found, "cpu")),
    "cross-encoder": (
        tiny_cross_encoder, "SentenceTransformer", lambda found: load_cross_encoder(found, "cpu", "float32")
    ),
    "decoder": (tiny_writer, "SentenceTransformer", lambda found: load_decoder(found, "float32", spread=False)),
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
def test_the_folder_itself_is_checked_where_its_modules_are_of_another_class(
    workspace: Workspace, tmp_path: Path, reader: str
) -> None:
    """The libraries read the folder then, and no module of it."""
    make, model_type, read = READERS[reader]
    folder = make(tmp_path / "model")
    behind_sound_modules(model_type)(folder)
    resolved = resolve(str(folder), workspace)
    with pytest.raises(ModelError, match="the attention 'someone/kernel' is code to download"):
        read(resolved)


@pytest.mark.parametrize("where", ["config.json", USAGE])
def test_what_a_cross_encoder_names_as_its_activation_is_not_called(
    workspace: Workspace, tmp_path: Path, where: str
) -> None:
    """``torch.seed`` stands for any function: whether it was called, the seed tells."""
    import torch

    folder = tiny_cross_encoder(tmp_path / "scorer")
    sets(where, sentence_transformers={"activation_fn": "torch.seed"}, activation_fn="torch.seed")(folder)
    sets("config.json", sbert_ce_default_activation_function="torch.seed")(folder)
    torch.manual_seed(5)
    model = load_cross_encoder(resolve(str(folder), workspace), "cpu", "float32")
    assert model.predict([("a", "b")]).shape == (1,)
    assert torch.initial_seed() == 5


SCORING = {
    "filter": ("cross_encoder", {"query_set": "q", "at_least": 0.5}),
    "metrics": ("scorer", {"query_set": "q"}),
}


def store_documents(workspace: Workspace) -> None:
    """Store a corpus ``c`` of one document."""
    workspace.root.mkdir(parents=True, exist_ok=True)
    source = workspace.root / "c.jsonl"
    source.write_text(json.dumps({"_id": "d1", "text": "a text about something"}) + "\n")
    with read_documents(source) as result:
        store(result, "c", workspace)


@pytest.mark.usefixtures("jobs_here")
@pytest.mark.parametrize("kind", SCORING)
def test_a_resume_refuses_a_cross_encoder_of_the_workspace_that_acts(workspace: Workspace, kind: str) -> None:
    setting, settings = SCORING[kind]
    store_documents(workspace)
    write_queries(workspace, "q", "c", {"d1": ["first query", "second query"]})
    folder = tiny_cross_encoder(workspace.root / "scorer")
    sets(SETTINGS, model_args={"offload_folder": str(workspace.root / "written")})(folder)
    stopped = job(workspace, kind, {**settings, setting: str(folder)})
    done = run("jobs", "resume", stopped, "--wait", code=1)
    assert "'offload_folder', which would change how the model is loaded" in done.stdout + done.stderr
    assert not (workspace.root / "written").exists()


# What other people's models hold, all of it data.


def test_models_in_the_forms_that_people_have_load(workspace: Workspace, retriever: Path, tmp_path: Path) -> None:
    """Names of old versions, arguments that change nothing else, paths of the author's machine, pickles beside."""
    expected = load(resolve(str(retriever), workspace), "cpu").encode(["a text"])
    module(type=LAST)(retriever)
    sets(SETTINGS, model_args={"attn_implementation": "eager", "trust_remote_code": True}, tokenizer_args={})(retriever)
    sets("tokenizer_config.json", special_tokens_map_file="/home/author/map.json", tokenizer_file=None)(retriever)
    sets("config.json", _name_or_path="/home/author/base", auto_map={"AutoConfig": "own--modeling.Own"})(retriever)
    (retriever / "pytorch_model.bin").write_bytes(pickle.dumps({}))
    (retriever / "modeling.py").write_text("raise SystemExit")
    found = load(resolve(str(retriever), workspace), "cpu").encode(["a text"])
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_weights_in_shards_load(workspace: Workspace, retriever: Path) -> None:
    from transformers import BertModel

    expected = load(resolve(str(retriever), workspace), "cpu").encode(["a text"])
    (retriever / "model.safetensors").rename(retriever.parent / "whole.safetensors")
    base = BertModel.from_pretrained(retriever.parent / "base")
    base.save_pretrained(retriever, max_shard_size="20KB")
    assert len(model_files.shards(retriever / "model.safetensors.index.json")) > 1
    assert (load(resolve(str(retriever), workspace), "cpu").encode(["a text"]) == expected).all()


def test_modules_with_weights_and_routers_load(workspace: Workspace, retriever: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Router

    whole = SentenceTransformer(str(retriever), device="cpu")
    dense = Dense(32, 8)
    saved = tmp_path / "with-dense"
    SentenceTransformer(modules=[*whole, dense], device="cpu").save(str(saved), create_model_card=False)
    assert load(resolve(str(saved), workspace), "cpu").encode(["a text"]).shape == (1, 8)

    routed = tmp_path / "routed"
    router = Router.for_query_document([*whole], [*SentenceTransformer(str(retriever), device="cpu")])
    SentenceTransformer(modules=[router], device="cpu").save(str(routed), create_model_card=False)
    assert load(resolve(str(routed), workspace), "cpu").encode_query(["a text"]).shape == (1, 32)
    dense_folder = saved / "2_Dense"
    (dense_folder / "model.safetensors").rename(dense_folder / "pytorch_model.bin")
    (dense_folder / "shard.safetensors").write_bytes(b"")  # an index is read for transformers alone
    write_json(dense_folder / "model.safetensors.index.json", {"weight_map": {"a": "shard.safetensors"}})
    with pytest.raises(ModelError, match="could run code"):
        resolve(str(saved), workspace)


@pytest.mark.parametrize("name", ["torch.seed", "os.getcwd", "torch.nn.init.normal_", "torch.hub.list"])
def test_an_activation_is_a_module_of_torch_nn(
    workspace: Workspace, retriever: Path, tmp_path: Path, name: str
) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense

    saved = tmp_path / "with-dense"
    model = SentenceTransformer(str(retriever), device="cpu")
    SentenceTransformer(modules=[*model, Dense(32, 8)], device="cpu").save(str(saved), create_model_card=False)
    sets("config.json", activation_function=name)(saved / "2_Dense")
    with pytest.raises(ModelError, match=r"is no module of torch\.nn"):
        resolve(str(saved), workspace)


LOADING = """
import sys
from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.retrievers import load, resolve

for name in sys.stdin:
    try:
        print("->", load(resolve(name.strip(), Workspace.default()), "cpu").encode(["a text"]).shape, flush=True)
    except CdpError as error:
        print("->", " ".join(str(error).split()), flush=True)
"""


@contextmanager
def loading(hub: Hub, folder: Path, *, cwd: Path = REPOSITORY) -> Iterator[Callable[[str], str]]:
    """Yield a function that loads a model of a hub by its name and returns the shape of a vector, or the error.

    All in one process, for which addresses are set before the libraries are loaded; its cache is in ``folder``.
    """
    environment = {**os.environ, "HF_ENDPOINT": hub.address, "HF_HOME": str(folder / "hub"), "HF_HUB_OFFLINE": "0",
                   "CDP_WORKSPACE": str(folder / "workspace"), "PYTHONPATH": str(REPOSITORY)}  # fmt: skip
    command = [sys.executable, "-c", LOADING]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, cwd=cwd, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        ask, answers = process.stdin, process.stdout

        def load_there(name: str) -> str:
            ask.write(f"{name}\n")
            ask.flush()
            return next((line for line in answers if line.startswith("-> ")), "it has ended")

        yield load_there
        ask.close()


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


class Elsewhere(NamedTuple):
    """A hub, what loads its models (``loading``), and the folder of that process's cache."""

    hub: Hub
    load: Callable[[str], str]
    folder: Path


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    """A hub with retrievers and presets. Below the current folder lies another model by the name of a preset."""
    import torch
    from transformers import BertModel

    folder = tmp_path_factory.mktemp("elsewhere")
    hub = Hub()
    retriever = tiny_retriever(folder / "retriever")
    hub.commit("people/model", {**files_of(retriever), "onnx/model.onnx": b"1", "consolidated.safetensors": b"2"})
    sets(SETTINGS, model_args={"weights_only": False})(retriever)
    hub.commit("people/acts", files_of(retriever))

    pickled = tiny_bert(folder / "bert", hidden=32)
    torch.save(BertModel.from_pretrained(pickled).state_dict(), pickled / "pytorch_model.bin")
    (pickled / "model.safetensors").unlink()
    for name in ("facebook/contriever", "people/contriever"):
        hub.commit(name, files_of(pickled))

    tiny_bert(folder / "unpacked" / "facebook" / "contriever", hidden=16)
    with Server(hub), loading(hub, folder, cwd=folder / "unpacked") as load_there:
        yield Elsewhere(hub, load_there, folder)


def test_a_model_of_the_hub_is_checked_before_its_weights_are_downloaded(elsewhere: Elsewhere) -> None:
    hub, load_there, folder = elsewhere
    assert load_there("people/model") == "-> (1, 32)\n"
    assert not [path for path in hub.fetched() if "onnx" in path or "consolidated" in path]

    hub.asked.clear()
    assert "'weights_only', which would change how the model is loaded" in load_there("people/acts")
    assert not [path for path in hub.fetched() if path.endswith(".safetensors")]

    nowhere = Hub(address="http://127.0.0.1:9")
    with loading(nowhere, folder) as load_here:
        assert load_here("people/model") == "-> (1, 32)\n"


def test_a_preset_that_was_published_as_a_pickle_is_read_by_the_restricted_reader(elsewhere: Elsewhere) -> None:
    """It is the hub's, not the folder of its name below the current one, whose vectors have 16 numbers."""
    assert elsewhere.load("contriever") == "-> (1, 32)\n"
    assert "there is no model.safetensors" in elsewhere.load("people/contriever")


def test_a_list_of_modules_that_is_nested_endlessly_is_no_static_model(tmp_path: Path) -> None:
    folder = tiny_static(tmp_path / "static")
    assert StaticModel.load(folder) is not None
    (folder / "modules.json").write_text("[" * 5_000, encoding="utf-8")
    assert StaticModel.load(folder) is None


def test_a_static_model_of_a_stranger_is_checked_too(workspace: Workspace, tmp_path: Path) -> None:
    folder = tiny_static(tmp_path / "static")
    assert load(resolve(str(folder), workspace), "cpu").encode(["a text"]).shape == (1, 16)
    (folder / "tokenizer.json").rename(tmp_path / "tokenizer.json")
    (folder / "tokenizer.json").symlink_to(tmp_path / "tokenizer.json")
    with pytest.raises(ModelError, match="a link that leads out"):
        resolve(str(folder), workspace)
