"""Commands on the principle: the published evidence, and studies of one's own."""

from __future__ import annotations

import argparse

from cdp.base.paths import typed_path
from cdp.base.workspace import Workspace, write_bytes
from cdp.cli import display
from cdp.cli.answers import note, say, settings, started, warn_incomplete
from cdp.principle import (
    checks,
    claims,
    correlation_table,
    differences,
    positive_rates,
    tables,
    threshold,
    threshold_by_retriever,
)


def principle(workspace: Workspace, a: argparse.Namespace) -> int:
    """``principle correlation | rates | threshold | check | claims``: computed from the published scores."""
    if a.action == "claims":
        listed = claims.claims()
        blocks = [f"{c.name} ({c.verdict})\n  claimed: {c.claim}\n  computed: {c.recomputed}\n  "
                  + (f"test it: study run {c.plan}" if c.plan else f"no study: {c.test}") for c in listed]  # fmt: skip
        stated = [f"{limit.stated}\n  computed: {limit.recomputed}" for limit in claims.limits()]
        text = "\n\n".join([*blocks, "Limits that the paper states:", *stated])
        return say(a, {"claims": listed, "limits": claims.limits()}, text)
    if a.action == "check":
        return _check(a)
    data = differences(a.datasets, implied=a.implied)
    if a.action == "correlation":
        rows = correlation_table(data)
        columns = ["retriever", "comparison", "per_doc", "n_datasets", "r", "p", "rho", "rho_p", "interval"]
        return say(a, rows, display.table(rows, columns, "", digits=4))
    if a.action == "rates":
        rates = positive_rates(data)
        return say(a, rates, display.table(rates, ["dataset", "cw", "positive", "conditions"], ""))
    overall, by_retriever = threshold(data), threshold_by_retriever(data)
    alone = [{"retriever": name, **display.plain(own_threshold)} for name, own_threshold in by_retriever.items()]
    columns = ["retriever", "crossing", "by_dataset", "without_one_dataset", "slope", "r", "n_points", "n_datasets"]
    beside = display.table(alone, columns, "")
    text = f"{display.facts(overall)}\n\nEach retriever alone, over the same datasets:\n{beside}"
    return say(a, {**display.plain(overall), "by_retriever": by_retriever}, text)


def _check(a: argparse.Namespace) -> int:
    """``principle check``: predictions for the published datasets that the line never saw, and how many held."""
    predictions = checks.checks(a.per_doc)
    rows = [
        {
            "dataset": c.dataset,
            "cw": c.cw,
            "measured": c.measured,
            "line": c.line.points,
            "95% of new": (c.line.low, c.line.high),
            "holds": c.line.holds if c.in_range else f"{'yes' if c.line.holds else 'no'}, beyond its CW",
            "similar": c.similar.points,
            "95%": (c.similar.low, c.similar.high),
            "hold": c.similar.holds,
        }
        for c in predictions
    ]
    held = checks.held(predictions)
    summary = "\n".join(f"{name}: {h.held} of {h.n} predictions held" for name, h in held.items())
    columns = ["dataset", "cw", "measured", "line", "95% of new", "holds", "similar", "95%", "hold"]
    return say(a, {"checks": predictions, "held": held}, f"{display.table(rows, columns, '')}\n\n{summary}")


def published_list(workspace: Workspace, a: argparse.Namespace) -> int:
    """``published list``: the paper's tables and figures."""
    from cdp.services.advice import published

    published_tables = published.list_tables()
    return say(
        a, published_tables, display.table(published_tables, ["name", "kind", "title", "numbers", "notes", "about"], "")
    )


def published_show(workspace: Workspace, a: argparse.Namespace) -> int:
    """``published show TABLE``: its numbers as printed, with marks and notes."""
    from cdp.services.advice import published

    table = tables.table(a.table)
    if a.format == "csv":
        a.json = False  # CSV was asked for by name
        return say(a, None, published.to_csv(table).removesuffix("\n"))
    if table.is_scores and not a.json:
        columns, rows = tables.wide(table)
    else:
        columns, rows = list(table.columns), [dict(row) for row in table.rows]
    lines = [f"{table.info.title}. {table.info.about}", "", display.table(rows, columns, "")]
    if table.is_scores:
        lines += ["", tables.MARKS_HELP]
    for number, remark in table.related.items():
        texts = (("printed", remark.printed), ("computed", remark.computed))
        beside = "; ".join(f"{word}: {text}" for word, text in texts if text)
        where = "all rows" if number in table.on_all else str(number)
        lines.append(f"[{where}] {remark.note}" + (f" ({beside})" if beside else ""))
    about = {"name": table.info.name, "title": table.info.title}
    value = {**about, "rows": table.rows, "notes": list(table.related.values())}
    return say(a, value, "\n".join(lines))


def study_list(workspace: Workspace, a: argparse.Namespace) -> int:
    """``study list``: the ready-made plans and the studies of this workspace."""
    from cdp.services import studies

    plans = [{"name": p.name, "what": p.about, "file": str(p.file)} for p in studies.ready_made()]
    jobs = a.scope.keep("job", studies.list_studies(workspace))
    text = [
        "Ready-made plans:",
        display.table(plans, ["name", "what"], "none"),
        "",
        "Studies:",
        display.table(jobs, ["id", "state", "phase", "done", "total", "created"], "No study yet: study run PLAN"),
    ]
    return say(a, {"plans": plans, "studies": [job.to_dict() for job in jobs]}, "\n".join(text))


def study_plan(workspace: Workspace, a: argparse.Namespace) -> int:
    """``study plan FILE``: what a study would run, what it costs and how long it takes."""
    from cdp.services import studies

    plan = studies.plan(workspace, studies.read_plan(a.file, settings(a)))
    return say(a, plan.to_dict(), studies.plan_text(plan))


def study_run(workspace: Workspace, a: argparse.Namespace) -> int:
    """``study run FILE``: start it as a job."""
    from cdp.services import studies

    config = studies.read_plan(a.file, settings(a))
    if not a.json:
        note(studies.plan_text(studies.plan(workspace, config)))
    begun = studies.run(workspace, config, allow_incomplete=a.allow_incomplete, allow_leakage=a.allow_leakage)
    warn_incomplete(workspace, *config.items("query_sets"))
    for job_id in begun.generations:
        note(f"also queued: {job_id}")
    done = started(workspace, a, begun.job_id)
    if a.wait and not a.json:
        print(f"\n{studies.to_markdown(studies.report(workspace, begun.job_id))}")
    return done


def study_report(workspace: Workspace, a: argparse.Namespace) -> int:
    """``study report ID``: what was found, as text, Markdown, HTML with figures, or JSON."""
    from cdp.services import studies

    report = studies.report(workspace, a.id)
    if a.format == "html":
        from cdp.charts.study_report import html

        text = html(report)
    else:
        text = studies.to_markdown(report)
    if a.out:
        target = typed_path(a.out)
        write_bytes(target, text.encode("utf-8"))
        return say(a, {"id": report.id, "file": str(target)}, f"written: {target}")
    return say(a, report.to_dict(), text)
