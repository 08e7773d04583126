"""Settings of every kind of job but studies: defaults, the reason for each, help.

Forms, command-line options and the reference are derived from them. Each default has its reason beside it; the help of
an empty one says what happens then. What several kinds of job share is declared once, at the top: one setting as a
constant, those that belong together as a class that is a member of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import model_validator

from cdp.base.errors import ConfigError
from cdp.base.registry import Names, registry
from cdp.base.settings import REQUIRED, Config, altered, member, option
from cdp.base.text import name_and_split

# A setting fills its lines: one line per argument would make this file half as long again.
# fmt: off

BM25 = "bm25"
# Who wrote queries, or judged documents, where no model did.
PEOPLE = "people"
USABLE = "usable"
JOINT = "&"

# Why the template generator is the default, everywhere.
AT_ONCE = "It works at once, without an account, a key or a GPU."

CORPUS = option(REQUIRED, "The corpus (its id).")
QUERY_SET = option(REQUIRED, "The query set (its id).")

FIRST_DOCUMENTS = option(None, "Use only this many documents, the first ones.", unit="documents", minimum=1)
MAX_DOCUMENTS = option(
    None, "Use only this many documents, drawn at random by the seed. Empty: all.", unit="documents", minimum=1,
)
GPUS = option(None, "GPUs to use; one if there is one and this is empty, 0 for CPU.", minimum=0, advanced=True)
ONE_GPU = option(None, "1 GPU if there is one and this is empty, 0 for CPU.", minimum=0, maximum=1, advanced=True)
TRACKER = option(
    "",
    "Also log the settings, the loss and the dev scores to this tracker, where it is installed: trackio, wandb, "
    "tensorboard or mlflow. Keys and offline modes come from its own environment variables.",
    choices=("", "trackio", "wandb", "tensorboard", "mlflow"), advanced=True, holds="tracker",
)
BY = option(
    BM25,
    "What looks for the document: bm25, or a retriever (a preset, a training's id or name, a model's name or folder).",
    reason="It needs no model and takes seconds.", holds="model",
)
SEARCHED_WITH = option(
    REQUIRED,
    "A preset, a training's id or name, any model's name or folder, bm25 (bm25:fr …), or api:MODEL@ADDRESS for an "
    "OpenAI-compatible embeddings endpoint.", holds="retriever",
)
BUDGET = option(
    None, "Stop the run when it has cost this much, by the price table.", unit="US dollars", minimum=0.0,
)
EMBEDDING_BUDGET = option(
    None, "For a retriever behind an API: stop when it has cost this much, by the price table.", unit="US dollars",
    minimum=0.0, advanced=True,
)
PROTOCOL = option(
    "published", "published: as the model's authors evaluate it; paper: cosine similarity for every model.",
    reason="The scores can then be compared with those that the model's authors published.",
    choices=("published", "paper"),
)
MAX_LENGTH = option(
    None, "Longest text; the rest is cut off.", unit="tokens", minimum=8, maximum=32768, advanced=True,
)
PRECISIONS = ("auto", "fp32", "fp16", "bf16")


def seed_of(what: str, *, advanced: bool = True) -> Any:
    """Return the setting for the seed of ``what``."""
    reason = "Any number does; a fixed one makes the run repeatable."
    return option(0, f"Seed of {what}.", reason=reason, minimum=0, advanced=advanced)


class EndpointSettings(Config):
    """A writer of texts: a generator, and for some its model and address."""

    generator: str = option(
        "template",
        "What writes the queries: template needs no LLM, recorded replays the demo collection's queries, openai calls "
        "any endpoint that speaks the OpenAI chat protocol, transformers runs a local model.", reason=AT_ONCE,
        choices=Names("generator"),
    )
    model: str = option(
        "",
        "The model: its name at the endpoint (gpt-4o-mini if empty), or for generator transformers a name or folder "
        "(mistralai/Mistral-7B-Instruct-v0.3 if empty).", holds="model",
    )
    base_url: str = option(
        "",
        "The endpoint's address: http://localhost:8000/v1 for vLLM. Empty: CDP_BASE_URL, else OPENAI_BASE_URL, else "
        "OpenAI itself.", holds="endpoint",
    )

    @property
    def model_name(self) -> str:
        """The model that is used where a model is: as set, or the generator's default."""
        return self.model or str(registry("generator").named(self.generator).model)

    @property
    def local(self) -> bool:
        """Return True if the texts stay on this machine, which needs no key."""
        return bool(registry("generator")[self.generator].local)


class Client(EndpointSettings):
    """A writer of texts, and how it is asked."""

    concurrency: int = option(
        8, "Requests under way at once, at each address of the endpoint.",
        reason="Keeps an endpoint busy without running into the rate limits of a small account.", unit="requests",
        minimum=1, maximum=256, advanced=True,
    )
    max_output_tokens: int = option(
        2048, "Longest answer accepted per request.",
        reason="Twenty queries take well under 1,000 tokens; the rest is room for reasoning.", unit="tokens",
        minimum=16, maximum=32768, advanced=True,
    )
    max_document_tokens: int = option(
        2048, "Longer documents are cut at the end of a sentence before they are sent; the cut is recorded.",
        reason="Passages stay whole, and the price of a long document is bounded.", unit="tokens", minimum=64,
        maximum=131072, advanced=True,
    )
    timeout: float = option(
        60.0, "Longest wait for one answer.",
        reason="A slow answer arrives, and a dead endpoint is noticed within a minute.", unit="seconds", minimum=1.0,
        maximum=3600.0, advanced=True,
    )
    retries: int = option(
        5, "Further tries after a rate limit, a server error or a timeout.",
        reason="The waits grow with each try, which outlasts a rate limit or a restart of the endpoint.", minimum=0,
        maximum=20, advanced=True,
    )
    batch_size: int = option(
        16, "Prompts that a local model answers at once.",
        reason="More at once is faster and takes more memory; this many prompts fit on a large GPU.", unit="prompts",
        minimum=1, maximum=4096, advanced=True,
    )


class Judge(Client):
    """A model that judges documents, or people alone."""

    generator: str = altered(
        Client, "generator", default="openai", choices=Names("generator", first=(PEOPLE,)),
        help="What judges: openai calls any endpoint that speaks the OpenAI chat protocol, transformers runs a local "
        "model, people asks no model: the queries whose documents people labelled are the test.",
        reason="Rules cannot judge, and most instruct models that can are behind an endpoint.",
    )
    max_output_tokens: int = altered(
        Client, "max_output_tokens", default=512, reason="A grade and a short reason take 60 tokens.",
    )
    max_document_tokens: int = altered(Client, "max_document_tokens", default=1024)

    @property
    def by_people(self) -> bool:
        """Return True if no model is asked."""
        return self.generator == PEOPLE

    @property
    def model_name(self) -> str:
        """The model that judges, or ``PEOPLE``."""
        return PEOPLE if self.by_people else super().model_name

    @property
    def local(self) -> bool:
        """Return True if the texts stay on this machine."""
        return self.by_people or super().local


class Scoring(Config):
    """What the model-based measures of queries compare with and compute by."""

    human: str = option("", "A query set with human queries for the same documents, for Dist-Sim (its id).")
    scorer: str = option(
        "auto",
        "What scores a pair of queries as paraphrases. auto: the cross-encoder where it can be loaded, else the "
        "bi-encoder stand-in; otherwise a cross-encoder's name or folder, or bi-encoder.",
        reason="The cross-encoder is what the paper's CE means; the stand-in has its own name.", holds="model",
    )
    encoder: str = option(
        "minilm", "The retriever that embeds queries for Dist-Sim and embedding diversity: a preset, name or folder.",
        reason="It comes with the installation; the paper's BGE-M3 can be named instead.", holds="model",
    )
    batch_size: int = option(
        128, "Pairs scored at once.", reason="Pairs of queries are short: 128 fit on any machine.", unit="pairs",
        minimum=1, maximum=4096, advanced=True,
    )
    seed: int = seed_of("the sample and of the bootstrap")


class JudgedOn(Config):
    """Judged queries: a benchmark and one of its splits."""

    benchmark: str = option(
        REQUIRED, "A benchmark's name in the workspace, perhaps NAME:SPLIT, or a folder in BEIR layout.",
        holds="benchmark",
    )
    split: str = option("", "The qrels to judge by; test, or the only one, if empty.")

    @model_validator(mode="before")
    @classmethod
    def _one_spelling(cls, values: Any) -> Any:
        """Take ``name:split`` as the benchmark too. ConfigError where ``split`` is another one."""
        if not isinstance(values, Mapping):
            return values

        named, split = values.get("benchmark"), values.get("split") or ""
        if isinstance(named, str) and isinstance(split, str):  # the fields say what else is wrong with them
            benchmark, split = name_and_split(named.strip(), split.strip())
            values = {**values, "benchmark": benchmark, "split": split}

        return values


class Dev(JudgedOn):
    """The judged queries that choose a training's checkpoint."""

    benchmark: str = altered(
        JudgedOn, "benchmark", default="",
        help="Evaluate on this benchmark while training and keep the best model (optional).",
    )
    split: str = altered(
        JudgedOn, "split", help="The split of that benchmark; its only or first one if empty.", advanced=True,
    )


class Loop(Config):
    """How a training runs, on any pairs. None means: as the retriever's preset says."""

    epochs: int | None = option(
        None, "Passes over the pairs; in a study, those of its largest training.", unit="epochs", minimum=1,
        maximum=1000,
    )
    batch_size: int | None = option(
        None, "Pairs per step; the other documents of the batch are the negatives.", unit="pairs", minimum=2,
        maximum=65536,
    )
    eval_steps: int | None = option(
        None, "Steps between evaluations. Empty: a third of the training, at most 500.",
        reason="The paper evaluates every 500 steps; a shorter training needs checkpoints to choose among as well.",
        unit="steps", minimum=1, advanced=True,
    )
    patience: int | None = option(
        None, "Stop early after this many evaluations without a better NDCG@10. Empty: never.",
        reason="The paper trains to the end and keeps the best checkpoint.", unit="evaluations", minimum=1,
        advanced=True,
    )
    save_steps: int = option(
        500, "Steps between checkpoints.",
        reason="The paper saves every 500 steps; what a crash costs is bounded by it.", unit="steps", minimum=1,
        advanced=True,
    )
    scale: float | None = option(
        None, "Scale of the cosine in InfoNCE: 1 / temperature.", minimum=0.01, maximum=1000.0, advanced=True,
    )
    max_length: int | None = MAX_LENGTH
    weight_decay: float = option(
        0.01, "AdamW's weight decay.", reason="The paper's value.", minimum=0.0, maximum=1.0, advanced=True,
    )
    clip_norm: float = option(
        1.0, "Gradients are clipped to this norm.", reason="The paper's value.", minimum=0.0, maximum=1e6,
        advanced=True,
    )
    ri_kappa: float = option(
        5.0, "RI is capped at this value.", reason="ReasonEmbed's cap.", minimum=1.0, maximum=1000.0, advanced=True,
    )
    hard_negatives: int | None = option(
        None,
        "Hard negatives per pair. Empty: one where the query set has them (dragon_s_faithful, or an import with "
        "negatives), none elsewhere.", minimum=0, maximum=100, advanced=True,
    )
    lora_rank: int | None = option(
        None,
        "Train low-rank additions of this rank instead of all weights, for large models; merged in the end. Empty: "
        "train everything.", reason="Empty: the paper trains all weights.", minimum=1, maximum=1024, advanced=True,
    )
    trained_layers: int | None = option(
        None,
        "Train only so many of a transformer's layers, the upper ones; what the others give for a text is computed "
        "once and kept. Empty: train everything.",
        reason="Empty: the paper trains all layers. Two of six take a quarter of the time.", minimum=1, maximum=1000,
        advanced=True,
    )
    mini_batch: int | None = option(
        None, "With GradCache: texts encoded at once, for batches that do not fit in memory. Empty: no GradCache.",
        reason="Empty: the presets' batches fit, and GradCache encodes each text twice.", unit="texts", minimum=1,
        advanced=True,
    )
    precision: str = option(
        "auto", "auto: on a GPU as the preset says (the paper's retrievers: fp16), else bf16 or fp16; fp32 on CPU.",
        reason="The paper trains in FP16 on a GPU; a CPU has no use for half precision.",
        choices=PRECISIONS, advanced=True,
    )
    gradient_checkpointing: bool | None = option(
        None,
        "Recompute activations to save memory, at the cost of speed. Empty: as the preset says on a GPU (the paper's "
        "retrievers: yes), else no.", advanced=True,
    )
    distil: float = option(
        0.0,
        "How much a teacher's soft labels count beside InfoNCE, for a query set that has them (queries mine "
        "--teacher): the loss is (1 - distil) InfoNCE + distil KL(teacher || retriever).",
        reason="Off: the paper trains on InfoNCE alone.", minimum=0.0, maximum=1.0, advanced=True,
    )
    steps: int | None = option(
        None,
        "Number of optimiser steps; replaces epochs. Empty: the epochs decide; in a study, those of its largest "
        "training, and at least 90, are the steps of every training.",
        reason="Fewer steps for fewer pairs would compare lengths of training, not queries.",
        unit="steps", minimum=1, advanced=True,
    )
    query_sparsity: float | None = option(
        None,
        "Of a sparse retriever: the weight of the FLOPS penalty on its queries' word weights. Empty: 0.0003; more "
        "makes queries shorter and search faster.",
        reason="Empty: that of SPLADE-max (Formal et al. 2021, arXiv 2109.10086).", minimum=0.0, maximum=10.0,
        advanced=True,
    )
    document_sparsity: float | None = option(
        None,
        "The same for documents. Empty: 0.0001; more makes the index smaller.",
        reason="Empty: that of SPLADE-max.", minimum=0.0, maximum=10.0, advanced=True,
    )


class SynthesisConfig(Config):
    """Writing queries for the documents of a corpus."""

    corpus: str = CORPUS
    method: str = option(
        "diverse", "The synthesis method, by its name in the registry, or own for your own prompt.",
        reason="The paper's own method, and the one whose queries differ most from each other.",
    )
    per_doc: int = option(
        5, "Queries per document, per passage where files were cut (Q/Doc, M).",
        reason="The middle of the values that the paper compares: 1, 2, 5, 10, 20.", unit="queries", minimum=1,
        maximum=20,
    )
    endpoint: Client = member()
    prompt: str = option(
        "", "For method own: your prompt, with {document} and {M} in it. Stored with the query set.", advanced=True,
    )
    source: str = option("", "For method reasoning: the query set whose queries get their reasoning (its id).")
    limit: int | None = FIRST_DOCUMENTS
    draw: int | None = option(
        None, "Draw the documents of 'limit' at random with this seed; empty: the first ones.", minimum=0,
        advanced=True,
    )
    budget: float | None = BUDGET
    name: str = option("", "A name for the query set; made from corpus, method and Q/Doc if empty.")
    temperature: float = option(
        0.0, "Sampling temperature; the paper uses 0 for zero-shot prompts.",
        reason="The paper uses 0 for zero-shot prompts: the same document gives the same queries.", minimum=0.0,
        maximum=2.0, advanced=True,
    )
    logprobs: bool = option(
        False,
        "For methods that ask for one query per call, at an endpoint: keep the mean log-probability of each answer's "
        "tokens, by which the best queries can be kept afterwards (InPars' filter).",
        reason="Off: many endpoints refuse to give them, and only the filter needs them.", advanced=True,
    )
    output: str = option(
        "auto",
        "How the endpoint is asked to answer: json by a schema, list as a numbered list, auto by a schema where the "
        "endpoint takes one.",
        reason="Asks for a schema where it works, and falls back to a numbered list where it does not.",
        choices=("auto", "json", "list"), advanced=True,
    )
    ranker: str = option(
        "cross-encoder/ms-marco-MiniLM-L6-v2",
        "For dragon_s_paper: the cross-encoder that scores sentences against their document, a name or folder.",
        reason="A small, widely used cross-encoder for passages.", advanced=True, holds="model",
    )
    teachers: tuple[str, ...] = option(
        ("static-minilm", "minilm"),
        "For dragon_s_faithful: the retrievers that rank the corpus one after another, separated by commas.",
        reason="The two retrievers that come with the installation.", advanced=True, holds="retriever",
    )
    gpus: int | None = GPUS
    seed: int = seed_of("sampling and of the template generator's choices")

    def check(self) -> None:
        generator = self.endpoint.generator
        if self.logprobs and not registry("generator")[generator].endpoint:
            raise ConfigError(
                f"'logprobs' needs an endpoint that gives log-probabilities; the generator is {generator}.",
                hint="Set generator to openai, or leave logprobs off.",
            )


class JudgeConfig(Config):
    """Judging the pooled documents of target queries, by a language model or by people alone: a benchmark made of
    documents and queries."""

    corpus: str = option("", "The corpus that is searched (its id).")
    queries: str = option(
        "",
        "The target queries: a file (one per line, CSV with a column query, JSON Lines) or a query set's id. Empty: a "
        "model writes them.",
    )
    query_field: str = option(
        "", "In a file with columns: the one with the queries. Empty: query, queries, question, text … by their names.",
    )
    benchmark: str = option(
        "", "Instead of corpus and queries, with runs: a benchmark that was judged here. Without runs: one that people "
        "alone judged, which a model then judges as another benchmark, with their labels.", holds="benchmark",
    )
    name: str = option("", "What to call the benchmark; made from the corpus if empty.")
    retrievers: tuple[str, ...] = option(
        (BM25, "static-minilm"),
        "The retrievers whose first documents are judged, separated by commas; also api:MODEL@ADDRESS. Each is also "
        "fused with BM25 where that is among them.", reason="One by words and one by meaning, both here at once.",
        holds="retriever",
    )
    runs: tuple[str, ...] = option(
        (), "With a benchmark: evaluations and studies (job ids, separated by commas) whose first ten documents are "
        "judged too. Nothing is searched again.",
    )
    depth: int = option(
        10, "Documents of each retriever that are judged, per query.", reason="NDCG@10 reads ten.", unit="documents",
        minimum=1, maximum=100,
    )
    limit: int | None = option(
        200, "Draw (or have written) so many queries, in equal shares of CW and length. Empty: all that are given.",
        reason="With 200 queries differences of 5 points show, at the price of some thousand short answers.",
        unit="queries", minimum=1,
    )
    writer: str = option(
        "", "Where no queries are given: the model that writes them, at the judge's endpoint (for generator "
        "transformers a name or folder). Empty: the judge itself, which is warned of.", holds="model",
    )
    written_by: str = option(
        "", "Who wrote the queries: people, or a model's name. Empty: as a query set says, people for a file.",
    )
    endpoint: Judge = member()
    budget: float | None = BUDGET
    constant_judge: str = option(
        "warn", "If nearly all of the first 50 grades are the same: warn and go on, or stop before the rest is paid.",
        reason="It may be right: most documents of a pool can be about something else.", choices=("warn", "stop"),
        advanced=True,
    )
    gpus: int | None = ONE_GPU
    seed: int = seed_of("the drawn queries and the order of the pairs")

    def check(self) -> None:
        if bool(self.benchmark) == bool(self.corpus) or (self.benchmark and self.queries):
            raise ConfigError("Give a corpus, perhaps with queries, or a benchmark that was judged here.")
        if self.runs and not self.benchmark:
            raise ConfigError("Runs belong to a benchmark that was judged here.", hint="Set both.")
        if self.writes and self.endpoint.by_people:
            raise ConfigError("People judge queries that are given.", hint="Set queries to a file or a query set.")
        if self.writes and self.limit is None:
            raise ConfigError("How many queries is the model to write?", hint="Set limit, for example to 200.")
        if not (self.endpoint.by_people or registry("generator")[self.endpoint.generator].is_llm):
            raise ConfigError(
                f"The generator {self.endpoint.generator} cannot judge.",
                hint="Set generator to openai (an endpoint), transformers (a local model) or people.",
            )
        if not self.retrievers:
            raise ConfigError("No retriever is named.", hint="For example: bm25, static-minilm.")

    def budget_after(self, paid: float) -> float | None:
        """What is left of the budget, in US dollars; None without one."""
        return None if self.budget is None else self.budget - paid

    @property
    def writes(self) -> bool:
        """Return True if a model writes the target queries."""
        return not (self.benchmark or self.queries)

    @property
    def synthesis(self) -> SynthesisConfig:
        """The settings of what answers, as the generators read them."""
        # A judge draws nothing: the seed is that of the queries and of the order.
        return SynthesisConfig(corpus="judged", endpoint=self.endpoint, gpus=self.gpus)

    def writing(self, prompt: str, per_doc: int, documents: int) -> SynthesisConfig:
        """The settings of what writes the target queries for ``documents`` drawn at random."""
        usual = Client.settings()["max_output_tokens"].default
        return SynthesisConfig(
            corpus=self.corpus, method="own", prompt=prompt, per_doc=per_doc, limit=documents, draw=self.seed,
            endpoint=self.endpoint.replace(model=self.writer or self.endpoint.model, max_output_tokens=usual),
            budget=self.budget, name=f"Target queries of {self.name}", gpus=self.gpus, seed=self.seed,
        )


class MetricsConfig(Config):
    """Model-based Q-D metrics of a query set: Dist-Sim and the paraphrase ratio."""

    query_set: str = QUERY_SET
    scoring: Scoring = member()
    per_doc: int | None = option(
        None, "Use only this many queries of each document, the first ones.", unit="queries", minimum=1, maximum=20,
    )
    max_documents: int | None = MAX_DOCUMENTS
    threshold: float | None = option(
        None,
        "A pair scoring above this counts as paraphrases; 0.5 for the cross-encoder (the paper's), the calibrated "
        "value for the stand-in.", minimum=0.0, maximum=1.0, advanced=True,
    )


class PromptTuningConfig(Config):
    """Choosing a prompt on a sample of the corpus (Algorithm 1): candidates, metrics, distance to the target, cost."""

    corpus: str = CORPUS
    methods: tuple[str, ...] = option(
        ("diverse", "paraphrase"), "The candidate methods, separated by commas; prompts of your own come on top.",
        reason="The paper's two zero-shot prompts: one for diversity, one as its opposite.",
    )
    target: str = option(
        "ood", "ood: different queries, CE and Self-BLEU both below 0.5; in-domain: alike ones, both above 0.5.",
        reason="Retrieval outside the training domain is what diversity helps most.", choices=("ood", "in-domain"),
    )
    documents: int = option(
        100, "Documents drawn at random, the same for each candidate.",
        reason="The size of the sample in the paper's Algorithm 1.", unit="documents", minimum=2,
    )
    per_doc: int = altered(SynthesisConfig, "per_doc", minimum=2, reason="As for the synthesis that follows.")
    endpoint: EndpointSettings = member()
    scoring: Scoring = member()


class RoundTripConfig(Config):
    """Round-trip ranks of a query set: at which rank each query finds the document that it was written for."""

    query_set: str = QUERY_SET
    by: str = BY
    gpus: int | None = ONE_GPU


class FilterConfig(Config):
    """A query set without the queries that fail a test; the set itself stays as it is."""

    query_set: str = QUERY_SET
    round_trip_rank: int | None = option(
        None,
        "Keep queries that find the document they were written for among the first of the corpus, up to this rank. "
        "No such test if empty.", minimum=1, maximum=100,
    )
    by: str = BY
    cross_encoder: str = option(
        "",
        "A cross-encoder that scores each query with its document from 0 to 1, by name or folder. No such test if "
        "empty.", holds="model",
    )
    at_least: float | None = option(
        None, "Keep queries that the cross-encoder scores so high or higher.", minimum=0.0, maximum=1.0,
    )
    usable: bool = option(
        False,
        "Leave out unusable queries (refusals, the prompt, fragments of JSON, another language) and repetitions of an "
        "earlier query of the document.", reason="Off: each filter is asked for by itself.",
    )
    name: str = option("", "A name for the new set; made from the set's and the filter if empty.")
    gpus: int | None = ONE_GPU

    def check(self) -> None:
        if self.round_trip_rank is None and not self.cross_encoder and not self.usable:
            raise ConfigError(
                "No filter criterion given.", hint="Set round_trip_rank, cross_encoder with at_least, or usable."
            )
        if bool(self.cross_encoder) != (self.at_least is not None):
            raise ConfigError(
                "cross_encoder and at_least must be set together.",
                hint="Set both cross_encoder and at_least, or neither.",
            )

    @property
    def text(self) -> str:
        """The tests in one word, as manifests keep them: ``usable&bm25@10``, ``MODEL>=0.5``."""
        tests = [USABLE] if self.usable else []
        if self.round_trip_rank is not None:
            tests.append(f"{self.by}@{self.round_trip_rank}")
        if self.cross_encoder and self.at_least is not None:
            tests.append(f"{self.cross_encoder}>={self.at_least:g}")
        return JOINT.join(tests)


class MiningConfig(Config):
    """A copy of a query set with hard negatives for its queries; the set itself stays as it is."""

    query_set: str = QUERY_SET
    retriever: str = option(
        "static-minilm", "Retriever that finds candidate negatives: a preset, a training's id or name, a model's name "
        "or folder, or api:MODEL@ADDRESS.",
        reason="It comes with the installation and takes seconds on a CPU.", holds="retriever",
    )
    negatives: int = option(
        5, "Hard negatives per query.", reason="More than a training takes, so that it can choose.", minimum=1,
        maximum=100,
    )
    range_min: int = option(
        10, "Skip this many of the nearest documents: they are often answers without a judgment.",
        reason="As sentence-transformers' own example has it.", unit="documents", minimum=0, maximum=10000,
    )
    range_max: int = option(
        50, "Take negatives from this many nearest documents.", reason="Further ones are easy.", unit="documents",
        minimum=1, maximum=10000,
    )
    relative_margin: float | None = option(
        0.05,
        "Leave out documents whose similarity is above (1 - margin) of the own document's. No such rule if empty.",
        reason="TopK-PercPos with 95%, which NV-Retriever found to work best.", minimum=0.0, maximum=1.0,
    )
    teacher: str = option(
        "",
        "A retriever whose similarities of each query with its document and its negatives become soft labels for "
        "training with 'distil'; also api:MODEL@ADDRESS. None if empty.", holds="retriever",
    )
    cross_encoder: str = option(
        "", "A cross-encoder by name or folder that gives the soft labels, in place of 'teacher'.", holds="model",
    )
    name: str = option("", "A name for the new set; made from the set's and the retriever if empty.")
    budget: float | None = EMBEDDING_BUDGET
    gpus: int | None = ONE_GPU

    def check(self) -> None:
        if self.range_max - self.range_min < self.negatives:
            raise ConfigError(
                f"From rank {self.range_min} to {self.range_max} there are fewer than {self.negatives} documents.",
                hint="Raise range_max, or lower range_min or negatives.",
            )
        if self.teacher and self.cross_encoder:
            raise ConfigError("Soft labels come from 'teacher' or 'cross_encoder', not from both.")

    @property
    def text(self) -> str:
        """What was done, as the new set's manifest keeps it."""
        margin = "" if self.relative_margin is None else f", margin {self.relative_margin:g}"
        return f"{self.negatives} of ranks {self.range_min} to {self.range_max} by {self.retriever}{margin}"


class TrainingConfig(Config):
    """Training a retriever on a query set. None means: as the retriever's preset says."""

    query_set: str = QUERY_SET
    retriever: str = option(
        "static-minilm", "A preset, a training's id or name, or any model's name or folder.",
        reason="It comes with the installation and trains in seconds on a CPU.", holds="model",
    )
    weighting: str = option(
        "none",
        "Per-query weights in the loss: none, cw (content words of the query, Eq. 2), ri (reasoning intensity, from "
        "reasoned queries), ri-cw (their product), or column (a file of your own).",
        reason="The unweighted loss is what every weighting is compared with.", choices=Names("weighting"),
    )
    per_doc: int | None = altered(MetricsConfig, "per_doc", maximum=1000)
    max_documents: int | None = MAX_DOCUMENTS
    learning_rate: float | None = option(None, "Peak learning rate.", minimum=0.0, maximum=1.0)
    dev: Dev = member()
    loop: Loop = member()
    seed: int = seed_of("data order and initialisation", advanced=False)
    name: str = option("", "A name for the trained retriever; made from its inputs if empty.")
    kappa: float = option(
        100.0, "CW is capped at κ before it becomes a weight (Eq. 2).", reason="The paper's κ (Eq. 2).", minimum=1.0,
        advanced=True,
    )
    stopwords: str = option(
        "", "For cw: a stopword list of your own in place of each language's, a .txt file with a word per line (a path "
        "on this server).", advanced=True, holds="path",
    )
    reasoning: str = option(
        "", "The query set with the reasoned form q′ of each query (its id): for ri and ri-cw, and to train on.",
        advanced=True,
    )
    query_source: str = option(
        "query-only",
        "What to train on, if reasoned forms are given: query-only, the queries q; reasoning-only, their reasoned "
        "forms q′ in their stead; multi-query, both. RI is L(q, D) / L(q′, D) for either.",
        reason="Training on the queries themselves, as the paper does.",
        choices=("query-only", "reasoning-only", "multi-query"), advanced=True,
    )
    weights: str = option(
        "", "For column: a CSV, TSV or JSONL file with query_id and weight (a path on this server).", advanced=True,
        holds="path",
    )
    gpus: int | None = GPUS
    pairs: int | None = option(
        None, "Exactly this many pairs, of documents drawn at random by the seed.", unit="pairs", minimum=2,
    )
    beside: tuple[str, ...] = option(
        (), "Further query sets (ids or names) that are trained on together with it: a mix of languages or methods.",
        advanced=True,
    )  # fmt: skip
    tracker: str = TRACKER

    def check(self) -> None:
        if not self.beside:
            return
        alone = {"reasoning": self.reasoning, "pairs": self.pairs, "weights": self.weights, "distil": self.loop.distil,
                 "hard_negatives": self.loop.hard_negatives}  # fmt: skip
        if used := [name for name, value in alone.items() if value]:
            raise ConfigError(
                f"{', '.join(used)} and 'beside' do not go together.", hint="These are of a single query set."
            )


class EvaluationConfig(Config):
    """Evaluating a retriever on a benchmark in BEIR layout."""

    retriever: str = SEARCHED_WITH
    judged: JudgedOn = member()
    hybrid: bool = option(
        False, "Fuse its ranking with BM25's, by reciprocal rank fusion of the first top_k documents of both.",
        reason="Another retriever than the one that was named; its result is a row of its own.",
    )
    rerank: str = option(
        "",
        "What reorders the first documents of each query: a cross-encoder, by name or folder, or a multi-vector "
        "retriever (a preset, a training's id, a name or folder), by MaxSim. Empty for none.", holds="model",
    )
    rerank_depth: int | None = option(
        None, "Documents of each query that it reorders. Empty: 50 for a cross-encoder, 100 for a multi-vector "
        "retriever; evaluated by itself that one scores all documents.", unit="documents", minimum=1, maximum=10000,
        advanced=True,
    )
    protocol: str = PROTOCOL
    batch_size: int = option(
        128, "Texts encoded at once.", reason="Nothing is kept for gradients, so more texts fit than in training.",
        unit="texts", minimum=1, maximum=65536, advanced=True,
    )
    max_length: int | None = MAX_LENGTH
    top_k: int = option(
        100, "Documents kept per query.", reason="NDCG@10 needs 10; recall@100 needs 100.", unit="documents",
        minimum=10, maximum=10000, advanced=True,
    )
    precision: str = option(
        "auto", "Of the encoder. auto: half precision on a GPU, fp32 on CPU.",
        reason="Half precision is faster on a GPU; a CPU has no use for it.", choices=PRECISIONS, advanced=True,
    )
    allow_unknown: bool = option(
        False,
        "Evaluate although judgments name documents or queries that the benchmark lacks; such documents count as "
        "never retrieved, such queries are left out.",
        reason="Off: such judgments most often mean that the wrong files were put together.", advanced=True,
    )
    budget: float | None = EMBEDDING_BUDGET
    gpus: int | None = ONE_GPU

    def check(self) -> None:
        if (self.rerank_depth or 0) > self.top_k:
            raise ConfigError(f"'rerank_depth' is {self.rerank_depth}, and {self.top_k} documents are kept (top_k).")


class IndexConfig(Config):
    """Indexing a corpus for searching: the embeddings of its documents by a retriever, or its BM25 index."""

    retriever: str = SEARCHED_WITH
    corpus: str = CORPUS
    budget: float | None = EMBEDDING_BUDGET


class DownloadConfig(Config):
    """Bringing a benchmark of the registry into the workspace."""

    benchmark: str = option(REQUIRED, "A benchmark of the registry.")
    revision: str = option(
        "",
        "A branch, tag or commit of its (first) repository. Empty: the commit of its main branch now, which is then "
        "kept.",
    )
    folder: str = option(
        "", "Take it from this folder on the server, where it was downloaded to, not from the hub.", holds="path",
    )

    def check(self) -> None:
        if self.folder and self.revision:
            raise ConfigError("A folder has no revisions to choose from.", hint="Give either a folder or a revision.")


class ResultImportConfig(Config):
    """Results of a retriever that was not evaluated here."""

    path: str = option(
        REQUIRED, "A TREC run (query Q0 document rank score tag), MTEB's predictions or results; also .gz.",
        holds="path",
    )  # fmt: skip
    retriever: str = option(REQUIRED, "What the retriever is called in results; no preset and no training job.")
    judged: JudgedOn = member()
    protocol: str = PROTOCOL


# The environment variable that holds the token. It is never an argument: every account can read those.
TOKEN = "CDP_SERVE_TOKEN"


class ServingConfig(Config):
    """Search and embeddings over HTTP."""

    retriever: str = SEARCHED_WITH
    corpus: str = option("", "A corpus to search. Empty: embeddings only.")
    name: str = option("", "What callers write as model. Empty: the retriever's name; of a folder, its last part.")
    host: str = option(
        "127.0.0.1", "The address to listen on; any other than loopback needs a token.",
        reason="Only this machine can ask.",
    )
    port: int = option(
        8600, "The port; 0 takes a free one and prints it.",
        reason="Beside the dashboard's 8501, and away from the ports of usual development servers.", minimum=0,
        maximum=65535,
    )
    token_file: str = option(
        "", f"A file that holds the token. Empty: {TOKEN} of the environment, if that is set.", holds="path",
    )
    allowed_hosts: tuple[str, ...] = option(
        (), "Further host names by which it may be called, separated by commas; they need a token.",
    )
    device: str = option(
        "cpu", "Where the model runs.", reason="A training finds its GPU free; auto takes one if there is one.",
        choices=("cpu", "auto"),
    )
