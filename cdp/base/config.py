"""Settings of every kind of job, written once.

The form on a page, the option on the command line and the reference in the docs are made from them.
"""

from __future__ import annotations

from dataclasses import dataclass

from cdp.base.errors import ConfigError
from cdp.base.registry import Names, registry
from cdp.base.settings import REQUIRED, Config, option


@dataclass(frozen=True)
class SynthesisConfig(Config):
    """Writing queries for the documents of a corpus."""

    corpus: str = option(REQUIRED, "The corpus whose documents get queries (its id).")
    method: str = option("diverse", "The synthesis method, by its name in the registry, or own for your own prompt.")
    per_doc: int = option(5, "Queries per document (Q/Doc, M).", unit="queries", minimum=1, maximum=20)
    generator: str = option(
        "template",
        "What writes the queries: template needs no LLM, recorded replays the demo collection's queries, "
        "openai calls any endpoint that speaks the OpenAI chat protocol, transformers runs a local model.",
        choices=Names("generator"),
    )
    model: str = option(
        "",
        "The model: its name at the endpoint (gpt-4o-mini if empty), or for generator transformers a name or folder "
        "(mistralai/Mistral-7B-Instruct-v0.3 if empty).",
        holds="model",
    )
    base_url: str = option(
        "", "The endpoint's address, empty for OpenAI itself: http://localhost:8000/v1 for vLLM.", holds="endpoint"
    )
    prompt: str = option(
        "", "For method own: your prompt, with {document} and {M} in it. Stored with the query set.", advanced=True
    )
    examples: str = option(
        "",
        "For the few-shot methods: your examples in place of the project's, one JSON object per line with document, "
        "question and what else the method shows. Stored with the query set.",
        advanced=True,
    )
    source: str = option("", "For method reasoning: the query set whose queries get their reasoning (its id).")
    limit: int | None = option(None, "Only the first so many documents.", unit="documents", minimum=1)
    budget: float | None = option(
        None, "Stop the run when it has cost this much, by the price table.", unit="US dollars", minimum=0.0
    )
    name: str = option("", "A name for the query set; made from corpus, method and Q/Doc if empty.")
    concurrency: int = option(8, "Requests under way at once.", unit="requests", minimum=1, maximum=256, advanced=True)
    temperature: float = option(
        0.0, "Sampling temperature; the paper uses 0 for zero-shot prompts.", minimum=0.0, maximum=2.0, advanced=True
    )
    sampling_temperature: float | None = option(
        None,
        "For few-shot methods: the temperature at which queries are drawn. Empty: the method's own, 0.7 for InPars and "
        "SAP at several queries per document, 0.8 for DRAMA as in its published code (the paper says 0.7 for it too).",
        minimum=0.01,
        maximum=2.0,
        advanced=True,
    )
    logprobs: bool = option(
        False,
        "For methods that ask for one query per call, at an endpoint: keep the mean log-probability of each answer's "
        "tokens, by which the best queries can be kept afterwards (InPars' filter).",
        advanced=True,
    )
    max_output_tokens: int = option(
        2048, "Longest answer accepted per request.", unit="tokens", minimum=16, maximum=32768, advanced=True
    )
    max_document_tokens: int = option(
        2048,
        "Longer documents are cut at the end of a sentence before they are sent; the cut is recorded.",
        unit="tokens",
        minimum=64,
        maximum=131072,
        advanced=True,
    )
    timeout: float = option(
        60.0, "Longest wait for one answer.", unit="seconds", minimum=1.0, maximum=3600.0, advanced=True
    )
    retries: int = option(
        5, "Further tries after a rate limit, a server error or a timeout.", minimum=0, maximum=20, advanced=True
    )
    output: str = option(
        "auto",
        "How the endpoint is asked to answer: json by a schema, list as a numbered list, auto by a schema where the "
        "endpoint takes one.",
        choices=("auto", "json", "list"),
        advanced=True,
    )
    batch_size: int = option(
        16, "Prompts that a local model answers at once.", unit="prompts", minimum=1, maximum=4096, advanced=True
    )
    ranker: str = option(
        "cross-encoder/ms-marco-MiniLM-L6-v2",
        "For dragon_s_paper: the cross-encoder that scores sentences against their document, a name or folder.",
        advanced=True,
        holds="model",
    )
    teachers: str = option(
        "static-minilm, minilm",
        "For dragon_s_faithful: the retrievers that rank the corpus one after another, separated by commas.",
        advanced=True,
        holds="models",
    )
    gpus: int | None = option(
        None, "GPUs for a local model; one if there is one and this is empty, 0 for CPU.", minimum=0, advanced=True
    )
    seed: int = option(0, "Seed of sampling and of the template generator's choices.", minimum=0, advanced=True)

    def check(self) -> None:
        if self.logprobs and not registry("generator")[self.generator].endpoint:
            raise ConfigError(
                f"'logprobs' needs an endpoint that gives log-probabilities; the generator is {self.generator}.",
                hint="Set generator to openai, or leave logprobs off.",
            )

    @property
    def model_name(self) -> str:
        """The model that is used where a model is: as set, or the generator's default."""
        return self.model or str(registry("generator").named(self.generator).model)


@dataclass(frozen=True)
class MetricsConfig(Config):
    """Model-based Q-D metrics of a query set: Dist-Sim and the paraphrase ratio."""

    query_set: str = option(REQUIRED, "The query set to measure (its id).")
    human: str = option("", "A query set with human queries for the same documents, for Dist-Sim (its id).")
    scorer: str = option(
        "auto",
        "What scores a pair of queries as paraphrases. auto: the cross-encoder where it can be loaded, else the "
        "bi-encoder stand-in; otherwise a cross-encoder's name or folder, or bi-encoder.",
        holds="model",
    )
    encoder: str = option(
        "minilm",
        "The retriever that embeds queries for Dist-Sim and embedding diversity: a preset, name or folder.",
        holds="model",
    )
    per_doc: int | None = option(
        None, "Only the first so many queries of each document.", unit="queries", minimum=1, maximum=20
    )
    max_documents: int | None = option(
        None, "Only a random sample of so many documents, for a first look.", unit="documents", minimum=1
    )
    language: str = option("", "Language of the queries, as en, fr, zh; the query set's own if empty.", advanced=True)
    stopwords: str = option(
        "standard",
        "The words that do not count for CW: standard, question-words-kept (French and Chinese), or a file of your own "
        "with one word per line.",
        advanced=True,
        holds="stopword list",
    )
    threshold: float | None = option(
        None,
        "A pair scoring above this counts as paraphrases; 0.5 for the cross-encoder (the paper's), the calibrated "
        "value for the stand-in.",
        minimum=0.0,
        maximum=1.0,
        advanced=True,
    )
    batch_size: int = option(128, "Pairs scored at once.", unit="pairs", minimum=1, maximum=4096, advanced=True)
    seed: int = option(0, "Seed of the sample and of the bootstrap.", minimum=0, advanced=True)


@dataclass(frozen=True)
class PromptTuningConfig(Config):
    """Choosing a prompt on a sample of the corpus (Algorithm 1): candidates, metrics, distance to the target, cost."""

    corpus: str = option(REQUIRED, "The corpus whose documents the candidates are tried on (its id).")
    methods: str = option(
        "diverse,paraphrase", "The candidate methods, separated by commas; prompts of your own come on top."
    )
    target: str = option(
        "ood",
        "ood: different queries, CE and Self-BLEU both below 0.5; in-domain: alike ones, both above 0.5.",
        choices=("ood", "in-domain"),
    )
    documents: int = option(100, "Documents drawn at random, the same for each candidate.", unit="documents", minimum=2)
    per_doc: int = option(5, "Queries per document (Q/Doc, M).", unit="queries", minimum=2, maximum=20)
    generator: str = option(
        "template",
        "What writes the queries.",
        choices=Names("generator"),
    )
    model: str = option("", "The model's name for that generator; its default if empty.", holds="model")
    base_url: str = option("", "The endpoint's address, empty for OpenAI itself.", holds="endpoint")
    human: str = option("", "A query set with human queries for the corpus, for Dist-Sim and Len-Sim (its id).")
    scorer: str = option(
        "auto", "What scores a pair of queries as paraphrases, as for the Q-D metrics.", advanced=True, holds="model"
    )
    encoder: str = option("minilm", "The retriever that embeds queries for Dist-Sim.", advanced=True, holds="model")
    concurrency: int = option(8, "Requests under way at once.", unit="requests", minimum=1, maximum=256, advanced=True)
    max_document_tokens: int = option(
        2048, "Longer documents are cut before they are sent.", unit="tokens", minimum=64, maximum=131072, advanced=True
    )
    batch_size: int = option(128, "Pairs scored at once.", unit="pairs", minimum=1, maximum=4096, advanced=True)
    seed: int = option(0, "Seed of the sample and of the bootstrap.", minimum=0, advanced=True)

    def synthesis(self, method: str, prompt: str = "") -> SynthesisConfig:
        """The settings under which a candidate writes its queries: those that both kinds of job share."""
        shared = ("corpus", "per_doc", "generator", "model", "base_url", "concurrency", "max_document_tokens")
        values = {name: value for name in shared if (value := getattr(self, name)) != ""}
        return SynthesisConfig.from_dict({**values, "method": method, "prompt": prompt})


@dataclass(frozen=True)
class TrainingConfig(Config):
    """Training a retriever on a query set. None means: as the retriever's preset says."""

    query_set: str = option(REQUIRED, "The query set to train on (its id).")
    retriever: str = option(
        "static-minilm", "A preset, a training job's id, or any model's name or folder.", holds="model"
    )
    weighting: str = option(
        "none",
        "Per-query weights in the loss: none, cw (content words of the query, Eq. 2), ri (reasoning intensity, from "
        "reasoned queries), ri-cw (their product), or column (a file of your own).",
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
    seed: int = option(0, "Seed of data order and initialisation.", minimum=0)
    name: str = option("", "A name for the trained retriever; made from its inputs if empty.")
    benchmark: str = option(
        "", "Evaluate on this benchmark while training and keep the best model (optional).", holds="benchmark"
    )
    split: str = option("", "The split of that benchmark; its only or first one if empty.", advanced=True)
    eval_steps: int = option(500, "Steps between evaluations.", unit="steps", minimum=1, advanced=True)
    patience: int | None = option(
        None, "Stop early after so many evaluations without a better NDCG@10. Empty: never.", unit="evaluations",
        minimum=1, advanced=True,
    )  # fmt: skip
    save_steps: int = option(500, "Steps between checkpoints.", unit="steps", minimum=1, advanced=True)
    scale: float | None = option(
        None, "Scale of the cosine in InfoNCE: 1 / temperature.", minimum=0.01, maximum=1000.0, advanced=True
    )
    max_length: int | None = option(
        None, "Longest text; the rest is cut off.", unit="tokens", minimum=8, maximum=32768, advanced=True
    )
    weight_decay: float = option(0.01, "AdamW's weight decay.", minimum=0.0, maximum=1.0, advanced=True)
    clip_norm: float = option(1.0, "Gradients are clipped to this norm.", minimum=0.0, maximum=1e6, advanced=True)
    kappa: float = option(100.0, "CW is capped at κ before it becomes a weight (Eq. 2).", minimum=1.0, advanced=True)
    reasoning: str = option(
        "",
        "The query set with the reasoned form q′ of each query (its id): for ri and ri-cw, and to train on.",
        advanced=True,
    )
    query_source: str = option(
        "query-only",
        "What is trained on, with reasoned forms at hand: query-only, the queries q; reasoning-only, their reasoned "
        "forms q′ in their stead; multi-query, both. RI is L(q, D) / L(q′, D) for either.",
        choices=("query-only", "reasoning-only", "multi-query"),
        advanced=True,
    )
    ri_mode: str = option(
        "online",
        "online: RI under the model as it is in each step; static: once, under the untrained model.",
        choices=("online", "static"),
        advanced=True,
    )
    ri_kappa: float = option(5.0, "RI is capped at this value.", minimum=1.0, maximum=1000.0, advanced=True)
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
        minimum=1,
        maximum=1024,
        advanced=True,
    )
    mini_batch: int | None = option(
        None,
        "With GradCache: texts encoded at once, for batches that do not fit in memory. Empty: no GradCache.",
        unit="texts",
        minimum=1,
        advanced=True,
    )
    precision: str = option(
        "auto",
        "auto: on a GPU as the preset says (the paper's retrievers: fp16), else bf16 or fp16; fp32 on CPU.",
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
        None, "GPUs to train on; all free ones chosen by the queue if empty, 0 for CPU.", minimum=0, advanced=True
    )
    gpu_ids: str = option(
        "", "These GPUs and no others: their UUIDs, separated by commas, as doctor names them.", advanced=True
    )


@dataclass(frozen=True)
class EvaluationConfig(Config):
    """Evaluating a retriever on a benchmark in BEIR layout."""

    retriever: str = option(
        REQUIRED,
        "A preset, a training job's id, any model's name or folder, or bm25 (bm25:fr …) to compare with.",
        holds="model",
    )
    benchmark: str = option(
        REQUIRED, "A benchmark's name in the workspace, or a folder in BEIR layout.", holds="benchmark"
    )
    split: str = option("", "The qrels to judge by; test, or the only one, if empty.")
    protocol: str = option(
        "published",
        "published: as the model's authors evaluate it; paper: cosine similarity for every model.",
        choices=("published", "paper"),
    )
    batch_size: int = option(128, "Texts encoded at once.", unit="texts", minimum=1, maximum=65536, advanced=True)
    max_length: int | None = option(
        None, "Longest text; the rest is cut off.", unit="tokens", minimum=8, maximum=32768, advanced=True
    )
    top_k: int = option(100, "Documents kept per query.", unit="documents", minimum=10, maximum=10000, advanced=True)
    precision: str = option(
        "auto",
        "Of the encoder. auto: half precision on a GPU, fp32 on CPU.",
        choices=("auto", "fp32", "fp16", "bf16"),
        advanced=True,
    )
    allow_unknown: bool = option(
        False,
        "Evaluate although judgments name documents or queries that the benchmark lacks; such documents count as never "
        "retrieved, such queries are left out.",
        advanced=True,
    )
    gpus: int | None = option(
        None, "GPUs to encode on; one if there is one and this is empty, 0 for CPU.", minimum=0, advanced=True
    )
    gpu_ids: str = option(
        "", "These GPUs and no others: their UUIDs, separated by commas, as doctor names them.", advanced=True
    )


@dataclass(frozen=True)
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
