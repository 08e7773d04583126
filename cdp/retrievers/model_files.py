"""What a model's folder may hold, before a library sees it: classes, settings, tokenizer, links, safetensors; refusals.

A model is another person's data, and the libraries obey much of what stands in it: classes to import, arguments for
their loaders, other files and other models to read. ``check`` refuses what acts. It reads JSON only and imports no
library; ``check_architectures`` is the part that needs to know which architectures transformers has.

What is left is what a model is: a known architecture, its sizes, a tokenizer, prompts, and tensors in safetensors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

from cdp.base.errors import ModelError
from cdp.base.text import shown
from cdp.retrievers.presets import DENSE, MULTI_VECTOR, SPARSE

MODULES = "modules.json"
CONFIG = "config.json"
USAGE = "config_sentence_transformers.json"
ADAPTER = "adapter_config.json"
TOKENIZER, TOKENS = "tokenizer_config.json", "special_tokens_map.json"
ROUTER = "router_config.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLED, PICKLED_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"

# What a download needs before the weights.
SMALL_FILES = ["*.json", "*.txt", "*.model", "*.jinja", "artifact.metadata"]

LONGEST_JSON = 64 << 20  # bytes; tokenizers list each token that was added
MAX_FILES = 10_000
LONGEST_NAME = 250  # characters of a module's folder

# Modules of sentence-transformers that are made of tensors and numbers. Others read a vocabulary or a model of another
# kind from wherever their settings say, or have no safetensors.
WITH_WEIGHTS = frozenset({
    "Transformer", "Dense", "LayerNorm", "StaticEmbedding", "WeightedLayerPooling", "SparseStaticEmbedding",
    "SparseAutoEncoder",
})  # fmt: skip
ROUTERS = frozenset({"Router", "Asym"})
CLASSES = WITH_WEIGHTS | ROUTERS | {
    "Pooling", "Normalize", "Dropout", "LogitScore", "MultiVectorMask", "HierarchicalTokenPooling", "SpladePooling"
}  # fmt: skip
# `sentence_transformers.models.Pooling` up to version 5, in its routers `….models.Pooling.Pooling`;
# `….sentence_transformer.modules.pooling.Pooling` since.
_CLASS = re.compile(
    r"sentence_transformers\.(?:models|sparse_encoder\.models"
    r"|(?:base|sentence_transformer|cross_encoder|multi_vector_encoder|sparse_encoder)\.modules)"
    r"(?:\.\w+)?\.([A-Z]\w+)"
)
# PyLate's projection, which sentence-transformers reads as its own.
PYLATE_DENSE = "pylate.models.Dense.Dense"
# The transformer of sparse models up to version 5.
_MASKED = "MLMTransformer"
_ACTIVATION = re.compile(r"torch\.nn\.(?:modules\.(?:activation|linear)\.)?[A-Z]\w+")

# Arguments that a folder may hand to the loaders: they change how a text is read, and nothing else. Among the others
# are folders to write to, other files to read, and the order to unpickle.
LOAD_SETTINGS = ("model_args", "model_kwargs", "tokenizer_args", "processor_kwargs", "config_args", "config_kwargs")
HARMLESS = frozenset({
    "add_pooling_layer", "do_lower_case", "dtype", "is_decoder", "max_length", "model_max_length", "num_labels",
    "padding_side", "torch_dtype", "truncation_side", "use_cache", "use_fast",
})  # fmt: skip
# What else the configuration of a transformer module may say; `tokenizer_name_or_path`, for one, leads elsewhere.
SAID = frozenset({
    "backend", "do_lower_case", "document_length", "max_seq_length", "modality_config", "module_output_name",
    "processing_kwargs", "query_expansion", "query_length", "transformer_task", "unpad_inputs",
})  # fmt: skip
# Arguments for each call of the tokenizer.
PROCESSING = frozenset({
    "add_generation_prompt", "add_special_tokens", "enable_thinking", "max_length", "pad_to_multiple_of", "padding",
    "padding_side", "truncation", "truncation_side",
})  # fmt: skip
_METHOD = re.compile(r"forward|get_[a-z]+_features")
TASKS = ("feature-extraction", "sequence-classification", "text-generation", "fill-mask")

# Architectures that transformers had before anybody published a model of them with code of its own: such code is there
# to change what they compute. Of newer ones, as nomic_bert, transformers has taken that code over.
CHANGED_BY_CODE = frozenset({
    "bert", "distilbert", "electra", "gemma", "gemma2", "gemma3_text", "llama", "mistral", "mpnet", "mt5", "qwen2",
    "qwen3", "roberta", "t5", "xlm-roberta",
})  # fmt: skip
# Endings of architectures whose output is no vector of a text.
_SCORES = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice")

# Implementations that are part of the libraries; any other name is a kernel to download and run.
ATTENTIONS = (None, "eager", "sdpa", "flex_attention", "flash_attention_2", "flash_attention_3")
QUANTISATIONS = ("bitsandbytes", "gptq", "awq", "fp8", "mxfp4", "compressed-tensors")
# Keys of `config.json` that choose files, code or other models, at any depth.
ACTING = frozenset({"configuration_files", "transformers_weights", "fusion_config", "audio_tokenizer"})
# Keys of `tokenizer_config.json` that the library replaces by what lies in the folder.
REPLACED = frozenset({"special_tokens_map_file", "tokenizer_file", "name_or_path"})
# Classes that read texts. By these keys the library calls `from_pretrained` of anything that it has.
_READERS = frozenset({
    "tokenizer_class", "processor_class", "image_processor_type", "feature_extractor_type", "video_processor_type",
})  # fmt: skip
# "Auto" is any class again, and RAG's tokenizer is two in folders of their own.
_READER = re.compile(r"(?!Auto|Rag)[A-Z]\w*(?:Tokenizer|Processor|FeatureExtractor)(?:Fast)?|[A-Z]\w*Backend")
_NAMES_FILE = re.compile(r"(?:_file|_files|_path|_dir|_option|_spm|vocab|merges)$")


# Who reads a folder: the classes of sentence-transformers, as a folder names the one that wrote it; transformers.
ENCODER, CROSS_ENCODER, TRANSFORMERS = "SentenceTransformer", "CrossEncoder", "transformers"
MULTI_VECTOR_ENCODER, SPARSE_ENCODER, COLBERT = "MultiVectorEncoder", "SparseEncoder", "ColBERT"
READERS = {DENSE: ENCODER, MULTI_VECTOR: MULTI_VECTOR_ENCODER, SPARSE: SPARSE_ENCODER}


def check(folder: Path, reader: str | None = None, *, pickled: bool = False, weights: bool = True) -> list[Path]:
    """Raise ModelError if a folder holds anything beyond the data of a model; return the folders of its transformers.

    ``reader`` is the class that will read it, ``ENCODER`` for that of the folder's own kind. Where that
    did not write it, it reads the folder itself, and none of the modules that are listed there. None while it is not
    known: the modules are checked.
    ``pickled`` admits PyTorch's own format, read by its restricted reader, for the models of our own presets that were
    published in nothing else. ``weights=False`` before they are downloaded.
    """
    _check_links(folder)
    _check_tokenizers(folder)
    written_by = _usage(folder).get("model_type", ENCODER)
    written_by = MULTI_VECTOR_ENCODER if written_by == COLBERT else written_by
    reader = READERS[kind_of(folder)] if reader == ENCODER else reader
    listed = (folder / MODULES).is_file() and reader in (None, written_by)
    modules = list(_modules(folder)) if listed else [("Transformer", folder)]

    for kind, place in modules:
        if kind == "Transformer":
            _check_transformer(folder, place)
            if reader in READERS.values() and not listed:
                _check_embeds(place)
        elif kind == "SparseStaticEmbedding" and "path" in _read(place / CONFIG, optional=True):
            _refuse(place / CONFIG, "its weights are in another file")
        elif kind == "Dense":
            activation = _read(place / CONFIG, optional=True).get("activation_function")
            if activation is not None and not (isinstance(activation, str) and _ACTIVATION.fullmatch(activation)):
                _refuse(place / CONFIG, f"the activation {shown(activation)} is no module of torch.nn")
        if weights and kind in WITH_WEIGHTS:
            _check_weights(place, pickled, sharded=kind == "Transformer")
    return [place for kind, place in modules if kind == "Transformer"]


def kind_of(folder: Path) -> str:
    """Return the kind of retriever (``presets.KINDS``) that a folder holds, by who wrote it: sentence-transformers,
    PyLate or Stanford's ColBERT. Raises ModelError where its small files cannot be read."""
    written_by = _usage(folder).get("model_type", ENCODER)
    if written_by in (MULTI_VECTOR_ENCODER, COLBERT) or _architectures(folder) == ["HF_ColBERT"]:
        return MULTI_VECTOR
    return SPARSE if written_by == SPARSE_ENCODER else DENSE


def may_score_pairs(folder: Path) -> bool:
    """Return False for a folder that says of itself that it holds an encoder alone."""
    if (written_by := _usage(folder).get("model_type")) is not None:
        return bool(written_by == CROSS_ENCODER)

    named = _architectures(folder)
    return not named or not all(name.endswith(("Model", "ForMaskedLM")) for name in named)


def check_architectures(transformers: list[Path]) -> None:
    """Raise ModelError unless each of these folders holds an architecture for text that transformers has."""
    from transformers.models.auto import modeling_auto as known

    tables = (
        known.MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES,
        known.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        known.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        known.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
    )
    architectures = set().union(*tables) - {"rag", "encoder-decoder"}  # these two load further models by name
    for place in transformers:
        kind = _read(place / CONFIG).get("model_type")
        if kind not in architectures:
            _refuse(place / CONFIG, f"the architecture {shown(kind)} is none for text that transformers has", UPGRADE)


def usage(folder: Path) -> tuple[str | None, int | None]:
    """Return what a folder says of its use: similarity, longest text in tokens.

    Raises ModelError for values of another type.
    """
    settings = _usage(folder)
    longest = _read(folder / "sentence_bert_config.json", optional=True).get("max_seq_length")
    if longest is not None and (not isinstance(longest, int) or isinstance(longest, bool) or longest < 1):
        _refuse(folder / "sentence_bert_config.json", f"max_seq_length is {shown(longest)}")
    return settings.get("similarity_fn_name"), longest


TRUST = "Ask for a copy without it. Nothing of this model was loaded."
CONVERT = (
    "Use a copy with model.safetensors. If you trust this one, load it with the library that wrote it and write such a "
    "copy with save_pretrained."
)
UPGRADE = "Use another model, or a version of transformers that has it."


def _refuse(path: Path, why: str, hint: str = TRUST) -> NoReturn:
    raise ModelError(f"{path}: {why}.", hint=hint)


def _check_links(folder: Path) -> None:
    """Refuse files that are somewhere else."""
    root = folder.resolve()
    # The hub's cache keeps each file once, under its hash, beside the snapshots that name it.
    blobs = [root.parent.parent / "blobs"] if root.parent.name == "snapshots" else []
    for number, path in enumerate(root.rglob("*")):
        if number >= MAX_FILES:
            _refuse(folder, f"it holds more than {MAX_FILES:,} files", "Name the folder of one model.")
        if path.is_symlink() and not any(path.resolve().is_relative_to(own) for own in (root, *blobs)):
            _refuse(path, "it is a link that leads out of the model's folder")
        if not (path.is_file() or path.is_dir()):
            _refuse(path, "it is neither a file nor a folder")


def _read(path: Path, kind: type = dict, *, optional: bool = False) -> Any:
    """Return a JSON object (or list: ``kind``) of a model; an ``optional`` file may be missing. Raises ModelError."""
    if optional and not path.is_file():
        return kind()
    try:
        if path.stat().st_size > LONGEST_JSON:
            _refuse(path, f"it has more than {LONGEST_JSON >> 20} MB", "Is it the model's own file?")
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read: {error}.", hint="Is the folder complete?") from error
    if not isinstance(value, kind):
        _refuse(
            path, "it holds no JSON object" if kind is dict else "it is no list of modules", "Is the folder complete?"
        )
    return value


def _usage(folder: Path) -> dict[str, Any]:
    """Return ``config_sentence_transformers.json``, its fields of the right type."""
    path = folder / USAGE
    settings = _read(path, optional=True)
    prompts = settings.get("prompts")
    texts = isinstance(prompts, dict) and all(isinstance(text, str | None) for text in prompts.values())
    if prompts is not None and not texts:
        _refuse(path, f"prompts are no texts by name: {shown(prompts)}", "Correct it by hand.")
    for name in ("similarity_fn_name", "default_prompt_name", "model_type"):
        if not isinstance(settings.get(name), str | None):
            _refuse(path, f"{name} is {shown(settings[name])}", "Correct it by hand.")
    return {**settings, "prompts": {name: text for name, text in (prompts or {}).items() if text is not None}}


def _modules(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield (class, folder) of each module in ``modules.json``, those that a router leads to included."""
    path = folder / MODULES
    modules = _read(path, list)
    if not modules or not all(isinstance(module, dict) for module in modules):
        _refuse(path, "it is no list of modules", "Is the folder complete?")

    for module in modules:
        kind, place = _class(path, module.get("type")), _place(path, folder, module.get("path"))
        if kind in ROUTERS:
            yield from _routes(place)
        else:
            yield kind, place


def _routes(router: Path) -> Iterator[tuple[str, Path]]:
    """Yield (class, folder) of the modules that a router chooses from."""
    config = router / ROUTER if (router / ROUTER).is_file() else router / CONFIG
    types = _read(config).get("types")
    if not isinstance(types, dict):
        _refuse(config, "it names no modules", "Is the folder complete?")

    for name, inner in types.items():
        kind = _class(config, inner)
        if kind in ROUTERS:
            _refuse(config, "it leads to another router")
        yield kind, _place(config, router, name)


def _class(path: Path, name: Any) -> str:
    """Return the class of a module without the path to it."""
    if name == PYLATE_DENSE:
        return "Dense"
    match = _CLASS.fullmatch(name) if isinstance(name, str) else None
    if match is not None and match[1] == _MASKED:
        return "Transformer"
    if match is None or match[1] not in CLASSES:
        _refuse(path, f"the module {shown(name)} is not among those that are loaded ({', '.join(sorted(CLASSES))})")
    return match[1]


def _place(path: Path, folder: Path, name: Any) -> Path:
    """Return a folder within ``folder``."""
    parts = PurePosixPath(name).parts if isinstance(name, str) and "\\" not in name else ("..",)
    if ".." in parts or "/" in parts or len(name) > LONGEST_NAME:
        _refuse(path, f"{shown(name)} is no folder in it")
    return folder.joinpath(*parts)


def _check_transformer(folder: Path, place: Path) -> None:
    for where in {folder, place}:
        check_adapter(where)

    # One name for each of the architectures that the library once had modules for.
    for path in sorted(place.glob("sentence_*_config.json")):
        _check_load_settings(path)

    config = _read(place / CONFIG)
    if not isinstance(config.get("model_type"), str | None):
        _refuse(place / CONFIG, f"model_type is {shown(config['model_type'])}")
    _check_keys(place / CONFIG, config)
    own = _object(place / CONFIG, config, "auto_map")
    changed = [name for task, name in own.items() if task.startswith("AutoModel")]
    if changed and config.get("model_type") in CHANGED_BY_CODE:
        hint = f"If {config['model_type']} of transformers computes the same vectors, take auto_map out of the file."
        _refuse(place / CONFIG, f"it computes by code of its own ({shown(changed[0])}), which is not run", hint)

    for path in sorted(place.glob("*processor_config.json")):
        _check_keys(path, _read(path))


def check_adapter(folder: Path) -> None:
    """Raise ModelError for an adapter (LoRA), which is no model without its base."""
    if (folder / ADAPTER).exists():
        hint = "Merge the adapter into its base model (peft: merge_and_unload), and save the result."
        _refuse(folder / ADAPTER, "an adapter, which would load its base model from elsewhere", hint)


def _architectures(folder: Path) -> list[str]:
    """Return the classes that ``config.json`` names; none where it lists none."""
    named = _read(folder / CONFIG, optional=True).get("architectures")
    return list(map(str, named)) if isinstance(named, list) else []


def _check_embeds(folder: Path) -> None:
    """Refuse a model that was made to score or to label texts. Its encoder would give vectors that mean nothing."""
    for name in _architectures(folder):
        if name.endswith(_SCORES):
            why = f"it holds a {shown(name)}, which scores or labels texts and does not embed them"
            _refuse(folder / CONFIG, why, "Name an encoder. A cross-encoder reranks: --rerank.")


def _check_load_settings(path: Path) -> None:
    """Check what the module around a transformer is made with."""
    settings = _read(path)
    for key, value in settings.items():
        if key not in SAID and key not in LOAD_SETTINGS and value is not None:
            _refuse(path, f"it has {shown(key)}, which would change how the model is loaded")
    if settings.get("transformer_task", TASKS[0]) not in TASKS:
        _refuse(path, f"transformer_task is {shown(settings['transformer_task'])}")

    for name in LOAD_SETTINGS:
        for key, value in _object(path, settings, name).items():
            plain = isinstance(value, str | int | float | None)
            chosen = key == "attn_implementation" and value in ATTENTIONS
            taken_out = key == "trust_remote_code"  # by the library
            if not (taken_out or chosen or (key in HARMLESS and plain)):
                _refuse(path, f"{name} has {shown(key)}, which would change how the model is loaded")

    for key, value in _flat(_object(path, settings, "processing_kwargs")):
        if not isinstance(value, dict) and key not in PROCESSING:
            _refuse(path, f"processing_kwargs has {shown(key)}, which would change how texts are read")
    for key, value in _flat(_object(path, settings, "modality_config")):
        if key == "method" and not (isinstance(value, str) and _METHOD.fullmatch(value)):
            _refuse(path, f"the method {shown(value)} would be called")


def _object(path: Path, settings: dict[str, Any], name: str) -> dict[str, Any]:
    """Return an object in a configuration, empty where it is missing or null."""
    value = settings.get(name)
    if not isinstance(value, dict | None):
        _refuse(path, f"{name} is {shown(value)}")
    return value or {}


def _check_keys(path: Path, config: dict[str, Any]) -> None:
    """Refuse keys that act, at any depth."""
    for key, value in _flat(config):
        if key in _READERS and value is not None and not (isinstance(value, str) and _READER.fullmatch(value)):
            _refuse(path, f"{key} is {shown(value)}, which reads no texts")
        if key in ACTING and value is not None:
            _refuse(path, f"it has {key}, which leads to other files")

        if key.removesuffix("_internal") in ("attn_implementation", "_attn_implementation"):
            names = value.values() if isinstance(value, dict) else [value]
            if not all(name in ATTENTIONS for name in names):
                _refuse(path, f"the attention {shown(value)} is code to download")

        if key == "use_pretrained_backbone" and value:
            _refuse(path, "it has a backbone, which would be downloaded")

        if key == "quantization_config" and value is not None:
            method = value.get("quant_method") if isinstance(value, dict) else value
            if method not in QUANTISATIONS:
                _refuse(path, f"the quantisation {shown(method)} is none of {', '.join(QUANTISATIONS)}")


def _check_tokenizers(folder: Path) -> None:
    """Check every tokenizer in a folder: some have parts in folders of their own."""
    for path in folder.rglob(TOKENIZER):
        settings = _read(path)
        _check_keys(path, settings)
        if settings.get("init_inputs"):
            _refuse(path, "init_inputs would be opened as files")
        if settings.get("gguf_file"):
            _refuse(path, "gguf_file leads to other files")
        for key, value in _flat(settings):
            names = value if isinstance(value, list) else [value]
            leads_out = any(isinstance(name, str) and re.search(r"[/\\]", name) for name in names)
            if key not in REPLACED and _NAMES_FILE.search(key) and leads_out:
                _refuse(path, f"{key} leads to files outside the model: {shown(value)}")

    for path in folder.rglob(TOKENS):
        for key in _read(path):  # they take the place of files and settings that were found before
            if not key.endswith(("_token", "_tokens")):
                _refuse(path, f"it has {shown(key)}, which is no special token")


def _flat(settings: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each key with its value, at every depth."""
    left: list[Any] = [settings]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            yield from value.items()
            left += value.values()
        elif isinstance(value, list):
            left += value


def _check_weights(place: Path, pickled: bool, *, sharded: bool) -> None:
    """Refuse weights that are no safetensors, or elsewhere. Transformers may be ``sharded``: others read one file."""
    if (place / WEIGHTS).is_file():
        return
    if sharded and (place / INDEX).is_file():
        _check_index(place / INDEX, ".safetensors")
    elif pickled and (place / PICKLED).is_file():
        return
    elif pickled and (place / PICKLED_INDEX).is_file():
        _check_index(place / PICKLED_INDEX, ".bin")
    else:
        others = [path.name for path in place.glob("*") if path.suffix in (".bin", ".pt", ".pth", ".ckpt", ".h5")]
        others.sort(key=lambda name: (name != PICKLED, name))
        has = f" ({others[0]} is a format of which reading could run code)" if others else ""
        _refuse(place, f"there is no model.safetensors{has}", CONVERT)


def shards(index: Path) -> list[str]:
    """Return the names of the files that an index lists, each once. ModelError where it is none."""
    names = _read(index).get("weight_map")
    if not isinstance(names, dict) or not names or not all(isinstance(name, str) for name in names.values()):
        _refuse(index, "it names no files", "Is the folder complete?")
    return sorted(set(names.values()))


def _check_index(index: Path, ending: str) -> None:
    """Refuse an index that names anything but files beside it with this ending."""
    # By the ending of each file the library chooses how to read it.
    for name in shards(index):
        if not re.fullmatch(r"[\w.\-]+", name) or not name.endswith(ending):
            _refuse(index, f"it names {shown(name)}, which is no {ending} file beside it")
        if not (index.parent / name).is_file():
            _refuse(index, f"it names {name}, which is not there", "Is the folder complete?")
