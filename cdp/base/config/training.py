"""Settings of the jobs that train, evaluate and download benchmarks."""

from __future__ import annotations

from cdp.base.config.shared import GPU_IDS, seed_of
from cdp.base.errors import ConfigError
from cdp.base.registry import Names
from cdp.base.settings import REQUIRED, Config, option


class TrainingConfig(Config):
    """Training a retriever on a query set. None means: as the retriever's preset says."""

    query_set: str = option(REQUIRED, "The query set to train on (its id).")
    retriever: str = option(
        "static-minilm",
        "A preset, a training's id or name, or any model's name or folder.",
        reason="It comes with the installation and trains in seconds on a CPU.",
        holds="model",
    )
    weighting: str = option(
        "none",
        "Per-query weights in the loss: none, cw (content words of the query, Eq. 2), ri (reasoning intensity, from "
        "reasoned queries), ri-cw (their product), or column (a file of your own).",
        reason="The unweighted loss is what every weighting is compared with.",
        choices=Names("weighting"),
    )
    per_doc: int | None = option(
        None, "Only the first so many queries of each document.", unit="queries", minimum=1, maximum=1000
    )
    max_documents: int | None = option(None, "Only the first so many documents.", unit="documents", minimum=1)
    epochs: int | None = option(None, "Passes over the pairs.", unit="epochs", minimum=1, maximum=1000)
    batch_size: int | None = option(
        None, "Pairs per step; the other documents of the batch are the negatives.", unit="pairs", minimum=2,
        maximum=65536,
    )  # fmt: skip
    learning_rate: float | None = option(None, "Peak learning rate.", minimum=0.0, maximum=1.0)
    seed: int = seed_of("data order and initialisation", advanced=False)
    name: str = option("", "A name for the trained retriever; made from its inputs if empty.")
    benchmark: str = option(
        "", "Evaluate on this benchmark while training and keep the best model (optional).", holds="benchmark"
    )
    split: str = option("", "The split of that benchmark; its only or first one if empty.", advanced=True)
    eval_steps: int = option(
        500,
        "Steps between evaluations.",
        reason="The paper evaluates every 500 steps.",
        unit="steps",
        minimum=1,
        advanced=True,
    )
    patience: int | None = option(
        None,
        "Stop early after so many evaluations without a better NDCG@10. Empty: never.",
        reason="The paper trains to the end and keeps the best checkpoint.",
        unit="evaluations",
        minimum=1,
        advanced=True,
    )
    save_steps: int = option(
        500,
        "Steps between checkpoints.",
        reason="The paper saves every 500 steps; what a crash costs is bounded by it.",
        unit="steps",
        minimum=1,
        advanced=True,
    )
    scale: float | None = option(
        None, "Scale of the cosine in InfoNCE: 1 / temperature.", minimum=0.01, maximum=1000.0, advanced=True
    )
    max_length: int | None = option(
        None, "Longest text; the rest is cut off.", unit="tokens", minimum=8, maximum=32768, advanced=True
    )
    weight_decay: float = option(
        0.01, "AdamW's weight decay.", reason="The paper's value.", minimum=0.0, maximum=1.0, advanced=True
    )
    clip_norm: float = option(
        1.0, "Gradients are clipped to this norm.", reason="The paper's value.", minimum=0.0, maximum=1e6, advanced=True
    )
    kappa: float = option(
        100.0,
        "CW is capped at κ before it becomes a weight (Eq. 2).",
        reason="The paper's κ (Eq. 2).",
        minimum=1.0,
        advanced=True,
    )
    reasoning: str = option(
        "",
        "The query set with the reasoned form q′ of each query (its id): for ri and ri-cw, and to train on.",
        advanced=True,
    )
    query_source: str = option(
        "query-only",
        "What is trained on, with reasoned forms at hand: query-only, the queries q; reasoning-only, their reasoned "
        "forms q′ in their stead; multi-query, both. RI is L(q, D) / L(q′, D) for either.",
        reason="Training on the queries themselves, as the paper does.",
        choices=("query-only", "reasoning-only", "multi-query"),
        advanced=True,
    )
    ri_mode: str = option(
        "online",
        "online: RI under the model as it is in each step; static: once, under the untrained model.",
        reason="As ReasonEmbed defines it: under the model in training.",
        choices=("online", "static"),
        advanced=True,
    )
    ri_kappa: float = option(
        5.0, "RI is capped at this value.", reason="ReasonEmbed's cap.", minimum=1.0, maximum=1000.0, advanced=True
    )
    weights: str = option(
        "",
        "For column: a CSV, TSV or JSONL file with query_id and weight (a path on this server).",
        advanced=True,
        holds="path",
    )
    hard_negatives: int | None = option(
        None,
        "Hard negatives per pair. Empty: one where the query set has them (dragon_s_faithful, or an import with "
        "negatives), none elsewhere.",
        minimum=0,
        maximum=100,
        advanced=True,
    )
    lora_rank: int | None = option(
        None,
        "Train low-rank additions of this rank instead of all weights, for large models; merged in the end. Empty: "
        "train everything.",
        reason="Empty: the paper trains all weights.",
        minimum=1,
        maximum=1024,
        advanced=True,
    )
    mini_batch: int | None = option(
        None,
        "With GradCache: texts encoded at once, for batches that do not fit in memory. Empty: no GradCache.",
        reason="Empty: the presets' batches fit, and GradCache encodes each text twice.",
        unit="texts",
        minimum=1,
        advanced=True,
    )
    precision: str = option(
        "auto",
        "auto: on a GPU as the preset says (the paper's retrievers: fp16), else bf16 or fp16; fp32 on CPU.",
        reason="The paper trains in FP16 on a GPU; a CPU has no use for half precision.",
        choices=("auto", "fp32", "fp16", "bf16"),
        advanced=True,
    )
    gradient_checkpointing: bool | None = option(
        None,
        "Recompute activations to save memory, at the cost of speed. Empty: as the preset says on a GPU (the paper's "
        "retrievers: yes), else no.",
        advanced=True,
    )
    gpus: int | None = option(
        None, "GPUs to train on; one if there is one and this is empty, 0 for CPU.", minimum=0, advanced=True
    )
    gpu_ids: str = GPU_IDS
    distil: float = option(
        0.0,
        "How much a cross-encoder's soft labels count beside InfoNCE, for a query set that has them (queries mine "
        "--cross-encoder): the loss is (1 - distil) InfoNCE + distil KL(cross-encoder || retriever).",
        reason="Off: the paper trains on InfoNCE alone.",
        minimum=0.0,
        maximum=1.0,
        advanced=True,
    )
    track: str = option(
        "",
        "Write loss, rate and dev scores for this program too, into the job's folder tracking/; off if empty. Nothing "
        "is sent: wandb stays offline unless WANDB_MODE=online.",
        choices=("", "tensorboard", "wandb", "mlflow", "trackio"),
        advanced=True,
    )


class EvaluationConfig(Config):
    """Evaluating a retriever on a benchmark in BEIR layout."""

    retriever: str = option(
        REQUIRED,
        "A preset, a training's id or name, any model's name or folder, or bm25 (bm25:fr …) to compare with.",
        holds="model",
    )
    benchmark: str = option(
        REQUIRED, "A benchmark's name in the workspace, or a folder in BEIR layout.", holds="benchmark"
    )
    split: str = option("", "The qrels to judge by; test, or the only one, if empty.")
    protocol: str = option(
        "published",
        "published: as the model's authors evaluate it; paper: cosine similarity for every model.",
        reason="The scores can then be compared with those that the model's authors published.",
        choices=("published", "paper"),
    )
    batch_size: int = option(
        128,
        "Texts encoded at once.",
        reason="Nothing is kept for gradients, so more texts fit than in training.",
        unit="texts",
        minimum=1,
        maximum=65536,
        advanced=True,
    )
    max_length: int | None = option(
        None, "Longest text; the rest is cut off.", unit="tokens", minimum=8, maximum=32768, advanced=True
    )
    top_k: int = option(
        100,
        "Documents kept per query.",
        reason="NDCG@10 needs 10; recall@100 needs 100.",
        unit="documents",
        minimum=10,
        maximum=10000,
        advanced=True,
    )
    precision: str = option(
        "auto",
        "Of the encoder. auto: half precision on a GPU, fp32 on CPU.",
        reason="Half precision is faster on a GPU; a CPU has no use for it.",
        choices=("auto", "fp32", "fp16", "bf16"),
        advanced=True,
    )
    allow_unknown: bool = option(
        False,
        "Evaluate although judgments name documents or queries that the benchmark lacks; such documents count as never "
        "retrieved, such queries are left out.",
        reason="Off: such judgments most often mean that the wrong files were put together.",
        advanced=True,
    )
    gpus: int | None = option(
        None, "GPUs to encode on; one if there is one and this is empty, 0 for CPU.", minimum=0, advanced=True
    )
    gpu_ids: str = GPU_IDS


class IndexConfig(Config):
    """Indexing a collection for searching: the embeddings of its documents by a retriever, or its BM25 index."""

    retriever: str = option(
        REQUIRED, "A preset, a training's id or name, any model's name or folder, or bm25 (bm25:fr …).", holds="model"
    )
    collection: str = option(REQUIRED, "A corpus, or benchmark:NAME for the documents of a benchmark.")


class DownloadConfig(Config):
    """Bringing a benchmark of the registry, or all of a group, into the workspace."""

    benchmark: str = option(REQUIRED, "A benchmark of the registry, or a group: all that it is made of.")
    revision: str = option(
        "",
        "A branch, tag or commit of its repository (REPO=REVISION,… for several). Empty: the commit of an earlier "
        "download, else that of the main branch now, which is then kept.",
    )
    folder: str = option(
        "", "Take it from this folder on the server, where it was downloaded to, not from the hub.", holds="path"
    )
    name: str = option("", "What to call it in the workspace; its own name if empty.")

    def check(self) -> None:
        if self.folder and self.revision:
            raise ConfigError("A folder has no revisions to choose from.", hint="Give either a folder or a revision.")
