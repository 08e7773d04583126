"""Loading encoders, cross-encoders, decoders, also from the hub: threads, maximal length, model hash, why one fails.

Every model is loaded here, because a folder is checked (``cdp.retrievers.model_files``) before a library sees it.
Static models are loaded without sentence-transformers (``cdp.retrievers.static`` says why), other encoders as a
``SentenceTransformer``. torch is imported inside the functions: importing this module is cheap.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdp.base.errors import CdpError, ModelError
from cdp.base.text import counted
from cdp.retrievers import api, model_files
from cdp.retrievers.api import Payer
from cdp.retrievers.presets import DENSE, MULTI_VECTOR, SPARSE, Retriever
from cdp.retrievers.resolve import ResolvedRetriever

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

    from cdp.retrievers.static import StaticModel, TokenMemo

# The folder that was checked, and nothing beside it. Without a word on remote code transformers would ask on the
# terminal whether to run it.
SAFE: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
SAFETENSORS = {"use_safetensors": True}

# Tokens of a pair that a cross-encoder reads at most; the rest is cut off.
LONGEST_PAIR = 512


def load(
    resolved: ResolvedRetriever,
    device: str | None = None,
    max_length: int | None = None,
    *,
    memo: TokenMemo | None = None,
    payer: Payer | None = None,
    to_train: bool = False,
) -> SentenceTransformer:
    """The model, in evaluation mode, with its prompts under ``query`` and ``document``: a ``SentenceTransformer``, or a
    ``StaticModel`` or ``ApiModel``, which answer to the same calls.

    ``device`` as in ``device_or_best``. ``max_length`` in tokens overrides what the model says. The weights are
    float32, as training needs them. ``memo`` spares static models to tokenise what another model with it has
    tokenised. ``payer`` pays for one behind an API; without, ConfigError.
    ModelError if it fails, ConfigError for a preset that finds nothing before a training unless it is ``to_train``.
    """
    if (named := api.parse(resolved.name)) is not None:
        if payer is None:
            raise api.refused(resolved.name)
        answering: Any = api.ApiModel(named, payer, max_length)
        return answering

    preset, device = resolved.preset, device_or_best(device)
    if not to_train:
        resolved.require_ready()

    with loading(resolved, "embeds texts"):
        if resolved.is_static:
            model = _static(checked_folder(resolved), device)
        elif preset is not None:
            model = _transformer(preset, checked_folder(resolved, model_files.TRANSFORMERS), device)
        else:
            model = _saved(checked_folder(resolved, model_files.ENCODER), device)
        _require_words(resolved, model.tokenizer)

    if preset is not None:
        model.prompts = dict(preset.prompts)
        model.similarity_fn_name = resolved.similarity["published"]

    # The names under which models keep the prompt of each role, in the order sentence-transformers looks for them.
    for role, names in {"query": ("query",), "document": ("document", "passage", "corpus")}.items():
        model.prompts[role] = next((prompt for name in names if (prompt := model.prompts.get(name))), "")

    limit = max_length if max_length is not None else (preset.max_length if preset is not None else None)
    _cut_at_positions(model)
    if limit is not None:
        set_max_length(model, limit)
    if memo is not None and hasattr(model, "remember"):
        model.remember(memo)

    return model.eval()


def device_or_best(device: str | None) -> str:
    """Return ``device`` as torch names it; for None a CUDA GPU where there is one, else the CPU."""
    # sentence-transformers would also take Apple's MPS, which has no float64, Intel's XPU and others: never tried here.
    import torch

    return device or ("cuda" if torch.cuda.is_available() else "cpu")


def kind_of(model: Any) -> str:
    """Return the kind of a loaded retriever, one of ``presets.KINDS``."""
    made_by = getattr(model, "model_type", model_files.ENCODER)
    return next((kind for kind, reader in model_files.READERS.items() if reader == made_by), DENSE)


def is_routed(model: Any) -> bool:
    """Return True for a model that has modules of their own for queries or for documents."""
    return any(type(module).__name__ == "Router" for module in model)


@contextmanager
def loading(resolved: ResolvedRetriever, what: str) -> Iterator[None]:
    """Raise what goes wrong while a model is loaded, which is one that ``what``, as a ModelError. Running out of memory
    stays what it is."""
    try:
        with _whole_weights(resolved):
            yield
    except (CdpError, MemoryError):
        raise
    except Exception as error:  # the libraries raise almost anything for a damaged folder
        if type(error).__name__ == "OutOfMemoryError":
            raise
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(
            f"The model {resolved.name} cannot be loaded from {resolved.source}: {reason}",
            hint=f"Is the folder complete, and is it a model that {what}?",
        ) from error


# Of an encoder it is not asked; of a cross-encoder its scores come from it.
_POOLER = re.compile(r"(?:^|\.)pooler\.")
_LOADING = threading.RLock()


@contextmanager
def _whole_weights(resolved: ResolvedRetriever) -> Iterator[None]:
    """Raise ModelError where transformers would complete a model by weights drawn at random, which it only logs."""
    if resolved.is_static or (resolved.preset is not None and resolved.preset.kind == SPARSE):
        yield  # no transformers; a head that ``_set_head`` makes
        return

    from transformers import modeling_utils

    report = modeling_utils.log_state_dict_report

    def refuse(model: Any, *where: Any, loading_info: Any, **options: Any) -> None:
        scores = type(model).__name__.endswith("ForSequenceClassification")
        lacking = sorted(name for name in loading_info.missing_and_mismatched() if scores or not _POOLER.search(name))
        if lacking:
            has = f"it has {min(unknown)}" if (unknown := loading_info.unexpected_keys) else "the folder is incomplete"
            raise ModelError(
                f"The model {resolved.name} lacks {counted(len(lacking), 'weight')} of {type(model).__name__}, such as "
                f"{lacking[0]}; {has}. They would be drawn at random.",
                hint="Name a model of this kind, saved by save_pretrained of its own library.",
            )
        report(model, *where, loading_info=loading_info, **options)

    with _LOADING:
        modeling_utils.log_state_dict_report = refuse
        try:
            yield
        finally:
            modeling_utils.log_state_dict_report = report


def _require_words(resolved: ResolvedRetriever, tokenizer: Any) -> None:
    """Raise ModelError for a tokenizer without a vocabulary: transformers makes one where its files are missing."""
    if not hasattr(tokenizer, "all_special_tokens"):  # the library tokenizers itself, which needs a file
        return

    vocabulary = tokenizer.get_vocab()
    words = set(vocabulary).difference(tokenizer.all_special_tokens)
    if vocabulary and len(words) <= 1:  # T5's keeps the mark of a space
        raise ModelError(
            f"The tokenizer of {resolved.name} knows no words: it cannot tell texts apart.",
            hint="The folder lacks the tokenizer's files, such as tokenizer.json or vocab.txt: copy them there.",
        )


def use_threads(model: Any) -> None:
    """Have torch compute with one thread for a static model, else as it decides."""
    # A static model adds up rows of a table. On two busy cores two threads that waited for each other took twice the
    # processor time for a batch of 16 texts, and five times as long.
    import torch

    from cdp.retrievers.static import StaticModel

    if isinstance(model, StaticModel):
        torch.set_num_threads(1)


def load_cross_encoder(resolved: ResolvedRetriever, device: str | None, dtype: str) -> CrossEncoder:
    """Return a cross-encoder that gives one raw score (logit) per pair. ModelError if it cannot be loaded."""
    from sentence_transformers import CrossEncoder
    from torch.nn import Identity

    with loading(resolved, "scores pairs"):
        model = CrossEncoder(
            str(checked_folder(resolved, model_files.CROSS_ENCODER)),
            device=device_or_best(device),
            # Else the library would call what the folder names.
            activation_fn=Identity(),
            model_kwargs={"dtype": dtype, **SAFETENSORS},
            **SAFE,
        )
        _require_words(resolved, model.tokenizer)
    if model.num_labels != 1:
        raise ModelError(
            f"The model {resolved.name} gives {model.num_labels} scores per pair, and one is needed.",
            hint="Name a cross-encoder that scores relevance or similarity.",
        )
    if any(getattr(part, "true_token_id", None) == getattr(part, "false_token_id", "") for part in model):
        raise ModelError(
            f"The tokenizer of {resolved.name} has one token for yes and no, so that all pairs would score 0.",
            hint="Name a reranker with the two words in its vocabulary, or whose modules name its tokens.",
        )
    model.max_seq_length = min(model.max_seq_length or LONGEST_PAIR, LONGEST_PAIR)
    return model


def load_decoder(resolved: ResolvedRetriever, dtype: Any, *, spread: bool) -> tuple[Any, Any]:
    """Return (tokenizer, model) of an instruct model; ``spread``: over all GPUs. ModelError if it cannot be loaded."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with loading(resolved, "writes text"):
        folder = str(checked_folder(resolved, model_files.TRANSFORMERS))
        tokenizer = AutoTokenizer.from_pretrained(folder, **SAFE)
        _require_words(resolved, tokenizer)
        placed = {"device_map": "auto"} if spread else {}
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **placed, **SAFE, **SAFETENSORS)
    return tokenizer, model


def checked_folder(resolved: ResolvedRetriever, reader: str | None = None) -> Path:
    """Return the folder of a model, from the hub if need be, in which ``reader`` finds nothing but a model.

    Raises ModelError. ``reader`` as in ``model_files.check``.
    """
    pickled = resolved.preset is not None and resolved.preset.pickled
    folder = Path(resolved.source)
    # A folder is resolved before. The name of a model on the hub is never a folder below the current one, which may be
    # a stranger's.
    if not folder.is_absolute():
        folder = _from_hub(resolved.source, resolved.local, pickled, reader)
    transformers = model_files.check(folder, reader, pickled=pickled)

    # A static preset takes a table out of the weights, without the library whose import takes seconds.
    if transformers and not resolved.is_static:
        model_files.check_architectures(transformers)
    return folder


def _from_hub(name: str, cached: bool, pickled: bool, reader: str | None) -> Path:
    """Return the folder of a model on the hub: its small files are checked before its weights are downloaded."""
    from huggingface_hub import snapshot_download

    folder = Path(snapshot_download(name, allow_patterns=model_files.SMALL_FILES, local_files_only=cached))
    if cached:
        return folder
    model_files.check(folder, reader, weights=False)

    wanted = [model_files.WEIGHTS, f"*/{model_files.WEIGHTS}"]
    for index in folder.rglob(model_files.INDEX):
        place = index.parent.relative_to(folder)
        wanted += [str(place / shard) for shard in model_files.shards(index)]
    # The folder's name is the commit: both downloads are of one version.
    snapshot_download(name, revision=folder.name, allow_patterns=wanted)
    if pickled and not any(folder.rglob("*.safetensors")):
        snapshot_download(name, revision=folder.name, allow_patterns=[model_files.PICKLED])
    return folder


def _saved(folder: Path, device: str) -> Any:
    """What a folder says of itself."""
    from cdp.retrievers.static import StaticModel

    static = StaticModel.load(folder, device)
    if static is not None:
        return static
    import sentence_transformers

    # A model of the hub tells its kind only now.
    made_by = getattr(sentence_transformers, model_files.READERS[model_files.kind_of(folder)])
    options = {"dtype": "float32", **SAFETENSORS}
    return made_by(
        str(folder), device=device, model_kwargs=options, **SAFE
    ).float()  # tables keep what they are saved in


def _static(folder: Path, device: str) -> StaticModel:
    """A table of token vectors that starts from a BERT's word embeddings; the tokenizer stays, nothing is cut."""
    from safetensors import safe_open
    from tokenizers import Tokenizer

    from cdp.retrievers.static import StaticModel

    with safe_open(folder / model_files.WEIGHTS, "pt") as tensors:
        names = [name for name in tensors.keys() if name.endswith("embeddings.word_embeddings.weight")]  # noqa: SIM118
        if not names:
            raise ModelError(f"{folder} has no word-embedding matrix to start a static model from.")
        table = tensors.get_tensor(names[0]).float()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    return StaticModel(tokenizer, table, device)


def _transformer(preset: Retriever, folder: Path, device: str) -> Any:
    """Encoder or decoder, pooling, normalisation from the preset, not from the repository's files."""
    from sentence_transformers import MultiVectorEncoder, SentenceTransformer, SparseEncoder
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from sentence_transformers.sparse_encoder.modules import SpladePooling

    # Of a sparse preset the head is not among the weights: transformers would call the checkpoint corrupted.
    with _quiet() if preset.kind == SPARSE else nullcontext():
        transformer = Transformer(
            str(folder),
            transformer_task="fill-mask" if preset.kind == SPARSE else "feature-extraction",
            model_kwargs={"dtype": "float32", **SAFE, **({} if preset.pickled else SAFETENSORS)},
            config_kwargs=dict(SAFE),
            processor_kwargs={"padding_side": preset.padding_side, **SAFE},
        )
    if preset.kind == MULTI_VECTOR:
        of_tokens = [transformer, MultiVectorMask(), Normalize("token_embeddings")]
        return MultiVectorEncoder(modules=of_tokens, device=device)

    if preset.kind == SPARSE:
        _set_head(transformer.model)
        return SparseEncoder(modules=[transformer, SpladePooling(preset.pooling)], device=device)

    modules: list[Any] = [transformer, Pooling(transformer.get_embedding_dimension(), preset.pooling)]
    if preset.normalize:
        modules.append(Normalize())
    return SentenceTransformer(modules=modules, device=device)


@contextmanager
def _quiet() -> Iterator[None]:
    """Have transformers tell errors alone."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _set_head(model: Any) -> None:
    """Give a BERT's vocabulary head, which its weights lack, values that are not drawn at random: it hands on what it
    is given."""
    from torch import nn

    head = model.cls.predictions
    nn.init.eye_(head.transform.dense.weight)
    nn.init.zeros_(head.transform.dense.bias)
    nn.init.zeros_(head.bias)


def set_max_length(model: SentenceTransformer, limit: int) -> None:
    """Cut texts at ``limit`` tokens, special tokens included, but never beyond what the model can take."""
    from cdp.retrievers.static import is_static

    if is_static(model):
        model[0].tokenizer.enable_truncation(limit)
        return

    for module in transformers_of(model):
        computed = getattr(module.config, "max_position_embeddings", None)
        most = _learned_positions(module) or (computed if isinstance(computed, int) and computed > 0 else limit)
        module.max_seq_length = min(limit, most)
        if (longest := getattr(module, "document_length", None)) is not None:  # of late interaction, before the other
            module.document_length = min(longest, module.max_seq_length)


def _cut_at_positions(model: Any) -> None:
    """Cut texts at the last learned position of a model whose folder names no length, or a longer one."""
    for module in transformers_of(model):
        most, length = _learned_positions(module), module.max_seq_length
        if most is not None and length is not None and length > most:
            module.max_seq_length = most


def transformers_of(model: Any) -> list[Any]:
    """Return the transformers among a model's modules, those that a router chooses from included."""
    return [module for module in model.modules() if hasattr(module, "auto_model")]


def _learned_positions(module: Any) -> int | None:
    """Return how many tokens have a position vector, None for a transformer that computes positions."""
    from torch.nn import Embedding

    for part in module.modules():
        table = getattr(part, "position_embeddings", None)
        if isinstance(table, Embedding):
            # RoBERTa and its kin count from the row after that of the padding.
            padding = getattr(part, "padding_idx", None)
            return table.num_embeddings - (padding + 1 if isinstance(padding, int) else 0)
    return None


# Settings of a module that choose the token vectors which take part in late interaction.
TOKENS_SCORED = (
    "query_expansion", "skiplist_words", "skiplist_tasks", "keep_only_token_ids", "pool_factor", "num_protected_tokens",
)  # fmt: skip
# What decides a vector beside the tensors, as most encoders have it. Only what differs is part of a hash, under names
# of our own choice: so the hashes of records stay what they were, whichever version of a library loads the model.
USUAL: dict[str, Any] = {
    "hidden_act": "gelu", "num_attention_heads": 12, "num_key_value_heads": None, "layer_norm_eps": 1e-12,
    "rms_norm_eps": None, "rope_parameters": None, "sliding_window": None, "is_causal": None,
    "use_bidirectional_attention": None, "position_embedding_type": "absolute",
}  # fmt: skip
# The same of the modules behind an encoder, by the names that their configurations have.
USUAL_OF_MODULES: dict[str, Any] = {
    "layer_start": 4, "use_residual": False, "k": 8, "normalize": False, "normalize_embeddings": True,
    "tasks": ["document"], "cumulative_term_frequency": True, "route_mappings": {},
}  # fmt: skip
_BERT_STEPS = (
    b'{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true}',
    b'{"type":"BertPreTokenizer"}',
)


def _scored_tokens(module: Any) -> str:
    """The settings of ``TOKENS_SCORED`` that a module has; "" for one of single vectors."""
    given = {name: getattr(module, name, None) for name in TOKENS_SCORED}
    return json.dumps({name: value for name, value in given.items() if value}) if any(given.values()) else ""


def _pooled_words(module: Any) -> str:
    """How a module of a sparse model pools; "" for others."""
    strategy = getattr(module, "pooling_strategy", "")
    return f"{strategy} {module.activation_function}" if strategy else ""


def _unusual(model: Any) -> dict[str, str]:
    """What decides a vector beside tensors and vocabulary, as far as it is not as most encoders have it."""
    cuts = ("truncate_dim", "max_active_dims")
    found = {name: str(getattr(model, name, None) or "") for name in cuts}
    for number, module in enumerate(model.modules()):
        for name, value in _unusual_of(module):
            found[f"{name} {number}"] = value

    tokenizer = getattr(model, "tokenizer", None)
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    for step in ("normalizer", "pre_tokenizer", "post_processor"):
        state = getattr(getattr(backend, step, None), "__getstate__", bytes)() or b""
        if isinstance(state, bytes) and state not in _BERT_STEPS and b"[CLS]" not in state:
            found[step] = state.decode()

    return {name: value for name, value in found.items() if value}


def _unusual_of(module: Any) -> Iterator[tuple[str, str]]:
    """Yield (name, value) of the settings of a module that are not as most have them."""
    kind = type(module).__name__
    if kind == "Dense":
        usual = "Identity" if module.linear.bias is None else "Tanh"  # a projection, or a pooler
        if usual not in str(module.activation_function):
            yield "activation", str(module.activation_function)

    if kind == "LayerNorm" and hasattr(module, "norm") and module.norm.eps != 1e-5:
        yield "eps", str(module.norm.eps)

    # A text of a role that no route is named by takes the default one, at first the first.
    if kind == "Router" and not {"query", "document"} <= module.sub_modules.keys():
        first, default = next(iter(module.sub_modules)), module.default_route
        yield from [("default route", default)] * (default not in (None, first))

    for name in sorted(USUAL_OF_MODULES.keys() & {*getattr(module, "config_keys", ())}):
        value = getattr(module, name)
        if value != USUAL_OF_MODULES[name]:
            # Routes are keyed by tuples, which JSON has not.
            yield name, json.dumps(sorted(map(str, value.items())) if isinstance(value, dict) else value)

    if hasattr(module, "auto_model"):
        for name, usual in USUAL.items():
            value = getattr(module.model.config, name, usual)
            if value != usual:
                yield name, json.dumps(value, sort_keys=True, default=str)


def model_hash(model: SentenceTransformer) -> str:
    """16 hex digits of the SHA-256 of what determines an embedding: modules, pooling, vocabulary and weights.

    Equal for a model and its saved and loaded copy; prompts and lengths are settings, not content. Records of
    trainings, studies and evaluations name it: a change of this function leaves those of the shipped models alone.
    """
    import torch

    if isinstance(model, api.ApiModel):
        return model.identity
    digest = hashlib.sha256()
    for module in model:
        pooling = getattr(module, "pooling_mode", "") or _pooled_words(module)
        digest.update(f"{type(module).__name__}|{pooling}|{getattr(module, 'include_prompt', '')}\n".encode())
        digest.update(_scored_tokens(module).encode())

    if unusual := _unusual(model):
        digest.update(json.dumps(unusual, sort_keys=True).encode())

    tokenizer = getattr(model, "tokenizer", None)
    if tokenizer is not None and hasattr(tokenizer, "get_vocab"):
        for token, index in sorted(tokenizer.get_vocab().items(), key=lambda item: (item[1], item[0])):
            digest.update(f"{index}:{token}\n".encode("utf-8", "surrogatepass"))
    for name, tensor in sorted(model.state_dict().items()):
        value = tensor.detach().cpu().contiguous()
        digest.update(f"{name}|{value.dtype}|{tuple(value.shape)}\n".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().data if value.numel() else b"")
    return digest.hexdigest()[:16]
