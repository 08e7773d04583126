"""Tables of a report beside its scores: single differences, pooled models, what was trained on, the paper's cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from cdp.base.text import escaped, signed
from cdp.principle import ALL, MULTI_HOP, PARAPHRASE, SCALING, Difference, differences
from cdp.principle.tables import read
from cdp.studies.gains import Gain
from cdp.studies.plan import method_of
from cdp.studies.pooling import CONDITION, COVARIATES, QUERIES, Pooled
from cdp.studies.report import StudyReport

PAPERS_METHOD = {"diverse": "Ours-diverse", "paraphrase": "Ours-paraphrase", "human": "Supervised"}

TERMS = {**COVARIATES, **CONDITION}


def beside(report: StudyReport) -> dict[str, tuple[list[str], list[list[str]], str]]:
    """{title: (head, rows, note)} of the tables that stand beside scores and differences; those without rows are left
    out."""
    found = {
        "Benchmarks": (*benchmark_rows(report), ""),
        "Queries trained on": (*training_rows(report), ""),
        "Chosen on dev": (*choice_rows(report), ""),
        "Beside the paper": (*paper_rows(report), PAPER_NOTE),
        "Errors at rank 1": (*rank_one_rows(report), RANK_ONE_NOTE),
        "All together": (*pooled_rows(report.pooled), POOLED_NOTE),
    }
    return {title: content for title, content in found.items() if content[1]}


def p_text(p: float) -> str:
    """``0.012``; ``< 0.001`` where it is smaller."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def span(low: float, high: float) -> str:
    return f"{signed(low)} to {signed(high)}"


def difference_rows(gains: Sequence[Gain]) -> tuple[list[str], list[list[str]]]:
    """(head, rows): each difference with its interval, p, and spread over seeds."""
    head = ["Condition", "Q/Doc", "Benchmark", "CW", "Points", "95%", "p (Holm)", "SD over seeds", "Seeds", "Queries"]
    rows = [
        [
            escaped(g.condition),
            str(g.per_doc),
            escaped(g.benchmark),
            f"{g.cw:.2f}",
            f"{signed(g.points)}{mark(g)}",
            span(g.low, g.high),
            p_text(g.p_holm),
            "–" if g.seed_sd is None else f"{g.seed_sd:.2f}",
            str(g.n_seeds),
            f"{g.n_queries:,}",
        ]
        for g in gains
    ]
    return head, rows


def mark(gain: Gain) -> str:
    """A star where a difference is more than chance, in brackets where training noise is not known."""
    return "" if not gain.significant else " (\\*)" if gain.seed_sd is None else " \\*"


def pooled_rows(models: Sequence[Pooled]) -> tuple[list[str], list[list[str]]]:
    """(head, rows): a row for each coefficient; the reason where a model could not be fitted."""
    head = ["Model", "Term", "Points", "95%", "p", "df", "Datasets", "Families", "Observations", "Between datasets"]
    rows = []
    for model in models:
        counts = [str(model.n_datasets), str(model.n_families), f"{model.n:,}"]
        between = "–" if model.level == QUERIES else f"{model.between:.2f}"
        if model.problem:
            rows.append([model.title, f"none: {model.problem}", "–", "–", "–", "–", *counts, between])
        for term in model.terms:
            per = "" if term.name not in TERMS else f"per {TERMS[term.name]}"
            rows.append(
                [
                    escaped(model.title),
                    per or term.name,
                    signed(term.value),
                    span(term.low, term.high),
                    p_text(term.p),
                    f"{term.degrees:.1f}",
                    *counts,
                    between,
                ]
            )
    return head, rows


POOLED_NOTE = (
    "One model over all conditions and benchmarks: errors are robust for families of benchmarks (CR2, Satterthwaite's "
    "degrees of freedom), what seeds do to all benchmarks at once is added to the mean gain, covariates are centred. "
    "Below about four degrees of freedom (df) an interval is a rough one. A slope on words of a query or on overlap is "
    "no cause: these come with the queries."
)


def benchmark_rows(report: StudyReport) -> tuple[list[str], list[list[str]]]:
    """(head, rows): what is known of the benchmarks' queries."""
    facts = ("words", "overlap", "relevant", "hops")
    head = ["Benchmark", "Split", "Queries", "Documents", "Language", "CW", "95%", *map(str.title, facts), "Family",
            "In-domain for"]  # fmt: skip
    rows = []
    for b in report.benchmarks:
        own = "all" if b.in_domain else ", ".join(b.in_domain_of)
        rows.append(
            [
                escaped(b.name), b.split, f"{b.n_queries:,}", f"{b.n_documents:,}", b.language or "–", f"{b.cw:.2f}",
                f"{b.cw_interval[0]:.2f} to {b.cw_interval[1]:.2f}",
                *(f"{b.facts[name]:.2f}" if name in b.facts else "–" for name in facts),
                escaped(b.family or "–"), escaped(own) or "–",
            ]
        )  # fmt: skip
    return head, rows


def training_rows(report: StudyReport) -> tuple[list[str], list[list[str]]]:
    """(head, rows): the queries that each condition was trained on, with the paper's Self-BLEU beside; none where no
    record says."""
    head = ["Trained on", "Q/Doc", "Documents", "Pairs", "Words", "CW", "Overlap", "Self-BLEU", "Paper's Self-BLEU",
            "Found by BM25 in 10"]  # fmt: skip
    rows: dict[tuple[str, ...], list[str]] = {}
    for row in report.rows:
        if not row.queries:
            continue
        known = {name: "–" if v is None else f"{v:.2f}" for name, v in row.queries.items()}
        source = f"{row.source}, {row.held}" if row.held else row.source
        rows[source, str(row.per_doc)] = [
            escaped(source), str(row.per_doc), f"{row.documents:,}", f"{row.pairs:,}",
            *(known.get(name, "–") for name in ("words", "cw", "overlap", "self_bleu")),
            papers_self_bleu(method_of(row.source), row.per_doc), known.get("round_trip", "–"),
        ]  # fmt: skip
    return head, list(rows.values())


def papers_self_bleu(method: str, per_doc: int) -> str:
    """What the paper prints for a method at a Q/Doc; a dash where it prints nothing, or Q/Doc is 1, where Self-BLEU is
    not defined within a document."""
    if per_doc < 2:
        return "–"
    values = {
        row["value_printed"]
        for row in read("qd_metrics")
        if row["method"] == PAPERS_METHOD.get(method)
        and row["metric"] == "Self-BLEU"
        and str(row["queries_per_doc"]) == str(per_doc)
    }
    return " and ".join(sorted(map(str, values))) or "–"


def choice_rows(report: StudyReport) -> tuple[list[str], list[list[str]]]:
    """(head, rows): what a dev split would have chosen, and its score on the test split."""
    head = ["Benchmark", "Chosen on", "Chosen", "NDCG@10", "Untrained", "Best there", "NDCG@10 of it"]
    return head, [
        [
            escaped(c.benchmark), escaped(c.chosen_on), escaped(c.chosen), f"{c.score:.2f}",
            "–" if c.untrained is None else f"{c.untrained:.2f}", escaped(c.best), f"{c.best_score:.2f}",
        ]
        for c in report.choices
    ]  # fmt: skip


def paper_rows(report: StudyReport) -> tuple[list[str], list[list[str]]]:
    """(head, rows): each gain on a benchmark that the paper has, or a sample of it, with the paper's own beside."""
    head = ["Comparison", "Condition", "Q/Doc", "Benchmark", "Here", "95%", "Paper's dataset", "Paper's Q/Doc", "Paper"]
    whole = {b.name: b.published for b in report.benchmarks if b.published}
    rows = []
    for g in report.gains:
        if g.comparison not in (SCALING, PARAPHRASE) or g.benchmark not in whole or g.held or g.weighting != "none":
            continue
        published = _published(g.comparison, whole[g.benchmark])
        if not published:
            continue
        nearest = min({d.per_doc for d in published}, key=lambda m: (abs(m - g.per_doc), m))
        cells = [f"{d.retriever} {signed(d.points)}" for d in published if d.per_doc == nearest]
        rows.append(
            [
                "more queries" if g.comparison == SCALING else "diverse minus paraphrase", escaped(g.condition),
                str(g.per_doc), escaped(g.benchmark), f"{signed(g.points)}{mark(g)}", span(g.low, g.high),
                whole[g.benchmark], str(nearest), ", ".join(cells),
            ]
        )  # fmt: skip
    return head, rows


PAPER_NOTE = (
    "Other retrievers, other training documents, and whole collections in the paper: compare signs and orders of "
    "magnitude, not scores. Where the paper has no such Q/Doc, its nearest stands here."
)


def published_name(name: str, derived: bool) -> str:
    """The paper's dataset that a benchmark, or a sample of it, is by its name; empty for none, and for what was derived
    from one."""
    if derived:
        return ""
    plain = _plain(name)
    return next((d for d in sorted({d.dataset for d in _all()}, key=len, reverse=True) if _plain(d) in plain), "")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


@lru_cache(maxsize=1)
def _all() -> tuple[Difference, ...]:
    return (*differences(MULTI_HOP), *(d for d in differences(ALL) if d.comparison == SCALING))


def _published(comparison: str, dataset: str) -> list[Difference]:
    """The paper's differences on a dataset, each retriever and Q/Doc once."""
    first: dict[tuple[str, int], Difference] = {}
    for d in _all():
        if d.comparison == comparison and d.dataset == dataset:
            first.setdefault((d.retriever, d.per_doc), d)
    return list(first.values())


def rank_one_rows(report: StudyReport) -> tuple[list[str], list[list[str]]]:
    """(head, rows): what changes at rank 1 between one query per document and the best number."""
    head = ["Trained on", "Q/Doc", "Benchmark", "Queries × seeds", "Only it right", "before: same source",
            "before: other", "Only Q/Doc 1 right", "after: same source", "after: other", "p"]  # fmt: skip
    return head, [
        [
            escaped(f"{r.retriever}, {r.source}"), str(r.per_doc), escaped(r.benchmark), f"{r.n:,} × {r.seeds}",
            *map(str, (r.wins, r.wins_same, r.wins_other, r.losses, r.losses_same, r.losses_other)), p_text(r.p),
        ]
        for r in report.rank_one
    ]  # fmt: skip


RANK_ONE_NOTE = (
    "Queries whose first document is relevant under one of the two trainings alone, and what the other put first: "
    "another passage of the source (title) of a relevant one, or of another source. The best number of queries is "
    "the one with the highest mean here, so this describes and confirms nothing; p is of wins against losses over "
    "queries."
)
