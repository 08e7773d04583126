"""The numbers of each figure of the evidence, as rows for a CSV, and the sentence that says what they rest on.

Each function takes published or own evidence (``cdp.results.arms``) alike; no row means that the figure needs a run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cdp.base.text import SEPARATOR, condition_name, counted
from cdp.benchmarks import registry
from cdp.principle import correlation_table, positive_rates
from cdp.principle.correlation import COMPARISONS
from cdp.results.arms import (
    HUMAN,
    UNTRAINED,
    ArmRow,
    FigureData,
    difference,
    mean,
    over_equal,
    over_paraphrase,
)

Numbers = list[dict[str, Any]]

# CE, and what stands in for it where no cross-encoder is there.
CE = ("CE", "Paraphrase ratio, bi-encoder")

FACTS = ("retriever", "method", "corpus", "per_doc", "weighting", "query_source", "loss", "equal_pairs", "rate")
ARM = ("arm", *FACTS)


def measures_over_qdoc(evidence: FigureData) -> Numbers:
    """Q-D measures by method and Q/Doc."""
    return [
        {"measure": m.measure, "method": m.method, "per_doc": m.per_doc, "value": m.value, "low": m.low, "high": m.high}
        for m in sorted(evidence.measures, key=lambda m: (m.measure, m.method, m.per_doc))
    ]


def quality_against_diversity(evidence: FigureData) -> Numbers:
    """Dist-Sim and CE of each method at each Q/Doc that has both."""
    values = {(m.method, m.per_doc, _short(m.measure)): m.value for m in evidence.measures}
    places = dict.fromkeys((method, per_doc) for method, per_doc, _ in values)
    return [
        {"method": method, "per_doc": m, "ce": values[method, m, "CE"], "dist_sim": values[method, m, "Dist-Sim"]}
        for method, m in places
        if (method, m, "CE") in values and (method, m, "Dist-Sim") in values
    ]


def _short(measure: str) -> str:
    return "CE" if measure in CE else measure


def ndcg_over_ce(evidence: FigureData) -> Numbers:
    """NDCG@10 of each arm over the CE of its queries."""
    ratio = {(m.method, m.per_doc, m.query_set): m.value for m in evidence.measures if _short(m.measure) == "CE"}
    usual = [row for row in evidence.rows if row.usual and not row.equal_pairs]
    rows = [row for row in usual if (row.method, row.per_doc, row.query_set) in ratio]
    keys = ("retriever", "method", "per_doc", "benchmark", "query_set")
    found = mean(rows, *keys)
    return [{**row, "ce": ratio[row["method"], row["per_doc"], row.pop("query_set")]} for row in found]


def ndcg_over_qdoc(evidence: FigureData) -> Numbers:
    """NDCG@10 of each way of training by Q/Doc, on each benchmark and its group's mean."""
    rows = [row for row in evidence.rows if row.usual and row.per_doc and not row.equal_pairs]
    found = mean(with_means(rows), "benchmark", "retriever", "method", "per_doc")
    several = {(r["benchmark"], r["retriever"], r["method"]) for r in found if r["per_doc"] > 1}
    return sorted(
        (r for r in found if (r["benchmark"], r["retriever"], r["method"]) in several),
        key=lambda r: (r["benchmark"], r["retriever"], r["method"], r["per_doc"]),
    )


def documents_against_diversity(evidence: FigureData) -> Numbers:
    """NDCG@10 of as many queries spread over more or fewer documents, baselines beside it, and what was spent.

    One request for each document: the cost of a share of the documents is that share of the set's.
    """
    spread = [row for row in evidence.rows if row.usual and (row.equal_pairs or row.per_doc == 1 or not row.per_doc)]
    held = {(row.retriever, row.method, row.corpus) for row in spread if row.equal_pairs}
    kept = [row for row in spread if (row.retriever, row.method, row.corpus) in held or not row.per_doc]
    kept += [row for row in spread if row.method == HUMAN and row not in kept]
    keys = ("benchmark", "retriever", "method", "documents", "per_doc", "dollars", "tokens")
    found = mean(with_means(kept), *keys)
    most = {r["method"]: max(o["documents"] for o in found if o["method"] == r["method"]) for r in found}

    numbers = []
    for row in found:
        share = row["documents"] / max(1, most[row["method"]])
        for cost in ("dollars", "tokens"):
            row[cost] = None if row[cost] is None else row[cost] * share
        numbers.append({**row, "requests": 0 if row["method"] in (HUMAN, UNTRAINED) else row["documents"]})
    several = {r["documents"] for r in numbers if r["method"] not in (HUMAN, UNTRAINED)}
    return sorted(numbers, key=lambda r: (r["benchmark"], r["retriever"], r["method"], r["documents"])) * (
        len(several) > 1
    )


def documents_by_qdoc(evidence: FigureData) -> Numbers:
    """The mean NDCG@10 of each number of documents at each Q/Doc, out of domain where there are such benchmarks, with
    what its queries take: one request for each document."""
    usual = [row for row in evidence.rows if row.usual and row.per_doc and row.documents]
    rows = [row for row in usual if not row.in_domain] or usual
    keys = ("retriever", "method", "documents", "per_doc")
    found = mean(mean_rows(rows, *keys, "benchmark"), *keys, "dollars")
    sizes = {row["documents"] for row in found}

    numbers = []
    for row in sorted(found, key=lambda row: (row["retriever"], row["method"], -row["documents"], row["per_doc"])):
        price = "" if row["dollars"] is None else f", ${row['dollars']:,.2f}"
        cost = "" if row["method"] == HUMAN else f" ({row['documents']:,} requests{price})"
        arm = condition_name(row["retriever"], row["method"], 0, f"{row['documents']:,} documents{cost}")
        numbers.append({"arm": arm, **{key: row[key] for key in (*keys, "ndcg", "dollars")}})
    return numbers if len(sizes) > 1 else []


def best_qdoc(evidence: FigureData) -> Numbers:
    """On how many benchmarks each Q/Doc is the best of a retriever's; of equal ones the fewest queries."""
    rows = [r for r in evidence.rows if r.usual and r.per_doc and not r.equal_pairs and r.method == "diverse"]
    best: dict[tuple[str, str], tuple[float, int]] = {}
    offered: dict[str, set[int]] = defaultdict(set)
    for found in sorted(mean(rows, "retriever", "benchmark", "per_doc"), key=lambda r: r["per_doc"]):
        key = found["retriever"], found["benchmark"]
        offered[found["retriever"]].add(found["per_doc"])
        if key not in best or round(found["ndcg"], 4) > round(best[key][0], 4):
            best[key] = found["ndcg"], found["per_doc"]

    counts = Counter((retriever, per_doc) for (retriever, _), (_, per_doc) in best.items())
    return [
        {"retriever": retriever, "per_doc": per_doc, "n_datasets": counts[retriever, per_doc]}
        for retriever, options in offered.items()
        for per_doc in sorted(options)
        if len(options) > 1
    ]


def gain_over_cw(evidence: FigureData) -> Numbers:
    """Each out-of-domain gain at the content words of its benchmark, or at what else the axis is."""
    return [
        {"retriever": d.retriever, "comparison": COMPARISONS.get(d.comparison, d.comparison), "kind": d.comparison,
         "per_doc": d.per_doc, "dataset": d.dataset, evidence.axis: d.cw, "points": d.points}
        for d in evidence.differences
    ]  # fmt: skip


def correlations(evidence: FigureData) -> Numbers:
    """Pearson's r and p of each condition with three datasets or more."""
    found = correlation_table(evidence.differences) if evidence.differences else []
    return [
        {"retriever": c.retriever, "comparison": c.comparison, "per_doc": c.per_doc, "datasets": c.n_datasets,
         "r": c.r, "p": c.p, "low": c.interval and c.interval[0], "high": c.interval and c.interval[1]}
        for c in found
    ]  # fmt: skip


def positives(evidence: FigureData) -> Numbers:
    """The share of conditions in which each dataset gains."""
    found = positive_rates(evidence.differences) if evidence.differences else []
    return [
        {"dataset": p.dataset, "cw": p.cw, "positive": p.positive, "conditions": p.conditions, "rate": 100 * p.rate}
        for p in found
    ]


def methods_by_benchmark(evidence: FigureData) -> Numbers:
    """NDCG@10 of every arm on every benchmark and on the mean of its group."""
    found = mean(with_means(evidence.rows), *ARM, "benchmark")
    return sorted(found, key=lambda row: (row["arm"], _is_mean(row)))


def diverse_against_paraphrase(evidence: FigureData) -> Numbers:
    """Diverse minus paraphrase at the same Q/Doc, on each benchmark."""
    return _differences(evidence.rows, over_paraphrase, "retriever", "generator", "per_doc", "benchmark")


def _differences(rows: Sequence[ArmRow], control: Any, *keys: str) -> Numbers:
    plain = difference(rows, control)
    return mean([replace(row, ndcg=points) for row, points in plain], *keys)


def gain_by_retriever(evidence: FigureData) -> Numbers:
    """The mean gain of each retriever from diverse queries, at the Q/Doc that all retrievers have."""
    plain = difference(evidence.rows, over_paraphrase)
    depths = [
        {row.per_doc for row, _ in plain if row.retriever == name} for name in {row.retriever for row, _ in plain}
    ]
    shared = set.intersection(*depths) - {1} if depths else set()
    chosen = [
        replace(row, ndcg=points) for row, points in plain if row.per_doc in shared and " mean" not in row.benchmark
    ]
    found = mean(mean_rows(chosen, "retriever", "benchmark"), "retriever")
    names = {name: {row.benchmark for row in chosen if row.retriever == name} for name in {r.retriever for r in chosen}}
    return [{"retriever": r["retriever"], "points": r["ndcg"], "datasets": len(names[r["retriever"]])} for r in found]


def mean_rows(rows: Sequence[ArmRow], *keys: str) -> list[ArmRow]:
    """One row for each combination of ``keys``, of the mean score: so that each counts once in a further mean."""
    first = {tuple(getattr(row, key) for key in keys): row for row in rows}
    return [replace(first[tuple(found[key] for key in keys)], ndcg=found["ndcg"]) for found in mean(rows, *keys)]


def weights_by_benchmark(evidence: FigureData) -> Numbers:
    """Each weighting minus equal weights, for q, q′ or both, on each benchmark: the conditions of reasoning queries."""
    rows = [row for row in with_means(evidence.rows) if row.per_doc]
    minus = _differences(rows, over_equal, "retriever", "corpus", "query_source", "weighting", "benchmark")
    named = ("retriever", "corpus", "query_source", "weighting")
    return [{"arm": SEPARATOR.join(str(row[name]) for name in named if row[name]), **row} for row in minus]


def train_by_evaluate(evidence: FigureData) -> Numbers:
    """What was trained on by what it was evaluated on, with the in-domain score and the mean out of domain; ``change``
    is by how many percent a weighting changes each."""
    rows = [row for row in evidence.rows if row.per_doc and " mean" not in row.benchmark]
    cells: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    within: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    for found in mean(rows, *ARM, "benchmark", "in_domain"):
        arm = tuple(found[key] for key in ARM)
        cells[arm][found["benchmark"]] = found["ndcg"]
        within[arm] |= {found["benchmark"]} if found["in_domain"] else set()

    numbers: Numbers = []
    plain = {arm[1:]: scores for arm, scores in cells.items()}
    for arm, scores in cells.items():
        facts = dict(zip(ARM, arm, strict=True))
        columns = dict(scores) | _by_domain(scores, within[arm])
        equal = plain.get(tuple({**facts, "weighting": "none"}[name] for name in FACTS), {})
        control = dict(equal) | _by_domain(equal, within[arm])
        for name, value in columns.items():
            base = control.get(name) if facts["weighting"] != "none" else None
            change = 100 * (value - base) / base if base else None
            row = {**facts, "benchmark": name, "ndcg": value, "change": change, "in_domain": name in within[arm]}
            numbers.append(row)
    return numbers


IN_DOMAIN, OUT_OF_DOMAIN = "in-domain", "out of domain mean"


def _by_domain(scores: dict[str, float], within: set[str]) -> dict[str, float]:
    parts = {IN_DOMAIN: [v for name, v in scores.items() if name in within],
             OUT_OF_DOMAIN: [v for name, v in scores.items() if name not in within]}  # fmt: skip
    return {name: float(np.mean(values)) for name, values in parts.items() if values}


def learning_rates(evidence: FigureData) -> Numbers:
    """The best dev score at each learning rate of a retriever that has several."""
    tried = [row for row in evidence.rows if row.rate is not None and row.dev is not None and row.per_doc]
    found = mean(tried, "retriever", "rate", value="dev")
    several = Counter(row["retriever"] for row in found)
    chosen = [row for row in found if several[row["retriever"]] > 1]
    return sorted(chosen, key=lambda row: (row["retriever"], row["rate"]))


def cw_of_languages(evidence: FigureData) -> Numbers:
    """The least and most content words of a query in each language, over the benchmarks in it."""
    by_language: dict[str, list[Any]] = defaultdict(list)
    for row in evidence.stats:
        if "cw_min" in row:
            by_language[row.get("code") or row["language"]].append(row)
    return [
        {"language": code, "cw_min": min(r["cw_min"] for r in rows), "cw_max": max(r["cw_max"] for r in rows),
         "benchmarks": len(rows)}
        for code, rows in by_language.items()
    ]  # fmt: skip


def datasets(evidence: FigureData) -> Numbers:
    """Sizes, lengths, judged documents and content words of each benchmark, those with most content words first."""
    rows = [dict(row) for row in evidence.stats if "cw" in row]
    return sorted(rows, key=lambda row: -row["cw"])


def hops(evidence: FigureData) -> Numbers:
    """How many documents a query needs: hops as printed, or relevant documents per query."""
    return [
        {"dataset": row["dataset"], "least": row.get("hops_min", row.get("docs_per_query")),
         "most": row.get("hops_max", row.get("docs_per_query")), "context": row.get("context", "")}
        for row in evidence.stats
        if "docs_per_query" in row or "hops_min" in row
    ]  # fmt: skip


def who_is_right(evidence: FigureData) -> Numbers:
    """Who is right at rank 1: the counts of a two-way table, and what the other arm had instead."""
    keys = ("what", "value", "percent")
    return [{key: row[key] for key in keys} for row in evidence.errors]


# What several figures share.


def with_means(rows: Iterable[ArmRow]) -> list[ArmRow]:
    """The rows, and for each arm and seed the mean of each group of the registry of which it has two or more, and of
    all out of domain; each says how many it is of. Published means stay as printed."""
    kept = list(rows)
    if any(row.benchmark.endswith(" mean") for row in kept):
        return kept
    sizes = {title: len(names) for title, names in registry.groups().items()}
    arms: dict[tuple[Any, ...], dict[str, list[ArmRow]]] = defaultdict(lambda: defaultdict(list))
    for row in kept:
        arm = (*(getattr(row, key) for key in ARM), row.seed, row.documents)
        if row.group:
            arms[arm][f"{row.group} mean"].append(row)
        if not row.in_domain:
            arms[arm]["out of domain mean"].append(row)
    for groups in arms.values():  # the mean of one group is not said twice
        alike = [name for name, of in groups.items() if of == groups.get("out of domain mean")]
        if len(alike) > 1:
            del groups["out of domain mean"]

    def title(name: str, of: list[ArmRow]) -> str:
        whole = sizes.get(name.removesuffix(" mean"), len(of))
        return f"{name} ({len(of)})" if whole == len(of) else f"{name} ({len(of)} of {whole})"

    means = [
        replace(of[0], benchmark=title(name, of), ndcg=float(np.mean([row.ndcg for row in of])), evaluation="")
        for groups in arms.values()
        for name, of in groups.items()
        if len({row.benchmark for row in of}) > 1
    ]
    return [*kept, *means]


def _is_mean(row: dict[str, Any]) -> bool:
    return " mean" in row["benchmark"]


def said(evidence: FigureData, numbers: Numbers) -> str:
    """What the numbers rest on, in one sentence: datasets, how many of them in-domain, seeds."""
    names = {row.benchmark: row for row in evidence.rows if " mean" not in row.benchmark}
    named = {str(row.get("benchmark") or row.get("dataset") or "") for row in numbers} - {""}
    shown = [names[name] for name in named & set(names)] or list(names.values())
    if not shown:
        return ""
    within = sum(row.in_domain for row in shown)
    domain = "all in-domain" if within == len(shown) else f"{within} of them in-domain" if within else "out of domain"
    seeds = [row["seeds"] for row in numbers if "seeds" in row and row.get("per_doc", 1)]
    spread = f"; {counted(min(seeds), 'seed')}" if seeds else ""
    noise = ": no spread over training is known" if seeds and min(seeds) == 1 else ""
    return f"Rests on {counted(len(shown), 'dataset')}, {domain}{spread}{noise}."
