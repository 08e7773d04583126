"""Tiny models for servers that load one: ``PYTHON tests/endpoints/models.py KIND PLACE``, by the server's own Python.

A folder that newer libraries wrote cannot be loaded by older ones, so each environment writes its own. Weights are
random, fixed by a seed. A decoder draws letters and whole words: some of its answers can be read as queries, the others
are failures with a reason.
"""

from __future__ import annotations

import string
import sys
from pathlib import Path

CONTEXT = 4096  # tokens that the decoders read and write together: our prompts are 2,000 of their letters
EMBEDDER_CONTEXT = 128  # tokens that the embedder reads

WORDS = """
    what how why which where when who is are does do can the a an of in on for with from by river bee flower winter
    garden stone bridge city school water light paper colour animal people year north history language music
""".split()  # noqa: SIM905 — a list of 45 words would fill a page
PIECES = (*(f"▁{word}" for word in WORDS), "?", "?\n", "\n", *(f"\n{number}." for number in range(1, 6)))
CHARACTERS = tuple(dict.fromkeys(("▁", *string.ascii_letters, *string.digits, *string.punctuation, "\n")))
SPECIAL = ("<unk>", "<s>", "</s>")

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


def vocabulary() -> list[str]:
    """Return the pieces of both decoders, by their ids."""
    return list(dict.fromkeys((*SPECIAL, *CHARACTERS, *PIECES)))


def random_decoder(folder: Path) -> Path:
    """Write a decoder with a chat template that draws its tokens, in transformers' layout."""
    import torch
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    pieces = vocabulary()
    config = LlamaConfig(
        vocab_size=len(pieces), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
        intermediate_size=64, max_position_embeddings=CONTEXT, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    model.generation_config = GenerationConfig(do_sample=True, bos_token_id=1, eos_token_id=2, pad_token_id=2)
    model.save_pretrained(folder)

    # Letters alone are cheaper than words, so that a prompt becomes its letters and an answer may hold words.
    tokenizer = Tokenizer(models.Unigram([(piece, -float(len(piece))) for piece in pieces], unk_id=0))
    tokenizer.normalizer = normalizers.Replace(Regex(" "), "▁")
    tokenizer.decoder = decoders.Replace("▁", " ")
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="</s>",
        model_max_length=CONTEXT, chat_template=CHAT_TEMPLATE,
    ).save_pretrained(folder)  # fmt: skip
    return folder


def random_gguf(file: Path) -> Path:
    """Write the same kind of decoder as a GGUF file. It runs in llama-cpp-python's environment, which has ``gguf``."""
    import gguf
    import numpy as np

    pieces = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), *vocabulary()[len(SPECIAL) :]]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL, *[gguf.TokenType.BYTE] * 256]
    kinds += [gguf.TokenType.NORMAL] * (len(pieces) - len(kinds))
    width, heads, inner = 64, 2, 128
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_name("tiny-random")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads)
    writer.add_rope_dimension_count(width // heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(pieces))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(pieces)
    writer.add_token_scores([-float(len(piece)) for piece in pieces])
    writer.add_token_types([int(kind) for kind in kinds])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(CHAT_TEMPLATE)

    random = np.random.default_rng(0)
    shapes = {
        "token_embd": (len(pieces), width), "output": (len(pieces), width),
        "blk.0.attn_q": (width, width), "blk.0.attn_k": (width, width), "blk.0.attn_v": (width, width),
        "blk.0.attn_output": (width, width), "blk.0.ffn_gate": (inner, width), "blk.0.ffn_up": (inner, width),
        "blk.0.ffn_down": (width, inner),
    }  # fmt: skip
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", random.normal(0.0, 0.02, shape).astype(np.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(width, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def random_embedder(folder: Path) -> Path:
    """Write a BERT in transformers' layout; servers take the mean of its tokens."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    torch.manual_seed(0)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = string.ascii_lowercase + string.digits + string.punctuation
    ids = {piece: at for at, piece in enumerate([*special, *letters, *(f"##{letter}" for letter in letters)])}
    config = BertConfig(
        vocab_size=len(ids), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=EMBEDDER_CONTEXT, initializer_range=0.2,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)

    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(name, ids[name]) for name in ("[CLS]", "[SEP]")]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_max_length=EMBEDDER_CONTEXT,
    ).save_pretrained(folder)  # fmt: skip
    return folder


KINDS = {"decoder": random_decoder, "gguf": random_gguf, "embedder": random_embedder}

if __name__ == "__main__":
    KINDS[sys.argv[1]](Path(sys.argv[2]))
