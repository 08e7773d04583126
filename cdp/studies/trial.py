"""The test on one's own data: a study with good defaults."""

from __future__ import annotations

from collections.abc import Sequence

from cdp.base.config import AT_ONCE
from cdp.base.registry import Names
from cdp.base.settings import REQUIRED, Config, option
from cdp.studies.config import BOTH, StudyConfig

METHODS = "diverse, paraphrase"


class TrialConfig(Config):
    """The test on one's own data: what is asked of the user, each with a default."""

    corpus: str = option(REQUIRED, "The corpus to train on (its id).")
    benchmark: str = option(
        "", "Whose judged queries decide; empty: the project's, else people's of the corpus, else template queries.",
        holds="benchmark",
    )  # fmt: skip
    split: str = option("", "The split that is reported; empty: test, or the only one.")
    generator: str = option(
        "template", "What writes the queries that are missing.", reason=AT_ONCE,
        choices=Names("generator", leave_out=("transformers",)),
    )  # fmt: skip
    model: str = option("", "The model's name at the endpoint (generator openai).", holds="model")
    base_url: str = option(
        "", "The endpoint's address (generator openai). Empty: CDP_BASE_URL, else OPENAI_BASE_URL, else OpenAI itself.",
        holds="endpoint",
    )  # fmt: skip
    retriever: str = option(
        "static-minilm", "The retriever to train.",
        reason="It comes with the installation and trains in seconds on a CPU.",
    )  # fmt: skip
    per_doc: int = option(
        5, "Queries per document (M) that one query is compared with.",
        reason="The paper's gains from diverse queries flatten after five.", unit="queries", minimum=2, maximum=100,
    )  # fmt: skip
    documents: int | None = option(
        None, "So many documents, drawn at random. Empty: all, at most 1,000.",
        reason="Gains of a thousand documents are told apart in minutes; more cost time and queries.",
        unit="documents", minimum=2,
    )  # fmt: skip
    minutes: float = option(
        10.0, "How long the test may take on this machine. One that takes longer is not started.",
        reason="Long enough for three seeds of six trainings on two cores.", unit="minutes", minimum=0.2,
        maximum=1440.0,
    )  # fmt: skip
    spend: float = option(
        1.0, "At most so much for queries that an LLM writes. A test that costs more is not started.",
        reason="Enough for a few hundred documents with a small model.", unit="US dollars", minimum=0.01,
    )  # fmt: skip


# Splits that choose, the usual name first.
DEV_SPLITS = ("dev", "validation", "valid", "val")


def reported_split(splits: Sequence[str]) -> str:
    """The split that results are reported on: test, else one that is named as dev, else the first."""
    return next((name for name in ("test", *DEV_SPLITS) if name in splits), splits[0])


def study_of(
    config: TrialConfig, test: str, dev: str, documents: int, *, human: str = "", name: str = "", spend: bool = False
) -> StudyConfig:
    """The study that a test is: on so many documents, reported on ``test`` with checkpoints by ``dev`` (name:split).

    ``human`` is a query set of people that is trained on too; ``spend`` whether the budget is kept, which takes a model
    with a known price.
    """
    return StudyConfig.from_dict(
        {
            "benchmarks": test,
            "dev": dev,
            "query_sets": human,
            "corpus": config.corpus,
            "methods": METHODS,
            "generator": config.generator,
            **({"model": config.model} if config.model else {}),
            "base_url": config.base_url,
            "per_doc": f"1, {config.per_doc}",
            "design": BOTH,
            "max_documents": documents,
            "retrievers": config.retriever,
            "seeds": "0, 1, 2",
            "bm25": True,
            "hybrid": True,
            "spend": config.spend if spend else None,
            "name": name,
        }
    )
