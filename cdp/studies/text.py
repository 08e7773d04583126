"""A study in words and Markdown tables: plan, progress and report."""

from __future__ import annotations

from collections.abc import Sequence

from cdp.base.text import clustered, counted, duration, escaped, interval, p_value, signed
from cdp.llm.prices import dollars
from cdp.studies.estimate import StudyPlan
from cdp.studies.gains import COVARIATES, TITLES, Gain, Pooled
from cdp.studies.report import IN, OUT, StudyReport, StudyRow, domains
from cdp.training.plan import rate


def plan_text(plan: StudyPlan) -> str:
    """What would be run, what it costs and how long it takes."""
    config, listed = plan.config, plan.config.to_dict()
    available = {source.label: source.n_documents for source in plan.sources}
    pairs = []
    once = {(c.cell.source, c.cell.per_doc, c.cell.held): c for c in plan.conditions}
    for (source, per_doc, held), c in once.items():
        documents = min(c.max_documents or available[source], available[source])
        pairs.append([f"{source}{held and f', {held}'}", str(per_doc), f"{documents:,}", f"{plan.pairs[str(c)]:,}"])

    lines = [
        f"{config.name or 'study'}: {len(plan.conditions)} trainings "
        f"({len(plan.sources)} × queries, Q/Doc {listed['per_doc']}, weighting {listed['weightings']}, "
        f"{listed['retrievers']}, {counted(len(config.seeds), 'seed')}), each evaluated on "
        f"{counted(len(plan.benchmarks), 'benchmark')}",
        f"Every training takes {', '.join(f'{n:,} steps ({name})' for name, n in plan.steps.items())} and keeps the "
        f"checkpoint with the best NDCG@10 on {listed['dev']}.",
        "",
        table(["Queries", "Q/Doc", "Documents", "Pairs"], pairs),
        "",
        table(
            ["Benchmark", "Split", "Queries", "Documents", "Language", "CW"],
            [
                [b["name"], b["split"], f"{b['n_queries']:,}", f"{b['n_documents']:,}", str(b.get("language", "–")),
                 f"{b['cw']:.2f}"]
                for b in plan.benchmarks
            ],
        ),
        "",
    ]  # fmt: skip
    for generation in plan.generations:
        cost = (
            f"{generation.requests:,} requests, about {generation.input_tokens:,} tokens in and "
            f"{generation.output_tokens:,} out, "
            + ("the model has no price" if generation.cost is None else dollars(generation.cost))
            if generation.requests
            else "no LLM, no cost"
        )
        lines.append(f"To be written first: {generation.method} queries by {generation.generator} ({cost})")

    source = "from earlier runs here" if plan.measured else "a rough guess: nothing was run here yet"
    lines.append(f"Time: about {duration(plan.seconds)} ({source}); trainings of earlier studies are not repeated.")
    lines += [f"Note: {note}" for note in plan.notes]

    return "\n".join(lines)


def to_markdown(report: StudyReport) -> str:
    """The whole report: findings, limits, then the tables behind them."""
    lines = [f"# {escaped(report.name)}", "", progress_text(report), "", "## What was found", ""]
    lines += [f"- {escaped(text)}" for text in report.findings] or ["- Nothing yet."]
    lines += ["", "## What this study cannot tell", ""]
    lines += [f"- {escaped(text)}" for text in report.limits] or ["- Nothing is missing from what was planned."]
    if criteria := report.config.criteria:
        lines += ["", "## What would count as support", "", "Written before the run:", "", escaped(criteria)]
    for title, (head, rows, note) in tables(report).items():
        lines += ["", f"## {title}", "", table(head, rows), *(["", note] if note else [])]
    lines += ["", "## Settings", "", table(["Setting", "Value"], setting_rows(report))]
    return "\n".join(lines) + "\n"


# Head, rows and a note below them.
MarkdownTable = tuple[list[str], list[list[str]], str]


def tables(report: StudyReport) -> dict[str, MarkdownTable]:
    """{title: table} of the report, in its order; those without rows are left out."""
    compared = {title: gains for kind, title in TITLES.items() if (gains := report.of(kind))}
    last = list(compared)[-1:]
    note = SIGNIFICANCE + STATED * any(gain.stated for gain in report.gains)
    note += GROUPED * any(gain.n_clusters < gain.n_queries for gain in report.gains)
    found: dict[str, MarkdownTable] = {
        "Learning rates": (*rate_rows(report), ""),
        "Benchmarks": (*benchmark_rows(report), ""),
        "NDCG@10": (*main_rows(report), ""),
        **{title: (*difference_rows(gains), note * (title in last)) for title, gains in compared.items()},
        "All together": (*pooled_rows(report.pooled), POOLED_NOTE),
    }
    return {title: content for title, content in found.items() if content[1] or title == "NDCG@10"}


SIGNIFICANCE = (
    "Differences in NDCG@10 points, mean over the seeds, with 95% intervals. \\* p below 0.05 (variance over "
    "queries and seeds together, Holm-corrected over the benchmarks of a condition) and all seeds of one sign. (\\*) "
    "the same with one seed, or seeds without any spread, so the test is over the queries alone and knows nothing of "
    "training noise."
)
STATED = (
    " Where Decide states a difference, its figures stand here: corrected by people's labels where there are enough, "
    "with an interval that holds together with all others of the study; their star says that it leaves out 0."
)
GROUPED = " Queries that share a relevant document are one group; below ten groups nothing has a star."


def progress_text(report: StudyReport) -> str:
    """How far the study is."""
    reused = f", {report.reused} taken from earlier studies" if report.reused else ""
    failed = f", {len(report.failures)} failed" if report.failures else ""
    return (
        f"{report.finished} of {report.planned} trainings finished{reused}{failed} (study {report.id}, {report.state})."
    )


def main_rows(report: StudyReport) -> tuple[list[str], list[list[str]]]:
    """(head, rows): every way of training against every benchmark."""
    names = [b.name for b in report.benchmarks]
    by_benchmark = [f"{escaped(b.name)} (CW {b.cw:.2f})" for b in report.benchmarks]
    domains_here = [of for of in domains(report.benchmarks) if of]
    means = [f"Mean {OUT}", f"Mean {IN}"] if len(domains_here) > 1 else ["Mean"]

    def mean(row: StudyRow, of: Sequence[str], value: float | None) -> str:
        return f"{len(row.scores.keys() & set(of))}/{len(of)}" if value is None else f"{value:.2f}"

    best = {name: max((row.scores.get(name, -1.0) for row in report.rows), default=0.0) for name in names}
    rows = [
        [
            escaped(row.name),
            f"{row.documents:,}" if row.pairs else "–",
            f"{row.pairs:,}" if row.pairs else "–",
            f"{row.steps:,}" if row.steps else "–",
            *(score(row, name, best[name]) for name in names),
            *(mean(row, *of) for of in zip(domains_here, (row.average, row.average_in_domain), strict=False)),
            str(row.n_seeds) if row.pairs else "–",
        ]
        for row in report.rows
    ]
    return ["Training", "Documents", "Pairs", "Steps", *by_benchmark, *means, "Seeds"], rows


def score(row: StudyRow, name: str, best: float) -> str:
    """A score with its spread over the seeds; the best of its column in bold."""
    if name not in row.scores:
        return "–"
    spread = f" ± {row.spread[name]:.2f}" if name in row.spread else " (no spread)" if row.n_seeds > 1 else ""
    text = f"{row.scores[name]:.2f}{spread}"
    return f"**{text}**" if row.scores[name] == best else text


def setting_rows(report: StudyReport) -> list[list[str]]:
    """The plan as it was run."""
    rows = [[name, escaped(value)] for name, value in report.config.recorded().items() if value not in (None, "")]
    for source in report.sources:
        label = escaped(source.label)
        rows += [[f"query set of {label}", source.query_set], [f"queries of {label} written by", source.written_by]]
    return rows


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table that also reads well as plain text; cells are kept on one line."""
    cells = [[_cell(c) for c in line] for line in (head, *rows)]
    widths = [max(3, *(len(line[i]) for line in cells)) for i in range(len(head))]
    drawn = ["| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |" for line in cells]
    rule = "|" + "|".join("-" * (w + 2) for w in widths) + "|"
    return "\n".join([drawn[0], rule, *drawn[1:]])


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


def difference_rows(gains: Sequence[Gain]) -> tuple[list[str], list[list[str]]]:
    """(head, rows): each difference with its interval, p, and spread over seeds."""
    head = ["Condition", "Q/Doc", "Benchmark", "CW", "Points", "95%", "p (Holm)", "SD over seeds", "Seeds", "Queries"]
    rows = [
        [escaped(g.condition), str(g.cell.per_doc), escaped(g.benchmark), f"{g.cw:.2f}", f"{signed(g.points)}{mark(g)}",
         interval((g.low, g.high), sign=True), p_value(g.p_holm), "–" if g.seed_sd is None else f"{g.seed_sd:.2f}",
         str(g.n_seeds), clustered(g.n_queries, g.n_clusters)]
        for g in gains
    ]  # fmt: skip
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
        between = "–" if model.between is None else f"{model.between:.2f}"
        if model.problem:
            rows.append([model.title, f"none: {model.problem}", "–", "–", "–", "–", *counts, between])
        for term in model.terms:
            per = "" if term.name not in COVARIATES else f"per {COVARIATES[term.name]}"
            figures = [signed(term.value), interval((term.low, term.high), sign=True), p_value(term.p)]
            rows.append([escaped(model.title), per or term.name, *figures, f"{term.degrees:.1f}", *counts, between])
    return head, rows


POOLED_NOTE = (
    "One model over all conditions and benchmarks. Errors are robust for families of benchmarks and, crossed with "
    "them, for training corpora (CR2, Satterthwaite's degrees of freedom); with fewer than three corpora the "
    "figures hold for these alone. What seeds do to all benchmarks at once is added to the mean gain, covariates "
    "are centred. Below about four degrees of freedom (df) an interval is a rough one. A slope on words of a "
    "query or on overlap is no cause: these come with the queries."
)


def rate_rows(report: StudyReport) -> tuple[list[str], list[list[str]]]:
    """(head, rows): the dev scores of each learning rate at its evaluations, the best in bold."""
    rows = [row for row in report.rows if row.cell.rate is not None]
    steps = sorted({step for row in rows for step, _ in row.dev})
    best = max((row.best_dev or 0.0 for row in rows), default=0.0)
    cells = []
    for row in rows:
        dev = dict(row.dev)
        top = "–" if row.best_dev is None else f"{row.best_dev:.2f}"
        cells.append(
            [
                escaped(row.cell._replace(rate=None).name),
                rate(row.cell.rate or 0.0),
                *(f"{dev[step]:.2f}" if step in dev else "–" for step in steps),
                f"**{top}**" if row.best_dev == best else top,
                "–" if row.best_step is None else f"{row.best_step:,}",
                "–" if row.average is None else f"{row.average:.2f}",
            ]
        )

    return ["Training", "Learning rate", *(f"Step {step:,}" for step in steps), "Best", "At step", "Reported"], cells


def benchmark_rows(report: StudyReport) -> tuple[list[str], list[list[str]]]:
    """(head, rows): what is known of the benchmarks' queries."""
    facts = ("words", "overlap")
    head = ["Benchmark", "Split", "Queries", "Documents", "Language", "CW", "95%", *map(str.title, facts), "Family",
            "In-domain for"]  # fmt: skip
    return head, [
        [
            escaped(b.name), b.split, f"{b.n_queries:,}", f"{b.n_documents:,}", b.language or "–", f"{b.cw:.2f}",
            interval(b.cw_interval), *(f"{b.facts[name]:.2f}" if name in b.facts else "–" for name in facts),
            escaped(b.family or "–"), escaped("all" if b.in_domain else ", ".join(b.in_domain_of)) or "–",
        ]
        for b in report.benchmarks
    ]  # fmt: skip
