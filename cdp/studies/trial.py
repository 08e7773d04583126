"""The test on one's own data: a study with good defaults, made as large as a few minutes and a few dollars allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdp.base.config import AT_ONCE
from cdp.base.registry import Names
from cdp.base.settings import REQUIRED, Config, option
from cdp.studies.config import BOTH, StudyConfig
from cdp.studies.estimate import STARTING_S, WRITTEN_PER_S, Speed
from cdp.studies.plan import StudySource, conditions

METHODS = "diverse, paraphrase"

# (Q/Doc, seeds) from the most telling to the quickest; never fewer than two seeds.
SHAPES = (("1, 2, 5", "0, 1, 2"), ("1, 5", "0, 1, 2"), ("1, 5", "0, 1"))

# With fewer documents a smaller shape is taken, if it allows more.
LEAST_DOCUMENTS = 200


class TrialConfig(Config):
    """The test on one's own data: what is asked of the user, each with a default."""

    corpus: str = option(REQUIRED, "The corpus to train on (its id).")
    benchmark: str = option(
        "", "Whose judged queries decide; empty: the project's, else people's of the corpus, else template queries.",
        holds="benchmark",
    )  # fmt: skip
    split: str = option("", "The split that decides; empty: dev, and test only where there is no other.")
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
    minutes: float = option(
        3.0, "How long the test may take on this machine: it takes as many documents as that allows.",
        reason="Short enough to wait for, long enough for three seeds of ten trainings on two cores.", unit="minutes",
        minimum=0.2, maximum=1440.0,
    )  # fmt: skip
    spend: float = option(
        1.0, "At most so much for queries that an LLM writes: documents are left out, and the run stops there.",
        reason="Enough for a few hundred documents with a small model.", unit="US dollars", minimum=0.01,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Size:
    """How large a test is: documents, Q/Doc, seeds, and how long it takes in all. ``fits`` is whether that is within
    the time asked for."""

    documents: int
    per_doc: str
    seeds: str
    seconds: float
    fits: bool


def sized(config: TrialConfig, *, documents: int, texts: int, speed: Speed, epochs: int, there: bool = False) -> Size:
    """The largest test that fits, of at most ``documents``; the smallest where none does.

    ``texts`` are the benchmark's queries and documents, ``speed`` and ``epochs`` the retriever's, ``there`` whether the
    queries are written already.
    """
    sizes = []
    for per_doc, seeds in SHAPES:
        low, high = min(documents, 20), documents
        while low < high:  # the seconds grow with the documents
            middle = -(-(low + high) // 2)
            if seconds_of(config, middle, per_doc, seeds, texts, speed, epochs, there) <= 60 * config.minutes:
                low = middle
            else:
                high = middle - 1
        seconds = seconds_of(config, low, per_doc, seeds, texts, speed, epochs, there)
        size = Size(low, per_doc, seeds, seconds, seconds <= 60 * config.minutes)
        if size.fits and low >= min(documents, LEAST_DOCUMENTS):
            return size
        sizes.append(size)
    return max(sizes, key=lambda size: (size.fits, size.documents, -size.seconds))


def seconds_of(
    config: TrialConfig, documents: int, per_doc: str, seeds: str, texts: int, speed: Speed, epochs: int, there: bool
) -> float:
    """How long a test of this size takes: starting, writing by template, encoding, and every training."""
    study = study_of(config, "any", Size(documents, per_doc, seeds, 0.0, True))
    sources = [StudySource(name, name, n_documents=documents) for name in ("diverse", "paraphrase")]
    evaluation = speed.encoding_seconds(texts)
    seconds = STARTING_S + (0.0 if there else documents / WRITTEN_PER_S) + 2 * evaluation
    for c in conditions(study, sources):
        pairs = c.budget or documents * c.per_doc
        seconds += evaluation + speed.training_seconds(pairs * epochs)
    return seconds


def study_of(config: TrialConfig, judged_by: str, size: Size, *, name: str = "", spend: bool = False) -> StudyConfig:
    """The study that a test is. ``judged_by`` is its ``benchmark:split``; ``spend`` whether the budget is kept, which
    takes a model with a known price."""
    return StudyConfig.from_dict(
        {
            "benchmarks": judged_by,
            "corpus": config.corpus,
            "methods": METHODS,
            "generator": config.generator,
            **({"model": config.model} if config.model else {}),
            "base_url": config.base_url,
            "per_doc": size.per_doc,
            "design": BOTH,
            "max_documents": size.documents,
            "retrievers": config.retriever,
            "seeds": size.seeds,
            "bm25": True,
            "spend": config.spend if spend else None,
            "name": name,
        }
    )


def judging_split(splits: Sequence[str], asked: str = "") -> tuple[str, str]:
    """(split, what has to be said of it): dev, else one that is not test, and test only where there is no other."""
    if asked:
        return asked, TEST_SEEN if asked == "test" else ""
    for name in ("dev", "validation", "valid", "val"):
        if name in splits:
            return name, ""
    others = [name for name in splits if name != "test"]
    if others:
        return others[0], f"There is no dev split, so the {others[0]} split decides: do not train on its queries later."
    return splits[0], TEST_SEEN


TEST_SEEN = (
    "Only the test split is there, so it decides: whatever is chosen by it, its scores are no longer those of unseen "
    "queries."
)
