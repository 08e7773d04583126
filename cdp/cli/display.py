"""What a terminal shows: tables, facts, progress. Data in, text out."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cdp.base.errors import SHOWN_PROBLEMS

LONGEST_CELL = 60


def plain(value: Any) -> Any:
    """``value`` for JSON: dataclasses as mappings, enums and paths as text, NumPy values as Python's."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(v) for v in value]
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    return value.tolist() if hasattr(value, "tolist") else value


def value_cell(value: Any, digits: int, *, whole: bool = False) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {value_cell(v, digits)}" for name, v in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(value_cell(v, digits) for v in value)
    text = " ".join(str(value).split())
    return text if whole or len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"


def table(rows: Sequence[Any], columns: Sequence[str], empty: str, *, digits: int = 2) -> str:
    """Rows (mappings or records) as aligned columns; numbers to the right. ``empty`` where there are no rows."""
    if not rows:
        return empty
    values = [[row[c] if isinstance(row, Mapping) else getattr(row, c) for c in columns] for row in rows]
    cells = [[value_cell(v, digits, whole=c == "id") for v, c in zip(row, columns, strict=True)] for row in values]
    numeric = [all(isinstance(row[i], (int, float)) or row[i] is None for row in values) for i in range(len(columns))]
    widths = [max(len(column), *(len(row[i]) for row in cells)) for i, column in enumerate(columns)]
    lines = [list(columns), ["-" * width for width in widths], *cells]
    return "\n".join(
        "  ".join(
            c.rjust(w) if right else c.ljust(w) for c, w, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    )


def facts(record: Any, *, digits: int = 4) -> str:
    """A record as ``name: value`` lines."""
    values = plain(record)
    width = max(len(name) for name in values)
    return "\n".join(f"{name.ljust(width)}  {value_cell(value, digits)}" for name, value in values.items())


def corpus(manifest: Any, *, existed: bool = False, query_set: str | None = None) -> str:
    """A corpus: what was read and what was not."""
    words = manifest.words
    languages = ", ".join(f"{code} {share:.0%}" for code, share in manifest.languages.items())
    lines = [
        f"{manifest.id}: {many(manifest.n_documents, 'document')}" + (" (it was there already)" if existed else ""),
        f"words per document: median {words.median:.0f}, from {words.min} to {words.max}",
        f"languages: {languages}",
    ]
    lines += [f"note: {note}" for note in manifest.notes]
    if manifest.n_rejected:
        lines.append(f"rejected rows: {manifest.n_rejected:,}")
        shown = manifest.rejected[:SHOWN_PROBLEMS]
        lines += [f"  {place(row)}: {row.kind}: {row.reason}" for row in shown]
        lines += _rest(manifest.n_rejected - len(shown))
    if query_set:
        lines.append(f"query set: {query_set}")
    return "\n".join(lines)


def many(n: int, singular: str, plural: str = "") -> str:
    """``1 document``, ``2 documents``."""
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def _rest(n: int) -> list[str]:
    return [f"  and {n:,} more"] if n > 0 else []


def place(row: Any) -> str:
    """Where a rejected row stood."""
    return f"{row.file}, line {row.line}" if row.line is not None else str(row.file)


def imported(result: Any) -> str:
    """An imported query set and the rows that were rejected."""
    q = result.query_set
    lines = [f"{q.id}: {many(q.n_queries, 'query', 'queries')} for {many(q.n_documents, 'document')}"]
    lines.append(_origin(q))
    if result.reasoned is not None:
        r = result.reasoned
        without = f"; {many(r.n_failures, 'query has', 'queries have')} none" if r.n_failures else ""
        lines.append(f"reasoned forms: {r.id}, {many(r.n_queries, 'query', 'queries')}{without}")
    lines += result.notes
    if result.n_rejected:
        lines.append(f"rejected rows: {result.n_rejected:,}")
        lines += [f"  {reason}" for reason in result.rejected]
        lines += _rest(result.n_rejected - len(result.rejected))
    return "\n".join(lines)


def _origin(q: Any) -> str:
    """Who wrote the queries, their licence, and for an import of unknown origin how to say it."""
    text = f"written by: {q.written_by}"
    if q.licence:
        text += f"; licence: {q.licence}"
    return text + (f" (queries origin {q.id} human|llm)" if q.kind == "unknown" else "")


def query_set(q: Any, failed: Any, examples: Sequence[tuple[str, list[str]]], state: Any) -> str:
    """A query set: where it comes from, what it holds, what is missing and why, and its first queries."""
    how = ", ".join(part for part in (q.method, q.generator, q.model if q.model != q.generator else "") if part)
    lines = [
        f"{q.id}: {many(q.n_queries, 'query', 'queries')} for {many(q.n_documents, 'document')} of {q.corpus_id}",
        f"{q.kind}, {how}; Q/Doc {q.per_doc}; {state.label}",
        _origin(q),
        *([f"prompt: {q.prompt_hash[:16]}; job: {q.job_id}"] if q.job_id else []),
    ]
    lines += [text for text in (state.sentence, state.next_step) if text]
    if failed.n:
        lines.append(f"without queries or with too few, or rejected: {failed.n:,}")
        lines += [
            f"  {line.get('document_id') or 'line ' + str(line.get('line'))}: {line['reason']}" for line in failed.first
        ]
        lines += _rest(failed.n - len(failed.first))
    for document_id, queries in examples:
        lines += ["", document_id, *(f"{i:3}. {query}" for i, query in enumerate(queries, 1))]
    return "\n".join(lines)


def previews(document_id: str, shown: Sequence[Any]) -> str:
    """The queries of each method, with their content words and the method's Self-BLEU."""
    lines = [f"document {document_id}"]
    for item in shown:
        bleu = "" if item.self_bleu is None else f"Self-BLEU {item.self_bleu:.3f}, "
        mean = sum(item.cw) / len(item.cw) if item.cw else 0.0
        lines += ["", f"{item.method} ({bleu}CW {mean:.1f})" if item.queries or not item.error else item.method]
        lines += [
            f"{i:3}. [CW {cw:2}] {query}" for i, (query, cw) in enumerate(zip(item.queries, item.cw, strict=True), 1)
        ]
        lines += [f"     note: {problem}" for problem in item.problems]
        lines += [f"     failed: {item.error}"] if item.error else []
    return "\n".join(lines)


def measures(values: Sequence[Mapping[str, Any]]) -> str:
    """Q-D metrics with their intervals and what they were measured with."""
    rows = []
    for value in values:
        interval = value.get("interval")
        how = ", ".join(str(value[k]) for k in ("scope", "tokenizer", "smoothing", "model") if value.get(k))
        rows.append(
            {
                "measure": value.get("title") or value["name"],
                "value": value["value"],
                "95% interval": "–" if not interval else f"{interval[0]:.3f} to {interval[1]:.3f}",
                "documents": value.get("n_documents"),
                "measured with": how,
            }
        )
    return table(rows, ["measure", "value", "95% interval", "documents", "measured with"], "no measures", digits=3)


def spreads(by_tokenisation: Sequence[Any]) -> str:
    """Self-BLEU under each tokenisation with its spread over documents; empty where there is none."""
    if not by_tokenisation:
        return ""
    rows = [
        {
            "tokens": s.tokenisation,
            "Self-BLEU": s.mean,
            "sd over documents": s.sd,
            "middle half": f"{s.quartiles[0]:.3f} to {s.quartiles[1]:.3f}",
            "documents": s.n_documents,
        }
        for s in by_tokenisation
    ]
    about = "\n".join(f"  {s.tokenisation}: {s.about}" for s in by_tokenisation)
    columns = ["tokens", "Self-BLEU", "sd over documents", "middle half", "documents"]
    return f"{table(rows, columns, '', digits=3)}\n{about}"


def cw_profile(profiled: Any, language: Any, effect: Any) -> str:
    """A CW distribution: its numbers, how words were counted, a bar per value, and what question words change."""
    p = profiled.profile
    lines = [
        f"{profiled.name}: {many(p.n, 'query', 'queries')}, "
        f"mean CW {p.mean:.2f} (95% {p.interval[0]:.2f} to {p.interval[1]:.2f}), "
        f"median {p.median:g}, from {p.minimum} to {p.maximum}",
        f"below 7: {p.below:.0%} · 7 to 10: {p.between:.0%} · above 10: {p.above:.0%}",
        f"counted as {language.name}: {language.tokenizer}; stopwords: {profiled.stopwords}",
        *([f"note: {profiled.doubt}"] if profiled.doubt else []),
        "",
    ]
    top = max(p.histogram)
    shown = list(p.histogram[:31])
    for value, count in enumerate(shown):
        if value >= p.minimum:
            lines.append(f"{value:3} {'█' * round(40 * count / top)} {count}")
    if len(p.histogram) > 31:
        lines.append(f"more: {sum(p.histogram[31:])}")
    if effect is not None:
        low, high = effect.interval
        lines += [
            "",
            f"Question words counted, the mean CW is {effect.kept.mean:.2f} instead of {effect.standard.mean:.2f} "
            f"(+{effect.difference:.2f}, 95% {low:.2f} to {high:.2f}), in {effect.changed:.0%} of the queries",
        ]
    return "\n".join(lines)


def recommendation(name: str, r: Any, decision: Any) -> str:
    """The answer first, then how sure it is, what it rests on, and what to keep in mind."""
    sure = "" if r.certain else f" (not certain: {' or '.join(r.possible)})"
    outside = bool(r.scope.outside)
    lines = [
        r.headline if outside else f"{r.level.upper()}{sure}: {r.headline}",
        *([f"The published rule alone would say {r.level}{sure}: CW {r.mean_cw:.2f}."] if outside else []),
        decision.sentence,
        r.weighting.text,
        "",
        f"{name}: {many(r.n_queries, 'query', 'queries')}, mean CW {r.mean_cw:.2f} "
        f"(95% interval {r.interval[0]:.2f} to {r.interval[1]:.2f})",
        f"study: {decision.command}" + (f"  ({decision.missing})" if decision.missing else ""),
        *_similar(r),
    ]
    if r.expected:
        condition = "" if r.scope.inside else " if the task is multi-hop question answering"
        lines += [
            "",
            f"The published line says at this CW{condition}, in NDCG@10 points (where 95% of new datasets lie):",
        ]
        for e in r.expected:
            other = "against 1 per document" if e.comparison == "qdoc_minus_one" else "against paraphrases"
            lines.append(
                f"  {e.per_doc:2} diverse queries {other}: {e.points:+.1f} ({e.low:+.1f} to {e.high:+.1f}), "
                f"a gain with probability {e.probability:.0%}"
            )
    if r.splits:
        inside = any(s.low is not None for s in r.splits)
        basis = "the line through the printed splits" if inside else f"the averages printed for {r.splits[0].group}"
        lines += ["", f"The same number of queries on fewer documents, against one query each (from {basis}):"]
        for s in r.splits:
            if s.per_doc > 1:
                where = f"{s.documents:,} documents" if s.documents else f"{s.documents_share:.0%} of the documents"
                span = "" if s.low is None else f" ({s.low:+.1f} to {s.high:+.1f})"
                each = ", ".join(f"{retriever} {points:+.2f}" for retriever, points in s.printed.items())
                lines.append(
                    f"  {s.per_doc:2} each on {where}: {s.points:+.1f}{span}, {s.llm_cost:.0%} of the requests; "
                    f"printed for {s.group}: {each}"
                )
    lines += ["", *(f"- {caveat}" for caveat in r.caveats)]
    return "\n".join(lines)


def _similar(r: Any) -> list[str]:
    """What happened on the published datasets most like the task, and where a further one would lie."""
    if not r.similar:
        return []
    per_docs = sorted(next(iter(r.similar[0].gains.values())))
    rows = [
        {
            "dataset": s.dataset,
            "kind": s.kind,
            "cw": s.cw,
            "retriever": retriever,
            **{f"Q/Doc {m}": f"{gains[m]:+.2f}" for m in per_docs},
        }
        for s in r.similar
        for retriever, gains in s.gains.items()
    ]
    listed = table(rows, ["dataset", "kind", "cw", "retriever", *(f"Q/Doc {m}" for m in per_docs)], "")
    what = f"The {len(r.similar)} published datasets most like yours (all in English)"
    lines = ["", f"{what}, gain over one query per document:", listed]
    for o in r.outlook:
        lines.append(
            f"  a further one at Q/Doc {o.per_doc}: {o.points:+.1f} ({o.low:+.1f} to {o.high:+.1f}), "
            f"a gain with probability {o.probability:.0%}"
        )
    return lines


def failed(summary: Any, files: Sequence[Any]) -> list[str]:
    """The items that failed while a job went on: how many, the first of them, and where all are."""
    if not summary.n:
        return []
    lines = [f"{summary.words}:"]
    lines += [f"  {line.get('id') or line.get('document_id')}: {line.get('reason')}" for line in summary.first]
    return [*lines, *_rest(summary.n - len(summary.first)), *(f"  texts and tracebacks: {path}" for path in files)]
