"""Tiny models made on the spot, so that no test downloads anything: a BERT, a Qwen3-shaped decoder, a static table.

Their weights are random but fixed by the seed; their vocabulary holds single letters and digits, so that any Latin text
becomes tokens. A process makes each of them once and writes it as often as it is asked for.
"""

from __future__ import annotations

import functools
import string
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CHARACTERS = string.ascii_lowercase + string.digits + string.punctuation


def _made_once(make: Callable[..., Path]) -> Callable[..., Path]:
    """Keep the files that ``make`` writes, by its settings, and torch's random state as it leaves it."""

    @functools.cache
    def made(**settings: Any) -> tuple[dict[Path, bytes], Path, Any]:
        import torch

        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            place = make(folder, **settings).relative_to(folder)
            files = {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        return files, place, torch.get_rng_state()

    @functools.wraps(make)
    def written(folder: Path, **settings: Any) -> Path:
        import torch

        files, place, random_state = made(**settings)
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        torch.set_rng_state(random_state)
        return folder / place

    return written


def _wordpiece_vocabulary() -> dict[str, int]:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return {t: i for i, t in enumerate([*special, *CHARACTERS, *(f"##{c}" for c in CHARACTERS)])}


def _wordpiece_tokenizer() -> Tokenizer:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = _wordpiece_vocabulary()
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    )
    return tokenizer


@_made_once
def tiny_bert(folder: Path, *, hidden: int = 32, layers: int = 2, dropout: float = 0.0, seed: int = 0) -> Path:
    """A BERT in transformers' layout (no pooling configured): the shape of Contriever, RetroMAE and MiniLM."""
    import torch
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    torch.manual_seed(seed)
    vocabulary = _wordpiece_vocabulary()
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=2,
        intermediate_size=2 * hidden, max_position_embeddings=128, hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout, initializer_range=0.2,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    tokenizer = _wordpiece_tokenizer()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_max_length=128,
    ).save_pretrained(folder)  # fmt: skip
    return folder


@_made_once
def tiny_decoder(folder: Path, *, hidden: int = 32, layers: int = 2, seed: int = 0) -> Path:
    """A Qwen3-shaped decoder whose tokenizer ends each text with an end-of-text token, as Qwen3-Embedding's does."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3Model

    torch.manual_seed(seed)
    vocabulary = {t: i for i, t in enumerate(["<pad>", "<unk>", "<end>", "▁", *CHARACTERS, *string.ascii_uppercase])}
    config = Qwen3Config(
        vocab_size=len(vocabulary), hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, intermediate_size=2 * hidden, max_position_embeddings=512,
        initializer_range=0.2,
    )  # fmt: skip
    Qwen3Model(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A <end>", special_tokens=[("<end>", vocabulary["<end>"])]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", pad_token="<pad>", eos_token="<end>", model_max_length=512
    ).save_pretrained(folder)  # fmt: skip
    return folder


@_made_once
def tiny_retriever(
    folder: Path, *, pooling: str = "mean", dropout: float = 0.0, seed: int = 0, hidden: int = 32, layers: int = 2
) -> Path:
    """A tiny BERT with pooling, in sentence-transformers' layout: loads with ``SentenceTransformer(folder)``."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    base = tiny_bert(folder / "base", dropout=dropout, seed=seed, hidden=hidden, layers=layers)
    transformer = Transformer(str(base))
    model = SentenceTransformer(modules=[transformer, Pooling(hidden, pooling)], device="cpu")
    model.save(str(folder / "model"), create_model_card=False)
    return folder / "model"


@_made_once
def tiny_static(folder: Path, *, dimension: int = 16, seed: int = 0) -> Path:
    """A tiny static embedding model, as sentence-transformers saves one; without that library, which loads for seconds.

    That ours and its files are alike is tested in tests/retrievers/test_static_models.py.
    """
    import torch

    from cdp.retrievers.static import StaticModel

    tokenizer = _wordpiece_tokenizer()
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    table = torch.randn(tokenizer.get_vocab_size(), dimension, generator=torch.Generator().manual_seed(seed))
    StaticModel(tokenizer, table, "cpu").save(str(folder / "model"))
    return folder / "model"


@_made_once
def tiny_sparse(folder: Path, *, seed: int = 0) -> Path:
    """A tiny BERT with a vocabulary head and max pooling, as sentence-transformers saves a SPLADE model."""
    import torch
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sparse_encoder.modules import SpladePooling, Transformer

    torch.manual_seed(seed)  # of the head, which the tiny BERT lacks
    transformer = Transformer(str(tiny_bert(folder / "base", seed=seed)), transformer_task="fill-mask")
    model = SparseEncoder(modules=[transformer, SpladePooling("max")], device="cpu")
    model.save(str(folder / "model"), create_model_card=False)
    return folder / "model"


@_made_once
def tiny_multi_vector(folder: Path, *, dim: int | None = None, seed: int = 0) -> Path:
    """A tiny BERT's token vectors, as sentence-transformers saves a multi-vector model; ``dim``: projected to it."""
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    transformer = Transformer(str(tiny_bert(folder / "base", seed=seed)))
    head = [] if dim is None else [Dense(32, dim, bias=False, module_input_name="token_embeddings")]
    modules = [transformer, *head, MultiVectorMask(), Normalize("token_embeddings")]
    MultiVectorEncoder(modules=modules, device="cpu").save(str(folder / "model"), create_model_card=False)
    return folder / "model"
