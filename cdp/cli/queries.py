"""Commands on queries: previews, runs and what they cost, batches, imports and exports."""

from __future__ import annotations

import argparse
from datetime import date
from typing import Any

from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.cli import display
from cdp.cli.answers import DONE, FAILED, config_of, say, settings, started, warn
from cdp.query_sets import ImportOptions

DETAILS = ("model", "prompt", "licence")
"""What may be said of imported queries besides who wrote them."""

EXAMPLES = 3
"""Documents whose queries ``queries show`` prints."""


def _config(a: argparse.Namespace) -> SynthesisConfig:
    return config_of(SynthesisConfig, a, "corpus", "method", "per_doc", "generator")


def preview(workspace: Workspace, a: argparse.Namespace) -> int:
    """``queries preview``: several methods on one document, nothing stored."""
    from cdp.services import corpora, queries

    document = a.doc or corpora.page(workspace, a.corpus, 0, 1)[0].id
    names = [name.strip() for name in a.methods.split(",") if name.strip()]
    options: dict[str, Any] = {"per_doc": a.per_doc, "generator": a.generator, **settings(a)}
    previews = queries.preview(workspace, a.corpus, document, methods=names, **options)
    say(a, {"document_id": document, "methods": previews}, display.previews(document, list(previews.values())))
    return FAILED if all(shown.error for shown in previews.values()) else DONE


def generate(workspace: Workspace, a: argparse.Namespace) -> int:
    """``queries generate``: as a job."""
    from cdp.services import queries

    return started(workspace, a, queries.generate(workspace, _config(a)))


def estimate(workspace: Workspace, a: argparse.Namespace) -> int:
    """``queries estimate``: before anything is paid for."""
    from cdp.services.jobs.job_words import duration
    from cdp.services.queries import synthesis

    config = _config(a)
    expected = synthesis.estimate(workspace, config, tokens_per_query=a.tokens_per_query, latency_s=a.latency)
    lines = [f"{expected.n_documents:,} documents, {expected.requests:,} requests"]
    if expected.requests:
        lines.append(
            f"input tokens: {expected.input_tokens:,} ± {expected.input_margin:,} (95%, "
            f"from {expected.sampled} documents); output tokens: about {expected.output_tokens:,}"
        )
    if expected.cost is None:
        lines.append(f"price unknown: {config.model_name} is not in the price table (queries prices --model …)")
    elif expected.price is not None:
        lines.append(
            f"cost: ${expected.cost:,.2f}, as a batch ${expected.batch_cost:,.2f} (prices as of {expected.price.as_of})"
        )
    else:
        lines.append("cost: nothing")
    if expected.seconds is not None:
        lines.append(f"time: about {duration(expected.seconds)} at concurrency {config.concurrency}")
    return say(a, expected, "\n".join(lines))


def import_(workspace: Workspace, a: argparse.Namespace) -> int:
    """``queries import``: queries that exist."""
    from cdp.services import queries

    fields = ("query_field", "document_field", "encoding", "split", "reasoning_field", "origin", *DETAILS)
    given = {field: value for field in fields if (value := getattr(a, field)) is not None}
    options = ImportOptions.from_dict({**given, **settings(a)})
    result = queries.import_file(workspace, a.path, a.corpus, name=a.name, options=options)
    value = {
        **display.plain(result.query_set),
        "n_rejected": result.n_rejected,
        "rejected": result.rejected,
        "notes": result.notes,
    }
    if result.reasoned is not None:
        value["reasoned"] = display.plain(result.reasoned)
    return say(a, value, display.imported(result))


def origin(workspace: Workspace, a: argparse.Namespace) -> int:
    """``queries origin``: who wrote an imported set."""
    from cdp.services import queries

    details = {field: getattr(a, field) or "" for field in DETAILS}
    query_set = queries.describe(workspace, a.id, a.origin, **details)
    licence = f"; licence: {query_set.licence}" if query_set.licence else ""
    return say(a, query_set, f"{query_set.id}: written by {query_set.written_by}{licence}")


def best(workspace: Workspace, a: argparse.Namespace) -> int:
    """``queries best``: those of the highest mean token log-probability, as a new set."""
    from cdp.services import queries

    query_set, without = queries.best(workspace, a.id, a.keep, name=a.name)
    warn(f"{without:,} queries have no log-probability and took no part." if without else "")
    documents = display.many(query_set.n_documents, "document")
    text = f"{query_set.id}: {display.many(query_set.n_queries, 'query', 'queries')} for {documents}"
    return say(a, {**display.plain(query_set), "without_logprob": without}, text)


def list_(workspace: Workspace, a: argparse.Namespace) -> int:
    """``queries list``: those that are not whole with their job."""
    from cdp.services import completeness, queries

    rows = []
    sets = a.scope.keep("query_set", queries.list_query_sets(workspace, corpus=a.corpus))
    for item in (completeness.check(workspace, q) for q in sets):
        unfinished = "" if item.complete else f"{item.job_id} ({item.job_state or 'gone'})"
        rows.append({**display.plain(item.query_set), "state": item.label, "unfinished_job": unfinished})
    columns = ["id", "name", "kind", "method", "generator", "per_doc", "n_documents", "n_queries", "n_failures"]
    columns += [column for column in ("model", "licence") if any(row[column] for row in rows)]
    columns += ["state", *(["unfinished_job"] if any(row["unfinished_job"] for row in rows) else [])]
    return say(a, rows, display.table(rows, columns, "No query set yet: queries generate --corpus ID"))


def show(workspace: Workspace, a: argparse.Namespace) -> int:
    """``queries show``: one query set, with what it lacks."""
    from cdp.services import completeness, queries

    query_set = queries.show(workspace, a.id)
    state = completeness.check(workspace, query_set)
    failed = queries.failures(workspace, query_set.id)
    examples = queries.page(workspace, query_set.id, 0, EXAMPLES)
    value = {
        **display.plain(query_set),
        "state": state.label,
        "note": state.note,
        "job_state": state.job_state,
        "examples": [{"document_id": name, "queries": texts} for name, texts in examples],
        "failures": failed,
    }
    return say(a, value, display.query_set(query_set, failed, examples, state))


def delete(workspace: Workspace, a: argparse.Namespace) -> int:
    """``queries delete``."""
    from cdp.services import queries

    query_set = queries.show(workspace, a.id)
    queries.delete(workspace, query_set.id)
    return say(a, {"id": query_set.id, "deleted": True}, f"{query_set.id} is removed")


def prices(workspace: Workspace, a: argparse.Namespace) -> int:
    """``queries prices``: the table, or the table with some rows changed."""
    from cdp.services.queries import synthesis

    table = synthesis.read_prices(workspace)
    if a.model:
        rows = {row["model"]: row for row in display.plain(table.rows)}
        for change in a.model:
            row = _price(change)
            rows[row["model"]] = row
        table = synthesis.save_prices(workspace, list(rows.values()), a.as_of or date.today().isoformat())
    shown = display.table(table.rows, ["model", "input", "output", "batch_discount"], "no prices")
    return say(a, table, f"US dollars per million tokens, as of {table.as_of}\n{shown}")


def _price(text: str) -> dict[str, Any]:
    """``NAME=INPUT/OUTPUT[/DISCOUNT]``."""
    name, _, numbers = text.rpartition("=")
    try:
        values = [float(number) for number in numbers.split("/")]
    except ValueError:
        values = []
    if not name or len(values) not in (2, 3):
        raise ConfigError(f"--model {text} is no price.", hint="Write NAME=INPUT/OUTPUT or NAME=INPUT/OUTPUT/DISCOUNT.")
    return {"model": name, "input": values[0], "output": values[1], "batch_discount": [*values, 0.0][2]}


def export(workspace: Workspace, a: argparse.Namespace) -> int:
    """``queries export``: a query set for another program."""
    from cdp.services import queries
    from cdp.services.queries import synthesis

    query_set = queries.show(workspace, a.id)
    form = synthesis.EXPORTS.named(a.format)
    target = a.out or f"{query_set.id}{form.suffix}"
    done = synthesis.export(workspace, query_set.id, a.format, target, per_doc=a.per_doc, model=a.model)
    warn(done.note)
    return say(a, {"id": query_set.id, **display.plain(done)}, _written(done, form.write is None))


def leave_out(workspace: Workspace, a: argparse.Namespace) -> int:
    """``queries leave-out``: a copy without the queries that a benchmark judges."""
    from cdp.services.training import leakage

    benchmark_splits = [(benchmark, split) for benchmark, _, split in (word.partition(":") for word in a.judged_by)]
    query_set, n = leakage.leave_out(workspace, a.id, benchmark_splits, called=a.name)
    text = (
        f"{query_set.id}: {query_set.n_queries:,} queries, {n:,} left out" if n else f"{query_set.id}: none is judged"
    )
    return say(a, {**display.plain(query_set), "left_out": n}, text)


def batch_write(workspace: Workspace, a: argparse.Namespace) -> int:
    """``queries batch-write``: the open requests of a job."""
    from cdp.services.queries import synthesis

    done = synthesis.batch_write(workspace, _config(a), a.out)
    text = _written(done, True) if done.paths else "Every answer is kept already: nothing to ask."
    return say(a, done, text)


def batch_read(workspace: Workspace, a: argparse.Namespace) -> int:
    """``queries batch-read``: the answers that came back."""
    from cdp.services.queries import synthesis

    done = synthesis.batch_read(workspace, a.path)
    lines = [f"{done.answers:,} answers kept", *([f"{done.failed:,} lines without one"] if done.failed else [])]
    return say(a, done, "\n".join([*lines, *(f"  {problem}" for problem in done.problems)]))


def _written(done: Any, requests: bool) -> str:
    what = "requests" if requests else "queries"
    return "\n".join([f"{done.n:,} {what}", *(f"  {path}" for path in done.paths)])
