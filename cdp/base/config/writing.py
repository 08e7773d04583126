"""Settings of the jobs that write queries and measure them."""

from __future__ import annotations

from cdp.base.config.shared import AT_ONCE, CONCURRENCY, PAIRS_AT_ONCE, seed_of
from cdp.base.errors import ConfigError
from cdp.base.registry import Names, registry
from cdp.base.settings import REQUIRED, Config, option


class SynthesisConfig(Config):
    """Writing queries for the documents of a corpus."""

    corpus: str = option(REQUIRED, "The corpus whose documents get queries (its id).")
    method: str = option(
        "diverse",
        "The synthesis method, by its name in the registry, or own for your own prompt.",
        reason="The paper's own method, and the one whose queries differ most from each other.",
    )
    per_doc: int = option(
        5,
        "Queries per document (Q/Doc, M).",
        reason="The middle of the values that the paper compares: 1, 2, 5, 10, 20.",
        unit="queries",
        minimum=1,
        maximum=20,
    )
    generator: str = option(
        "template",
        "What writes the queries: template needs no LLM, recorded replays the demo collection's queries, "
        "openai calls any endpoint that speaks the OpenAI chat protocol, transformers runs a local model.",
        reason=AT_ONCE,
        choices=Names("generator"),
    )
    model: str = option(
        "",
        "The model: its name at the endpoint (gpt-4o-mini if empty), or for generator transformers a name or folder "
        "(mistralai/Mistral-7B-Instruct-v0.3 if empty).",
        holds="model",
    )
    base_url: str = option(
        "",
        "The endpoint's address: http://localhost:8000/v1 for vLLM. Empty: CDP_BASE_URL, else OPENAI_BASE_URL, else "
        "OpenAI itself.",
        holds="endpoint",
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
    draw: int | None = option(
        None, "Draw the documents of 'limit' at random with this seed; empty: the first ones.", minimum=0, advanced=True
    )
    budget: float | None = option(
        None, "Stop the run when it has cost this much, by the price table.", unit="US dollars", minimum=0.0
    )
    name: str = option("", "A name for the query set; made from corpus, method and Q/Doc if empty.")
    concurrency: int = CONCURRENCY
    temperature: float = option(
        0.0,
        "Sampling temperature; the paper uses 0 for zero-shot prompts.",
        reason="The paper uses 0 for zero-shot prompts: the same document gives the same queries.",
        minimum=0.0,
        maximum=2.0,
        advanced=True,
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
        reason="Off: many endpoints refuse to give them, and only the filter needs them.",
        advanced=True,
    )
    max_output_tokens: int = option(
        2048,
        "Longest answer accepted per request.",
        reason="Twenty queries take well under 1,000 tokens; the rest is room for reasoning.",
        unit="tokens",
        minimum=16,
        maximum=32768,
        advanced=True,
    )
    max_document_tokens: int = option(
        2048,
        "Longer documents are cut at the end of a sentence before they are sent; the cut is recorded.",
        reason="Passages stay whole, and the price of a long document is bounded.",
        unit="tokens",
        minimum=64,
        maximum=131072,
        advanced=True,
    )
    timeout: float = option(
        60.0,
        "Longest wait for one answer.",
        reason="A slow answer arrives, and a dead endpoint is noticed within a minute.",
        unit="seconds",
        minimum=1.0,
        maximum=3600.0,
        advanced=True,
    )
    retries: int = option(
        5,
        "Further tries after a rate limit, a server error or a timeout.",
        reason="The waits grow with each try, which outlasts a rate limit or a restart of the endpoint.",
        minimum=0,
        maximum=20,
        advanced=True,
    )
    output: str = option(
        "auto",
        "How the endpoint is asked to answer: json by a schema, list as a numbered list, auto by a schema where the "
        "endpoint takes one.",
        reason="Asks for a schema where it works, and falls back to a numbered list where it does not.",
        choices=("auto", "json", "list"),
        advanced=True,
    )
    batch_size: int = option(
        16,
        "Prompts that a local model answers at once.",
        reason="More at once is faster and takes more memory; this many prompts fit on a large GPU.",
        unit="prompts",
        minimum=1,
        maximum=4096,
        advanced=True,
    )
    ranker: str = option(
        "cross-encoder/ms-marco-MiniLM-L6-v2",
        "For dragon_s_paper: the cross-encoder that scores sentences against their document, a name or folder.",
        reason="A small, widely used cross-encoder for passages.",
        advanced=True,
        holds="model",
    )
    teachers: str = option(
        "static-minilm, minilm",
        "For dragon_s_faithful: the retrievers that rank the corpus one after another, separated by commas.",
        reason="The two retrievers that come with the installation.",
        advanced=True,
        holds="models",
    )
    gpus: int | None = option(
        None,
        "GPUs for a local model; one if there is one and this is empty, 0 for CPU. Several share one large model.",
        minimum=0,
        advanced=True,
    )
    seed: int = seed_of("sampling and of the template generator's choices")

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


class MetricsConfig(Config):
    """Model-based Q-D metrics of a query set: Dist-Sim and the paraphrase ratio."""

    query_set: str = option(REQUIRED, "The query set to measure (its id).")
    human: str = option("", "A query set with human queries for the same documents, for Dist-Sim (its id).")
    scorer: str = option(
        "auto",
        "What scores a pair of queries as paraphrases. auto: the cross-encoder where it can be loaded, else the "
        "bi-encoder stand-in; otherwise a cross-encoder's name or folder, or bi-encoder.",
        reason="The cross-encoder is what the paper's CE means; the stand-in has its own name.",
        holds="model",
    )
    encoder: str = option(
        "minilm",
        "The retriever that embeds queries for Dist-Sim and embedding diversity: a preset, name or folder.",
        reason="It comes with the installation; the paper's BGE-M3 can be named instead.",
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
        reason="With it the means of CW come out as in the paper.",
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
    batch_size: int = PAIRS_AT_ONCE
    seed: int = seed_of("the sample and of the bootstrap")


class PromptTuningConfig(Config):
    """Choosing a prompt on a sample of the corpus (Algorithm 1): candidates, metrics, distance to the target, cost."""

    corpus: str = option(REQUIRED, "The corpus whose documents the candidates are tried on (its id).")
    methods: str = option(
        "diverse,paraphrase",
        "The candidate methods, separated by commas; prompts of your own come on top.",
        reason="The paper's two zero-shot prompts: one for diversity, one as its opposite.",
    )
    target: str = option(
        "ood",
        "ood: different queries, CE and Self-BLEU both below 0.5; in-domain: alike ones, both above 0.5.",
        reason="Retrieval outside the training domain is what diversity helps most.",
        choices=("ood", "in-domain"),
    )
    documents: int = option(
        100,
        "Documents drawn at random, the same for each candidate.",
        reason="The size of the sample in the paper's Algorithm 1.",
        unit="documents",
        minimum=2,
    )
    per_doc: int = option(
        5,
        "Queries per document (Q/Doc, M).",
        reason="As for the synthesis that follows.",
        unit="queries",
        minimum=2,
        maximum=20,
    )
    generator: str = option(
        "template",
        "What writes the queries.",
        reason=AT_ONCE,
        choices=Names("generator"),
    )
    model: str = option("", "The model's name for that generator; its default if empty.", holds="model")
    base_url: str = option(
        "",
        "The endpoint's address. Empty: CDP_BASE_URL, else OPENAI_BASE_URL, else OpenAI itself.",
        holds="endpoint",
    )
    human: str = option("", "A query set with human queries for the corpus, for Dist-Sim and Len-Sim (its id).")
    scorer: str = option(
        "auto",
        "What scores a pair of queries as paraphrases, as for the Q-D metrics.",
        reason="As for the Q-D metrics.",
        advanced=True,
        holds="model",
    )
    encoder: str = option(
        "minilm",
        "The retriever that embeds queries for Dist-Sim.",
        reason="It comes with the installation, as for the Q-D metrics.",
        advanced=True,
        holds="model",
    )
    concurrency: int = CONCURRENCY
    max_document_tokens: int = option(
        2048,
        "Longer documents are cut before they are sent.",
        reason="As for the synthesis that follows.",
        unit="tokens",
        minimum=64,
        maximum=131072,
        advanced=True,
    )
    batch_size: int = PAIRS_AT_ONCE
    seed: int = seed_of("the sample and of the bootstrap")

    def synthesis(self, method: str, prompt: str = "") -> SynthesisConfig:
        """The settings under which a candidate writes its queries: those that both kinds of job share."""
        shared = ("corpus", "per_doc", "generator", "model", "base_url", "concurrency", "max_document_tokens")
        values = {name: value for name in shared if (value := getattr(self, name)) != ""}
        return SynthesisConfig.from_dict({**values, "method": method, "prompt": prompt})
