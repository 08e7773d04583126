"""The command line: a thin adapter over ``cdp.services``.

Exit code 0: done; 1: the job failed; 2: bad input, one line on stderr; 130: interrupted. With ``--json`` the answer is
one JSON value on stdout and nothing else; progress goes to stderr.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from cdp import __version__
from cdp.base.config import EvaluationConfig, MetricsConfig
from cdp.base.errors import CdpError, ConfigError
from cdp.base.workspace import Workspace, disk_fault, open_workspace, private_files
from cdp.cli import display, projects
from cdp.cli.answers import BAD_INPUT, DONE, FAILED, INTERRUPTED, config_of, in_one_line, say, settings, started, warn
from cdp.cli.parser import build

Handler = Callable[[Workspace, argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    try:
        typed = sys.argv[1:] if argv is None else argv
        arguments = build(__version__, typed).read(typed)
        if not hasattr(arguments, "run"):
            arguments.usage()
            return BAD_INPUT
        private_files()
        handler: Handler = arguments.run
        workspace = open_workspace(Workspace.default())
        if arguments.fills is not None:
            projects.apply(workspace, arguments, arguments.fills)
        on = getattr(arguments, "on", "")
        if not on:
            return handler(workspace, arguments)
        from cdp.services import clusters

        with clusters.chosen(workspace, on):
            return handler(workspace, arguments)
    except CdpError as error:
        print(f"cdp: {in_one_line(str(error))}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:
        sys.stderr.close()
        return DONE
    except OSError as error:
        if not (fault := disk_fault(error)):
            raise
        print(f"cdp: {fault} ({error.filename or error.strerror}).", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("cdp: interrupted", file=sys.stderr)
        return INTERRUPTED


# corpus


def corpus_add(workspace: Workspace, a: argparse.Namespace) -> int:
    from cdp.corpus import ReadOptions
    from cdp.services import corpora

    fields = ("format", "encoding", "id_field", "title_field", "text_field", "split", "licence")
    named = {field: value for field in fields if (value := getattr(a, field)) is not None}
    added = corpora.add(workspace, a.path, name=a.name, options=ReadOptions.from_dict({**named, **settings(a)}))
    projects.joined(workspace, a, corpus=added.corpus.id)
    value = {**display.plain(added.corpus), "existed": added.existed, "query_set": added.query_set}
    return say(a, value, display.corpus(added.corpus, existed=added.existed, query_set=added.query_set))


def corpus_list(workspace: Workspace, a: argparse.Namespace) -> int:
    from cdp.services import corpora

    manifests = a.scope.keep("corpus", corpora.list_corpora(workspace))
    return say(
        a,
        manifests,
        display.table(manifests, ["id", "name", "n_documents", "created"], "No corpus yet: corpus add PATH"),
    )


def corpus_show(workspace: Workspace, a: argparse.Namespace) -> int:
    from cdp.services import corpora

    manifest = corpora.resolve_corpus(workspace, a.id)
    failed = corpora.failed(workspace, manifest.id)
    value = {**display.plain(manifest), "failed": failed.summary}
    return say(a, value, "\n".join([display.corpus(manifest), *display.failed(failed.summary, failed.files)]))


def corpus_delete(workspace: Workspace, a: argparse.Namespace) -> int:
    from cdp.services import corpora

    manifest = corpora.resolve_corpus(workspace, a.id)
    corpora.delete(workspace, manifest.id)
    return say(a, {"id": manifest.id, "deleted": True}, f"{manifest.id} is removed")


# metrics, cw


def metrics(workspace: Workspace, a: argparse.Namespace) -> int:
    from cdp.services import queries
    from cdp.services.metrics import quick, start

    config = config_of(MetricsConfig, a, "query_set", "human", "language", "stopwords")
    measured = quick(
        workspace, config.query_set, human=config.human, language=config.language, stopwords=config.stopwords
    )
    warn(measured.note)
    reference = queries.show(workspace, config.human) if config.human else None
    if reference is not None and reference.kind != "human":
        warn(f"{reference.name} stands for human queries, and is not known to be: written by {reference.written_by}.")
    if measured.n_failed:
        first = measured.failed[0]
        warn(f"{display.many(measured.n_failed, 'document')} failed; the first, {first['id']}: {first['reason']}")
    if a.quick:
        from cdp.services.metrics.self_bleu_spread import spread

        spreads = spread(workspace, config.query_set)
        text = f"{display.measures(measured.measures)}\n\n{display.spreads(spreads)}".rstrip()
        return say(a, {**display.plain(measured), "self_bleu_spread": spreads}, text)
    if not a.json:
        print(display.measures(measured.measures))
    return started(workspace, a, start(workspace, config))


def cw(workspace: Workspace, a: argparse.Namespace) -> int:
    from cdp.cli.decide import measurement, target_of
    from cdp.complexity import language_of
    from cdp.services.advice import complexity

    profiled = target_of(workspace, a)
    if profiled is None:
        raise ConfigError("Name one of: a query set, --file PATH, --benchmark NAME.")
    facts = {"name": profiled.name, "language": profiled.language, "stopwords": profiled.stopwords}
    if a.action == "profile":
        effect = complexity.question_words(profiled)
        value = {**facts, **display.plain(profiled.profile), "question_words": display.plain(effect)}
        return say(a, value, display.cw_profile(profiled, language_of(profiled.language), effect))
    from cdp.services.advice import decide as advice
    from cdp.services.advice import decisions

    answer = profiled.recommend(
        domain=a.domain, task=a.task, generator=a.generator, budget=a.budget, n_documents=a.documents
    )
    decision = decisions.decide(workspace, profiled, answer, corpus=a.corpus)
    known = advice.decide(workspace, corpus=a.corpus, target=profiled, prior=answer)
    value = {**facts, **display.plain(answer), "decision": display.plain(decision), "known": known.to_dict()}
    text = display.recommendation(profiled.name, answer, decision)
    return say(a, value, f"{measurement(known)}\n\n{text}" if known.measured else text)


# evaluate


def evaluate(workspace: Workspace, a: argparse.Namespace) -> int:
    from cdp.cli.benchmarks import evaluate as evaluate_group
    from cdp.services import benchmarks, evaluation

    config = config_of(EvaluationConfig, a, "retriever", "benchmark", "split", "protocol")
    if benchmarks.is_several(workspace, config.benchmark):
        return evaluate_group(workspace, a, config)
    return started(workspace, a, evaluation.start(workspace, config))


# catalog, demo, doctor


def catalog_rebuild(workspace: Workspace, a: argparse.Namespace) -> int:
    from cdp.services import results

    summary = results.rebuild(workspace)
    lines = [f"rebuilt from the files: {summary['added']} entries", *(f"  {text}" for text in summary["problems"])]
    return say(a, summary, "\n".join(lines))


def catalog_query(workspace: Workspace, a: argparse.Namespace) -> int:
    from cdp.services import results

    table = results.query(workspace, a.sql)
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    text = display.table(rows, table.columns, "no rows") + ("\n… and more" if table.truncated else "")
    return say(a, rows, text)


def demo(workspace: Workspace, a: argparse.Namespace) -> int:
    from cdp.services.workspace.demo import load

    done = load(workspace)
    return say(a, done, "\n".join(f"loaded {item}" for item in done) or "the demo is loaded")


def doctor(workspace: Workspace, a: argparse.Namespace) -> int:
    from cdp.services.workspace.doctor import check

    checks = check(workspace)
    say(a, checks, "\n".join(f"{'ok  ' if c.ok else 'BAD '} {c.name}: {c.text}" for c in checks))
    return DONE if all(c.ok for c in checks) else FAILED
