"""Studies and published results turned into evidence, stale data; options with price and time, next step."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from cdp import principle, query_sets
from cdp.base.condition import BM25, DIVERSE, EQUAL_PAIRS, HYBRID, PARAPHRASED, Condition
from cdp.base.config import SynthesisConfig, TrainingConfig
from cdp.base.errors import CdpError
from cdp.base.text import duration, name_and_split
from cdp.base.workspace import ANSWERS, RECORDS, Workspace
from cdp.benchmarks import describe, judged, manifests, resolve_benchmark
from cdp.benchmarks.units import units_of
from cdp.corpus import CorpusManifest, load_manifest, resolve_corpus
from cdp.evaluation.calibration import judged_by
from cdp.evaluation.results import FirstTen, scores_of
from cdp.principle import Decision
from cdp.principle.decide import RETRIEVER, SAME_STEPS, ArmDifference, differences_of
from cdp.principle.evidence import MODEL, PEOPLE, TEMPLATE, Arm, Basis, Evidence, Task
from cdp.principle.options import name_of
from cdp.retrievers import DENSE, PRESETS, api, bm25, leakage
from cdp.retrievers.presets import TRAINED_SIMILARITY
from cdp.studies import own_test, records
from cdp.studies.config import StudyConfig
from cdp.studies.estimate import price_text
from cdp.studies.gains import BySeed, read_scores
from cdp.studies.plan import StudySource, conditions, is_static, loop_of
from cdp.studies.report import about_file, latest, plan_of, read_about
from cdp.studies.target_queries import Profiled
from cdp.synthesis import pricing
from cdp.synthesis.generators import GENERATORS

DEFAULT_RETRIEVER = str(TrainingConfig.settings()["retriever"].default)


class StudyJob(Protocol):
    """The job of a study, as far as its evidence is read."""

    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> str: ...

    @property
    def folder(self) -> Path: ...


def answer_from(
    workspace: Workspace,
    studies: Iterable[StudyJob],
    *,
    corpus: str = "",
    target: Profiled | None = None,
    domain: str = "ood",
    task: str = "",
) -> Decision:
    """Return what is best known for a corpus and the queries of a task, from these studies, the newest first.

    ``target`` are its queries, None where none are named; ``domain`` and ``task`` what they are for the published rule.
    """
    manifest = resolve_corpus(workspace, corpus) if corpus else None
    published = None
    language, unit, benchmark = "unknown", "document", ""
    rule, unknown = "", "No target queries are named."

    if target is not None:
        published = target.recommend(domain=domain, task=task)
        benchmark, _ = name_and_split(target.benchmark)
        language, unknown = target.language, published.missing
        if not published.scope.outside:
            rule = published.level

    if manifest is not None:
        language, unit = manifest.main_language, manifest.unit

    evidence = _own(workspace, studies, manifest, benchmark, target is not None)
    if not evidence and not _reads(DEFAULT_RETRIEVER, language):
        evidence.append(Evidence(Basis(retriever=DEFAULT_RETRIEVER, reads_language=False)))
    if published is not None and (prior := published.evidence()) is not None:
        evidence.append(replace(prior, basis=replace(prior.basis, unit=unit)))

    readers = [name for name in PRESETS if name != DEFAULT_RETRIEVER and _reads(name, language)]
    asked = Task(language=language, domain=domain, rule=rule, readers=readers, unknown=unknown)
    return principle.decide(evidence, asked)


def _reads(retriever: str, language: str) -> bool:
    preset = PRESETS.get(retriever)
    return preset is None or preset.reads(language)


def _own(
    workspace: Workspace, studies: Iterable[StudyJob], corpus: CorpusManifest | None, benchmark: str, named: bool
) -> list[Evidence]:
    """The evidence of all own studies on the corpus or the benchmark, the newest first. ``named`` is whether target
    queries are: those of no benchmark are of no study."""
    found: list[Evidence] = []
    for view in studies:
        about = read_about(view.folder)
        if about is None:
            continue

        with suppress(CdpError, KeyError, TypeError):  # a study that cannot be read is no evidence
            load = partial(_of_study, workspace, view, about)
            question = ("evidence", str(view.state), RECORDS.digest(about_file(view.folder)))
            for e in ANSWERS.get(view.folder / records.FOLDER, question, load):
                same_corpus = corpus is not None and e.basis.corpus == corpus.id
                same_queries = benchmark in (e.basis.benchmark, whole_of(workspace, e.basis.benchmark)[0])
                # Documents that were added again under their name are another corpus.
                earlier = corpus is not None and not same_corpus and _corpus_name(workspace, e.basis) == corpus.name
                if not (same_corpus or same_queries or earlier):
                    continue

                elsewhere = ""
                if corpus is not None and not (same_corpus or earlier):
                    elsewhere = "documents"
                elif named and not same_queries:
                    elsewhere = "queries"

                e = _now(workspace, e)
                present = _present(workspace, e, about, earlier)
                found.append(replace(e, basis=replace(e.basis, elsewhere=elsewhere, **present)))

    return found


def _now(workspace: Workspace, e: Evidence) -> Evidence:
    """The evidence by the grades, labels and units of queries as they are now."""
    e = _by_people(workspace, _as_judged_now(workspace, e))
    return replace(e, clusters=units_of(workspace, e.basis.benchmark, e.basis.split, e.query_ids) or ())


def stated(workspace: Workspace, view: StudyJob, about: Mapping[str, Any]) -> dict[tuple[Any, ...], ArmDifference]:
    """Return {(benchmark, split, condition, control): difference} as an answer from this study alone states it."""
    found: dict[tuple[Any, ...], ArmDifference] = {}
    with suppress(CdpError, KeyError, TypeError):  # a study that cannot be read is no evidence
        for e in _of_study(workspace, view, about):
            for c in differences_of(_now(workspace, e)):
                if c.comparable:
                    found[e.basis.benchmark, e.basis.split, c.option.condition, c.against.condition] = c

    return found


def whole_of(workspace: Workspace, benchmark: str) -> tuple[str, str]:
    """(benchmark, split) that a sample was drawn from; its own name where it is none, or is no longer here."""
    with suppress(CdpError, OSError, ValueError):
        if subset := manifests.read(workspace.benchmarks / benchmark).subset:
            return subset.of, subset.split

    return benchmark, ""


def _corpus_name(workspace: Workspace, basis: Basis) -> str:
    with suppress(CdpError):
        return load_manifest(workspace, basis.corpus).name
    return ""


def _as_judged_now(workspace: Workspace, e: Evidence) -> Evidence:
    """The evidence with its scores by all that was judged here until now, where what the arms retrieved was kept."""
    queries = _queries_of(e.arms)
    if not queries:
        return e

    found = judged.judged_here(workspace, e.basis.benchmark, e.basis.split)
    if found is None:
        return e

    folder, qrels = found
    if not qrels.keys() >= {*queries}:  # labels were taken back
        return e

    def load() -> Evidence:
        missing = judged.missing(qrels, *chain.from_iterable(arm.shown for arm in e.arms))
        top = judged.all_relevant(qrels, missing)

        arms = []
        for arm in e.arms:
            scores = np.array([_scored(run, qrels) for run in arm.shown])
            at_best = np.array([_scored(run, top) for run in arm.shown])
            arms.append(replace(arm, scores=scores, top=at_best, unjudged=judged.unjudged_share(qrels, *arm.shown)))

        return replace(e, basis=replace(e.basis, unjudged=len(missing)), arms=tuple(arms))

    question = ("evidence now", e.basis, judged.version(folder, e.basis.split))
    return ANSWERS.get(workspace.job(e.basis.study) / records.FOLDER, question, load)


def _scored(run: Mapping[str, Sequence[str]], qrels: Mapping[str, Mapping[str, float]]) -> list[float]:
    """NDCG@10 in percent of a first ten, in the order of the queries' ids."""
    scores = scores_of(run, qrels)
    return [100 * scores.get(query, 0.0) for query in sorted(run)]


def _by_people(workspace: Workspace, e: Evidence) -> Evidence:
    """The evidence with its scores by people's grades, where a model judged and people labelled queries."""
    by = judged_by(workspace, e.basis.benchmark)
    queries = _queries_of(e.arms)
    if by is None or not by.people.keys() & set(queries):
        return e

    def scored(run: Mapping[str, Sequence[str]]) -> list[float]:
        # A document that people did not grade leaves its query unlabelled.
        labelled: dict[str, Sequence[str]] = {}
        for query in queries:
            if query in by.people and by.people[query].keys() >= set(run[query]):
                labelled[query] = run[query]

        scores = scores_of(labelled, by.people)
        return [100 * scores[query] if query in labelled else math.nan for query in queries]

    arms = []
    for arm in e.arms:
        by_people = [scored(run) for run in arm.shown]
        arms.append(replace(arm, people=np.array(by_people)))

    return replace(e, arms=tuple(arms))


def _queries_of(arms: Sequence[Arm]) -> list[str]:
    """The reported queries, where what each arm retrieved for them was kept; else none."""
    for arm in arms:
        if not arm.shown or len(arm.shown) != arm.n_seeds:
            return []

    return sorted(arms[0].shown[0]) if arms else []


def _present(workspace: Workspace, e: Evidence, about: Mapping[str, Any], earlier: bool) -> dict[str, Any]:
    """What depends on the data as they are now: what changed since, the corpus's size and the queries sampled from."""
    basis = e.basis
    facts: dict[str, Any] = {}
    with suppress(CdpError):
        manifest = load_manifest(workspace, basis.corpus)
        facts |= {"of_documents": manifest.n_documents, "unit": manifest.unit}

    if (by := judged_by(workspace, basis.benchmark)) is not None:
        facts["labels"] = len(by.people.keys() & set(_queries_of(e.arms)))

    if basis.dev:
        name, _, split = basis.dev.rpartition("/")
        with suppress(CdpError, OSError):
            facts["dev_shared"] = leakage.shared(workspace, (basis.benchmark, basis.split), (name, split))

    stale = []
    if earlier:
        stale.append("documents")
    if _training_queries_changed(workspace, about):
        stale.append("training queries")

    with suppress(CdpError, OSError):
        info = describe(resolve_benchmark(basis.benchmark, workspace), workspace)
        measured = {b.get("hash") for b in about["benchmarks"] if b["name"] == info.name}
        if measured - {None, info.content_hash} and basis.unjudged < 0:
            stale.append("judged queries")

        whole, split = whole_of(workspace, basis.benchmark)
        if split:
            drawn_from = resolve_benchmark(whole, workspace)
            facts["sampled_from"] = describe(drawn_from, workspace).judged.get(split, 0)

    return {**facts, "stale": tuple(stale)}


def _training_queries_changed(workspace: Workspace, about: Mapping[str, Any]) -> bool:
    measured = {row["source"]: row["query_set_hash"] for row in about.get("corpora", ())}
    for source in about["sources"]:
        with suppress(CdpError):
            now = query_sets.load(workspace, source["query_set"]).content_hash
            if measured.get(source["label"], now) != now:
                return True

    return False


def _of_study(workspace: Workspace, view: StudyJob, about: Mapping[str, Any]) -> list[Evidence]:
    """The evidence of a study: one for each benchmark, retriever and corpus that it trained on."""
    config, sources = plan_of(about)
    by_corpus: dict[str, list[StudySource]] = defaultdict(list)
    for source in sources:
        by_corpus[source.corpus or _corpus_of(workspace, source.query_set)].append(source)

    everything = latest(list(records.list_records(view.folder)))
    places = list(map(itemgetter("place"), about["benchmarks"]))
    scores, behind = read_scores(everything, dict(zip(places, places, strict=True)))
    finished = [r for r in everything if not r.get("failure") and r["condition"]]
    of_study = Basis(
        study=view.id,
        name=view.name,
        recorded=records.is_recorded(view.folder),
        finished=len(finished),
        planned=len(conditions(config, sources)),
        alike=int(about.get("alike") or 0),
    )
    if len(config.dev) == 1:
        of_study = replace(of_study, dev=config.dev[0].replace(":", "/"))

    found = []
    for facts, (corpus, own), retriever in product(about["benchmarks"], by_corpus.items(), config.retrievers):
        arms = list(_arms(scores, behind, facts["place"], retriever, own, config.held_equal))
        if not any(map(attrgetter("trained"), arms)):
            continue

        training = [r["training"] for r in finished if r["retriever"] == retriever]
        chosen = all(t.get("best_step") is not None for t in training)
        basis = _basis(replace(of_study, corpus=corpus, dev_chosen=chosen), facts, own, retriever, config, arms)
        found.append(Evidence(basis, tuple(arms), query_ids=records.query_ids(everything, facts["place"])))

    return found


def _basis(
    of_study: Basis, facts: Mapping[str, Any], sources: Sequence[StudySource], retriever: str, config: StudyConfig,
    arms: Sequence[Arm],
) -> Basis:  # fmt: skip
    """``of_study`` with what is known of the benchmark, the queries that were trained on, the retriever, the arms."""
    language = facts.get("language") or "unknown"
    writers = dict.fromkeys(source.written_by for source in sources)
    labels = {source.label for source in sources}
    n = arms[0].scores.shape[1]

    trained = list(filter(attrgetter("trained"), arms))
    documents = max(map(attrgetter("documents"), trained))
    steps = [arm.steps for arm in trained if not arm.condition.fused]

    preset, similarities = PRESETS.get(retriever), False
    if preset is not None and preset.kind == DENSE:
        similarities = preset.similarity[config.protocol] != TRAINED_SIMILARITY

    return replace(
        of_study,
        retriever=retriever,
        trained_layers=loop_of(config, retriever).trained_layers or 0,
        reads_language=_reads(retriever, language),
        first_look=is_static(retriever),
        similarities=similarities,
        benchmark=facts["name"],
        split=facts["split"],
        language=language,
        queries=f"{facts['place']} {n}",
        judged_queries=n,
        written_by=", ".join(filter(None, writers)),
        in_domain=labels <= set(facts.get("in_domain_of", ())),
        documents=documents,
        of_documents=documents,
        equal_steps=max(steps) <= SAME_STEPS * min(steps),
        **_judged(facts.get("source") or {}),
    )


def _corpus_of(workspace: Workspace, query_set: str) -> str:
    with suppress(CdpError):
        return query_sets.load(workspace, query_set).corpus_id
    return ""


def _judged(source: Mapping[str, Any]) -> dict[str, Any]:
    """Who judged a benchmark's queries, as its manifest says."""
    if source.get("judge"):
        writer = str(source.get("written_by") or PEOPLE)
        if writer == PEOPLE:
            writer = ""
        return {"judged_by": MODEL, "judge": str(source["judge"]), "queries_by": writer}

    if source.get("queries") == "template":
        return {"judged_by": TEMPLATE}

    return {"judged_by": PEOPLE}


def _arms(
    scores: Mapping[Condition, Mapping[str, BySeed]],
    behind: Mapping[Condition, Any],
    place: str,
    retriever: str,
    sources: Sequence[StudySource],
    design: str,
) -> Iterator[Arm]:
    """The options of a study on one benchmark: this retriever's trainings with equal weights, BM25, and all untrained
    retrievers with their fusions. Left out are fusions that bring nothing on dev, and retrievers that were trained on
    the queries."""
    by_label = {source.label: source for source in sources}
    for condition, by_benchmark in scores.items():
        label, per_doc, of_seed = condition.source, condition.per_doc, by_benchmark.get(place)
        if not of_seed or not condition.usual or (per_doc and condition.retriever != retriever):
            continue
        if _leaked(behind[condition], place) or not _fusion_stands(condition, behind):
            continue

        arm = Arm(
            condition=Condition("", BM25) if condition.retriever == BM25 else condition,
            scores=np.array([of_seed[seed] for seed in sorted(of_seed)]),
            shown=_shown(behind[condition], place),
            api=api.parse(condition.retriever) is not None,
        )

        if not per_doc:
            yield arm
        elif label in by_label:
            training = [r["training"] for r in behind[condition] if r.get("training")]
            yield _trained_arm(arm, by_label[label].query_set, training, design)


def _trained_arm(arm: Arm, query_set: str, training: Sequence[Mapping[str, Any]], design: str) -> Arm:
    """Return ``arm`` with the facts of its training: its queries, its size, and the longest time it took."""
    held = arm.condition.held
    # With a budget all is at equal pairs: the documents of one query each are more.
    if design == EQUAL_PAIRS and arm.per_doc > 1:
        held = EQUAL_PAIRS

    def most(name: str) -> float:
        return max((float(t.get(name, 0)) for t in training), default=0.0)

    return replace(
        arm,
        held=held,
        documents=int(most("documents")),
        pairs=int(most("pairs")),
        steps=int(most("steps")),
        seen=int(most("pairs_seen")),
        seconds=most("seconds"),
        query_set=query_set,
    )


def _leaked(behind: Sequence[Mapping[str, Any]], place: str) -> bool:
    """Whether an untrained option's retriever was trained on queries of this benchmark."""
    for record in behind:
        evaluation = record["evaluations"].get(place) or {}
        counts = evaluation.get("counts") or {}
        if record.get("condition") is None and (counts.get("leaked_queries") or counts.get("leaked_training")):
            return True

    return False


def _fusion_stands(condition: Condition, behind: Mapping[Condition, Sequence[Mapping[str, Any]]]) -> bool:
    """Whether a fusion is an option: dev takes a share of both; by ranks only where dev weighted none."""
    if not condition.fused:
        return condition.source != HYBRID or condition._replace(fused=True) not in behind
    return any(0 < float(record["fused"]["weight"]) < 1 for record in behind[condition])


def _shown(behind: Iterable[Mapping[str, Any]], place: str) -> list[FirstTen]:
    """What each seed of an option retrieved, in the order of the seeds, where the study kept it."""
    found = []
    for record in sorted(behind, key=lambda record: (record.get("condition") or {}).get("seed", 0)):
        evaluation = record["evaluations"].get(place)
        if evaluation and (run := records.firsts(evaluation)) is not None:
            found.append(run)

    return found


@dataclass(frozen=True)
class Step:
    """The step that an answer leads to: a page with its selections, and the settings of a training that it names."""

    page: str
    label: str
    why: str
    params: Mapping[str, str | list[str]]
    settings: Mapping[str, Any]


def next_step(workspace: Workspace, answer: Decision, corpus: str) -> Step | None:
    """Return the training that the answer names, its model where the test kept it, or what stands in its place; None
    where only a test can follow."""
    if not answer.measured or answer.basis is None:
        return None

    choice, basis = answer.choice, answer.basis
    params: dict[str, str | list[str]] = {}
    if corpus:
        params["corpus"] = corpus

    arm = answer.chosen
    if arm is None or not arm.trained:
        if not choice.kind or choice.kind == RETRIEVER:
            return None
        return Step("search", "Try it on a query", f"search your documents with {name_of(choice)}.", params, {})

    kept = records.kept(workspace.job(basis.study))
    if kept is not None and (kept["query_set"], kept["per_doc"]) == (arm.query_set, arm.per_doc):
        params["search_with"] = [bm25.NAME, basis.retriever, basis.study]
        return Step("search", "Try the trained retriever", f"search with {name_of(choice)}.", params, {})

    params |= {"query_set": arm.query_set, "retriever": basis.retriever}
    params["benchmarks"] = [f"{basis.benchmark}/{basis.split}"]
    settings: dict[str, Any] = {"per_doc": choice.per_doc, "weighting": "none"}

    if arm.steps and basis.equal_steps and basis.documents >= basis.of_documents:
        settings["steps"] = arm.steps  # as measured; on more documents than were measured the epochs decide
        if basis.dev:
            settings["dev"] = basis.dev

    if basis.trained_layers:
        settings["trained_layers"] = basis.trained_layers

    why = f"train {name_of(choice)} per {basis.unit}."
    return Step("launch", "Train this", why, params, settings)


def reference(answer: Decision) -> Arm | None:
    """The option that all others are shown against: the choice, else the cheapest; None where nothing was measured."""
    return answer.chosen or next(iter(answer.options), None)


@dataclass(frozen=True)
class Option:
    """One row of the options: its measured arm if there is one, its difference to the choice, and the price of the
    whole corpus's queries in US dollars (None: not known)."""

    condition: Condition
    arm: Arm | None = None
    over: ArmDifference | None = None
    price: float | None = 0.0

    @property
    def name(self) -> str:
        return self.condition.name

    @property
    def price_text(self) -> str:
        if self.arm and self.arm.held:
            return "–"
        return price_text(self.price, free=not self.price) if self.condition.per_doc else "none"

    @property
    def training_text(self) -> str:
        """How long one training took."""
        if not self.arm or not self.arm.trained:
            return "–"
        return duration(max(1.0, self.arm.seconds))

    @property
    def cells(self) -> tuple[Any, ...]:
        """Name, NDCG@10, difference to the choice, price and training time; None for what was not measured."""
        measured = (self.arm.mean, self.training_text) if self.arm else (None, None)
        return self.name, measured[0], self.over and self.over.figures, self.price_text, measured[1]


# What is shown with prices while nothing was measured.
EXAMPLE = {"generator": "openai"}
OFFERED = [Condition("", *queries) for queries in ((DIVERSE, 1), (PARAPHRASED, 1), (PARAPHRASED, 5), (DIVERSE, 5))]


def list_options(workspace: Workspace, answer: Decision, corpus: str) -> tuple[list[Option], str]:
    """Every option, the cheapest first, with price and time, and whose prices these are: the last generator's."""
    manifest = None
    if corpus:
        with suppress(CdpError):
            manifest = load_manifest(workspace, corpus)

    # Without any queries yet, prices are those of the one endpoint that needs no address, with the paper's model.
    writer = SynthesisConfig.from_dict({"corpus": corpus, **(own_test.last_generator(workspace, corpus) or EXAMPLE)})
    against = reference(answer)
    over: dict[int, ArmDifference] = {}
    if against:
        over = {id(c.option): c for c in answer.over(against)}

    measured = list(answer.options)
    if answer.evidence:
        measured += [arm for arm in answer.evidence.arms if arm not in answer.options]

    listed: list[tuple[Condition, Arm | None]] = [(arm.condition, arm) for arm in measured]
    # No advice on queries before there is a retriever that reads them.
    if not measured and answer.choice.kind != RETRIEVER:
        listed = [(condition, None) for condition in OFFERED]

    options = []
    for condition, arm in listed:
        price = None
        if manifest is not None and condition.kind in (DIVERSE, PARAPHRASED) and not (arm and arm.held):
            price = _price(workspace, manifest, condition, writer)

        options.append(Option(condition, arm, over.get(id(arm)), price))

    return options, writer.endpoint.model_name or f"the {writer.endpoint.generator} generator"


def _price(
    workspace: Workspace, manifest: CorpusManifest, condition: Condition, writer: SynthesisConfig
) -> float | None:
    """What it costs to have the queries of a whole corpus written."""
    if not GENERATORS[writer.endpoint.generator].endpoint:
        return 0.0
    with suppress(CdpError):
        wanted = writer.replace(corpus=manifest.id, method=condition.kind, per_doc=condition.per_doc)
        return pricing.estimate(workspace, wanted).cost
    return None
