"""What ``cdp plan`` and the section on Launch ask: settings, each with a default and its reason."""

from __future__ import annotations

from cdp.base.registry import Names
from cdp.base.settings import Config, option
from cdp.planning.known import TYPICAL_CHARACTERS


class PlanConfig(Config):
    """A run that is planned: documents, queries, retriever, machines."""

    documents: str = option(
        "", "How many documents: 8000, 80k, 8.8M, 1B. Empty: those of the corpus, or 8,000 without one."
    )
    corpus: str = option("", "A corpus whose documents are like those planned for: its number and their length.")
    characters: int = option(
        TYPICAL_CHARACTERS,
        "Mean length of a document, where no corpus is named.",
        reason="A paragraph of a hundred words.",
        unit="characters",
        minimum=1,
        maximum=10**9,
    )
    per_doc: int = option(
        5, "Queries per document (Q/Doc).", reason="The middle of the paper's range.", minimum=1, maximum=1000
    )
    method: str = option(
        "diverse", "How the queries are written.", reason="What the paper recommends.", choices=Names("method")
    )
    generator: str = option(
        "template",
        "What writes them: template, recorded, openai:MODEL (any OpenAI-compatible endpoint), transformers:MODEL.",
        reason="Free, and needs no network.",
    )
    retriever: str = option(
        "static-minilm",
        "The retriever: a preset, a training job, or a model's name on the hub.",
        reason="It comes with the installation, and its speed is known.",
        holds="model",
    )
    epochs: int | None = option(None, "Passes over the pairs; empty: the retriever's default.", minimum=1, maximum=1000)
    queries: int = option(
        1000,
        "Queries that the trained retriever is evaluated with.",
        reason="As many as a usual test split has.",
        minimum=0,
        maximum=10**9,
    )
    machines: int = option(1, "How many machines.", reason="This one.", minimum=1, maximum=100_000)
    cpus: int | None = option(None, "Processors of each machine; empty: as many as this one has.", minimum=1)
    gpus: int = option(0, "GPUs of each machine.", reason="Nothing here needs one.", minimum=0, maximum=1000)
    memory_gb: float | None = option(None, "Memory of each machine; empty: not compared.", unit="GB", minimum=0.1)
    dollars_per_hour: float | None = option(
        None, "Price of one machine for an hour; empty: not counted.", unit="US dollars", minimum=0.0
    )
    rates: str = option(
        "",
        "Rates that you have measured elsewhere, separated by commas: encoding=1200, training=900..1100 (texts and "
        "pairs per second of one GPU, or of one machine without).",
    )
    measured_on: str = option(
        "",
        "Another machine that has measured its rates into this workspace (plan --measure, or Measure this machine, "
        "there); empty: this one.",
    )
