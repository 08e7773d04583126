"""What a run is called, what it started from, and what has to be known before its score is believed.

A run's name says what differs between runs: the method of its queries, Q/Doc, pairs and seed as they were trained,
whatever the query set is called; then corpus and retriever, and whatever else tells two runs apart. A name that
somebody gave stays.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdp import query_sets
from cdp.base.config import TrainingConfig
from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.catalog import STUDY
from cdp.corpus import load_manifest
from cdp.evaluation import bm25
from cdp.retrievers import leakage
from cdp.services import run_annotations, seeds
from cdp.training.plan import INCOMPLETE

IN_NO_NAME = ("name", "seed", "gpus", "gpu_ids", "save_steps", "query_set", "max_documents", "per_doc")
"""Settings that a name has already, or that make no difference to a model."""

NEAR = 6
"""How many retrievers are compared with the baseline where nobody chose."""


def name(
    retriever: str, source: tuple[str, str], config: Mapping[str, Any], pairs: int, documents: int, asked: str = ""
) -> str:
    """``diverse · Q/Doc 1 · 3,141 pairs · seed 0 · wiki · minilm``: what differs most often stands first. The weighting
    and the source of q come in where these are not the usual ones; ``source`` is what ``source`` gives, ``asked`` the
    Q/Doc where it is known better than by dividing."""
    what, corpus = source
    noun = "pair" if pairs == 1 else "pairs"
    usual = TrainingConfig(query_set="any")
    more = [
        str(config[key])
        for key in ("weighting", "query_source")
        if config.get(key) not in (None, "", getattr(usual, key))
    ]
    parts = [
        what,
        f"Q/Doc {asked or per_doc(pairs, documents)}",
        f"{pairs:,} {noun}",
        f"seed {config.get('seed') or 0}",
        *more,
    ]
    return " · ".join([*parts, *([corpus] if corpus else []), retriever])


def per_doc(pairs: int, documents: int) -> str:
    """Q/Doc as it was trained: ``5``, ``4.8`` where some documents have fewer queries."""
    return f"{pairs / max(1, documents):.1f}".removesuffix(".0")


def source(workspace: Workspace, query_set: str) -> tuple[str, str]:
    """Whose queries a set holds: ``("diverse", "wiki")`` by method and corpus, or its own name if it was imported."""
    try:
        loaded_set = query_sets.load(workspace, query_set)
        if loaded_set.generator == "import" or not loaded_set.method:
            return loaded_set.name, ""
        return loaded_set.method, load_manifest(workspace, loaded_set.corpus_id).name
    except CdpError:
        return query_set, ""


@dataclass(frozen=True)
class Trained:
    """What a run is known by of its training; ``settings`` are those that it ran with, every default filled in.

    ``per_doc`` is text: 4.8 where some documents have fewer queries than others.
    """

    method: str
    corpus: str
    per_doc: str
    pairs: int
    documents: int
    steps: int
    settings: Mapping[str, Any]
    study: str = ""
    incomplete: bool = False


def described(
    workspace: Workspace, rows: Sequence[dict[str, Any]], trainings: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The catalogue's evaluations with each run's name, ``made_name`` (by what it was trained on), ``marks``
    (``leaked``, ``stopped at step 1 of 116``), ``start``, the retriever that it was trained from (empty for what was
    not trained here), ``trained`` (None for those too), and the ``annotation`` that people made.
    ``trainings`` are the catalogue's too."""
    results = {training["job_id"]: training["result"] for training in trainings}
    said = run_annotations.load(workspace)
    sources: dict[str, tuple[str, str]] = {}
    evaluations = []
    for row in rows:
        result = results.get(row["retriever_id"])
        counts = dict(row["counts"])
        trained = None
        lexical = row["retriever_name"] == bm25.NAME  # as studies call it
        made_name, start = bm25.TITLE if lexical else row["retriever_name"], ""
        if result is not None:
            start = str(result.get("retriever") or "")
            if result.get("stopped") and "steps_planned" in result:
                counts |= {"steps_taken": result["steps"], "steps_planned": result["steps_planned"]}
            trained = _of_training(workspace, result, sources)
        elif row["retriever_kind"] == STUDY:
            start = str(row["settings"]["condition"]["retriever"])
            trained = _of_condition(workspace, row["settings"], sources)
        if trained is not None and not trained.settings.get("name"):
            about = (trained.method, trained.corpus)
            made_name = name(start, about, trained.settings, trained.pairs, trained.documents, trained.per_doc)
        evaluations.append(
            {**row, "made_name": made_name, "start": start, "trained": trained, "marks": leakage.marks(counts),
             "counts": counts, "annotation": said.get(row["retriever_id"], run_annotations.Annotation())}
        )  # fmt: skip
    apart = _told_apart(evaluations)
    for row in evaluations:
        row["made_name"] = apart.get(row["retriever_id"], row["made_name"])
        row["retriever_name"] = row["annotation"].name or row["made_name"]
    return evaluations


def _source(workspace: Workspace, query_set: str, sources: dict[str, tuple[str, str]]) -> tuple[str, str]:
    if query_set not in sources:
        sources[query_set] = source(workspace, query_set)
    return sources[query_set]


def _of_training(
    workspace: Workspace, result: Mapping[str, Any], sources: dict[str, tuple[str, str]]
) -> Trained | None:
    """From a training's result; None for one of before results held what was trained on."""
    settings = result.get("settings") or {}
    if not settings or not {"pairs", "documents"} <= result.keys():
        return None
    method, corpus = _source(workspace, str(result["query_set"]), sources)
    pairs, documents = int(result["pairs"]), int(result["documents"])
    incomplete = INCOMPLETE in result.get("notes", ())
    return Trained(
        method, corpus, per_doc(pairs, documents), pairs, documents, int(result.get("steps") or 0), settings, "",
        incomplete,
    )  # fmt: skip


def _of_condition(
    workspace: Workspace, about: Mapping[str, Any], sources: dict[str, tuple[str, str]]
) -> Trained | None:
    """From what the catalogue holds of a training of a study."""
    condition, training = about["condition"], about.get("training") or {}
    of_condition = {key: condition.get(key) for key in ("seed", "weighting", "max_documents", "budget", "held")}
    settings = {**(about.get("settings") or {}), **of_condition}
    pairs, documents = int(training.get("pairs") or 0), int(training.get("documents") or 0)
    method, corpus = _source(workspace, str(settings.get("query_set", "")), sources)
    if not corpus:  # imported, or gone since: the study's own word for it
        method = str(condition["source"])
    steps = int(training.get("steps_taken") or training.get("steps") or 0)
    asked = str(condition["per_doc"])
    if documents and documents != -(-pairs // int(asked)):  # a budget's last document may have fewer
        asked = per_doc(pairs, documents)
    return Trained(method, corpus, asked, pairs, documents, steps, settings, str(about["study"]))


def _told_apart(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """{run: its name with the settings in which it differs} for runs that would have one name."""
    by_name: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for row in rows:
        if row["trained"] is not None:
            by_name[row["made_name"]].setdefault(row["retriever_id"], row["trained"].settings)
    named = {}
    for made_name, runs in by_name.items():
        if len(runs) < 2:
            continue
        keys = [key for settings in runs.values() for key in settings if key not in IN_NO_NAME]
        differing = [k for k in dict.fromkeys(keys) if len({str(s.get(k)) for s in runs.values()}) > 1]
        for run, settings in runs.items():
            more = [f"{key.replace('_', ' ')} {settings.get(key)}" for key in differing[:3]]
            named[run] = " · ".join([made_name, *more])
    return named


def is_bm25(retriever: str) -> bool:
    return bm25.language_in(retriever) is not None


def baseline(rows: Sequence[Mapping[str, Any]]) -> str:
    """What to compare with where nobody chose: the untrained retriever that most of the runs started from, of several
    the one of the newest run; else the untrained model with results at the most places. Empty without a result."""
    benchmark_keys: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    starts: dict[str, str] = {}
    trained = set()
    for row in rows:  # the newest first
        key = str(row["retriever_id"])
        benchmark_keys[key].add((row["benchmark"], row["split"], row["protocol"]))
        if row["retriever_kind"] in ("job", STUDY):
            trained.add(key)
            starts.setdefault(key, str(row.get("start") or ""))
    counted = Counter(start for start in starts.values() if start in benchmark_keys and start not in trained)
    if counted:
        return counted.most_common(1)[0][0]
    return min(benchmark_keys, key=lambda key: (key in trained, is_bm25(key), -len(benchmark_keys[key])), default="")


def gains(rows: Sequence[Mapping[str, Any]], baseline: str) -> dict[str, float]:
    """The mean difference in NDCG@10 (points) from the baseline, by retriever, over the places that both have; those
    without a common place are left out. ``rows`` come newest first."""
    latest: dict[str, dict[tuple[str, ...], float]] = defaultdict(dict)
    for row in rows:
        benchmark_key = (row["benchmark"], row["split"], row["protocol"], row["benchmark_hash"])
        latest[str(row["retriever_id"])].setdefault(benchmark_key, 100 * (row["ndcg@10"] or 0.0))
    reference = latest.get(baseline, {})
    mean_gains = {}
    for key, values in latest.items():
        shared = [
            values[benchmark_key] - reference[benchmark_key] for benchmark_key in values if benchmark_key in reference
        ]
        if shared and key != baseline:
            mean_gains[key] = sum(shared) / len(shared)
    return mean_gains


def families(rows: Sequence[Mapping[str, Any]]) -> seeds.Families:
    """Which runs differ from others in the seed alone (``seeds.families``); a stopped or leaked one is no relative."""
    return seeds.families({str(row["retriever_id"]): row["trained"].settings for row in rows
                           if row.get("trained") is not None and not row.get("marks")})  # fmt: skip


def with_relatives(rows: Sequence[Mapping[str, Any]], chosen: Sequence[str]) -> set[str]:
    """The chosen runs and all that differ from one of them in the seed alone."""
    related = families(rows)
    return {member for key in chosen for member in related.get(key, (key,))}


def near(rows: Sequence[Mapping[str, Any]], baseline: str, most: int = NEAR) -> list[str]:
    """What to compare with the baseline where nobody chose: BM25 wherever it was measured, then the ``most`` with the
    highest mean difference; whole and unleaked ones before others. Of runs that differ in the seed alone one stands
    for all, by their mean: the best seed of several is the best by luck."""
    differences = gains(rows, baseline)
    marked = {str(row["retriever_id"]) for row in rows if row.get("marks")}
    lexical = [key for key in differences if is_bm25(key)]
    related = families(rows)
    means: dict[str, float] = {}
    for key in differences:
        members = [member for member in related.get(key, (key,)) if member in differences]
        if key not in lexical:
            means[members[0]] = sum(differences[member] for member in members) / len(members)
    others = sorted(means, key=lambda key: (key in marked, -means[key]))
    return [*lexical, *others[:most]]
