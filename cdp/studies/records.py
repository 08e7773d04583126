"""A condition's key and record, ``results/conditions/<key>.json``: reuse of other studies, library versions, licences.

The key is a hash of all that determines the result (the pairs, the untrained model, every setting, the seed), so a
condition that is there is never run again, and one that another study ran is taken from there.
"""

from __future__ import annotations

import json
import logging
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from cdp import query_sets
from cdp.base.condition import flat
from cdp.base.config import TrainingConfig
from cdp.base.errors import NotFoundError
from cdp.base.job_kind import STUDIES
from cdp.base.records import JOB_FACTS, Count, Real, fields, whole
from cdp.base.redaction import cleaned
from cdp.base.version import __version__
from cdp.base.workspace import Workspace, checked_name, read_json_or_none, sha256_text, write_json
from cdp.benchmarks import judged
from cdp.corpus import load_manifest
from cdp.evaluation.results import FirstTen, first_ten, read_result, scores_of
from cdp.retrievers import TRAINED_SIMILARITY
from cdp.retrievers.resolve import has_model
from cdp.studies.plan import PlannedTraining, StudySource
from cdp.training.plan import MAX_BETWEEN, eval_steps_of

_log = logging.getLogger(__name__)

SCHEMA = 1
FOLDER = Path("results") / "conditions"


def key_of(facts: dict[str, Any]) -> str:
    """24 hex digits over everything that determines a condition's scores."""
    return sha256_text(json.dumps({"schema": SCHEMA, **facts}, sort_keys=True, ensure_ascii=False, default=str))[:24]


# Settings that do not tell two results apart. The names of a query set and of a dev benchmark are among them, and how
# its pairs are drawn: the content of both is in a condition's key, as the steps are in place of the epochs.
NOT_DETERMINING = ("query_set", "name", "gpus", "save_steps", "benchmark", "split", "per_doc", "max_documents", "pairs",
                   "epochs", "tracker")  # fmt: skip


# Settings that came later. Empty ones are left out, so that earlier results are found.
CAME_LATER = ("trained_layers", "beside", "stopwords", "query_sparsity", "document_sparsity")

# Of a condition: left out of its record where they say nothing.
CONDITION_LATER = ("layers", "fused")


def untrained_key(base_hash: str, max_length: int | None) -> str:
    """The key of a retriever as it was before training."""
    return key_of({"base": base_hash, "max_length": max_length})


def condition_key(base_hash: str, pairs_hash: str, settings: TrainingConfig, *, dev: str = "", start: str = "") -> str:
    """The key of a training. ``dev`` is the dev benchmark's evaluation key, ``start`` what a new head starts from."""
    values = settings.to_dict()
    determining = values.keys() - set(NOT_DETERMINING) - {name for name in CAME_LATER if values[name] in (None, "")}

    facts: dict[str, Any] = {
        "base": base_hash,
        "pairs": pairs_hash,
        "settings": {name: values[name] for name in determining},
        "similarity": TRAINED_SIMILARITY,
        "dev": dev,
        **({"start": start} if start else {}),  # of before, a projection started at random
    }
    # Earlier trainings were evaluated five times, short ones at other steps.
    if dev and settings.loop.eval_steps is None and (steps := settings.loop.steps or 0) < 5 * MAX_BETWEEN:
        facts["eval_steps"] = eval_steps_of(settings, steps)
    return key_of(facts)


def evaluation_key(benchmark_hash: str, split: str, protocol: str) -> str:
    """Return the name under which a condition keeps its scores on one split of a benchmark."""
    return f"{benchmark_hash}/{split}/{protocol}"


def path_of(job_folder: Path, key: str) -> Path:
    return job_folder / FOLDER / f"{checked_name(key)}.json"


_CONDITION = fields(
    {"source": str, "per_doc": Count, "seed": Count},
    retriever=str, weighting=str, held=str, rate=Real | None, loss=str, query_source=str, layers=Count | None,
)  # fmt: skip
_TRAINING = fields(
    {"pairs": Count, "documents": Count, "seconds": Real}, steps=Count, steps_per_epoch=Count,
    pairs_seen=Count | None, best_step=Count | None, evaluations=list[dict[str, Real | None]],
)  # fmt: skip
# The first ten of each query by their place among the distinct ``ids``; in earlier records as ids themselves.
_FIRST_TEN = fields({"ids": list[str], "of": list[list[Count]]})
_EVALUATION = fields(
    {"query_ids": list[str], "ndcg@10": list[Real]}, **{"p@1": list[Count]},
    benchmark=str, measures=dict[str, Real], n_texts=Count,
    seconds=dict[str, Real], settings=dict[str, Any], counts=dict[str, Any], first_ten=_FIRST_TEN | list[list[str]],
)  # fmt: skip
# The fusion with BM25 by the share of the retriever's scores that was best on dev, with NDCG@10 there in [0, 1].
_FUSED = fields({"weight": Real, "dev": Real, "evaluations": dict[str, _EVALUATION]})  # type: ignore[valid-type]
# A condition as it was finished, or why it failed.
_RECORD = fields(
    {"schema": Literal[1], "retriever": str, "condition": _CONDITION | None}, key=str, created=str, hybrid=bool,
    reused_from=str, failed=str, failure=fields({"message": str}) | None, training=_TRAINING | None,
    settings=fields(epochs=Real | None, trained_layers=Count | None) | None, evaluations=dict[str, _EVALUATION],  # type: ignore[valid-type]
    fused=_FUSED | None,
)  # fmt: skip


def load(job_folder: Path, key: str) -> dict[str, Any] | None:
    """Return a condition's record; None where it is missing or damaged."""
    return _read(path_of(job_folder, key))


def _read(path: Path) -> dict[str, Any] | None:
    """Return a record whose fields have their types, and whose scores are one per query."""
    record: Any = whole(_RECORD, path)
    if record is None:
        return None

    kind = "failed" if record.get("failure") else "evaluations"
    if kind not in record or not all(map(_is_whole, _evaluations_of(record))):
        _log.warning("%s has no %s, or not a score for each query.", path, kind)
        return None

    return cleaned(record) if kind == "failed" else record  # what earlier versions wrote may hold keys


def _evaluations_of(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a condition's evaluations, and behind them those of its fusion with BM25."""
    fused = record.get("fused") or {}
    return [*(record.get("evaluations") or {}).values(), *(fused.get("evaluations") or {}).values()]


def _is_whole(evaluation: Mapping[str, Any]) -> bool:
    """Whether each of its queries has a score, and what was retrieved for it if that was kept."""
    n = len(evaluation["query_ids"])
    listed = _listed(evaluation)
    return n > 0 and len(evaluation["ndcg@10"]) == n and (not listed or len(listed) == n)


def find(workspace: Workspace, job_folder: Path, key: str) -> dict[str, Any] | None:
    """A finished condition of this key: this study's own, or another's, which then notes where it came from."""
    own = load(job_folder, key)
    if own is not None and not own.get("failure"):
        return own

    folders = [folder for kind in STUDIES for folder in workspace.jobs.glob(f"{kind}-*")]
    for folder in sorted(folders):
        if folder == job_folder or is_recorded(folder):
            continue
        record = load(folder, key)
        if record is not None and not record.get("failure"):
            return {**record, "reused_from": record.get("reused_from") or folder.name}

    return None


# The mark of a study that came with the installation: in the inputs of its job, and among its evaluations' counts.
RECORDED = "recorded"


def is_recorded(job_folder: Path) -> bool:
    """Return True for a study that ran elsewhere and came with the installation: to repeat it is to run it here."""
    spec = whole(JOB_FACTS, job_folder / "spec.json") or {}
    return bool((spec.get("inputs") or {}).get(RECORDED))


def save(job_folder: Path, key: str, planned: PlannedTraining | None, record: dict[str, Any]) -> None:
    """Write a condition's record. ``planned`` is None for the retriever as it was before training.

    Two conditions of a study have one key where their query sets hold the same pairs: each keeps a record of its own.
    """
    about = None
    if planned is not None:
        about = flat(planned)
        for name in CONDITION_LATER:
            if about[name] is None or about[name] is False:
                del about[name]

    path = path_of(job_folder, key)
    first = read_json_or_none(path)
    if about is not None and isinstance(first, dict) and (other := first.get("condition")) and other != about:
        path = path_of(job_folder, f"{key}-{key_of(about)[:8]}")
    write_json(path, {**record, "schema": SCHEMA, "key": key, "condition": about})


def list_records(job_folder: Path) -> Iterator[dict[str, Any]]:
    """The records of a study, finished or failed, in no order."""
    for path in (job_folder / FOLDER).glob("[!.]*.json"):
        record = _read(path)
        if record is not None:
            yield record


def numbered(first: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The first documents of each query in the form that records keep: every id once, and each query's places."""
    place: dict[str, int] = {}
    of = [[place.setdefault(name, len(place)) for name in row] for row in first]
    return {"ids": list(place), "of": of}


def firsts(evaluation: Mapping[str, Any]) -> FirstTen | None:
    """What a record's evaluation retrieved, by query; None where it was not kept."""
    listed = _listed(evaluation)
    if listed is None:
        return None
    return dict(zip(evaluation["query_ids"], listed, strict=True))


def _listed(evaluation: Mapping[str, Any]) -> list[list[str]] | None:
    kept = evaluation.get("first_ten")
    if not isinstance(kept, dict):
        return kept
    ids = kept["ids"]
    return [[ids[place] for place in row if place < len(ids)] for row in kept["of"]]


def query_ids(found: Iterable[Mapping[str, Any]], place: str) -> tuple[str, ...]:
    """Return the queries that these records were scored on, in the order of ``gains.read_scores``."""
    for record in found:
        evaluations = record.get("evaluations") or {}
        if place in evaluations:
            return tuple(sorted(evaluations[place]["query_ids"]))

    return ()


def retrieved(job_folder: Path, benchmark: Path) -> list[FirstTen]:
    """Return what an evaluation, or each training of a study and its fusion with BM25, retrieved for a benchmark that a
    model judged, or for samples of it. NotFoundError where the job kept nothing of it."""

    def about(name: str) -> bool:
        folder = benchmark.parent / name
        return folder.is_dir() and judged.whole(folder) == benchmark

    found: list[FirstTen] = []
    result, own = read_result(job_folder), first_ten(job_folder)
    if own is not None and result is not None and about(str(result["benchmark"]["name"])):
        found.append(own)

    for record in list_records(job_folder):
        for evaluation in _evaluations_of(record):
            run = firsts(evaluation) if about(evaluation.get("benchmark", "")) else None
            if run is not None:
                found.append(run)

    if not found:
        raise NotFoundError("evaluation or study", f"{job_folder.name} on {benchmark.name}")

    return found


def judged_now(
    workspace: Workspace, record: Mapping[str, Any], benchmarks: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return a record with its scores by all that a model judged until now, where what was retrieved was kept."""
    fused, scored = record.get("fused"), dict(record.get("evaluations") or {})
    for facts in benchmarks:
        e = scored.get(facts["place"])
        if not e or (run := firsts(e)) is None:
            continue

        if found := judged.judged_here(workspace, facts["name"], facts["split"]):
            now = scores_of(run, found[1])
            # A query whose labels were taken back keeps its score.
            before = dict(zip(e["query_ids"], e["ndcg@10"], strict=True))
            scored[facts["place"]] = {**e, "ndcg@10": [now.get(query, score) for query, score in before.items()]}

    if fused:
        fused = {**fused, **judged_now(workspace, {"evaluations": fused["evaluations"]}, benchmarks)}

    return {**record, "evaluations": scored, "fused": fused}


# ``results/kept.json``: which option's model the job has.
KEPT = "kept"
_KEPT = fields({"query_set": str, "per_doc": Count, "held": str, "option": str, "chosen": bool, "retriever": str})


def kept(job_folder: Path) -> dict[str, Any] | None:
    """Return which option's model a study's job has: ``option`` in words, ``query_set``, ``per_doc``, whether it was
    ``chosen`` by the answer. None where it has none."""
    if not has_model(job_folder):
        return None
    return whole(_KEPT, job_folder / "results" / f"{KEPT}.json")


LIBRARIES = ("torch", "transformers", "sentence-transformers", "numpy", "scipy", "bm25s", "nltk", "jieba", "fugashi",
             "kiwipiepy")  # fmt: skip


def versions() -> dict[str, str]:
    """{library: version} of what is installed, with Python and the product itself."""
    there = {"cdp": __version__, "python": platform.python_version(), "machine": platform.machine()}
    for name in LIBRARIES:
        try:
            there[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            there[name] = "not installed"
    return there


# What a query set says of who wrote it and how.
WRITTEN = ("written_by", "method", "generator", "model", "language")


def licences(workspace: Workspace, sources: Sequence[StudySource]) -> list[dict[str, Any]]:
    """The corpus and the query set of each source: names, content hashes, who wrote the queries, licences."""
    facts = []
    for source in sources:
        query_set = query_sets.load(workspace, source.query_set)
        manifest = load_manifest(workspace, query_set.corpus_id)
        facts.append(
            {
                "source": source.label,
                "corpus": manifest.name,
                "corpus_hash": manifest.content_hash,
                "corpus_licence": manifest.licence,
                "documents": manifest.n_documents,
                "query_set": query_set.name,
                "query_set_hash": query_set.content_hash,
                "query_set_licence": query_set.licence,
                **{name: getattr(query_set, name) for name in WRITTEN},
            }
        )

    return facts
