"""Commands that decide: what is best known for a task, and the test on one's own data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.cli import display
from cdp.cli.answers import note, say, started
from cdp.services.advice import target_queries
from cdp.services.jobs import job_words
from cdp.services.queries.synthesis import dollars
from cdp.studies.trial import TrialConfig


def target_of(workspace: Workspace, a: argparse.Namespace) -> Any:
    """The target queries that were named, counted; None where none were. ConfigError for several."""
    from cdp.services.advice import complexity

    named = bool(a.query_set) + bool(a.file) + bool(a.benchmark)
    if named > 1:
        raise ConfigError("Name one of: a query set, --file PATH, --benchmark NAME.")
    how = {"language": a.language, "stopwords": a.stopwords}
    if a.file:
        return complexity.profile_texts(target_queries.read_queries(a.file), name=Path(a.file).name, **how)
    if a.benchmark:
        return complexity.profile_benchmark(workspace, a.benchmark, split=a.split, **how)
    return complexity.profile_query_set(workspace, a.query_set, **how) if named else None


def _of_project(a: argparse.Namespace) -> None:
    """Fill in the corpus and the benchmark of the project, as far as it has one of each."""
    if a.scope.project is not None:
        a.corpus = "".join(a.scope.corpora[:1]) if len(a.scope.corpora) == 1 else ""
        a.benchmark = "".join(a.scope.benchmarks[:1]) if len(a.scope.benchmarks) == 1 else ""


def decide(workspace: Workspace, a: argparse.Namespace) -> int:
    """``decide``: the best-known answer for a task, from own studies before the published evidence."""
    from cdp.services import corpora
    from cdp.services.advice import decide as advice

    if not (a.corpus or a.query_set or a.file or a.benchmark):
        _of_project(a)
    target = target_of(workspace, a)
    corpus = corpora.resolve_corpus(workspace, a.corpus).id if a.corpus else ""
    if target is None and not corpus:
        raise ConfigError("Name a corpus, or the task's queries: a query set, --file PATH, --benchmark NAME.")
    known = advice.of_task(workspace, corpus=corpus, target=target, domain=a.domain, task=a.task)
    return say(a, known.to_dict(), answered(known))


def measurement(known: Any) -> str:
    """The sentence of a decision with what stands beside it."""
    lines = [known.sentence]
    if known.study:
        lines.append(f"Measured by {known.measured.name}: study report {known.study}")
    lines += [known.contradiction] if known.contradiction else []
    lines += known.remarks
    lines += [f"Another study says the opposite: study report {study}" for study, _ in known.conflicts]
    return "\n".join(lines)


def answered(known: Any) -> str:
    """The decision, then every option with what it scored, costs and takes."""
    rows = [
        {
            "option": o.name,
            "ndcg@10": "–" if o.score is None else f"{o.score:.2f}",
            "95%": "–" if o.interval is None else f"{o.interval[0]:.1f} to {o.interval[1]:.1f}",
            "to untrained": "–"
            if o.gain is None
            else f"{o.gain.points:+.1f} ({o.gain.low:+.1f} to {o.gain.high:+.1f})",
            "price": o.price_text,
            "training": "none" if not o.per_doc else _time(o),
        }
        for o in known.options
    ]
    lines = [measurement(known), "", display.table(rows, list(rows[0]), ""), f"Prices: {known.priced_with}."]
    if known.band:
        expected = ", ".join(f"{b.per_doc}: {b.points:+.1f} ({b.low:+.1f} to {b.high:+.1f})" for b in known.band)
        lines += ["", f"Published, several diverse queries against one, by Q/Doc: {expected}"]
    return "\n".join(lines)


def _time(option: Any) -> str:
    """Seconds of a training on the whole corpus, ≈ where they were not measured on it."""
    if option.seconds is None:
        return "–"
    shown = f"{option.seconds:.0f} s" if option.seconds >= 1 else "under 1 s"
    return shown if option.timed else f"≈ {shown}"


def study_test(workspace: Workspace, a: argparse.Namespace) -> int:
    """``study test``: shows what the test takes; with ``--yes`` it starts."""
    from cdp.services import corpora
    from cdp.services.advice import decide as advice
    from cdp.services.studies import trial

    names = ("corpus", "benchmark", "split", "generator", "model", "base_url", "retriever", "minutes", "spend")
    given = {name: getattr(a, name) for name in names if getattr(a, name) not in (None, "")}
    if "generator" not in given:
        given = {**trial.last_generator(workspace, corpora.resolve_corpus(workspace, a.corpus).id), **given}
    config = TrialConfig.from_dict(given)
    planned = trial.plan(workspace, config)
    if not a.yes:
        return say(a, planned.to_dict(), f"{trial_text(planned)}\n\nStart it with --yes.")
    if not a.json:
        note(trial_text(planned))
    begun = trial.start(workspace, config, allow_leakage=a.allow_leakage)
    for job_id in begun.generations:
        note(f"also queued: {job_id}")
    done = started(workspace, a, begun.job_id)
    if a.wait and not a.json:
        known = advice.of_benchmark(workspace, planned.config.corpus, planned.judged.benchmark, planned.judged.split)
        print(f"\n{answered(known)}")
    return done


def trial_text(planned: Any) -> str:
    """What a test takes, in words."""
    size, judged = planned.size, planned.judged
    spread = f"{len(planned.plan.conditions)} trainings of {planned.config.retriever}"
    documents = f"{size.documents:,} of {planned.documents_there:,} documents"
    price = "free" if not planned.requests else "not known" if planned.cost is None else dollars(planned.cost)
    lines = [
        f"{spread}: diverse queries and paraphrases, Q/Doc {size.per_doc}, seeds {size.seeds}, on {documents}, beside "
        "BM25 and the untrained retriever.",
        f"Judged by {judged.name}: {judged.n_queries:,} queries on {judged.n_documents:,} documents.",
        f"Time: about {job_words.duration(planned.seconds)} "
        f"({'from earlier runs here' if planned.measured else 'a guess: nothing was run here yet'}). "
        f"Price: {price}{f' for {planned.requests:,} requests' if planned.requests else ''}.",
    ]
    return "\n".join([*lines, *(f"Note: {text}" for text in planned.notes)])
