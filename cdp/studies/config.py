"""Study settings and defaults: designs, losses, reading plan files, learning-rate grid; the test as a plan."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cdp.base.condition import EQUAL_DOCUMENTS, EQUAL_PAIRS, INFONCE, QUERY_ONLY
from cdp.base.config import (
    CORPUS,
    MAX_DOCUMENTS,
    ONE_GPU,
    PROTOCOL,
    TRACKER,
    EndpointSettings,
    JudgeConfig,
    JudgedOn,
    Loop,
    TrainingConfig,
)
from cdp.base.errors import ConfigError, InputError, offer
from cdp.base.registry import Names, registry
from cdp.base.settings import REQUIRED, Config, altered, member, option
from cdp.base.text import typed_path
from cdp.base.workspace import RECORDS, SHIPPED_DATA

PLANS = SHIPPED_DATA / "plans"

# The plan of the test on one's own data; its defaults run on the demo collection.
OWN_DATA = "own-data"

# Beside the plans: the claims that the reproduction judges, with their criteria. No plan.
CLAIMS = "claims"

# Combinations of a study: at a minute each, a week.
MAX_TRAININGS = 10_000

# Bytes of a plan; the shipped ones have a thousand.
LARGEST_PLAN = 100_000

EMPTY = ("", "~", "null")

BOTH = "documents and pairs"
DESIGNS = (EQUAL_DOCUMENTS, EQUAL_PAIRS, BOTH)

# What a pair is compared with in the loss: the documents of its batch; its mined hard negatives as well; or a teacher's
# scores of its document and the hard negatives, in place of InfoNCE.
HARD_NEGATIVES, DISTIL = "hard-negatives", "distil"
LOSSES = (INFONCE, HARD_NEGATIVES, DISTIL)


def loss_of(hard_negatives: object, distil: object) -> str:
    """Return the loss of a training with these settings, as studies name it."""
    if distil:
        return DISTIL
    return HARD_NEGATIVES if hard_negatives else INFONCE


# Whose models a study keeps: of no training, of its winning option, or of every option the best seed.
NONE, BEST, ALL = "none", "best", "all"

# Where so many queries have no content word, the language is probably another one.
DOUBTFUL = 0.5

# Splits that choose, the usual name first.
DEV_SPLITS = ("dev", "validation", "valid", "val")


class Writer(EndpointSettings):
    """A writer of the queries that a study lacks."""

    generator: str = altered(
        EndpointSettings, "generator", help="What writes missing queries.",
        choices=Names("generator", leave_out=("transformers",)),
    )  # fmt: skip
    model: str = altered(
        EndpointSettings, "model",
        help="The model's name at the endpoint (generator openai). Empty: the generator's default.",
    )  # fmt: skip


class StudyConfig(Config):
    """The paper's experiment on one's own data: each combination is trained and evaluated. Commas separate lists."""

    benchmarks: tuple[str, ...] = option(
        REQUIRED, "Benchmarks to evaluate on, as name or name:split.", holds="benchmark",
    )  # fmt: skip
    query_sets: tuple[str, ...] = option((), "Query sets to train on (ids or names).")
    corpus: tuple[str, ...] = option(
        (), "The corpora that methods write queries for (ids or names); needed with methods only.",
    )  # fmt: skip
    methods: tuple[str, ...] = option(
        (), "Synthesis methods to train on; queries that are missing are generated first.",
    )  # fmt: skip
    endpoint: Writer = member()
    per_doc: tuple[int, ...] = option(
        (1, 2, 5, 10, 20), "Queries per document (Q/Doc, M) to compare: the first M of each document are taken.",
        reason="The values that the paper compares.", minimum=1,
    )  # fmt: skip
    design: str = option(
        "",
        "What is held equal between Q/Doc, beside the steps. equal documents: the same documents, so pairs grow with "
        "Q/Doc; equal pairs: the budget, so fewer documents at more queries each; documents and pairs: both, side by "
        "side. Empty: equal pairs with a budget, else equal documents.", choices=("", *DESIGNS),
    )  # fmt: skip
    budget: int | None = option(
        None, "Exactly so many queries at every Q/Doc, of documents drawn at random by seed (equal pairs).",
        unit="queries", minimum=2,
    )  # fmt: skip
    max_documents: int | None = MAX_DOCUMENTS
    weightings: tuple[str, ...] = option(
        ("none",),
        "Weightings of the loss to compare: none, cw; cw@6 caps the content words at κ = 6; ri and ri-cw where "
        "'reasoning' names reasoned queries.", reason="The unweighted loss is what every weighting is compared with.",
    )  # fmt: skip
    losses: tuple[str, ...] = option(
        (INFONCE,),
        "Losses to compare: infonce; hard-negatives, InfoNCE with mined ones besides; distil, a teacher's scores of "
        "each query's document and hard negatives.", reason="InfoNCE over the batch is what the paper trains.",
        choices=LOSSES, advanced=True,
    )  # fmt: skip
    teacher: str = option(
        "minilm",
        "For hard-negatives and distil: the retriever that mines and scores, where a query set has no hard negatives "
        "or soft labels of its own.",
        reason="It comes with the installation, and retrieves better than static-minilm.", holds="model", advanced=True,
    )  # fmt: skip
    query_sources: tuple[str, ...] = option(
        (QUERY_ONLY,),
        "What to train on, to compare: query-only; reasoning-only and multi-query where 'reasoning' names reasoned "
        "queries.", reason="The queries themselves, as the paper does.",
        choices=TrainingConfig.settings()["query_source"].choices, advanced=True,
    )  # fmt: skip
    reasoning: tuple[str, ...] = option(
        (),
        "For ri, ri-cw, reasoning-only and multi-query: the query sets with the reasoned forms of the queries that are "
        "trained on (ids or names), one for each query set.", advanced=True,
    )  # fmt: skip
    retrievers: tuple[str, ...] = option(
        ("static-minilm",), "Retrievers to train: presets, or models by name or folder.",
        reason="It comes with the installation and trains in seconds on a CPU.", holds="model",
    )  # fmt: skip
    choose: bool = option(
        False, "Train only the one of the retrievers that is best untrained on dev; the others stand beside it.",
        reason="Off: a study compares what its plan names.", advanced=True,
    )  # fmt: skip
    untrained: tuple[str, ...] = option(
        (), "Further retrievers that are evaluated untrained alone: presets, models, or behind an API.",
        holds="retriever",
    )  # fmt: skip
    layers: tuple[int, ...] = option(
        (), "Numbers of a transformer's upper layers to train, to compare (0: all). Empty: trained_layers.", minimum=0,
        maximum=1000, advanced=True,
    )  # fmt: skip
    seeds: tuple[int, ...] = option(
        (0, 1, 2), "Seeds: each combination is trained once per seed. One seed shows no spread.",
        reason="One seed shows no spread; three are the least that do so at all.", minimum=0,
    )  # fmt: skip
    spend: float | None = option(
        None, "At most so much for missing queries, in equal parts for each method, and as much for vectors from an "
        "API: what asks for them stops there.", unit="US dollars", minimum=0.01,
    )  # fmt: skip
    bm25: bool = option(
        False, "Evaluate BM25 on the same benchmarks, as a row beside the retrievers.",
        reason="Off: earlier plans have no row for BM25.",
    )  # fmt: skip
    hybrid: bool = option(
        False, "Evaluate the fusion of BM25 and each untrained retriever, as a row beside them.",
        reason="Off, as for BM25.",
    )  # fmt: skip
    fusion: bool = option(
        False,
        "Evaluate the fusion with BM25 by the share of scores that is best on dev, of each untrained retriever and of "
        "each training.", reason="Off, as for BM25.",
    )  # fmt: skip
    name: str = option("", "A name for the study.")
    in_domain: tuple[str, ...] = option(
        (),
        "Benchmarks (names) of the same source as the training documents, besides those that share documents with "
        "them: they are in no line through CW.", advanced=True,
    )  # fmt: skip
    same_language: bool = option(
        False,
        "Evaluate what is trained on queries of one language on the benchmarks of that language alone. The untrained "
        "retriever and BM25 are evaluated on all.", reason="Off: earlier plans evaluate on all benchmarks.",
        advanced=True,
    )  # fmt: skip
    criteria: str = option(
        "",
        "What would count as support for which claim, written before the run: kept with the plan, shown in the report.",
        advanced=True,
    )  # fmt: skip
    protocol: str = PROTOCOL
    dev: tuple[str, ...] = option(
        (),
        "The benchmark (name or name:split) that chooses each training's checkpoint; of several, one in the language "
        "of the training's queries. Empty: the dev split of the first benchmark (with same_language, of each); where "
        "it has none, a part of its queries is split off as dev and the others are reported.",
        reason="The paper keeps the checkpoint with the best dev NDCG@10; dev and test queries differ.",
        holds="benchmark",
    )  # fmt: skip
    training: Loop = member()
    learning_rate: tuple[float, ...] = option(
        (), "Peak learning rates to compare; the preset's own if empty.", minimum=1e-12, maximum=1.0, advanced=True,
    )  # fmt: skip
    keep: str = option(
        NONE, "Whose models stay at the end: of no training; best, the winning option's best seed by dev; all, of "
        "every option the best seed.", reason="Scores are kept anyway, and the same settings give the same model.",
        choices=(NONE, BEST, ALL), advanced=True,
    )  # fmt: skip
    gpus: int | None = ONE_GPU
    tracker: str = TRACKER

    @property
    def rates(self) -> list[float | None]:
        """The learning rates, ascending; None for the retriever's own."""
        return [*sorted(self.learning_rate)] or [None]

    @property
    def model_name(self) -> str:
        """The model that writes missing queries: as set, or the generator's default; empty where it is no LLM."""
        return self.endpoint.model_name if registry("generator").named(self.endpoint.generator).is_llm else ""

    def recorded(self) -> dict[str, Any]:
        """Return the settings that took part: a default must not read as the writer of queries that were there."""
        # Later settings stand in no earlier plan.
        later = {**Loop.settings()}
        later |= {
            name: self.settings()[name] for name in ("choose", "untrained", "layers", "fusion", "keep", "tracker")
        }

        values = self.to_dict()
        unused = {name for name, setting in later.items() if values.get(name) == setting.default}
        if self.losses == (INFONCE,):
            unused.add("teacher")
        if not self.methods:
            unused |= {"corpus", "generator", "model", "base_url"}
        elif self.model_name:
            values["model"] = self.model_name
        else:
            unused |= {"model", "base_url"}

        return {name: value for name, value in values.items() if name not in unused}

    @property
    def held_equal(self) -> str:
        """The design, one of ``DESIGNS``, where none is named too."""
        return self.design or (EQUAL_DOCUMENTS if self.budget is None else EQUAL_PAIRS)

    def check(self) -> None:
        needed = ("benchmarks", "per_doc", "weightings", "retrievers", "seeds")
        problems = [f"{name!r} is empty" for name in needed if not getattr(self, name)]
        if not self.query_sets and not self.methods:
            problems.append("neither 'query_sets' nor 'methods' names anything to train on")
        if self.methods and not self.corpus:
            problems.append("'methods' need a 'corpus' to write queries for")
        if self.design == EQUAL_PAIRS and self.budget is None:
            problems.append("equal pairs need a 'budget'")
        if self.design == BOTH and self.max_documents is None:
            problems.append(f"{BOTH} need 'max_documents': at one query each they are the pairs that are held equal")
        if self.design in (EQUAL_DOCUMENTS, BOTH) and self.budget is not None:
            problems.append(f"a 'budget' makes equal pairs, not {self.design}: use 'max_documents' instead")
        if self.layers and self.training.lora_rank is not None:
            problems.append("'layers' and 'lora_rank' are two ways to train less")
        if problems:
            raise ConfigError.from_problems(problems)

        compared = (
            self.retrievers, self.weightings, self.losses, self.query_sources, self.per_doc, self.seeds, self.rates,
            self.layers or (0,),
        )  # fmt: skip
        trainings = math.prod(map(len, compared)) * (len(self.query_sets) + len(self.methods))
        if self.design == BOTH:
            trainings *= 2
        if trainings > MAX_TRAININGS:
            raise ConfigError(
                f"The study would be {trainings:,} trainings, more than {MAX_TRAININGS:,}.",
                hint="Compare fewer of its lists at once.",
            )


# The paper's grid of learning rates (tab:lr_sensitivity).
RATES = (2e-7, 5e-7, 1e-6, 2e-6, 5e-6, 1e-5)

# The grid for a retriever whose own rate is not in the paper's: this many times its rate.
AROUND = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


def grid(default: float) -> tuple[float, ...]:
    """The paper's grid where it holds a retriever's default rate, else one around that rate."""
    if default in RATES:
        return RATES
    return tuple(float(f"{factor * default:.3g}") for factor in AROUND)


def read_rates(text: str) -> list[float]:
    """Return ``2e-7, 1e-6`` as ascending rates. ConfigError as for the setting ``learning_rate`` of a study."""
    return sorted(
        StudyConfig.from_dict({"benchmarks": "any", "query_sets": "any", "learning_rate": text}).learning_rate
    )


@dataclass(frozen=True, slots=True)
class ReadyMade:
    """A plan that comes with the installation. ``about`` says which question it answers."""

    name: str
    about: str
    file: Path

    @property
    def title(self) -> str:
        """The beginning of ``about``, up to its colon."""
        return self.about.partition(":")[0]


def ready_made() -> list[ReadyMade]:
    """The plans in ``data/plans``, by name."""
    return [RECORDS.get(file, "plan", partial(_ready_made, file)) for file in _plan_files()]


def _ready_made(file: Path) -> ReadyMade:
    about = str(_read(file).get("about", ""))
    return ReadyMade(file.stem, " ".join(about.split()), file)


def _plan_files() -> list[Path]:
    return sorted(file for file in PLANS.glob("*.yaml") if file.stem != CLAIMS)


def read_plan(source: str | Path, changes: Mapping[str, Any] | None = None) -> StudyConfig:
    """The plan in a YAML file, or a ready-made one by name, with some settings changed.

    Lists may be written as YAML lists, members as mappings. InputError for a file that is not there or is no mapping,
    ConfigError for unknown settings and values out of range.
    """
    file = typed_path(source)
    if not file.is_file() and (PLANS / f"{source}.yaml").is_file():
        file = PLANS / f"{source}.yaml"
    values = _read(file)
    about = values.pop("about", None)
    if not values.get("name"):
        values["name"] = file.stem
    if about is not None and not isinstance(about, str):
        raise InputError("'about' must be a sentence.", file=file)
    given = {name: value for name, value in values.items() if value not in EMPTY}
    return StudyConfig.from_dict({**given, **(changes or {})})


def stored(values: Mapping[str, Any]) -> StudyConfig:
    """The plan of a study that was run, maybe by an earlier version: settings that left do not keep it from being
    read."""
    names = {*StudyConfig.settings(), "training"}
    known = {name: value for name, value in values.items() if name in names and value is not None}
    if known.get("design") not in DESIGNS:
        known.pop("design", None)

    # Earlier versions kept further settings as one text, "scale=50, epochs=2"; only the loop's had an effect.
    for entry in str(known.pop("training", "")).split(","):
        name, is_setting, value = entry.partition("=")
        if is_setting and name.strip() in Loop.settings():
            known[name.strip()] = value

    return StudyConfig.from_dict(known)


def _read(file: Path) -> dict[str, Any]:
    """The settings in a file: names with texts and lists. InputError for a file that is no plan."""
    import yaml

    try:
        with open(file, "rb") as stream:
            data = stream.read(LARGEST_PLAN + 1)
        if len(data) > LARGEST_PLAN:
            raise InputError(f"is larger than a plan can be ({LARGEST_PLAN:,} bytes).", file=file)
        # Texts only: a query set may be called 2026-01-01, and no tag or merge key makes values of them.
        values = yaml.BaseLoader(data.decode("utf-8-sig")).get_single_data()
    except FileNotFoundError:
        plan_names = [f.stem for f in _plan_files()]
        listed = f"Ready-made ones: {', '.join(plan_names)}."
        raise InputError(f"There is no plan {file}.", hint=offer(file.stem, plan_names, instead=listed)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}.", file=file) from error
    except (yaml.YAMLError, RecursionError) as error:
        where = getattr(error, "problem_mark", None)
        line = where.line + 1 if where else None
        problem = getattr(error, "problem", None) or error
        raise InputError(f"is not valid YAML: {problem}.", file=file, line=line) from error

    if not isinstance(values, dict):
        raise InputError("is not a plan: it must hold settings as 'name: value' lines.", file=file)
    return values


class Reported(JudgedOn):
    """The judged queries that a test is reported on."""

    benchmark: str = altered(
        JudgedOn, "benchmark", default="",
        help="Whose judged queries decide; empty: the project's, else people's of the corpus, else template queries.",
    )  # fmt: skip
    split: str = altered(JudgedOn, "split", help="The split that is reported; empty: test, or the only one.")


class TrialConfig(Config):
    """The test on one's own data: what is asked of the user, each with a default."""

    corpus: str = CORPUS
    judged: Reported = member()
    endpoint: Writer = member()
    retriever: str = altered(
        TrainingConfig, "retriever", default="", help="The retriever to train. Empty: of those at hand that the time "
        "allows, the one that is best untrained on the dev queries.",
        reason="An answer is worth most about the retriever that will be used.",
    )  # fmt: skip
    untrained: tuple[str, ...] = option(
        (), "Further retrievers beside it, untrained: models, or one behind an API by its name. All that are at hand "
        "stand there anyway.", holds="retriever",
    )  # fmt: skip
    trained_layers: int | None = option(
        None, "How many of a transformer's layers are trained, the upper ones (0: all). Empty: 2 without a GPU, all "
        "with one.", reason="Two of six take a quarter of the time on a CPU.", minimum=0, maximum=1000,
    )  # fmt: skip
    per_doc: tuple[int, ...] = option(
        (5,), "Queries per document (M) that one query is compared with, the first of one set; 2, 5, 10 is the grid.",
        reason="The paper's gains from diverse queries flatten after five.", unit="queries", minimum=2, maximum=100,
    )  # fmt: skip
    documents: int | None = option(
        None, "So many documents, drawn at random. Empty: all, at most 1,000.",
        reason="A thousand documents show a gain within minutes; more cost time and queries.",
        unit="documents", minimum=2,
    )  # fmt: skip
    queries: int = option(
        300, "Judged queries that are reported at most, drawn by a hash of their ids.",
        reason="They tell a gain of 2 points apart in most collections; each training searches for all of them.",
        unit="queries", minimum=3,
    )  # fmt: skip
    seeds: int = option(
        3, "Trainings of each kind, with other seeds.", reason="The fewest that show how far trainings scatter.",
        unit="seeds", minimum=1, maximum=100,
    )  # fmt: skip
    minutes: float = option(
        45.0, "How long the test may take on this machine. One that takes longer is not started.",
        reason="Three seeds of six trainings of minilm's upper layers take 4,400 processor seconds at most: 37 minutes "
        "of two cores.", unit="minutes",
        minimum=0.2, maximum=1440.0,
    )  # fmt: skip
    spend: float = option(
        1.0, "At most so much for queries that an LLM writes, for vectors from an API and, on a benchmark that a model "
        "judged, for judging what the trainings newly find. A test that costs more is not started.",
        reason="Enough for a few hundred documents with a small model.", unit="US dollars", minimum=0.01,
    )  # fmt: skip
    keep: str = altered(
        StudyConfig, "keep", default=BEST, reason="What the answer names can be tried at once.",
    )  # fmt: skip

    @property
    def numbers(self) -> str:
        """``one and 5``, ``one, 2, 5 and 10``: the queries per document that are compared."""
        *first, last = "one", *map(str, self.per_doc)
        return f"{', '.join(first)} and {last}"


class AnswerConfig(TrialConfig):
    """From documents to the answer as one job: judged queries where they are missing, training queries, the test."""

    log: str = option(
        "", "Queries of people for these documents, without judgments: a file (one per line, CSV with a column query, "
        "JSON Lines) or a query set's id. Empty: judged queries of the project, else a model writes target queries.",
    )  # fmt: skip
    query_field: str = altered(JudgeConfig, "query_field")
    written_by: str = altered(JudgeConfig, "written_by", advanced=True)
    target_queries: int = option(
        200, "Draw (or have written) so many queries to be judged.",
        reason="With 200 queries differences of 5 points show, at the price of some thousand short answers.",
        unit="queries", minimum=9, advanced=True,
    )  # fmt: skip
    judge: bool = option(
        False, "Have the model judge what is found for the target queries. It does where no judged queries are there.",
        advanced=True,
    )  # fmt: skip

    def judging(self, name: str) -> JudgeConfig:
        """The settings by which the same model judges, for a benchmark of this name."""
        writer = self.endpoint
        return JudgeConfig.from_dict(
            {
                "corpus": self.corpus, "queries": self.log, "query_field": self.query_field, "name": name,
                "written_by": self.written_by, "limit": self.target_queries, "generator": writer.generator,
                "model": writer.model, "base_url": writer.base_url,
            }
        )  # fmt: skip


# How many queries per document a test compares with one where a single number says too little.
GRID = (2, 5, 10)


def reported_split(splits: Sequence[str]) -> str:
    """The split that results are reported on: test, else one that is named as dev, else the first."""
    return next((name for name in ("test", *DEV_SPLITS) if name in splits), splits[0])
