"""A study in words and Markdown tables: plan, progress and report."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

from cdp.base.text import clustered, counted, duration, escaped, interval, p_value, rate, signed
from cdp.llm.prices import dollars
from cdp.studies.estimate import PlannedGeneration, StudyPlan
from cdp.studies.gains import COVARIATES, TITLES, Gain, Pooled
from cdp.studies.report import IN, OUT, StudyReport, StudyRow, domains


def plan_text(plan: StudyPlan) -> str:
    """What would be run, what it costs and how long it takes."""
    config, listed = plan.config, plan.config.to_dict()
    trainings = (
        f"{config.name or 'study'}: {counted(plan.trainings, 'training')} "
        f"({len(plan.sources)} × queries, Q/Doc {listed['per_doc']}, weighting {listed['weightings']}, "
        f"{listed['retrievers']}, {counted(len(config.seeds), 'seed')}), each evaluated on "
        f"{counted(len(plan.benchmarks), 'benchmark')}"
    )
    steps = ", ".join(f"{n:,} steps ({name})" for name, n in plan.steps.items())
    chosen = f"Every training takes {steps} and keeps the checkpoint with the best NDCG@10 on {listed['dev']}."

    pairs = table(["Queries", "Q/Doc", "Documents", "Pairs"], _planned_pairs(plan))
    benchmarks = table(["Benchmark", "Split", "Queries", "Documents", "Language", "CW"], _planned_benchmarks(plan))
    lines = [trainings, chosen, "", pairs, "", benchmarks, ""]

    for generation in plan.generations:
        cost = _generation_cost(generation)
        lines.append(f"To be written first: {generation.method} queries by {generation.generator} ({cost})")

    source = "from earlier runs here" if plan.measured else "a rough guess: nothing was run here yet"
    lines.append(f"Time: about {duration(plan.seconds)} ({source}); trainings of earlier studies are not repeated.")
    lines += map("Note: {}".format, plan.notes)

    return "\n".join(lines)


def _planned_pairs(plan: StudyPlan) -> list[list[str]]:
    """A row for each source, Q/Doc and design: its documents and pairs."""
    available = {source.label: source.n_documents for source in plan.sources}
    once = {(c.condition.source, c.condition.per_doc, c.condition.held): c for c in plan.conditions}

    rows = []
    for (source, per_doc, held), planned in once.items():
        documents = min(planned.max_documents or available[source], available[source])
        pairs = plan.pairs[str(planned)]
        rows.append([f"{source}{held and f', {held}'}", str(per_doc), f"{documents:,}", f"{pairs:,}"])

    return rows


def _planned_benchmarks(plan: StudyPlan) -> list[list[str]]:
    rows = []
    for b in plan.benchmarks:
        sizes = [f"{b['n_queries']:,}", f"{b['n_documents']:,}"]
        rows.append([b["name"], b["split"], *sizes, str(b.get("language", "–")), f"{b['cw']:.2f}"])

    return rows


def _generation_cost(generation: PlannedGeneration) -> str:
    if not generation.requests:
        return "no LLM, no cost"

    price = "the model has no price" if generation.cost is None else dollars(generation.cost)
    tokens = f"about {generation.input_tokens:,} tokens in and {generation.output_tokens:,} out"
    return f"{generation.requests:,} requests, {tokens}, {price}"


def to_markdown(report: StudyReport) -> str:
    """The whole report: findings, limits, then the tables behind them."""
    lines = [f"# {escaped(report.name)}", "", progress_text(report), "", "## What was found", ""]
    lines += _bullets(report.findings or ["Nothing yet."])
    lines += ["", "## What this study cannot tell", ""]
    lines += _bullets(report.limits or ["Nothing is missing from what was planned."])

    if criteria := report.config.criteria:
        lines += ["", "## What would count as support", "", "Written before the run:", "", escaped(criteria)]

    for title, (head, rows, note) in tables(report).items():
        lines += ["", f"## {title}", "", table(head, rows)]
        if note:
            lines += ["", note]

    lines += ["", "## Settings", "", table(["Setting", "Value"], setting_rows(report))]

    return "\n".join(lines) + "\n"


def _bullets(texts: Sequence[str]) -> list[str]:
    return [f"- {escaped(text)}" for text in texts]


# Head, rows and a note below them.
MarkdownTable = tuple[list[str], list[list[str]], str]


def tables(report: StudyReport) -> dict[str, MarkdownTable]:
    """{title: table} of the report, in its order; those without rows are left out."""
    found: dict[str, MarkdownTable] = {
        "Learning rates": (*rate_rows(report), ""),
        "Benchmarks": (*benchmark_rows(report), ""),
        "NDCG@10": (*main_rows(report), ""),
    }

    last = ""
    for kind, title in TITLES.items():
        head, rows = difference_rows(report.of(kind))
        found[title] = head, rows, ""
        if rows:
            last = title

    # One note for all of them, below the last.
    if last:
        head, rows, _ = found[last]
        found[last] = head, rows, _note(report.gains)

    found["All together"] = (*pooled_rows(report.pooled), POOLED_NOTE)
    return {title: content for title, content in found.items() if content[1] or title == "NDCG@10"}


def _note(gains: Sequence[Gain]) -> str:
    """How the tables of differences are to be read."""
    note = SIGNIFICANCE
    if any(gain.stated for gain in gains):
        note += STATED
    if any(gain.n_clusters < gain.n_queries for gain in gains):
        note += GROUPED

    return note


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
    text = f"{report.finished} of {report.planned} trainings finished"
    if report.reused:
        text += f", {report.reused} taken from earlier studies"
    if report.failed:
        text += f", {report.failed} failed"

    return f"{text} (study {report.id}, {report.state})."


def main_rows(report: StudyReport) -> tuple[list[str], list[list[str]]]:
    """(head, rows): every way of training against every benchmark."""
    names = [b.name for b in report.benchmarks]
    titles = [f"{escaped(b.name)} (CW {b.cw:.2f})" for b in report.benchmarks]
    domains_here = list(filter(None, domains(report.benchmarks)))
    means = ["Mean"]
    if len(domains_here) > 1:
        means = [f"Mean {OUT}", f"Mean {IN}"]

    best: dict[str, float] = {}
    for row in report.rows:
        for name, value in row.scores.items():
            best[name] = max(value, best.get(name, value))

    rows = []
    for row in report.rows:
        averages = (row.average, row.average_in_domain)
        line = [escaped(row.name), _count(row.pairs and row.documents), _count(row.pairs), _count(row.steps)]
        line += [score(row, name, best.get(name, 0.0)) for name in names]
        line += map(_mean, repeat(row), domains_here, averages)
        line.append(_count(row.pairs and row.n_seeds))
        rows.append(line)

    return ["Training", "Documents", "Pairs", "Steps", *titles, *means, "Seeds"], rows


def _mean(row: StudyRow, of: Sequence[str], average: float | None) -> str:
    """A row's average over the benchmarks ``of``; where scores are missing, how many there are: ``2/3``."""
    if average is None:
        return f"{len(row.scores.keys() & set(of))}/{len(of)}"
    return f"{average:.2f}"


def _count(n: int) -> str:
    """``1,000``, or a dash for 0."""
    return f"{n:,}" if n else "–"


def _number(value: float | None) -> str:
    """``1.25``, or a dash where there is none."""
    return "–" if value is None else f"{value:.2f}"


def score(row: StudyRow, name: str, best: float) -> str:
    """A score with its spread over the seeds; the best of its column in bold."""
    if name not in row.scores:
        return "–"

    text = f"{row.scores[name]:.2f}"
    if name in row.spread:
        text += f" ± {row.spread[name]:.2f}"
    elif row.n_seeds > 1:
        text += " (no spread)"

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
    lines = [list(map(_cell, line)) for line in (head, *rows)]
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]

    drawn = []
    for line in lines:
        padded = map(str.ljust, line, widths)
        drawn.append(f"| {' | '.join(padded)} |")

    rule = "|".join("-" * (width + 2) for width in widths)
    return "\n".join([drawn[0], f"|{rule}|", *drawn[1:]])


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


def difference_rows(gains: Sequence[Gain]) -> tuple[list[str], list[list[str]]]:
    """(head, rows): each difference with its interval, p, and spread over seeds."""
    head = ["Condition", "Q/Doc", "Benchmark", "CW", "Points", "95%", "p (Holm)", "SD over seeds", "Seeds", "Queries"]

    rows = []
    for g in gains:
        which = [escaped(g.way), str(g.condition.per_doc), escaped(g.benchmark), f"{g.cw:.2f}"]
        figures = [f"{signed(g.points)}{mark(g)}", interval((g.low, g.high), sign=True), p_value(g.p_holm)]
        rows.append([*which, *figures, _number(g.seed_sd), str(g.n_seeds), clustered(g.n_queries, g.n_clusters)])

    return head, rows


def mark(gain: Gain) -> str:
    """A star where a difference is more than chance, in brackets where training noise is not known."""
    if not gain.significant:
        return ""
    return " (\\*)" if gain.seed_sd is None else " \\*"


def pooled_rows(models: Sequence[Pooled]) -> tuple[list[str], list[list[str]]]:
    """(head, rows): a row for each coefficient; the reason where a model could not be fitted."""
    head = ["Model", "Term", "Points", "95%", "p", "df", "Datasets", "Families", "Observations", "Between datasets"]

    rows = []
    for model in models:
        counts = [str(model.n_datasets), str(model.n_families), f"{model.n:,}", _number(model.between)]
        if model.problem:
            rows.append([model.title, f"none: {model.problem}", "–", "–", "–", "–", *counts])

        for term in model.terms:
            covariate = COVARIATES.get(term.name)
            name = f"per {covariate}" if covariate else term.name
            figures = [signed(term.value), interval((term.low, term.high), sign=True), p_value(term.p)]
            rows.append([escaped(model.title), name, *figures, f"{term.degrees:.1f}", *counts])

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
    tried = [row for row in report.rows if row.condition.rate is not None]
    reached: set[int] = set()
    best = 0.0
    for row in tried:
        reached.update(dict(row.dev))
        best = max(best, row.best_dev or 0.0)

    steps = sorted(reached)
    rows = []
    for row in tried:
        dev = dict(row.dev)
        top = _number(row.best_dev)
        if row.best_dev == best:
            top = f"**{top}**"

        line = [escaped(row.condition._replace(rate=None).name), rate(row.condition.rate or 0.0)]
        line += map(_number, map(dev.get, steps))
        line += [top, "–" if row.best_step is None else f"{row.best_step:,}", _number(row.average)]
        rows.append(line)

    return ["Training", "Learning rate", *map("Step {:,}".format, steps), "Best", "At step", "Reported"], rows


def benchmark_rows(report: StudyReport) -> tuple[list[str], list[list[str]]]:
    """(head, rows): what is known of the benchmarks' queries."""
    head = ["Benchmark", "Split", "Queries", "Documents", "Language", "CW", "95%", "Words", "Overlap", "Family",
            "In-domain for"]  # fmt: skip

    rows = []
    for b in report.benchmarks:
        sizes = [f"{b.n_queries:,}", f"{b.n_documents:,}"]
        facts = [_number(b.facts.get("words")), _number(b.facts.get("overlap"))]
        near = "all" if b.in_domain else ", ".join(b.in_domain_of)
        line = [escaped(b.name), b.split, *sizes, b.language or "–", f"{b.cw:.2f}", interval(b.cw_interval), *facts]
        rows.append([*line, escaped(b.family or "–"), escaped(near) or "–"])

    return head, rows
