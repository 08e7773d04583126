"""The paper's claims one by one: what was claimed, what its own figures give when computed anew, and how to test it.

The claims are in our words; every figure under ``recomputed`` is computed from the shipped results when asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cdp.base.statistics import pearson
from cdp.base.text import signed
from cdp.principle.advice import printed_splits
from cdp.principle.correlation import correlation_table, dataset_means, positive_rates, threshold
from cdp.principle.differences import ALL, PARAPHRASE, differences, other_differences, weighting_differences
from cdp.principle.recommend import trained_languages, weighting_gains
from cdp.principle.tables import best_per_doc, datasets, read, results

HOLDS, PARTLY, NOT = "holds", "partly", "does not hold"


@dataclass(frozen=True, slots=True)
class Claim:
    """``verdict`` is holds, partly or does not hold; ``notes`` the numbers of the notes on conflicts behind it.

    ``plan`` is the ready-made study that tests it on one's own data, empty where there is none: ``test`` then says what
    can be done instead.
    """

    name: str
    claim: str
    where: str
    recomputed: str
    verdict: str
    notes: tuple[int, ...]
    plan: str
    test: str


@lru_cache(maxsize=1)
def claims() -> tuple[Claim, ...]:
    """Every claim, in the paper's order of argument."""
    return tuple(
        Claim(name, claim, where, recomputed(), verdict, notes, plan, test)
        for name, claim, where, recomputed, verdict, notes, plan, test in _CLAIMS
    )


def _correlation() -> str:
    table = correlation_table()
    strong = sum(c.p < 0.05 for c in table)
    lows = [c.interval[0] for c in table if c.interval]
    return (
        f"r from {min(c.r for c in table):.3f} to {max(c.r for c in table):.3f}, p below 0.05 in {strong} of "
        f"{len(table)} conditions, but each over 4 datasets: the lowest 95% limit of an r is {signed(min(lows))}."
    )


def _threshold() -> str:
    published = threshold()
    assert published.by_dataset is not None
    low, high = published.by_dataset
    return (
        f"The gain crosses zero at CW {published.crossing:.2f}; Fieller's 95% interval over the four datasets is "
        f"{low:.2f} to {high:.2f}. Above 10 the rule rests on NovelHopQA alone, below 7 on 2WikiMultihopQA alone."
    )


def _rates() -> str:
    rates = ", ".join(f"{r.dataset} {r.positive} of {r.conditions}" for r in positive_rates())
    return f"{rates}; the two in the middle have the same CW (8.60 and 8.64) and differ."


def _all_datasets() -> str:
    correlation = pearson(*dataset_means(differences(ALL)))
    assert correlation is not None
    return f"Over all 31 datasets with a CW, r of the mean gain is {signed(correlation.r)} (p {correlation.p:.2f})."


def _diverse_beats_paraphrase() -> str:
    compared = [d for d in differences() if d.comparison == PARAPHRASE]
    gains = [d.points for d in compared]
    by_dataset = {d.dataset: [other.points for other in compared if other.dataset == d.dataset] for d in compared}
    listed = ", ".join(f"{name} {signed(float(np.mean(v)))}" for name, v in sorted(by_dataset.items()))
    return (
        f"Diverse is ahead in {sum(g > 0 for g in gains)} of {len(gains)} pairs on the four sets; mean per dataset: "
        f"{listed}."
    )


def _single_query() -> str:
    rows = {
        (row["method"], row["queries_per_doc"]): row["value"]
        for row in results()
        if row["table"] == "tab:single_query_ablation" and row["is_average"]
    }
    gap = {m: rows["Ours-diverse", m] - rows["Ours-paraphrase", m] for m in (1, 5)}
    return f"Diverse minus paraphrase, multi-hop average: {signed(gap[1])} at one query, {signed(gap[5])} at five."


def _in_domain() -> str:
    names = {row["dataset"] for row in datasets() if row["group"] == "TREC-DL"}
    gains = {m: [d.points for d in differences(ALL) if d.dataset in names and d.per_doc == m] for m in (2, 5, 10, 20)}
    return (
        "Mean gain over one query per document on TREC-DL: "
        + ", ".join(f"{signed(float(np.mean(values)))} at Q/Doc {m}" for m, values in gains.items())
        + "."
    )


def _best_per_doc() -> str:
    counts = best_per_doc()
    parts = []
    for retriever in sorted({name for name, _ in counts}):
        n = sum(v for (name, _), v in counts.items() if name == retriever)
        more = n - counts.get((retriever, 1), 0)
        parts.append(f"{retriever} {more} of {n} ({more / n:.0%})")
    return "Best score above Q/Doc 1 on: " + ", ".join(parts) + "."


def _generators() -> str:
    parts = [f"{c.retriever}: r {signed(c.r)} (p {c.p:.2f})" for c in correlation_table(other_differences())]
    return "; ".join(parts) + ". With Mistral-7B's queries the relation is reversed."


def _budget() -> str:
    parts = []
    for group in ("Multi-hop", "BRIGHT", "BEIR", "TREC-DL"):
        each = ", ".join(signed(points) for points in printed_splits(group)[10].values())
        parts.append(f"{group} {each}")
    return "8,000 documents with 10 queries minus 80,000 with one, Contriever and RetroMAE: " + "; ".join(parts) + "."


def _weighting() -> str:
    parts = []
    for group, gains in weighting_gains().items():
        parts.append(f"{group} {', '.join(signed(v) for v in gains.values())}")
    correlation = correlation_table(weighting_differences())[0]
    return (
        f"CW-weighted minus equal weights, three retrievers: {'; '.join(parts)}. The gain does not go with the "
        f"dataset's CW (r {signed(correlation.r)}, p {correlation.p:.2f}, {correlation.n_datasets} datasets)."
    )


def _reasoning() -> str:
    scores = {
        (row["query_source"], row["weighting"]): row["value"]
        for row in results()
        if row["table"] == "tab:reasonembed" and row["group"] == "Multi-hop"
    }
    parts = [
        f"{source} {signed(scores[source, after] - scores[source, before])} ({before} to {after})"
        for source in ("query-only", "reasoning-only", "multi-query")
        for before, after in (("none", "CW"), ("RI", "RIxCW"))
    ]
    return "Change of the multi-hop average (OOD): " + "; ".join(parts) + "."


def _languages() -> str:
    listed = ", ".join(f"{t.language} {t.width}: {signed(t.change, 1)}%" for t in trained_languages())
    widths, changes = [t.width for t in trained_languages()], [t.change for t in trained_languages()]
    rho = pearson(np.argsort(np.argsort(widths)), np.argsort(np.argsort(changes)))
    assert rho is not None
    return f"Range of CW and change of the OOD average: {listed}; Spearman's ρ {rho.r:.2f}, one training each."


def _diversity() -> str:
    rows = [row for row in read("qd_metrics") if row["table"] == "tab:qd_full" and row["metric"] == "CE"]
    few_shot = [r["value"] for r in rows if r["method"] in ("InPars-GBQ", "SAP", "DRAMA") and r["queries_per_doc"] > 1]
    ours = [r["value"] for r in rows if r["method"] == "Ours-diverse" and r["queries_per_doc"] > 1]
    return (
        f"Paraphrase ratio above Q/Doc 1: diverse {min(ours):.2f} to {max(ours):.2f}, few-shot methods "
        f"{min(few_shot):.2f} to {max(few_shot):.2f}."
    )


_Entry = tuple[str, str, str, Callable[[], str], str, tuple[int, ...], str, str]

_CLAIMS: tuple[_Entry, ...] = (
    ("Gain and content words", "The gain from diverse queries correlates strongly with CW (r of at least 0.95, p below "
     "0.05).", "abstract; content_words", _correlation, PARTLY, (1, 13, 14), "qdoc-scaling", ""),
    ("Threshold", "Diversity pays above CW 10, hurts below 7, and is to be tested in between.", "cw_threshold",
     _threshold, PARTLY, (1, 9), "qdoc-scaling", ""),
    ("Positive rates", "Diversity gains in 100% of the conditions above 10, 43% to 86% between, 7% below.",
     "cw_threshold", _rates, PARTLY, (9,), "qdoc-scaling", ""),
    ("Beyond multi-hop", "Complexity of the queries decides when diversity helps out of domain.",
     "abstract; scaling_full", _all_datasets, PARTLY, (7, 8), "fairytale-multihop", ""),
    ("Diverse and paraphrase", "Out of domain on multi-hop, different queries beat paraphrases.", "multihop_diversity",
     _diverse_beats_paraphrase, PARTLY, (11, 18, 31), "single-query", ""),
    ("The difference, not the kind", "With one query per document both prompts are as good.", "single_query_ablation",
     _single_query, HOLDS, (3,), "single-query", ""),
    ("In-domain", "In-domain, more diverse queries per document do not help.", "scaling_full", _in_domain, HOLDS, (20,),
     "", "Evaluate on queries held back from the training queries' own task."),
    ("Share that gains", "68% of the datasets are best with more than one query per document.", "qdoc_distribution",
     _best_per_doc, PARTLY, (6, 7, 8), "qdoc-scaling", ""),
    ("Generators and retrievers", "The principle holds across generators and retrievers.",
     "mistral_generator; qwen_retriever", _generators, NOT, (17,), "qdoc-scaling", ""),
    ("Fewer documents", "A tenth of the documents with ten queries each is as good, for a tenth of the LLM cost.",
     "cost_efficiency_full", _budget, PARTLY, (2, 5, 19, 20, 29), "document-quantity", ""),
    ("CW weighting", "Weighting the loss by CW improves out-of-domain results.", "cw_weighting", _weighting, PARTLY,
     (4, 16, 28), "cw-weighting", ""),
    ("CW weighting of reasoning queries", "CW weighting adds to RI on reasoning queries.", "reasonembed", _reasoning,
     PARTLY, (21,), "", "Train with RI and with RI×CW on imported reasoning queries (Launch)."),
    ("Languages", "Languages whose queries spread widely in CW gain from weighting, narrow ones lose.",
     "miracl_results", _languages, PARTLY, (23, 24, 25, 39), "cw-weighting", ""),
    ("Diversity of the methods", "Few-shot methods repeat themselves (CE above 0.5); the diverse prompt does not.",
     "qd_full", _diversity, PARTLY, (10, 12, 32, 34), "", "Measure your own query sets (Quality and diversity)."),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of the principle: ``stated`` by the paper in our words, ``recomputed`` from its figures."""

    stated: str
    recomputed: str


def limits() -> tuple[Limit, ...]:
    """What the paper itself says the principle does not cover, with what its figures give."""
    rows = {row["dataset"]: row for row in datasets()}
    length = pearson([r["cw"] for r in rows.values()], np.log([float(r["query_len_chars"]) for r in rows.values()]))
    assert length is not None
    bright = {name for name, row in rows.items() if row["group"] == "BRIGHT"}
    cw, gain = dataset_means([d for d in differences(ALL) if d.dataset in bright])
    within = pearson(cw, gain)
    assert within is not None
    assert within.interval is not None
    return (
        Limit(
            "CW goes with the length of a query, so it may stand for length.",
            f"Over {length.n} datasets r of CW with the logarithm of the mean query length is {length.r:.2f}: the two "
            "cannot be told apart on these data.",
        ),
        Limit(
            "Among sets whose CW is uniformly high the relation is weak.",
            f"Over BRIGHT's {within.n} datasets (CW {cw.min():.0f} to {cw.max():.0f}) r of the gain with CW is "
            f"{signed(within.r)} (95% {signed(within.interval[0])} to {signed(within.interval[1])}).",
        ),
        Limit(
            "The rule of 7 and 10 is for multi-hop question answering.",
            "It was fitted on four such datasets in English, CW 6.34 to 11.64; for other tasks no number comes from it "
            "here.",
        ),
        Limit(
            "The queries were written by one generator, GPT-4o-mini, for most results.",
            _generators(),
        ),
    )
