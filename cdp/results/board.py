"""The leaderboard: default name of a run, rows and seeds averaged, badges, default baseline.

A run is called as its study's report calls it, ``minilm · diverse × 5``, with what tells its recipe from others of the
list. A name that a person gave stays.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from operator import itemgetter
from typing import Any, Protocol

from cdp import benchmarks, catalog, query_sets
from cdp.base.condition import HYBRID, QUERY_ONLY, UNWEIGHTED, WITH_BM25, Condition
from cdp.base.config import TrainingConfig
from cdp.base.errors import CdpError
from cdp.base.statistics import FEWEST_CLUSTERS, seed_spread
from cdp.base.text import clustered, condition_name, counted, signed
from cdp.base.workspace import Workspace
from cdp.catalog import FUSED, STUDY, STUDY_START
from cdp.corpus import load_manifest
from cdp.evaluation import combined
from cdp.evaluation.calibration import Calibration, judge_badge
from cdp.evaluation.evaluate import INDEX_BYTES, MACHINE, OF_FILES, QUERY_MS
from cdp.evaluation.results import MEANS_ALONE
from cdp.results import naming, regraded
from cdp.retrievers import PRESETS, bm25, leakage, resolve
from cdp.retrievers.encode import HALF_PRECISION
from cdp.studies import records
from cdp.studies.config import loss_of
from cdp.studies.gains import SIGNIFICANT, best_fused
from cdp.training.plan import INCOMPLETE, counted_pairs, drawn_pairs
from cdp.training.reasoning import MULTI_QUERY

MEASURE = regraded.MEASURE

# {run: all runs of its recipe, itself among them, by seed, the newest first}
Families = Mapping[str, tuple[str, ...]]

# Settings that say what a run is called or where it runs, or that its documents and pairs say better.
IGNORED_FOR_RECIPE = ("name", "seed", "gpus", "save_steps", "max_documents", "budget", "tracker")

# Settings that a name has already, or that do not tell recipes apart.
OMITTED_FROM_NAMES = ("query_set", "per_doc", "weighting", "query_source", "retriever", "hybrid", "rerank", "steps",
              "benchmark", "split", *IGNORED_FOR_RECIPE)  # fmt: skip

PER_PASSAGE = "Judged per passage. The figure per file counts each file once, at its best passage."
JUDGE_THEM = "Have them judged: benchmarks judge --benchmark NAME --runs JOB."

BM25, UNTRAINED, TRAINING, IN_STUDY, OTHER = "BM25", "untrained", "training", "study", "other"
# Which kind is the baseline where nothing says more: what people brought along comes after untrained retrievers.
RANKS = {UNTRAINED: 0, TRAINING: 2, IN_STUDY: 2, BM25: 3}


def unusual(*values: Any) -> list[str]:
    """Return those of a training's weighting and source of queries that its name says."""
    return [str(value) for value in values if value and value not in ("none", QUERY_ONLY)]


@dataclass(frozen=True)
class Trained:
    """What a run is known by of its training; ``settings`` are those that it ran with, every default filled in.

    ``per_doc`` is text: 4.8 where some documents have fewer queries than others. ``source`` is the method of the
    queries, or the name of a set that was imported; ``start`` the retriever that was trained, ``cell`` the condition of
    a study.
    """

    source: str
    corpus: str
    per_doc: str
    pairs: int
    documents: int
    steps: int
    settings: Mapping[str, Any]
    start: str
    study: str = ""
    cell: Condition | None = None
    incomplete: bool = False

    @property
    def name(self) -> str:
        """``minilm · diverse × 5``, with what is not as usual, as its study says it."""
        if self.cell is not None:
            return self.cell.name
        details = unusual(self.settings.get("weighting"), self.settings.get("query_source"))
        return condition_name(self.start, self.source, self.per_doc, *details)

    @property
    def condition(self) -> Condition:
        """The condition of its study, or what the settings of a training of its own say of one."""
        if self.cell is not None:
            return self.cell

        setting = self.settings.get
        return Condition(
            self.start,
            self.source,
            weighting=str(setting("weighting") or UNWEIGHTED),
            loss=loss_of(setting("hard_negatives"), setting("distil")),
            query_source=str(setting("query_source") or QUERY_ONLY),
        )

    @property
    def seed(self) -> int:
        return int(self.settings.get("seed") or 0)

    @property
    def recipe(self) -> tuple[Any, ...]:
        """What runs have in common that differ in the seed alone: settings, pairs and documents."""
        # A study's training names settings that are off, where one of Launch leaves them out.
        settings = sorted((k, repr(v)) for k, v in self.settings.items() if v and k not in IGNORED_FOR_RECIPE)
        return *settings, self.source, self.per_doc, self.pairs, self.documents

    @property
    def dev(self) -> tuple[str, str]:
        """The (benchmark, split) by which the checkpoint was chosen; empty names where it is the last one."""
        return str(self.settings.get("benchmark") or ""), str(self.settings.get("split") or "test")


@dataclass(frozen=True)
class Badge:
    """What a score has to be read with. A ``fault`` keeps it from being called the best."""

    word: str
    meaning: str
    fault: bool = False


@dataclass(frozen=True)
class ResultRow:
    """One recipe on one benchmark, averaged over its ``runs``. NDCG@10 and differences in percent (points).

    ``retriever_id`` is the run of the lowest seed; ``evaluation_id`` joins the evaluations of all by ``+``. ``seed_sd``
    is the standard deviation over them (n - 1). ``low`` and ``high`` are the 95% interval of the mean difference from
    the baseline; ``p_t`` is the two-sided p of the paired t-test, ``p_holm`` the p corrected for all differences, both
    over ``n_clusters`` of queries that share no relevant document; ``wins``, ``losses`` and ``ties`` count queries.
    They are None for the baseline, and without the same queries.
    ``noise`` is ``seeds`` where p (``p_seeds``) and interval are those of the two-level test, ``unknown`` where a
    training has one seed. ``version`` tells earlier judgments of the same name apart, ``warnings`` are the
    benchmark's. ``calibration`` is what people's labels say of a difference that a model judged. Where more than a
    tenth of the first tens of a side are ``unjudged`` (a share), nothing is tested: ``difference`` takes these for
    irrelevant, ``if_relevant`` for of the top grade. ``index_bytes`` and ``query_ms`` are what was measured at the
    first run's evaluation on its ``machine``, None where it was not.
    """

    retriever: str
    retriever_id: str
    benchmark: str
    split: str
    protocol: str
    version: str
    ndcg: float
    n_queries: int
    evaluation_id: str
    runs: tuple[str, ...]
    kind: str
    start: str
    trained: Trained | None
    badges: tuple[Badge, ...]
    warnings: tuple[str, ...]
    created: str
    measures: Mapping[str, float]
    seed_sd: float | None = None
    baseline_evaluation_id: str | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_t: float | None = None
    p_seeds: float | None = None
    p_holm: float | None = None
    n_clusters: int | None = None
    wins: int | None = None
    losses: int | None = None
    ties: int | None = None
    noise: str = ""
    calibration: Calibration | None = None
    unjudged: float | None = None
    if_relevant: float | None = None
    index_bytes: float | None = None
    query_ms: float | None = None
    machine: str = ""

    @property
    def withheld(self) -> str:
        """Both bounds of a difference that too few judgments decide; empty for others."""
        if self.if_relevant is None:
            return ""
        irrelevant, top = signed(self.difference or 0.0, 1), signed(self.if_relevant, 1)
        share = f"{self.unjudged:.0%} of the first tens are unjudged"
        return f"{share}: {irrelevant} points if all are irrelevant, {top} if top-grade"

    @property
    def place(self) -> str:
        """The benchmark with what else tells its results apart: ``scifact``, ``mine dev (paper)``."""
        return benchmark_label(self.benchmark, self.split, self.protocol, self.version)

    @property
    def called(self) -> tuple[str, str, str]:
        """What names the place: as tables call it, ``name:split``, or the benchmark alone."""
        return self.place, f"{self.benchmark}:{self.split}", self.benchmark

    @property
    def per_file(self) -> float | None:
        """NDCG@10 of files by their best passage; None where documents are no passages of files."""
        return self.measures.get(OF_FILES)

    @property
    def judged_per(self) -> str:
        return "document" if self.per_file is None else "passage"

    @property
    def evaluations(self) -> list[str]:
        """The evaluation of each of its runs."""
        return self.evaluation_id.split("+")

    @property
    def seeds(self) -> int:
        return len(self.evaluations)

    @property
    def marks(self) -> str:
        """The badges that keep it from being the best or starred: ``leaked``."""
        return ", ".join(badge.word for badge in self.badges if badge.fault)

    @property
    def words(self) -> list[str]:
        """What its score has to be read with, a word for each badge."""
        return [badge.word for badge in self.badges]

    @property
    def significant(self) -> bool:
        """Whether the difference is more than chance would give, corrected for all that are compared."""
        known = self.p_holm is not None and (self.n_clusters or 0) >= FEWEST_CLUSTERS
        return not self.marks and known and (self.p_holm or 0.0) < SIGNIFICANT

    @property
    def units(self) -> str:
        """``300``, or ``300 in 41 groups`` where queries share documents."""
        return clustered(self.n_queries, self.n_clusters or self.n_queries)

    @property
    def shared_units(self) -> bool:
        return self.n_clusters not in (None, self.n_queries)

    @property
    def remarks(self) -> list[str]:
        """The meanings of its badges, and what is odd in its benchmark."""
        return [*(badge.meaning for badge in self.badges), *self.warnings]

    @property
    def score(self) -> str:
        """``41.20 ± 0.35``; the score alone for a single run."""
        if self.seed_sd is None:
            return f"{self.ndcg:.2f}"
        return f"{self.ndcg:.2f} ± {self.seed_sd:.2f}"

    def record(self) -> dict[str, Any]:
        """The row as JSON."""
        corrected = self.calibration and self.calibration.record()
        return {**asdict(self), "id": self.evaluation_id, MEASURE: self.ndcg, "place": self.place, "seeds": self.seeds,
                "marks": self.marks, "judged_per": self.judged_per, "per_file": self.per_file,
                "calibration": corrected}  # fmt: skip


class RowFilter(Protocol):
    """A project, as far as it says which rows of the catalogue are its own."""

    def keep(self, kind: str, things: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the rows that belong to it."""


# every evaluation, by the name of its run


def list_evaluations(workspace: Workspace, scope: RowFilter | None = None) -> list[dict[str, Any]]:
    """The catalogue's evaluations, the newest first, those of studies among them; of a project where one is given.
    What a model judged since is in their scores.

    Beside the catalogue's keys each has ``retriever_name`` as people know the run (``named`` where a person named it),
    ``marks`` (``leaked``, ``stopped at step 1 of 116``), ``start`` and ``trained`` (the retriever that it was trained
    from and how; empty and None for others).
    """
    rows, trainings = catalog.runs(workspace)
    if scope is not None:
        rows = scope.keep("evaluation", rows)

    results = {training["job_id"]: training["result"] for training in trainings}
    given = naming.given_names(workspace)
    source_of = cache(partial(source, workspace))
    evaluations = []
    for row in map(partial(regraded.updated, workspace), _standing(rows)):
        hybrid, rerank = combined.settings_of(row["settings"])
        ran, weighted = row["retriever_id"], row["settings"].get(FUSED) is not None
        if weighted and row["retriever_kind"] == STUDY_START:
            ran = ran.removeprefix(f"{FUSED}:{HYBRID}:")
        if hybrid or rerank:  # a study's fusion has its retriever in its id alone
            ran = row["settings"].get("retriever") or ran.removeprefix(f"{HYBRID}:")

        result = results.get(ran)
        trained, start = None, ""

        if result is not None:
            start = str(result.get("retriever") or "")
            trained = _of_training(result, source_of)
            if trained is not None and (hybrid or rerank):  # another recipe, so another family
                trained = replace(trained, settings={**trained.settings, "hybrid": hybrid, "rerank": rerank})
        elif row["retriever_kind"] == STUDY:
            start = str(row["settings"]["condition"]["retriever"])
            trained = _of_condition(row["settings"], source_of)

        name, own = row["retriever_name"], given.get(row["retriever_id"], "")
        if ran in PRESETS:  # as studies and commands name it
            name = combined.title(ran, hybrid, rerank)
        if name == bm25.NAME:
            name = bm25.TITLE
        if weighted and trained is None:
            name = condition_name(name, "", 0, WITH_BM25)

        evaluations.append(
            {**row, "retriever_name": own or name, "start": start, "trained": trained,
             "marks": leakage.marks(row["counts"]),
             "named": bool(own or (trained is not None and trained.settings.get("name")))}
        )  # fmt: skip

    names = _names(evaluations)
    for row in evaluations:
        row["retriever_name"] = names.get(row["retriever_id"], row["retriever_name"])

    return evaluations


def _standing(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows without the fusions that are no option of an answer: those that take nothing of one side, and those of
    all trainings of a study but the best on dev."""
    fused: dict[str, dict[Condition, list[Mapping[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["settings"].get(FUSED) is not None:
            fused[row["job_id"]][_fused_condition(row)].append(row["settings"])

    standing = set()
    for study, behind in fused.items():
        best = best_fused(behind)
        for condition, of_seeds in behind.items():
            real = any(0 < float(settings[FUSED]) < 1 for settings in of_seeds)
            if real and (condition in best or not condition.per_doc):
                standing.add((study, condition))

    kept = []
    for row in rows:
        if row["settings"].get(FUSED) is None or (row["job_id"], _fused_condition(row)) in standing:
            kept.append(row)
    return kept


def _fused_condition(row: Mapping[str, Any]) -> Condition:
    about = row["settings"]["condition"]
    return Condition.of(about) if about else Condition(row["retriever_id"], HYBRID, fused=True)


def choosing(evaluations: Iterable[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Return the (benchmark, split) that chose checkpoints and are no result: no training is reported there that
    another one chose."""
    dev: set[tuple[str, str]] = set()
    reported: set[tuple[str, str]] = set()
    for row in evaluations:
        if row["trained"] is not None:
            place = (row["benchmark"], row["split"])
            dev.add(row["trained"].dev)
            reported |= {place} - {row["trained"].dev}
    return dev - reported


def source(workspace: Workspace, query_set: str) -> tuple[str, str]:
    """Whose queries a set holds: ``("diverse", "wiki")`` by method and corpus, or its own name if it was imported."""
    try:
        loaded_set = query_sets.load(workspace, query_set)
        if loaded_set.generator == "import" or not loaded_set.method:
            return loaded_set.name, ""
        return loaded_set.method, load_manifest(workspace, loaded_set.corpus_id).name
    except CdpError:
        return query_set, ""


def per_doc(pairs: int, documents: int, asked: Any = None, query_source: Any = QUERY_ONLY) -> str:
    """Q/Doc as it was trained: as ``asked``, or ``4.8`` where some documents have fewer queries."""
    # Of a query and its reasoned form two pairs are made; a budget's last document may have fewer queries.
    if asked and (query_source == MULTI_QUERY or not documents or documents == -(-pairs // int(asked))):
        return str(asked)
    return f"{pairs / max(1, documents):.1f}".removesuffix(".0")


def label(workspace: Workspace, config: TrainingConfig) -> str:
    """Return the name of an unnamed training: its Q/Doc and pairs, corpus, retriever, and any seed but the first."""
    query_set = query_sets.resolve_query_set(workspace, config.query_set)
    pairs, documents = drawn_pairs(config, *counted_pairs(workspace, query_set.id, config))
    method, corpus = source(workspace, query_set.id)
    start = resolve(config.retriever, workspace).name
    shown = per_doc(pairs, documents, config.per_doc, config.query_source)
    trained = Trained(method, corpus, shown, pairs, documents, 0, config.to_dict(), start)
    seed = f"seed {config.seed}" if config.seed else ""
    return condition_name(trained.name, "", 0, corpus, seed)


def _of_training(result: Mapping[str, Any], source_of: Callable[[str], tuple[str, str]]) -> Trained | None:
    """From a training's result; None for a damaged one."""
    if not {"settings", "query_set", "pairs", "documents", "steps"} <= result.keys():
        return None

    pairs, documents, settings = int(result["pairs"]), int(result["documents"]), result["settings"]
    shown = per_doc(pairs, documents, settings.get("per_doc"), settings.get("query_source"))
    return Trained(
        *source_of(str(result["query_set"])), shown, pairs, documents, int(result["steps"]), settings,
        str(result.get("retriever") or ""), incomplete=INCOMPLETE in result.get("notes", ()),
    )  # fmt: skip


def _of_condition(about: Mapping[str, Any], source_of: Callable[[str], tuple[str, str]]) -> Trained:
    """From what the catalogue holds of a training of a study."""
    condition, training = about["condition"], about.get("training") or {}
    keys = ("seed", "weighting", "max_documents", "budget", "held", FUSED)
    of_condition = {key: condition.get(key) for key in keys}
    settings = {**(about.get("settings") or {}), **of_condition}
    pairs, documents = int(training.get("pairs") or 0), int(training.get("documents") or 0)

    cell = Condition.of(condition)
    method, corpus = source_of(str(settings.get("query_set", "")))
    if not corpus:  # imported, or deleted since: the study's own word for it
        method = cell.source

    steps = int(training.get("steps_taken") or training.get("steps") or 0)
    shown = per_doc(pairs, documents, cell.per_doc, cell.query_source)
    return Trained(method, corpus, shown, pairs, documents, steps, settings, cell.retriever, str(about["study"]), cell)


def _names(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """{run without a name of its own: its recipe with what tells it from other recipes of the list}."""
    facts: dict[str, dict[str, str]] = {}
    names: dict[str, str] = {}
    for row in rows:
        trained: Trained | None = row["trained"]
        if trained is not None and not row["named"]:
            hybrid, rerank = combined.settings_of(row["settings"])
            names[row["retriever_id"]] = combined.title(trained.name, hybrid, rerank)
            facts[row["retriever_id"]] = _distinctions(trained)

    by_name: dict[str, list[str]] = defaultdict(list)
    for run in facts:
        by_name[names[run]].append(run)

    for runs in by_name.values():
        keys: dict[str, str] = {}
        for run in runs:
            keys |= facts[run]

        for run in runs:
            alike = [other for other in runs if facts[other] != facts[run]]
            for key in keys:  # until it is told from all others
                left = [other for other in alike if facts[other].get(key) == facts[run].get(key)]
                if len(left) < len(alike) and facts[run].get(key):
                    names[run] = condition_name(names[run], "", 0, facts[run][key])
                alike = left

    return names


def _distinctions(trained: Trained) -> dict[str, str]:
    """{what may tell a run from others of its name: how the name says it}; empty texts for settings that are off."""
    facts = {
        "corpus": trained.corpus,
        "documents": counted(trained.documents, "document"),
        "steps": counted(trained.steps, "step"),
        "checkpoint": f"best on {' '.join(trained.dev)}" if trained.dev[0] else "",
    }

    named = {*OMITTED_FROM_NAMES}
    if trained.cell is not None:
        named.update(Condition._fields)
    for key, value in trained.settings.items():
        if key not in named:
            facts[key] = f"{key.replace('_', ' ')} {value}" if value else ""

    return facts


# one row per recipe


def families(rows: Sequence[Mapping[str, Any]]) -> Families:
    """Which runs are of one recipe: the same settings, pairs and documents but for the seed.

    A stopped or leaked run is no relative.
    """
    related: dict[str, tuple[str, ...]] = {}
    by_recipe: dict[tuple[Any, ...], dict[str, int]] = defaultdict(dict)
    for row in rows:
        run, trained = str(row["retriever_id"]), row["trained"]
        related[run] = (run,)
        if trained is not None and not row["marks"]:
            by_recipe[trained.recipe][run] = trained.seed

    for seeds in by_recipe.values():
        newest_first = sorted(seeds, reverse=True)
        members = tuple(sorted(newest_first, key=seeds.__getitem__))
        related |= dict.fromkeys(members, members)

    return related


def _seed(row: Mapping[str, Any]) -> int:
    return row["trained"].seed if row["trained"] else 0


def list_rows(workspace: Workspace, evaluations: Sequence[dict[str, Any]]) -> list[ResultRow]:
    """The leaderboard: one row per recipe and benchmark, by benchmark the best first and those with a fault last.

    ``evaluations`` are those of ``list_evaluations``.
    """
    newest = latest(evaluations)
    rows = rows_of(workspace, newest, newest, families(newest))
    n = Counter(row.place for row in rows)
    return sorted(rows, key=lambda row: (-n[row.place], row.place, bool(row.marks), -row.ndcg, row.retriever))


def rows_of(
    workspace: Workspace, selected: Sequence[dict[str, Any]], newest: Sequence[dict[str, Any]], related: Families
) -> list[ResultRow]:
    """One row per family and place of the selected ones among evaluations that are the newest of their retriever.

    Of runs with the same recipe and seed the newest counts: ids begin with their time.
    """
    by_family: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in selected:
        by_family[related[row["retriever_id"]][0], *_place(row)].append(row)

    current: dict[tuple[str, ...], str] = {}  # the newest judgments of each place
    for row in sorted(newest, key=itemgetter("created", "id")):
        current[_place(row)[:3]] = row["benchmark_hash"]

    infos = {info.name: info for info in benchmarks.list_benchmarks(workspace)}
    judge = cache(partial(judge_badge, workspace))
    usual = _usual_steps(newest)
    rows = []
    for (lead, *_), of_family in by_family.items():
        by_seed: dict[int, dict[str, Any]] = {}
        for row in sorted(of_family, key=itemgetter("retriever_id")):
            by_seed[_seed(row)] = row

        runs = [by_seed[seed] for seed in sorted(by_seed)]
        first = runs[0]
        name, benchmark, judgments = first["retriever_name"], first["benchmark"], first["benchmark_hash"]
        if first["named"] and (seeds := len(related[lead])) > 1:  # a person named one of several
            name = f"{name} ({seeds} seeds)"

        badges: dict[str, Badge] = {}
        for row in runs:
            for badge in badges_of(row, usual.get((row["start"], *_place(row)), 0)):
                badges[badge.word] = badge

        warnings: tuple[str, ...] = ()
        info = infos.get(benchmark)
        if info is not None and info.content_hash == judgments:
            warnings = info.warnings
            if info.subset_of:
                meaning = f"Evaluated on {first['n_queries']:,} sampled queries of {info.subset_of}."
                badges["subset"] = Badge("subset", meaning)

        by = judge(benchmark)
        if by is not None:
            badges[by[0]] = Badge(*by)

        scores = [100 * (row[MEASURE] or 0.0) for row in runs]
        measures = {}
        for measure in first["measures"]:
            percent = [100 * (row["measures"].get(measure) or 0.0) for row in runs]
            measures[measure] = sum(percent) / len(percent)

        newest_version = current[_place(first)[:3]] if info is None else info.content_hash
        rows.append(
            ResultRow(
                retriever=name, retriever_id=lead, benchmark=benchmark, split=first["split"],
                protocol=first["protocol"], ndcg=sum(scores) / len(scores), n_queries=first["n_queries"] or 0,
                version="" if judgments == newest_version else f"earlier version {judgments[:6]}",
                evaluation_id="+".join(map(itemgetter("id"), runs)),
                runs=tuple(map(itemgetter("retriever_id"), runs)), kind=_kind(first),
                start=first["start"], trained=first["trained"], badges=tuple(badges.values()), warnings=warnings,
                measures=measures,
                seed_sd=seed_spread(scores),
                created=max(row["created"] or "" for row in runs),
                index_bytes=first["counts"].get(INDEX_BYTES), query_ms=first["counts"].get(QUERY_MS),
                machine=str(first["settings"].get(MACHINE) or ""),
            )
        )  # fmt: skip

    return _told_apart(rows)


def _told_apart(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """The rows, with the id in the name where several retrievers are called alike."""
    called: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        called[row.retriever].add(row.retriever_id)

    told = []
    for row in rows:
        if len(called[row.retriever]) > 1:
            row = replace(row, retriever=f"{row.retriever} ({row.retriever_id[:24]})")
        told.append(row)

    return told


def _kind(row: Mapping[str, Any]) -> str:
    if bm25.language_in(row["retriever_id"]) is not None:
        return BM25
    kinds = {"job": TRAINING, STUDY: IN_STUDY, "preset": UNTRAINED, STUDY_START: UNTRAINED}
    return kinds.get(row["retriever_kind"], row["retriever_kind"] or OTHER)


def latest(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of several evaluations of one retriever at one place the newest (``rows`` come newest first), those that have
    files of their own before those of a study; of a training that studies took over from each other the newest."""
    seen: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["retriever_kind"] == STUDY_START):
        settings, of = row["settings"], row["retriever_id"]
        if row["retriever_kind"] == STUDY:
            of = settings["key"], settings.get(FUSED) is not None
        seen.setdefault((of, *_place(row)), row)
    return list(seen.values())


def benchmark_label(benchmark: str, split: str, protocol: str = "", version: str = "") -> str:
    """A benchmark as tables call it, with its split unless that is ``test``, and its protocol unless ``published``."""
    name = benchmark
    if split not in ("", "test"):
        name += f" {split}"
    if protocol == "published":
        protocol = ""

    details = ", ".join(filter(None, (version, protocol)))
    return f"{name} ({details})" if details else name


def _place(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return row["benchmark"], row["split"], row["protocol"], row["benchmark_hash"]


# what a score has to be read with


def badges_of(row: Mapping[str, Any], usual: int) -> list[Badge]:
    """The badges of one evaluation; ``usual`` is the number of steps that most runs from its start took."""
    trained, badges = row["trained"], badges_from_counts(row["counts"], row["n_queries"])
    if trained is not None and trained.dev == (row["benchmark"], row["split"]):
        badges.append(
            Badge("dev", "These queries chose the checkpoint, so the score is too high. Report another split.")
        )

    if trained is not None and trained.incomplete:
        badges.append(Badge("incomplete set", "Its query set was not whole: only what was there was trained on."))

    if trained is not None and not row["marks"] and usual and trained.steps and abs(trained.steps / usual - 1) > 0.1:
        meaning = f"Trained for fewer or more steps than most runs from {row['start']} ({usual:,})."
        badges.append(Badge(counted(trained.steps, "step"), f"{meaning} A difference is one of steps too."))

    if row["settings"].get("precision") == "fp16":
        badges.append(Badge("half precision", HALF_PRECISION))

    if row["settings"].get("imported") == MEANS_ALONE:
        meaning = "MTEB's result file holds means alone: no query is compared. Its predictions can be."
        badges.append(Badge("means alone", meaning))

    return badges


def _usual_steps(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[Any, ...], int]:
    """{(start, place): how many steps most runs from there took}; of two as frequent the larger."""
    taken: dict[tuple[Any, ...], Counter[int]] = defaultdict(Counter)
    for row in rows:
        if row["trained"] is not None and row["trained"].steps and not row["marks"]:
            taken[row["start"], *_place(row)][row["trained"].steps] += 1
    return {key: max(steps, key=lambda n: (steps[n], n)) for key, steps in taken.items()}


def badges_from_counts(counts: Mapping[str, Any], n_queries: int | None = None) -> list[Badge]:
    """Return what an evaluation counted that its score has to be read with; ``n_queries`` were judged, if unsaid."""
    judged = int(counts.get("judged_queries") or n_queries or 0)
    badges = [Badge(word, meaning, word != "in-domain") for word, meaning in leakage.findings(counts, judged)]

    if counts.get(records.RECORDED):
        meaning = "Recorded on another machine: it came with the demo. Run the test here to repeat it."
        badges.append(Badge("recorded", meaning))

    if absent := int(counts.get("judged_without_results", 0)):
        meaning = f"Nothing was retrieved for {absent:,} of {judged:,} judged queries; they count 0."
        badges.append(Badge("without results", meaning))

    lost = []
    for noun, plural in (("document", "documents"), ("query", "queries")):
        if n := int(counts.get(f"{plural}_without_vector", 0)):
            lost.append(counted(n, noun, plural))

    if lost:
        meaning = (
            f"{' and '.join(lost)} could not be embedded and count as not found. Where such a document answers a query "
            "the score is too low. The job lists them; a new evaluation asks for them again."
        )
        badges.append(Badge("without vectors", meaning))

    if unjudged := int(counts.get("unjudged_in_first_ten", 0)):
        meaning = f"{counted(unjudged, 'document')} of the first ten have no judgment and count 0. {JUDGE_THEM}"
        badges.append(Badge("unjudged documents", meaning))

    return badges


def remarks(rows: Sequence[ResultRow]) -> list[str]:
    """What has to be said beside the scores, each once, with the results that it is of: ``scifact (BM25): …``.

    That is what people's labels correct, what is judged, the meanings of the badges, and what is odd in a benchmark.
    """
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    calibrated, withheld = [], []
    per_passage: dict[str, None] = {}
    for row in rows:
        for remark in row.remarks:
            found[row.place, remark].append(row.retriever)

        if row.calibration:
            calibrated.append(f"{row.place} ({row.retriever}): {row.calibration.sentence}")
        if row.withheld:
            withheld.append(f"{row.place} ({row.retriever}): {row.withheld}.")
        if row.per_file is not None:
            per_passage[f"{row.place}: {PER_PASSAGE}"] = None

    of_place = Counter(row.place for row in rows)
    said = [*calibrated, *withheld, *per_passage]
    for (place, remark), names in found.items():
        some = "" if len(names) == of_place[place] else f" ({', '.join(names)})"
        said.append(f"{place}{some}: {remark}")

    return said


def baseline(rows: Sequence[ResultRow]) -> str:
    """Return the default baseline: the untrained retriever that most of the rows started from; else the
    untrained one with results at the most places. Empty without a row."""
    here = Counter(row.retriever_id for row in rows)
    starts = Counter(row.start for row in rows if row.trained is not None and row.start in here)
    if starts:
        return starts.most_common(1)[0][0]
    ranks = {row.retriever_id: RANKS.get(row.kind, 1) for row in rows}
    return min(here, key=lambda run: (ranks[run], -here[run]), default="")
