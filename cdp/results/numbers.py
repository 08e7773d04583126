"""The numbers of each figure of the evidence, as rows for a CSV, and the sentence that says what they rest on.

Each function takes published or own evidence (``cdp.results.arms``) alike; no row means that the figure needs a run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from cdp.base.condition import DIVERSE, HUMAN, UNTRAINED
from cdp.base.text import condition_name, counted, interval, signed
from cdp.benchmarks import registry
from cdp.principle import correlation_table, positive_rates
from cdp.principle.correlation import COMPARISONS
from cdp.results.arms import (
    ArmRow,
    FigureData,
    difference,
    mean,
    one_design,
)

Numbers = list[dict[str, Any]]

# CE, and what stands in for it where no cross-encoder is there.
CE = ("CE", "Paraphrase ratio, bi-encoder")

IN_DOMAIN, OUT_OF_DOMAIN = "in-domain", "out of domain mean"

FACTS = ("retriever", "method", "corpus", "per_doc", "weighting", "query_source", "loss", "equal_pairs", "rate")
ARM = ("arm", *FACTS)


def measures_over_qdoc(evidence: FigureData) -> Numbers:
    """Q-D measures by method and Q/Doc."""
    keys = ("measure", "method", "per_doc", "value", "low", "high")
    values = attrgetter(*keys)
    rows = [dict(zip(keys, values(m), strict=True)) for m in evidence.measures]
    return _sorted(rows, "measure", "method", "per_doc")


def quality_against_diversity(evidence: FigureData) -> Numbers:
    """Dist-Sim and CE of each method at each Q/Doc that has both."""
    places: dict[tuple[str, int], dict[str, float]] = defaultdict(dict)
    for m in evidence.measures:
        places[m.method, m.per_doc][_short(m.measure)] = m.value

    numbers = []
    for (method, per_doc), values in places.items():
        if {"CE", "Dist-Sim"} <= values.keys():
            pair = {"ce": values["CE"], "dist_sim": values["Dist-Sim"]}
            numbers.append({"method": method, "per_doc": per_doc, **pair})

    return numbers


def _short(measure: str) -> str:
    return "CE" if measure in CE else measure


def ndcg_over_ce(evidence: FigureData) -> Numbers:
    """NDCG@10 of each arm over the CE of its queries."""
    ratio: dict[tuple[Any, ...], float] = {}
    for m in evidence.measures:
        if _short(m.measure) == "CE":
            ratio[m.method, m.per_doc, m.query_set] = m.value

    of_queries = ("method", "per_doc", "query_set")
    rows = [row for row in _equal_documents(evidence) if row.values(of_queries) in ratio]
    found = mean(rows, "retriever", "method", "per_doc", "benchmark", "query_set")
    for number in found:
        number["ce"] = ratio[itemgetter(*of_queries)(number)]

    return found


def _equal_documents(evidence: FigureData) -> list[ArmRow]:
    """The usual trainings, but for those of as many pairs from fewer documents."""
    return [row for row in evidence.rows if row.usual and not row.equal_pairs]


def ndcg_over_qdoc(evidence: FigureData) -> Numbers:
    """NDCG@10 of each way of training by Q/Doc, on each benchmark and its group's mean."""
    rows = [row for row in _equal_documents(evidence) if row.condition.per_doc]
    found = mean(with_means(rows), "benchmark", "retriever", "method", "per_doc")
    way = itemgetter("benchmark", "retriever", "method")
    several = {way(number) for number in found if number["per_doc"] > 1}
    shown = [number for number in found if way(number) in several]
    return _sorted(shown, "benchmark", "retriever", "method", "per_doc")


def documents_against_diversity(evidence: FigureData) -> Numbers:
    """NDCG@10 of as many queries spread over more or fewer documents, baselines beside it, and what was spent.

    One request for each document: the cost of a share of the documents is that share of the set's.
    """
    usual = [row for row in evidence.rows if row.usual]
    held = {(row.condition.retriever, row.method, row.corpus) for row in usual if row.equal_pairs}
    kept = []
    for arm in usual:
        beside = not arm.condition.per_doc or arm.method == HUMAN
        in_design = arm.equal_pairs or arm.condition.per_doc == 1
        if beside or (in_design and (arm.condition.retriever, arm.method, arm.corpus) in held):
            kept.append(arm)

    found = mean(with_means(kept), "benchmark", "retriever", "method", "documents", "per_doc", "dollars", "tokens")
    sizes: dict[str, set[int]] = defaultdict(set)  # the numbers of documents of each way of writing
    for row in found:
        row["requests"] = 0
        if row["method"] not in (HUMAN, UNTRAINED):
            row["requests"] = row["documents"]
            sizes[row["method"]].add(row["documents"])

    if len(set().union(*sizes.values())) < 2:
        return []

    for row in found:
        share = row["documents"] / max({1, *sizes[row["method"]]})
        for cost in ("dollars", "tokens"):
            if row[cost] is not None:
                row[cost] *= share

    return _sorted(found, "benchmark", "retriever", "method", "documents")


def documents_by_qdoc(evidence: FigureData) -> Numbers:
    """The mean NDCG@10 of each number of documents at each Q/Doc, out of domain where there are such benchmarks, with
    what its queries take: one request for each document."""
    usual = [row for row in evidence.rows if row.usual and row.condition.per_doc and row.documents]
    rows = [row for row in usual if not row.in_domain] or usual
    if not _differ(rows, "documents"):
        return []

    keys = ("retriever", "method", "documents", "per_doc")
    if _differ(rows, "benchmark"):
        rows = mean_rows(rows, *keys, "benchmark")

    numbers = []
    for row in mean(rows, *keys, "dollars"):
        details = f"{row['documents']:,} documents"
        if row["method"] != HUMAN:
            requests = f"{row['documents']:,} requests"
            if row["dollars"] is not None:
                requests += f", ${row['dollars']:,.2f}"
            details += f" ({requests})"

        arm = condition_name(row["retriever"], row["method"], 0, details)
        numbers.append({"arm": arm, **_only(row, *keys, "ndcg", "low", "high", "dollars")})

    return sorted(numbers, key=lambda row: (row["retriever"], row["method"], -row["documents"], row["per_doc"]))


def best_qdoc(evidence: FigureData) -> Numbers:
    """On how many benchmarks each Q/Doc is the best of a retriever's; of equal ones the fewest queries."""
    rows = [row for row in _equal_documents(evidence) if row.condition.per_doc and row.method == DIVERSE]
    scores: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for row in _sorted(mean(rows, "retriever", "benchmark", "per_doc"), "per_doc"):
        scores[row["retriever"], row["benchmark"]][row["per_doc"]] = round(row["ndcg"], 4)

    counts: dict[str, Counter[int]] = defaultdict(Counter)  # at each Q/Doc that a retriever has
    for (retriever, _), of in scores.items():
        counts[retriever].update(dict.fromkeys(of, 0))
        counts[retriever][max(of, key=of.__getitem__)] += 1

    numbers = []
    for retriever, best in counts.items():
        if len(best) > 1:
            numbers += [{"retriever": retriever, "per_doc": m, "n_datasets": best[m]} for m in sorted(best)]

    return numbers


def gain_over_cw(evidence: FigureData) -> Numbers:
    """Each out-of-domain gain at the content words of its benchmark, or at what else the axis is."""
    return [
        {"retriever": d.retriever, "comparison": COMPARISONS.get(d.comparison, d.comparison), "kind": d.comparison,
         "per_doc": d.per_doc, "dataset": d.dataset, evidence.axis: d.cw, "points": d.points}
        for d in evidence.differences
    ]  # fmt: skip


def correlations(evidence: FigureData) -> Numbers:
    """Pearson's r and p of each condition with three datasets or more, with Fisher's interval from four on."""
    numbers = []
    for c in correlation_table(evidence.differences) if evidence.differences else ():
        low, high = c.interval or (None, None)
        numbers.append({"retriever": c.retriever, "comparison": c.comparison, "per_doc": c.per_doc,
                        "datasets": c.n_datasets, "r": c.r, "p": c.p, "low": low, "high": high})  # fmt: skip
    return numbers


def positives(evidence: FigureData) -> Numbers:
    """The share of conditions in which each dataset gains."""
    numbers = []
    for p in positive_rates(evidence.differences) if evidence.differences else ():
        numbers.append({"dataset": p.dataset, "cw": p.cw, "positive": p.positive, "conditions": p.conditions,
                        "rate": 100 * p.rate})  # fmt: skip
    return numbers


def methods_by_benchmark(evidence: FigureData) -> Numbers:
    """NDCG@10 of every arm on every benchmark and on the mean of its group."""
    found = mean(with_means(evidence.rows), *ARM, "benchmark")
    return sorted(found, key=lambda row: (row["arm"], _is_mean(row["benchmark"])))


def diverse_against_paraphrase(evidence: FigureData) -> Numbers:
    """Diverse minus paraphrase at the same Q/Doc, on each benchmark."""
    minus = difference(evidence.rows, attrgetter("paraphrased"))
    found = mean(minus, "retriever", "generator", "per_doc", "equal_pairs", "benchmark")
    return sorted(found, key=lambda row: (row["equal_pairs"], row["per_doc"]))


def gain_by_retriever(evidence: FigureData) -> Numbers:
    """The mean gain of each retriever from diverse queries, at the Q/Doc that all retrievers have."""
    minus = [row for row in difference(evidence.rows, attrgetter("paraphrased")) if not _is_mean(row.benchmark)]
    plain = one_design(minus)
    if not plain:
        return []

    depths: dict[str, set[int]] = defaultdict(set)
    for row in plain:
        depths[row.condition.retriever].add(row.condition.per_doc)

    shared = set.intersection(*depths.values()) - {1}
    chosen = mean_rows([row for row in plain if row.condition.per_doc in shared], "retriever", "benchmark")
    datasets = Counter(row.condition.retriever for row in chosen)
    numbers = []
    for found in mean(chosen, "retriever"):
        name = found["retriever"]
        numbers.append({"retriever": name, "points": found["ndcg"], "datasets": datasets[name]})

    return numbers


def mean_rows(rows: Sequence[ArmRow], *keys: str) -> list[ArmRow]:
    """One row for each combination of ``keys``, of the mean score: so that each counts once in a further mean."""
    first = {row.values(keys): row for row in rows}
    means = []
    for found in mean(rows, *keys):
        row = first[tuple(_only(found, *keys).values())]
        means.append(replace(row, ndcg=found["ndcg"], scores=None))

    return means


def weights_by_benchmark(evidence: FigureData) -> Numbers:
    """Each weighting minus equal weights, for q, q′ or both, on each benchmark: the conditions of reasoning queries."""
    trained = [row for row in with_means(evidence.rows) if row.condition.per_doc]
    minus = difference(trained, attrgetter("equally_weighted"))
    numbers = []
    for row in mean(minus, "retriever", "corpus", "query_source", "weighting", "benchmark"):
        arm = condition_name(row["retriever"], row["corpus"], 0, row["query_source"], row["weighting"])
        numbers.append({"arm": arm, **row})

    return numbers


def train_by_evaluate(evidence: FigureData) -> Numbers:
    """What was trained on by what it was evaluated on, with the in-domain score and the mean out of domain; ``change``
    is by how many percent a weighting changes each."""
    cells: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    within: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    rows = [row for row in evidence.rows if row.condition.per_doc and not _is_mean(row.benchmark)]
    for found in mean(rows, *ARM, "benchmark", "in_domain"):
        arm = itemgetter(*ARM)(found)
        cells[arm][found["benchmark"]] = found["ndcg"]
        if found["in_domain"]:
            within[arm].add(found["benchmark"])

    plain: dict[tuple[Any, ...], dict[str, float]] = {}  # by all but the name
    for arm, scores in cells.items():
        parts: dict[str, list[float]] = defaultdict(list)
        for name, value in scores.items():
            parts[IN_DOMAIN if name in within[arm] else OUT_OF_DOMAIN].append(value)

        scores |= {name: float(np.mean(values)) for name, values in parts.items()}
        plain[arm[1:]] = scores

    numbers: Numbers = []
    for arm, scores in cells.items():
        facts = dict(zip(ARM, arm, strict=True))
        equal: dict[str, float] = {}
        if facts["weighting"] != "none":
            equal = plain.get(itemgetter(*FACTS)(facts | {"weighting": "none"}), {})

        for name, value in scores.items():
            base = equal.get(name)
            change = 100 * (value - base) / base if base else None
            row = {**facts, "benchmark": name, "ndcg": value, "change": change, "in_domain": name in within[arm]}
            numbers.append(row)

    return numbers


def learning_rates(evidence: FigureData) -> Numbers:
    """The best dev score at each learning rate of a retriever that has several."""
    trained = [row for row in evidence.rows if row.condition.per_doc]
    tried = [row for row in trained if row.condition.rate is not None and row.dev is not None]
    found = mean(tried, "retriever", "rate", value="dev")
    several = Counter(row["retriever"] for row in found)
    return _sorted((row for row in found if several[row["retriever"]] > 1), "retriever", "rate")


def cw_of_languages(evidence: FigureData) -> Numbers:
    """The least and most content words of a query in each language, over the benchmarks in it."""
    by_language: dict[str, dict[str, Any]] = {}
    for row in evidence.stats:
        if "cw_min" in row:
            code, least, most = row.get("code") or row["language"], row["cw_min"], row["cw_max"]
            number = by_language.setdefault(code, {"language": code, "cw_min": least, "cw_max": most, "benchmarks": 0})
            number["cw_min"], number["cw_max"] = min(number["cw_min"], least), max(number["cw_max"], most)
            number["benchmarks"] += 1

    return list(by_language.values())


def datasets(evidence: FigureData) -> Numbers:
    """Sizes, lengths, judged documents and content words of each benchmark, those with most content words first."""
    names = {"cw_low": "low", "cw_high": "high"}
    rows = []
    for row in evidence.stats:
        if "cw" in row:
            rows.append({names.get(key, key): value for key, value in row.items()})

    return sorted(rows, key=itemgetter("cw"), reverse=True)


def hops(evidence: FigureData) -> Numbers:
    """How many documents a query needs: hops as printed, or relevant documents per query."""
    numbers = []
    for row in evidence.stats:
        if "docs_per_query" in row or "hops_min" in row:
            needed = row.get("docs_per_query")
            least, most = row.get("hops_min", needed), row.get("hops_max", needed)
            context = row.get("context", "")
            numbers.append({"dataset": row["dataset"], "least": least, "most": most, "context": context})

    return numbers


def who_is_right(evidence: FigureData) -> Numbers:
    """Who is right at rank 1: the counts of a two-way table, and what the other arm had instead."""
    return [_only(row, "what", "value", "percent", "low", "high") for row in evidence.errors]


# What several figures share.


def _sorted(rows: Iterable[dict[str, Any]], *keys: str) -> Numbers:
    return sorted(rows, key=itemgetter(*keys))


def _only(row: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """A row reduced to these columns, in this order; None for one that it has not."""
    return {key: row.get(key) for key in keys}


def _differ(rows: Iterable[ArmRow], key: str) -> bool:
    return len(set(map(attrgetter(key), rows))) > 1


def with_means(rows: Iterable[ArmRow]) -> list[ArmRow]:
    """The rows, and for each arm and seed the mean of each group of the registry of which it has two or more, and of
    all out of domain; each says how many it is of. Published means stay as printed."""
    kept = list(rows)
    if any(_is_mean(row.benchmark) for row in kept):
        return kept

    arms: dict[tuple[Any, ...], dict[str, list[ArmRow]]] = defaultdict(lambda: defaultdict(list))
    for row in kept:
        of_arm = arms[row.values((*ARM, "seed", "documents"))]
        if row.group:
            of_arm[f"{row.group} mean"].append(row)
        if not row.in_domain:
            of_arm[OUT_OF_DOMAIN].append(row)

    sizes = {f"{title} mean": len(names) for title, names in registry.groups().items()}
    for groups in arms.values():
        outside = groups.pop(OUT_OF_DOMAIN, [])
        if outside not in groups.values():  # the mean of one group is not said twice
            groups[OUT_OF_DOMAIN] = outside
        for name, of in groups.items():
            if _differ(of, "benchmark"):
                share = str(len(of))
                if sizes.get(name, len(of)) != len(of):
                    share += f" of {sizes[name]}"
                title, value = f"{name} ({share})", float(np.mean([row.ndcg for row in of]))
                kept.append(replace(of[0], benchmark=title, ndcg=value, scores=None))

    return kept


def _is_mean(benchmark: str) -> bool:
    return " mean" in benchmark


def said(evidence: FigureData, numbers: Numbers, uncertainty: str = "") -> str:
    """What the numbers rest on: datasets, how many of them in-domain, seeds, and their interval, or why they have none.
    ``uncertainty`` is the figure's own sentence on that."""
    names = {row.benchmark for row in evidence.rows if not _is_mean(row.benchmark)}
    shown = {str(row.get("benchmark") or row.get("dataset") or "") for row in numbers} & names or names
    if not shown:
        return uncertainty

    within = len({row.benchmark for row in evidence.rows if row.in_domain} & shown)
    domain = "out of domain"
    if within:
        domain = "all in-domain" if within == len(shown) else f"{within} of them in-domain"

    basis = f"Rests on {counted(len(shown), 'dataset')}, {domain}"
    seeds = [row["seeds"] for row in numbers if "seeds" in row and row.get("per_doc", 1)]
    if seeds:
        basis += f"; {counted(min(seeds), 'seed')}"

    sentences = [f"{basis}.", uncertainty or _intervals(numbers, seeds)]
    if evidence.dev:
        sentences.append(f"Left out, as it chose checkpoints: {', '.join(evidence.dev)}.")

    return " ".join(sentences)


def said_of_errors(numbers: Numbers) -> str:
    """How many queries a two-way table is of, and its net gain with its interval."""
    n, net = numbers[0]["value"], numbers[-1]
    basis = f"{n:,} queries of one benchmark, one training of each arm: no spread of training is known."
    if net["low"] is None:
        return basis

    known = f"95% {interval((net['low'], net['high']), 1, sign=True)} over queries"
    return f"{basis} {net['what'].capitalize()}: {signed(net['percent'], 1)} points of P@1 ({known})."


def _intervals(numbers: Numbers, seeds: Sequence[int]) -> str:
    """What the intervals of scores are over, or why there are none."""
    unknown = sum(row.get("low") is None for row in numbers)
    if unknown == len(numbers):
        return "No interval: means over datasets have none, nor scores that were not kept for each query."

    over = "queries and seeds" if min(seeds, default=1) > 1 else "queries (one seed shows no spread of training)"
    sentence = f"95% intervals over {over}, each by itself."
    return f"{sentence} Means over datasets have none." if unknown else sentence
