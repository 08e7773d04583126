"""The spelling of saved models that sentence-transformers 5 and 6 read, and PyLate: modules, pooling, tokenizer.

Version 6 and Transformers 5 write names that earlier ones refuse, or pass over in silence. Only what means the same in
both is rewritten; a folder with settings that are new keeps them. ``make interop`` loads such folders in ``TESTED``.
A multi-vector model of a projection alone is written as PyLate 1 writes it, which sentence-transformers 6 reads too.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from cdp.base.workspace import read_json, write_json
from cdp.retrievers import model_files
from cdp.retrievers.load import kind_of
from cdp.retrievers.model_files import COLBERT, CONFIG, MODULES, PYLATE_DENSE, ROUTER, TOKENIZER, USAGE
from cdp.retrievers.presets import DENSE, MULTI_VECTOR

# Versions of sentence-transformers in which the vectors of folders in this spelling were equal to 1e-6.
TESTED = ("5.1.2", "5.3.0", "5.7.0", "6.2.0")
FORMER = "sentence_transformers.models"
TRANSFORMER = "sentence_bert_config.json"

# What version 6 writes for every encoder of texts, and takes where nothing is said.
OF_TEXTS = {
    "transformer_task": "feature-extraction",
    "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
    "module_output_name": "token_embeddings",
}
PASSED_ON = {"module_input_name": "sentence_embedding", "module_output_name": "sentence_embedding"}
POOLING_MODES = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}


def save(model: Any, folder: Path) -> bool:
    """Save a model in this spelling. Return False where it has settings that versions before 6 do not know."""
    model.save(str(folder), create_model_card=False)
    if kind_of(model) == MULTI_VECTOR and _is_projection(model):
        _as_pylate(folder, model)
    return respell(folder)


def _is_projection(model: Any) -> bool:
    """Return True for an encoder whose projected token vectors all take part, without prompts: PyLate can say that."""
    names = [type(module).__name__ for module in model]
    if names != ["Transformer", "Dense", "MultiVectorMask", "Normalize"] or any(model.prompts.values()):
        return False

    chosen = (model[0].query_expansion, model[2].skiplist_words, model[2].keep_only_token_ids)
    return not any(chosen)


def _as_pylate(folder: Path, model: Any) -> None:
    """Rewrite a folder as PyLate 1 saves one: two modules, and in the usage what it does with queries."""
    _respell(folder)
    first, head, *others = json.loads((folder / MODULES).read_text(encoding="utf-8"))
    (folder / MODULES).write_text(json.dumps([first, {**head, "type": PYLATE_DENSE}], indent=2), encoding="utf-8")
    for module in others:
        shutil.rmtree(folder / module["path"])

    settings = read_json(folder / head["path"] / CONFIG)
    kept = [name for name in settings if name not in ("module_input_name", "module_output_name")]
    write_json(folder / head["path"] / CONFIG, {name: settings[name] for name in kept})

    length = model[0].document_length or model.max_seq_length
    told: dict[str, Any] = {
        "model_type": COLBERT,
        "similarity_fn_name": "MaxSim",
        "query_prefix": "",
        "document_prefix": "",
        "query_length": model.max_seq_length,
        "document_length": length,
        "do_query_expansion": False,
        "attend_to_expansion_tokens": False,
        "skiplist_words": [],
    }
    write_json(folder / USAGE, {**read_json(folder / USAGE), **told})


def respell(folder: Path) -> bool:
    """Rewrite the configurations in a folder that a library saved a model to. Return as ``save`` does.

    One of another kind than dense stays as it is: its modules came with version 6, or it is PyLate's already.
    """
    if model_files.kind_of(folder) != DENSE:
        return False

    _respell(folder)
    return not any(set(OF_TEXTS) & set(read_json(path)) for path in folder.rglob(TRANSFORMER))


def _respell(folder: Path) -> None:
    for path in folder.rglob("*.json"):
        if path.name in (CONFIG, TOKENIZER, ROUTER, TRANSFORMER):
            settings = read_json(path)
            spelt = _spelt(path.name, settings)
            if spelt != settings:
                write_json(path, spelt)

    modules = json.loads((folder / MODULES).read_text(encoding="utf-8"))
    modules = [{**module, "type": _former(module["type"])} for module in modules]
    (folder / MODULES).write_text(json.dumps(modules, indent=2), encoding="utf-8")


def _spelt(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of one file as versions before 6 name them."""
    if name == TRANSFORMER:
        # The longest text stands in the tokenizer's settings, too, which all versions read.
        return {"max_seq_length": None, "do_lower_case": False} if settings == OF_TEXTS else settings
    if name == ROUTER:
        return {**settings, "types": {part: _former(kind) for part, kind in settings["types"].items()}}
    if name == TOKENIZER:
        return _tokenizer(settings)
    if "pooling_mode" in settings:
        return _pooling(settings)
    if PASSED_ON.items() <= settings.items():
        return {key: value for key, value in settings.items() if key not in PASSED_ON}
    return _rotary(settings)


def _pooling(settings: dict[str, Any]) -> dict[str, Any]:
    mode = settings["pooling_mode"]
    modes = mode if isinstance(mode, list) else [mode]
    return {
        "word_embedding_dimension": settings["embedding_dimension"],
        **{name: mode in modes for mode, name in POOLING_MODES.items()},
        "include_prompt": settings["include_prompt"],
    }


def _tokenizer(settings: dict[str, Any]) -> dict[str, Any]:
    spelt = dict(settings)
    if spelt.get("tokenizer_class") == "TokenizersBackend":
        spelt["tokenizer_class"] = "PreTrainedTokenizerFast"
    if isinstance(spelt.get("extra_special_tokens"), list):
        spelt["additional_special_tokens"] = spelt.pop("extra_special_tokens")
    return spelt


def _rotary(settings: dict[str, Any]) -> dict[str, Any]:
    """Add the base of rotary positions as Transformers 4 reads it: it takes its default where that is missing."""
    rope = settings.get("rope_parameters")
    if not isinstance(rope, dict) or "rope_theta" not in rope:
        return settings
    scaled = rope.get("rope_type", "default") != "default"
    scaling = {key: value for key, value in rope.items() if key != "rope_theta"} if scaled else None
    return {**settings, "rope_theta": rope["rope_theta"], "rope_scaling": scaling}


def _former(name: str) -> str:
    """Return the former name of a module of the library; another's as it is."""
    return f"{FORMER}.{name.rpartition('.')[2]}" if name.startswith("sentence_transformers.") else name
