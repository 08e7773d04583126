"""What a run is called, what it started from, and what has to be known before its score is believed.

A run's name says what differs between runs: the retriever, the method of its queries, Q/Doc, pairs and weighting as
they were trained, whatever the query set is called. A name that somebody gave stays.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from cdp import catalog, query_sets
from cdp.base.config import TrainingConfig
from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.corpus import load_manifest
from cdp.evaluation import bm25
from cdp.retrievers import leakage

NEAR = 6
"""How many retrievers are compared with the baseline where nobody chose."""


def name(retriever: str, source: str, config: Mapping[str, Any], pairs: int, documents: int) -> str:
    """``minilm on wiki diverse, Q/Doc 1, 3,141 pairs``: with the weighting, the source of q, and the seed where these
    are not the usual ones. ``source`` says whose queries they are."""
    per_doc = f"{pairs / max(1, documents):.1f}".removesuffix(".0")
    noun = "pair" if pairs == 1 else "pairs"
    usual = TrainingConfig(query_set="any")
    more = [
        str(config[key])
        for key in ("weighting", "query_source")
        if config.get(key) not in (None, "", getattr(usual, key))
    ]
    seed = config.get("seed") or 0
    more += [f"seed {seed}"] if seed != usual.seed else []
    return ", ".join([f"{retriever} on {source}", f"Q/Doc {per_doc}", f"{pairs:,} {noun}", *more])


def source(workspace: Workspace, query_set: str) -> str:
    """Whose queries a set holds: ``wiki diverse`` by corpus and method, or the set's own name where it was imported."""
    try:
        loaded_set = query_sets.load(workspace, query_set)
        if loaded_set.generator == "import" or not loaded_set.method:
            return loaded_set.name
        return f"{load_manifest(workspace, loaded_set.corpus_id).name} {loaded_set.method}"
    except CdpError:
        return query_set


def described(workspace: Workspace, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The catalogue's evaluations with each run's name, ``marks`` (``leaked``, ``stopped at step 1 of 116``) and
    ``start``, the retriever that it was trained from (empty for what was not trained here)."""
    any_trained = any(row["retriever_kind"] == "job" for row in rows)
    results = (
        {training["job_id"]: training["result"] for training in catalog.trainings(workspace)} if any_trained else {}
    )
    sources: dict[str, str] = {}
    evaluations = []
    for row in rows:
        result = results.get(row["retriever_id"])
        counts, more = dict(row["counts"]), {"start": ""}
        if result is not None:
            config = result.get("settings") or {}
            more["start"] = str(result.get("retriever") or "")
            if result.get("stopped") and "steps_planned" in result:
                counts |= {"steps_taken": result["steps"], "steps_planned": result["steps_planned"]}
            if config and not config.get("name") and {"pairs", "documents"} <= result.keys():
                query_set = str(result["query_set"])
                if query_set not in sources:
                    sources[query_set] = source(workspace, query_set)
                more["retriever_name"] = name(
                    more["start"], sources[query_set], config, int(result["pairs"]), int(result["documents"])
                )
        evaluations.append({**row, **more, "marks": leakage.marks(counts)})
    return evaluations


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
        if row["retriever_kind"] == "job":
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


def near(rows: Sequence[Mapping[str, Any]], baseline: str, most: int = NEAR) -> list[str]:
    """What to compare with the baseline where nobody chose: BM25 wherever it was measured, then the ``most`` with the
    highest mean difference; whole and unleaked ones before others."""
    differences = gains(rows, baseline)
    marked = {str(row["retriever_id"]) for row in rows if row.get("marks")}
    lexical = [key for key in differences if is_bm25(key)]
    others = sorted(
        (key for key in differences if key not in lexical), key=lambda key: (key in marked, -differences[key])
    )
    return [*lexical, *others[:most]]
