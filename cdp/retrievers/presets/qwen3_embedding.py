"""Qwen3-Embedding-0.6B: a decoder, padded on the left, pooled at the last token, with an instruction before queries."""

from __future__ import annotations

from cdp.retrievers.presets import COSINE, PAPER_TRAINING, Default, Retriever

TASK = "Given a web search query, retrieve relevant passages that answer the query"

PRESET = Retriever(
    name="qwen3-embedding-0.6b",
    order=50,
    title="Qwen3-Embedding-0.6B",
    help="A decoder trained for embeddings. One of the paper's three retrievers; needs a GPU to train.",
    source="Qwen/Qwen3-Embedding-0.6B",
    architecture="transformer",
    # In a decoder only the last token has seen the whole text; batches are padded on the left, so that it stands
    # last.
    pooling="lasttoken",
    normalize=True,
    max_length=8192,
    similarity=COSINE,
    parameters="596 M parameters, 2.4 GB in fp32",
    licence="Apache 2.0.",
    licence_id="apache-2.0",
    # Its authors' format, which the model was trained with: no space after the colon, nothing before documents.
    prompts={"query": f"Instruct: {TASK}\nQuery:", "document": ""},
    padding_side="left",
    defaults={
        "learning_rate": Default(5e-6, "The paper's choice for Qwen3-Embedding-0.6B."),
        **PAPER_TRAINING,
        "batch_size": Default(32, "The paper's batch for this model, four times smaller than for BERT base."),
        "epochs": Default(20, "The paper's number for this model."),
        "max_length": Default(512, "As for the paper's other retrievers; the model itself takes up to 32,768 tokens."),
    },
)
