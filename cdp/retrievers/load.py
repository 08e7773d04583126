"""Loading a resolved retriever, and the hash of what was loaded.

Static models are loaded without sentence-transformers (``cdp.retrievers.static`` says why), all others as a
``SentenceTransformer``. torch is imported inside the functions: importing this module is cheap.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdp.base.errors import CdpError, ModelError
from cdp.retrievers import api
from cdp.retrievers.api import Payer
from cdp.retrievers.preset import Retriever
from cdp.retrievers.resolve import ResolvedRetriever

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from cdp.retrievers.static import StaticModel, TokenMemo


def load(
    resolved: ResolvedRetriever,
    device: str | None = None,
    max_length: int | None = None,
    *,
    memo: TokenMemo | None = None,
    payer: Payer | None = None,
) -> SentenceTransformer:
    """The model, in evaluation mode, with its prompts under ``query`` and ``document``: a ``SentenceTransformer``, or a
    ``StaticModel`` or ``ApiModel``, which answer to the same calls.

    ``device`` as torch names it (None: a GPU if there is one). ``max_length`` in tokens overrides what the model
    says. The weights are float32, as training needs them. ``memo`` spares static models
    to tokenise what another model with it has tokenised. ``payer`` pays for one behind an API; without, ConfigError.
    ModelError if it fails.
    """
    if (named := api.parse(resolved.name)) is not None:
        if payer is None:
            raise api.refused(resolved.name)
        answering: Any = api.ApiModel(named, payer, max_length)
        return answering
    preset = resolved.preset
    with loading(resolved, "embeds texts"):
        if preset is not None and preset.kind == "static":
            model = _static(resolved.source, device)
        elif preset is not None:
            model = _transformer(preset, resolved, device)
        else:
            model = _saved(resolved, device)
    if preset is not None:
        model.prompts = dict(preset.prompts)
        model.similarity_fn_name = resolved.similarity["published"]
    # The names under which models keep the prompt of each role, in the order sentence-transformers looks for them.
    for role, names in {"query": ("query",), "document": ("document", "passage", "corpus")}.items():
        model.prompts[role] = next((prompt for name in names if (prompt := model.prompts.get(name))), "")
    limit = max_length if max_length is not None else (preset.max_length if preset is not None else None)
    if limit is not None:
        set_max_length(model, limit)
    if memo is not None and hasattr(model, "remember"):
        model.remember(memo)
    return model.eval()


@contextmanager
def loading(resolved: ResolvedRetriever, what: str) -> Iterator[None]:
    """Raise what goes wrong while a model is loaded, which is one that ``what``, as a ModelError. Running out of memory
    stays what it is."""
    try:
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


def use_threads(model: Any) -> None:
    """Have torch compute with one thread for a static model, else as it decides."""
    # A static model adds up rows of a table. On two busy cores two threads that waited for each other took twice the
    # processor time for a batch of 16 texts, and five times as long.
    import torch

    from cdp.retrievers.static import StaticModel

    if isinstance(model, StaticModel):
        torch.set_num_threads(1)


def _saved(resolved: ResolvedRetriever, device: str | None) -> Any:
    """What a folder or a name on the hub says of itself."""
    if Path(resolved.source).is_dir():
        from cdp.retrievers.static import StaticModel

        static = StaticModel.load(Path(resolved.source), device)
        if static is not None:
            return static
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(
        resolved.source,
        device=device,
        local_files_only=resolved.local,
        model_kwargs={"dtype": "float32"},
        trust_remote_code=False,
    )


def _static(source: str, device: str | None) -> StaticModel:
    """A table of token vectors that starts from a BERT's word embeddings; the tokenizer stays, nothing is cut."""
    from safetensors import safe_open
    from tokenizers import Tokenizer

    from cdp.retrievers.static import StaticModel

    def file(name: str) -> str:
        path = Path(source) / name
        if not path.is_file():
            path = _from_hub(source, name)
        return str(path)

    with safe_open(file("model.safetensors"), "pt") as tensors:
        names = [name for name in tensors.keys() if name.endswith("embeddings.word_embeddings.weight")]  # noqa: SIM118
        if not names:
            raise ModelError(f"{source} has no word-embedding matrix to start a static model from.")
        table = tensors.get_tensor(names[0]).float()
    tokenizer = Tokenizer.from_file(file("tokenizer.json"))
    tokenizer.no_truncation()
    return StaticModel(tokenizer, table, device)


def _from_hub(source: str, name: str) -> Path:
    """A file of a model on the hub, or ModelError."""
    from sentence_transformers.util import load_file_path

    path = load_file_path(source, name)
    if path is None:
        raise ModelError(f"{source} has no {name}.")
    return Path(path)


def _transformer(preset: Retriever, resolved: ResolvedRetriever, device: str | None) -> SentenceTransformer:
    """Encoder or decoder, pooling, normalisation from the preset, not from the repository's files."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    # Without a word on remote code transformers would ask on the terminal whether to run it.
    options = {"local_files_only": resolved.local, "trust_remote_code": False}
    transformer = Transformer(
        resolved.source,
        model_kwargs={"dtype": "float32", **options},
        config_kwargs=dict(options),
        processor_kwargs={"padding_side": preset.padding_side, **options},
    )
    modules: list[Any] = [transformer, Pooling(transformer.get_embedding_dimension(), preset.pooling)]
    if preset.normalize:
        modules.append(Normalize())
    return SentenceTransformer(modules=modules, device=device)


def set_max_length(model: SentenceTransformer, limit: int) -> None:
    """Cut texts at ``limit`` tokens, special tokens included, but never beyond what the model can take."""
    from cdp.retrievers.static import is_static

    first = model[0]
    if is_static(model):
        first.tokenizer.enable_truncation(limit)
        return
    positions = getattr(getattr(first, "config", None), "max_position_embeddings", None)
    model.max_seq_length = min(limit, positions) if isinstance(positions, int) and positions > 0 else limit


def model_hash(model: SentenceTransformer) -> str:
    """16 hex digits of the SHA-256 of what determines an embedding: modules, pooling, vocabulary and weights.

    Equal for a model and its saved and loaded copy; prompts and lengths are settings, not content.
    """
    import torch

    if isinstance(model, api.ApiModel):
        return model.identity
    digest = hashlib.sha256()
    for module in model:
        pooling = getattr(module, "pooling_mode", "")
        digest.update(f"{type(module).__name__}|{pooling}|{getattr(module, 'include_prompt', '')}\n".encode())
    tokenizer = getattr(model, "tokenizer", None)
    if tokenizer is not None and hasattr(tokenizer, "get_vocab"):
        for token, index in sorted(tokenizer.get_vocab().items(), key=lambda item: (item[1], item[0])):
            digest.update(f"{index}:{token}\n".encode("utf-8", "surrogatepass"))
    for name, tensor in sorted(model.state_dict().items()):
        value = tensor.detach().cpu().contiguous()
        digest.update(f"{name}|{value.dtype}|{tuple(value.shape)}\n".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().data if value.numel() else b"")
    return digest.hexdigest()[:16]
