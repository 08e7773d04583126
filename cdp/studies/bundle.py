"""A study as one zip that somebody else can check: plan, report, every score, and with what it was made."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cdp.studies.build import plan_of
from cdp.studies.report import StudyReport
from cdp.studies.tables import difference_rows, pooled_rows
from cdp.studies.text import to_markdown

FIXED_TIME = (2000, 1, 1, 0, 0, 0)
"""Of every file in a bundle: the same study gives the same bytes."""


def files(
    report: StudyReport,
    about: Mapping[str, Any],
    records: Iterable[Mapping[str, Any]],
    plan: str,
    commands: Sequence[str],
) -> dict[str, bytes]:
    """{name: content} of a bundle. ``plan`` is the plan as YAML, ``commands`` what makes the study again."""
    kept = sorted(records, key=lambda r: json.dumps([r["retriever"], r.get("condition")], sort_keys=True))
    facts = {name: about[name] for name in ("versions", "corpora", "created") if name in about}
    facts["benchmarks"] = [
        {name: b.get(name) for name in ("name", "split", "hash", "licence", "source", "language", "family")}
        for b in about["benchmarks"]
    ]
    return {
        "ABOUT.md": _readme(report, about, commands).encode(),
        "plan.yaml": plan.encode(),
        "report.md": to_markdown(report).encode(),
        "provenance.json": json.dumps(facts, indent=1, ensure_ascii=False, sort_keys=True).encode(),
        "settings.json": json.dumps(_settings(kept), indent=1, ensure_ascii=False, sort_keys=True).encode(),
        "differences.csv": _csv(*difference_rows(report.gains)).encode(),
        "pooled.csv": _csv(*pooled_rows(report.pooled)).encode(),
        "queries.csv.gz": gzip.compress(_query_facts(about).encode(), mtime=0),
        "scores.csv.gz": gzip.compress(_scores(kept, about).encode(), mtime=0),
        "commands.txt": "".join(f"{command}\n" for command in commands).encode(),
    }


def zipped(content: Mapping[str, bytes]) -> bytes:
    """The files as a zip, the same bytes each time."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(content):
            archive.writestr(zipfile.ZipInfo(name, FIXED_TIME), content[name], zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _scores(records: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> str:
    """NDCG@10 of every query under every training."""
    name_of = {b["place"]: (b["name"], b["split"]) for b in about["benchmarks"]}
    rows = []
    for record in records:
        condition = record.get("condition") or {}
        key = [record["retriever"], *(condition.get(n, "") for n in ("source", "per_doc", "weighting", "held", "seed"))]
        for place, evaluation in (record.get("evaluations") or {}).items():
            if place in name_of:
                for query, value in zip(evaluation["query_ids"], evaluation["ndcg@10"], strict=True):
                    rows.append([*key, *name_of[place], query, value])
    head = ["retriever", "source", "per_doc", "weighting", "held", "seed", "benchmark", "split", "query", "ndcg@10"]
    return _csv(head, rows)


def _query_facts(about: Mapping[str, Any]) -> str:
    names = ("words", "overlap", "relevant", "hops")
    rows = []
    for b in about["benchmarks"]:
        known = b.get("facts_of", {})
        for query, cw in b.get("cw_of", {}).items():
            values = known.get(query, {})
            rows.append(
                [b["name"], b["split"], query, cw, *("" if values.get(n) is None else values[n] for n in names)]
            )
    return _csv(["benchmark", "split", "query", "cw", *names], rows)


def _settings(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What decided each training, with the hashes of its pairs and its untrained model."""
    names = ("key", "condition", "retriever", "base_hash", "pairs_hash", "settings", "training", "queries", "failure",
             "reused_from")  # fmt: skip
    return [{name: record[name] for name in names if record.get(name) is not None} for record in records]


def _csv(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([str(cell).replace("\\*", "*") for cell in row] for row in rows)
    return out.getvalue()


def _readme(report: StudyReport, about: Mapping[str, Any], commands: Sequence[str]) -> str:
    config, sources = plan_of(about)
    licences = [
        f"- {fact['corpus']}: {fact['corpus_licence'] or 'no licence recorded'}; queries {fact['query_set']} "
        f"({fact['written_by']}): {fact['query_set_licence'] or 'no licence recorded'}"
        for fact in about.get("corpora", ())
    ]
    licences += [
        f"- {b['name']}: {b.get('licence') or 'no licence recorded'}" for b in about["benchmarks"]
    ]  # fmt: skip
    return "\n".join(
        [
            f"# {report.name}",
            "",
            f"{report.finished} of {report.planned} trainings of {len(sources)} query sets, evaluated on "
            f"{len(report.benchmarks)} benchmarks with the seeds {config.seeds}.",
            "",
            "- `plan.yaml`: the plan as it was run, with what was to count as support (`criteria`)",
            "- `report.md`, `report.html`: findings, limits and tables",
            "- `differences.csv`, `pooled.csv`: every difference with interval and p; the pooled models",
            "- `scores.csv.gz`: NDCG@10 of every query under every training; `queries.csv.gz`: facts of the queries",
            "- `settings.json`: every setting of each training, with hashes of its pairs and its untrained model",
            "- `provenance.json`: versions, corpora, query sets and benchmarks with hashes and licences",
            "- `commands.txt`: what makes it again",
            "",
            "## Licences",
            "",
            *dict.fromkeys(licences),
            "",
            "## Commands",
            "",
            *(f"    {command}" for command in commands),
            "",
        ]
    )
