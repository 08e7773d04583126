"""Studies and published results turned into evidence, stale data; options with price and time, next step."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from cdp import principle, query_sets
from cdp.base.config import SynthesisConfig, TrainingConfig
from cdp.base.errors import CdpError
from cdp.base.text import duration, name_and_split
from cdp.base.workspace import ANSWERS, RECORDS, Workspace
from cdp.benchmarks import describe, judged, manifests, resolve_benchmark
from cdp.benchmarks.units import units_of
from cdp.corpus import CorpusManifest, load_manifest, resolve_corpus
from cdp.evaluation.calibration import judged_by
from cdp.evaluation.results import FirstTen, scores_of
from cdp.llm.prices import dollars
from cdp.principle import Decision
from cdp.principle.decide import RETRIEVER, SAME_STEPS, ArmDifference, differences_of
from cdp.principle.evidence import (
    BM25,
    DIVERSE,
    EQUAL_PAIRS,
    MODEL,
    PARAPHRASE,
    PEOPLE,
    TEMPLATE,
    Arm,
    Basis,
    Evidence,
    Task,
)
from cdp.principle.options import Choice, name_of
from cdp.retrievers import DENSE, PRESETS, api, bm25, leakage
from cdp.retrievers.presets import TRAINED_SIMILARITY
from cdp.studies import own_test, records
from cdp.studies.gains import BySeed, read_scores
from cdp.studies.plan import HYBRID, ON, Cell, StudySource, conditions, method_of
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
    published = target.recommend(domain=domain, task=task) if target is not None else None
    benchmark = name_and_split(target.benchmark)[0] if target is not None else ""

    evidence = _own(workspace, studies, manifest, benchmark, target is not None)
    language = manifest.main_language if manifest else target.language if target is not None else "unknown"
    if not evidence and not _reads(DEFAULT_RETRIEVER, language):
        evidence.append(Evidence(Basis(retriever=DEFAULT_RETRIEVER, reads_language=False)))
    if published is not None and (prior := published.evidence()) is not None:
        evidence.append(replace(prior, basis=replace(prior.basis, unit=manifest.unit if manifest else "document")))

    asked = Task(
        language=language,
        domain=domain,
        rule=published.level if published is not None and not published.scope.outside else "",
        readers=[name for name in PRESETS if name != DEFAULT_RETRIEVER and _reads(name, language)],
        unknown=published.missing if published is not None else "No target queries are named.",
    )
    return principle.decide(evidence, asked)


def _reads(retriever: str, language: str) -> bool:
    """Whether a retriever reads a language, as far as its preset says."""
    preset = PRESETS.get(retriever)
    return preset is None or not preset.languages or language in (*preset.languages, "unknown")


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
                names = (e.basis.benchmark, whole_of(workspace, e.basis.benchmark)[0])
                same_corpus, same_queries = corpus is not None and e.basis.corpus == corpus.id, benchmark in names
                # Documents that were added again under their name are another corpus.
                earlier = corpus is not None and not same_corpus and _corpus_name(workspace, e.basis) == corpus.name
                if same_corpus or same_queries or earlier:
                    elsewhere = "documents" if corpus is not None and not (same_corpus or earlier) else ""
                    elsewhere = elsewhere or ("queries" if named and not same_queries else "")
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
            of = e.basis.benchmark, e.basis.split
            found |= {
                (*of, c.option.cell, c.against.cell): c for c in differences_of(_now(workspace, e)) if c.comparable
            }
    return found


def whole_of(workspace: Workspace, benchmark: str) -> tuple[str, str]:
    """(benchmark, split) that a sample was drawn from; its own name where it is none, or is no longer here."""
    with suppress(CdpError, OSError, ValueError):
        subset = manifests.read(workspace.benchmarks / benchmark).subset
        return (subset.of, subset.split) if subset is not None else (benchmark, "")
    return benchmark, ""


def _corpus_name(workspace: Workspace, basis: Basis) -> str:
    with suppress(CdpError):
        return load_manifest(workspace, basis.corpus).name
    return ""


def _as_judged_now(workspace: Workspace, e: Evidence) -> Evidence:
    """The evidence with its scores by all that a model judged until now, where what the arms retrieved was kept."""
    if not _queries_of(e.arms):
        return e
    try:
        folder = resolve_benchmark(e.basis.benchmark, workspace)
        whole = judged.whole(folder)
        if not judged.is_judged(whole):
            return e
        qrels = judged.grades_now(folder, e.basis.split)
    except (CdpError, KeyError):
        return e

    def load() -> Evidence:
        missing = judged.missing(qrels, *(run for arm in e.arms for run in arm.shown))
        top = judged.all_relevant(qrels, missing)
        arms = [
            replace(
                arm,
                scores=np.array([_scored(run, qrels) for run in arm.shown]),
                top=np.array([_scored(run, top) for run in arm.shown]),
                unjudged=judged.unjudged_share(qrels, *arm.shown),
            )
            for arm in e.arms
        ]
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
        known = {q: run[q] for q in queries if q in by.people and all(d in by.people[q] for d in run[q])}
        scores = scores_of(known, by.people)
        return [100 * scores[query] if query in known else math.nan for query in queries]

    arms = [replace(arm, people=np.array([scored(run) for run in arm.shown])) for arm in e.arms]
    return replace(e, arms=tuple(arms))


def _queries_of(arms: Sequence[Arm]) -> list[str]:
    """The reported queries, where what each arm retrieved for them was kept; else none."""
    kept = all(arm.shown and len(arm.shown) == len(arm.scores) for arm in arms)
    return sorted(arms[0].shown[0]) if arms and kept else []


def _present(workspace: Workspace, e: Evidence, about: Mapping[str, Any], earlier: bool) -> dict[str, Any]:
    """What depends on the data as they are now: what changed since, the corpus's size and the queries sampled from."""
    basis = e.basis
    stale = ["documents"] if earlier else []

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

    measured = {row["source"]: row["query_set_hash"] for row in about.get("corpora", ())}
    for source in about["sources"]:
        with suppress(CdpError):
            now = query_sets.load(workspace, source["query_set"]).content_hash
            if measured.get(source["label"], now) != now and "training queries" not in stale:
                stale.append("training queries")

    with suppress(CdpError, OSError):
        info = describe(resolve_benchmark(basis.benchmark, workspace), workspace)
        changed = (
            b["name"] == info.name and b.get("hash") not in (None, info.content_hash) for b in about["benchmarks"]
        )
        if any(changed) and basis.unjudged < 0:
            stale.append("judged queries")

        whole, split = whole_of(workspace, basis.benchmark)
        if split:
            drawn_from = resolve_benchmark(whole, workspace)
            facts["sampled_from"] = describe(drawn_from, workspace).judged.get(split, 0)

    return {**facts, "stale": tuple(stale)}


def _of_study(workspace: Workspace, view: StudyJob, about: Mapping[str, Any]) -> list[Evidence]:
    """The evidence of a study: one for each benchmark, retriever and corpus that it trained on."""
    found = []
    config, sources = plan_of(about)
    by_corpus: dict[str, list[StudySource]] = defaultdict(list)
    for source in sources:
        by_corpus[source.corpus or _corpus_of(workspace, source.query_set)].append(source)

    everything = latest(list(records.list_records(view.folder)))
    labels = {b["place"]: b["place"] for b in about["benchmarks"]}

    scores, behind = read_scores(everything, labels)
    planned, finished = conditions(config, sources), [r for r in everything if not r.get("failure") and r["condition"]]
    for facts in about["benchmarks"]:
        for corpus, own in by_corpus.items():
            for retriever in config.retrievers:
                arms = list(_arms(scores, behind, facts["place"], retriever, own, config.held_equal))
                trained = [arm for arm in arms if arm.trained]
                if not trained:
                    continue

                steps = [arm.steps for arm in trained if not arm.fused]
                training = [r["training"] for r in finished if r["retriever"] == retriever]
                with_dev = [t.get("best_step") is not None for t in training]
                language = facts.get("language") or "unknown"
                basis = Basis(
                    study=view.id,
                    name=view.name,
                    retriever=retriever,
                    corpus=corpus,
                    benchmark=facts["name"],
                    split=facts["split"],
                    documents=max(arm.documents for arm in trained),
                    of_documents=max(arm.documents for arm in trained),
                    judged_queries=arms[0].scores.shape[1],
                    written_by=", ".join(dict.fromkeys(s.written_by for s in own if s.written_by)),
                    language=language,
                    reads_language=_reads(retriever, language),
                    in_domain={s.label for s in own} <= set(facts.get("in_domain_of", ())),
                    dev_chosen=all(with_dev),
                    dev=config.dev[0].replace(":", "/") if len(config.dev) == 1 else "",
                    recorded=records.is_recorded(view.folder),
                    first_look=retriever in PRESETS and PRESETS[retriever].architecture == "static",
                    similarities=retriever in PRESETS
                    and PRESETS[retriever].kind == DENSE
                    and PRESETS[retriever].similarity[config.protocol] != TRAINED_SIMILARITY,
                    equal_steps=max(steps) <= SAME_STEPS * min(steps),
                    finished=len(finished),
                    planned=len(planned),
                    queries=f"{facts['place']} {arms[0].scores.shape[1]}",
                    **_judged(facts.get("source") or {}),
                )
                found.append(Evidence(basis, tuple(arms), query_ids=records.query_ids(everything, facts["place"])))

    return found


def _corpus_of(workspace: Workspace, query_set: str) -> str:
    with suppress(CdpError):
        return query_sets.load(workspace, query_set).corpus_id
    return ""


def _judged(source: Mapping[str, Any]) -> dict[str, Any]:
    """Who judged a benchmark's queries, as its manifest says."""
    if source.get("judge"):
        writer = str(source.get("written_by") or PEOPLE)
        return {
            "judged_by": MODEL, "judge": str(source["judge"]), "queries_by": "" if writer == PEOPLE else writer,
        }  # fmt: skip
    return {"judged_by": TEMPLATE if source.get("queries") == "template" else PEOPLE}


def _arms(
    scores: Mapping[Cell, Mapping[str, BySeed]],
    behind: Mapping[Cell, Any],
    place: str,
    retriever: str,
    sources: Sequence[StudySource],
    design: str,
) -> Iterator[Arm]:
    """The options of a study on one benchmark: this retriever's trainings with equal weights, BM25, and all untrained
    retrievers with their fusions. A fusion that dev shows to bring nothing is none, nor a retriever that knows the
    queries."""
    by_label = {source.label: source for source in sources}
    for cell, by_benchmark in scores.items():
        label, per_doc, of_seed = cell.source, cell.per_doc, by_benchmark.get(place)
        if not of_seed or not cell.usual or (per_doc and cell.retriever != retriever):
            continue
        if _leaked(behind[cell], place) or not _fusion_stands(cell, behind):
            continue

        of: dict[str, Any] = {"api": api.parse(cell.retriever) is not None, "fused": cell.fused and per_doc > 0}
        of |= {"retriever": "" if cell.retriever == bm25.NAME else cell.retriever, "cell": cell, "title": cell.name}
        rows, shown = np.array([of_seed[seed] for seed in sorted(of_seed)]), _shown(behind[cell], place)

        if not per_doc:
            yield Arm(BM25 if cell.retriever == bm25.NAME else label, rows, shown=shown, **of)
        elif label in by_label:
            training = [r["training"] for r in behind[cell] if r.get("training")]
            yield Arm(
                kind=label.partition(ON)[0] if method_of(label) in (DIVERSE, PARAPHRASE) else label,
                scores=rows,
                per_doc=per_doc,
                # With a budget all is at equal pairs: the documents of one query each are more.
                held=cell.held or (EQUAL_PAIRS if design == EQUAL_PAIRS and per_doc > 1 else ""),
                documents=max((int(t.get("documents", 0)) for t in training), default=0),
                pairs=max((int(t.get("pairs", 0)) for t in training), default=0),
                steps=max((int(t.get("steps", 0)) for t in training), default=0),
                seen=max((int(t.get("pairs_seen", 0)) for t in training), default=0),
                seconds=max((float(t.get("seconds", 0)) for t in training), default=0.0),
                query_set=by_label[label].query_set,
                shown=shown,
                **of,
            )


def _leaked(behind: Sequence[Mapping[str, Any]], place: str) -> bool:
    """Whether an untrained option's retriever was trained on queries of this benchmark."""
    records = [record for record in behind if record.get("condition") is None]
    counts = [(record["evaluations"].get(place) or {}).get("counts") or {} for record in records]
    return any(count.get("leaked_queries") or count.get("leaked_training") for count in counts)


def _fusion_stands(cell: Cell, behind: Mapping[Cell, Sequence[Mapping[str, Any]]]) -> bool:
    """Whether a fusion is an option: dev takes a share of both; by ranks only where dev weighted none."""
    if not cell.fused:
        return cell.source != HYBRID or cell._replace(fused=True) not in behind
    return any(0 < float(record["fused"]["weight"]) < 1 for record in behind[cell])


def _shown(behind: Iterable[Mapping[str, Any]], place: str) -> list[FirstTen]:
    """What each seed of an option retrieved, in the order of the seeds, where the study kept it."""
    by_seed = sorted(behind, key=lambda record: (record.get("condition") or {}).get("seed", 0))
    evaluations = [record["evaluations"].get(place) or {} for record in by_seed]
    return [run for e in evaluations if e and (run := records.firsts(e)) is not None]


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
    params: dict[str, str | list[str]] = {"corpus": corpus} if corpus else {}
    arm = next((a for a in answer.options if Choice.of(a) == choice), None)
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

    why = f"train {name_of(choice)} per {basis.unit}."
    return Step("launch", "Train this", why, params, settings)


def reference(answer: Decision) -> Arm | None:
    """The option that all others are shown against: the choice, else the cheapest; None where nothing was measured."""
    return next((a for a in answer.options if Choice.of(a) == answer.choice), next(iter(answer.options), None))


@dataclass(frozen=True)
class Option:
    """One row of the options, by its condition's name: its measured arm if there is one, its difference to the choice,
    and the price of the whole corpus's queries in US dollars (None: not known)."""

    name: str
    kind: str
    per_doc: int
    held: str = ""
    arm: Arm | None = None
    over: ArmDifference | None = None
    price: float | None = 0.0

    @property
    def price_text(self) -> str:
        if not self.per_doc or self.held:
            return "–" if self.held else "none"
        return "not known" if self.price is None else "free" if not self.price else dollars(self.price)

    @property
    def training_text(self) -> str:
        """How long one training took."""
        return duration(max(1.0, self.arm.seconds)) if self.arm and self.arm.trained else "–"


# What is shown with prices while nothing was measured.
EXAMPLE = {"generator": "openai"}
OFFERED = ((DIVERSE, 1), (PARAPHRASE, 1), (PARAPHRASE, 5), (DIVERSE, 5))


def list_options(workspace: Workspace, answer: Decision, corpus: str) -> tuple[list[Option], str]:
    """Every option, the cheapest first, with price and time, and whose prices these are: the last generator's."""
    manifest = None
    with suppress(CdpError):
        manifest = load_manifest(workspace, corpus) if corpus else None

    # Without any queries yet, prices are those of the one endpoint that needs no address, with the paper's model.
    writer = SynthesisConfig.from_dict({"corpus": corpus, **(own_test.last_generator(workspace, corpus) or EXAMPLE)})
    arms: Iterable[Arm] = answer.evidence.arms if answer.evidence else ()
    measured = [*answer.options, *(arm for arm in arms if arm not in answer.options)]
    # No advice on queries before there is a retriever that reads them.
    offered = OFFERED if answer.choice.kind != RETRIEVER else ()
    against = reference(answer)

    over = {id(c.option): c for c in answer.over(against)} if against else {}
    known = measured or [Arm(kind, np.zeros((1, 2)), per_doc) for kind, per_doc in offered]
    options = []
    for arm in known:
        price = None
        if manifest is not None and arm.kind in (DIVERSE, PARAPHRASE) and not arm.held:
            price = _price(workspace, manifest, arm.kind, arm.per_doc, writer)
        own = arm if measured else None
        options.append(Option(arm.name, arm.kind, arm.per_doc, arm.held, own, over.get(id(arm)), price))

    return options, writer.endpoint.model_name or f"the {writer.endpoint.generator} generator"


def _price(
    workspace: Workspace, manifest: CorpusManifest, method: str, per_doc: int, writer: SynthesisConfig
) -> float | None:
    """What it costs to have the queries of a whole corpus written."""
    if not GENERATORS[writer.endpoint.generator].endpoint:
        return 0.0
    with suppress(CdpError):
        return pricing.estimate(workspace, writer.replace(corpus=manifest.id, method=method, per_doc=per_doc)).cost
    return None
