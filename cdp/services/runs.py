"""What a run is called, what it started from, and what has to be known before its score is believed.

A run's name says what differs between runs: the method of its queries, Q/Doc, pairs and seed as they were trained,
whatever the query set is called; then corpus and retriever, and whatever else tells two runs apart. A name that
somebody gave stays.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from cdp import jobs, query_sets
from cdp.base.config import TrainingConfig
from cdp.base.errors import CdpError, ConfigError, InputError
from cdp.base.locks import locked
from cdp.base.statistics import has_spread, seed_spread
from cdp.base.text import storable
from cdp.base.workspace import Workspace, write_json
from cdp.catalog import STUDY
from cdp.corpus import load_manifest
from cdp.evaluation import bm25, combined
from cdp.query_sets import list_query_sets
from cdp.retrievers import leakage
from cdp.services import access, naming
from cdp.services.naming import Annotation
from cdp.training.plan import INCOMPLETE

# Settings that a name has already, or that make no difference to a model.
IN_NO_NAME = ("name", "seed", "gpus", "save_steps", "query_set", "max_documents", "per_doc")

# How many retrievers are compared with the baseline where nobody chose.
NEAR = 6


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
    said = naming.list_annotations(workspace)
    sources: dict[str, tuple[str, str]] = {}
    evaluations = []
    for row in rows:
        hybrid, rerank = combined.settings_of(row["settings"])
        result = results.get(row["settings"].get("retriever") if hybrid or rerank else row["retriever_id"])
        counts = dict(row["counts"])
        trained = None
        lexical = row["retriever_name"] == bm25.NAME  # as studies call it
        made_name, start = bm25.TITLE if lexical else row["retriever_name"], ""
        if result is not None:
            start = str(result.get("retriever") or "")
            if result.get("stopped") and "steps_planned" in result:
                counts |= {"steps_taken": result["steps"], "steps_planned": result["steps_planned"]}
            trained = _of_training(workspace, result, sources)
            if trained is not None and (hybrid or rerank):  # another recipe, so another family
                more = {"hybrid": hybrid, "rerank": rerank}
                trained = replace(trained, settings={**trained.settings, **more})
        elif row["retriever_kind"] == STUDY:
            start = str(row["settings"]["condition"]["retriever"])
            trained = _of_condition(workspace, row["settings"], sources)
        if trained is not None and not trained.settings.get("name"):
            about = (trained.method, trained.corpus)
            made_name = name(start, about, trained.settings, trained.pairs, trained.documents, trained.per_doc)
            made_name = combined.title(made_name, hybrid, rerank)
        evaluations.append(
            {**row, "made_name": made_name, "start": start, "trained": trained, "marks": leakage.marks(counts),
             "counts": counts, "annotation": said.get(row["retriever_id"], Annotation())}
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
        # A study's training names settings that are off, where one of Launch leaves them out: no difference to read.
        differing = [k for k in dict.fromkeys(keys) if len({str(s.get(k) or "") for s in runs.values()}) > 1]
        for run, settings in runs.items():
            more = [f"{key.replace('_', ' ')} {settings[key]}" for key in differing[:3] if settings.get(key)]
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


def families(rows: Sequence[Mapping[str, Any]]) -> Families:
    """Which runs differ from others in the seed alone (``families_of``); a stopped or leaked one is no relative."""
    return families_of({str(row["retriever_id"]): row["trained"].settings for row in rows
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


Families = Mapping[str, tuple[str, ...]]

# Settings that say what a run is called or where it runs: runs that differ in these alone are one recipe.
NO_PART_OF_THE_RECIPE = ("name", "gpus", "save_steps")


def families_of(settings: Mapping[str, Mapping[str, Any] | None]) -> dict[str, tuple[str, ...]]:
    """{retriever: those it differs from in the seed alone, itself among them, by seed}, of retrievers with what they
    were trained with (None for what was not trained here).

    A training that was run twice with one seed counts once, by its newest run; one without a relative is left out.
    """
    runs_by_recipe: dict[str, dict[int, str]] = defaultdict(dict)
    for retriever in sorted(settings):  # ids begin with their time: the newest comes last
        config = settings[retriever]
        if config is not None:
            recipe = sorted((key, config[key]) for key in config if key not in ("seed", *NO_PART_OF_THE_RECIPE))
            runs_by_recipe[repr(recipe)][int(config.get("seed") or 0)] = retriever
    related = [
        tuple(by_seed[seed] for seed in sorted(by_seed)) for by_seed in runs_by_recipe.values() if len(by_seed) > 1
    ]
    return {member: members for members in related for member in members}


def settings_of(workspace: Workspace, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the settings that a row's retriever was trained with; None if it is not known."""
    if row.get("trained") is not None:
        settings: Mapping[str, Any] = row["trained"].settings
        return settings
    with suppress(CdpError):
        if row["retriever_kind"] == "job":
            return dict(jobs.load_spec(workspace, row["retriever_id"]).config)
    return None


def averaged(
    rows: Sequence[dict[str, Any]], scores: Mapping[str, Mapping[str, float]], families: Families, measure: str
) -> tuple[list[dict[str, Any]], dict[str, Mapping[str, float]]]:
    """One row per family and place instead of one per run, and the scores of all rows.

    A family goes by the id of its lowest seed. Its score on a query is the mean over its runs; ``seeds`` counts these,
    ``seed_sd`` is the standard deviation of their means in percent (None where all are the same), ``id`` joins
    their ids by ``+``.
    """
    runs_by_family: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        lead = families.get(row["retriever_id"], (row["retriever_id"],))[0]
        runs_by_family[lead, row["benchmark"], row["split"], row["protocol"], row["benchmark_hash"]].append(row)
    means: dict[str, Mapping[str, float]] = {}
    averaged_rows = []
    for (lead, *_), runs in runs_by_family.items():
        members = families.get(lead, (lead,))
        runs.sort(key=lambda row: members.index(row["retriever_id"]) if row["retriever_id"] in members else 0)
        joined = "+".join(row["id"] for row in runs)
        of_runs = [scores[row["id"]] for row in runs]
        means[joined] = {
            query: sum(run_scores[query] for run_scores in of_runs) / len(of_runs)
            for query in of_runs[0]
            if all(query in run_scores for run_scores in of_runs)
        }
        by_run = [row[measure] for row in runs]
        by_seed = [100 * value for value in by_run]
        spread = seed_spread(by_seed)[1] if has_spread(by_seed) else None
        name = str(runs[0]["retriever_name"])
        averaged_rows.append(
            {
                **runs[0],
                "id": joined,
                "retriever_id": lead,
                "retriever_name": _averaged_name(name, len(members)),
                measure: sum(by_run) / len(by_run),
                "seeds": len(runs),
                "marks": tuple(dict.fromkeys(mark for run in runs for mark in run.get("marks", ()))),
                "seed_sd": spread,
            }
        )
    return averaged_rows, means


def _averaged_name(name: str, seeds: int) -> str:
    """``… · seed 0 · …`` becomes ``… · 3 seeds · …``; a name that says no seed has them at its end."""
    if seeds < 2:
        return name
    named = re.sub(r" · seed \d+\b", f" · {seeds} seeds", name, count=1)
    return named if named != name else f"{name} ({seeds} seeds)"


def differing(
    workspace: Workspace, names: dict[str, str], of: Mapping[str, Mapping[str, Any] | None], without: set[str]
) -> dict[str, dict[str, Any]]:
    """The training settings in which the retrievers differ: setting → retriever → value."""
    configs = {name: of[retriever_id] for retriever_id, name in names.items()}
    trained = {name: config for name, config in configs.items() if config is not None}
    settings: dict[str, dict[str, Any]] = {}
    for setting in dict.fromkeys(key for config in trained.values() for key in config if key not in without):
        values = {name: config.get(setting) for name, config in trained.items()}
        if len({str(value) for value in values.values()}) > 1:
            settings[setting] = values
    if "query_set" in settings:
        by = {q.id: q.written_by + (f", {q.licence}" if q.licence else "") for q in list_query_sets(workspace)}
        settings["queries_written_by"] = {name: by.get(str(key), "–") for name, key in settings["query_set"].items()}
    return settings


# Characters.
LONGEST = {"name": 120, "tag": 40, "note": 2000}


@access.writes
def annotate(
    workspace: Workspace,
    ids: Iterable[str],
    *,
    name: str | None = None,
    note: str | None = None,
    add: Iterable[str] = (),
    remove: Iterable[str] = (),
    archived: bool | None = None,
) -> None:
    """Change what is said of runs in ``runs.json``: name (empty: the made one), note, tags to add and to remove.

    A name, tags and a note are of a run (a retriever's id). ``archived`` hides whole runs or single rows (evaluations'
    ids); their results stay.
    """
    changes: dict[str, Any] = {} if archived is None else {"archived": archived}
    changes |= {key: _line(text, key) for key, text in (("name", name), ("note", note)) if text is not None}
    added, removed = [_line(text, "tag") for text in add], set(remove)
    for text in added:
        if not text or "," in text:
            raise ConfigError(f"{text!r} cannot be a tag.", hint="A tag is a word or two without a comma.")
    path = naming.annotation_file(workspace)
    with locked(path.with_name(".runs.lock"), "The names and notes of runs"):
        known = dict(naming.list_annotations(workspace))
        for key in dict.fromkeys(ids):
            before = known.get(key, Annotation())
            tags = tuple(tag for tag in dict.fromkeys([*before.tags, *added]) if tag not in removed)
            known[key] = replace(before, tags=tags, **changes)
        records = {key: asdict(about) for key, about in sorted(known.items()) if about != Annotation()}
        write_json(path, {"schema": 1, "runs": records})


def _line(text: str, what: str) -> str:
    line = text.strip()
    if len(line) > LONGEST[what]:
        raise InputError(f"The {what} has {len(line):,} characters; at most {LONGEST[what]:,} are kept.")
    if not storable(line):
        raise InputError(f"The {what} holds the character NUL or half of a surrogate pair.")
    return line
