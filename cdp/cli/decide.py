"""Commands that decide: cw, decide, principle, published, study, sweep."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from cdp.base.config import JudgedOn, TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.settings import altered, option
from cdp.base.text import counted, interval, p_value, signed, tally
from cdp.base.workspace import now, write_bytes
from cdp.charts.answer_page import answer_page
from cdp.cli import answers
from cdp.cli.answers import Run, note, note_queued, refuse_unless, warn_incomplete
from cdp.cli.declare import AllowIncomplete, AllowLeakage, Reads, Set, command
from cdp.complexity import STANDARD, count_content_words, language_of, profile
from cdp.principle import COMPARISONS, Decision, Recommendation, correlation_table, differences, tables, threshold
from cdp.services import answering, corpora, endpoints, queries, studies, trial
from cdp.services import decide as service
from cdp.studies import advice, target_queries
from cdp.studies.config import AnswerConfig, StudyConfig, TrialConfig, read_plan, read_rates, ready_made
from cdp.studies.own_test import BY_TEMPLATES, Trial
from cdp.studies.target_queries import Profiled
from cdp.studies.text import plan_text, to_markdown


class TargetQueries(JudgedOn):
    """The queries of a task: a query set, a file or a benchmark."""

    query_set: str = option("", "A query set.")
    file: str = option("", "A text file with one query per line, or JSONL with a text field.", holds="path")
    query_field: str = option("", "In a file with columns: the one with the queries, where its name does not tell.")
    benchmark: str = altered(
        JudgedOn, "benchmark", default="", help="The queries of a benchmark, or of one of its splits: NAME:SPLIT."
    )
    split: str = altered(JudgedOn, "split", help="The benchmark's split.")
    language: str = option("", "Language of the queries, as en, fr, zh; detected if omitted.")
    stopwords: str = option(
        STANDARD, "The words that do not count: standard, question-words-kept, or a file of your own, a word per line.",
        holds="path",
    )  # fmt: skip

    @property
    def named(self) -> int:
        return bool(self.query_set) + bool(self.file) + bool(self.benchmark)


Domain = Annotated[Literal["ood", "in-domain"], "do they differ from the training queries? ood if omitted"]
Task = Annotated[
    str,
    "the kind of task: multi-hop, fact-checking, reasoning … (known for the paper's; a wrong one lists them)",
    "KIND",
]
NAME_ONE = "Name one of: a query set, --file PATH, --benchmark NAME."


def _profiled(run: Run, target: TargetQueries) -> Profiled:
    """Return the target queries, counted. ConfigError unless exactly one source is named."""
    found = _read(run, target)
    if target.stopwords == STANDARD:
        return found
    cw = count_content_words(found.texts, found.language, stopwords=target.stopwords)
    return replace(found, cw=cw, profile=profile(cw))


def _read(run: Run, target: TargetQueries) -> Profiled:
    refuse_unless(target.named == 1, NAME_ONE)
    if target.file:
        texts = target_queries.read_queries(target.file, target.query_field)
        return target_queries.profile_texts(texts, name=Path(target.file).name, language=target.language)
    if target.benchmark:
        return target_queries.profile_benchmark(
            run.workspace, target.benchmark, split=target.split, language=target.language
        )
    return target_queries.profile_query_set(run.workspace, target.query_set, language=target.language)


@command("cw profile", places=("query_set",))
def cw_profile(run: Run, target: TargetQueries) -> int:
    """How many content words queries have."""
    profiled = _profiled(run, target)
    p, language = profiled.profile, language_of(profiled.language)
    top = max(p.histogram)
    bars = [f"{cw:3} {'█' * round(40 * n / top)} {n}" for cw, n in enumerate(p.histogram[:31]) if cw >= p.minimum]
    if more := sum(p.histogram[31:]):
        bars.append(f"more: {more}")

    view = {
        profiled.name: f"{counted(p.n, 'query', 'queries')}, mean CW {p.mean:.2f} (95% {interval(p.interval)}), "
        f"median {p.median:g}, from {p.minimum} to {p.maximum}",
        "CW": f"below 7: {p.below:.0%} · 7 to 10: {p.between:.0%} · above 10: {p.above:.0%}",
        "counted as": f"{language.name}: {language.tokenizer}; stopwords: {language.stopwords}",
        "note": profiled.doubt,
        "queries by CW": "\n".join(["", *bars]),
    }
    return run.say(answers.plain(p, name=profiled.name, language=profiled.language), view)


@command("cw recommend", places=("query_set",))
def cw_recommend(
    run: Run,
    target: TargetQueries,
    *,
    domain: Domain = "ood",
    task: Task = "",
    corpus: Annotated[str, "the corpus that they are to be written for"] = "",
) -> int:
    """The answer for a task with such queries, with what the published rule says of them."""
    profiled = _profiled(run, target)
    rule = profiled.recommend(domain=domain, task=task)
    answer = service.decide(run.workspace, corpus=corpus, target=profiled, domain=domain, task=task)
    value = answers.plain(rule, name=profiled.name, language=profiled.language, answer=answer.to_dict())
    return run.say(value, f"{answer.text}\n\n{_rule(profiled.name, rule)}")


def _rule(name: str, r: Recommendation) -> str:
    """Return what the published rule says, what it rests on, and its limits."""
    sure = "" if r.certain else f" (not certain: {' or '.join(r.possible)})"
    said = f"{r.level.upper()}{sure}: "
    if r.scope.outside:
        said = f"The published rule alone would say {r.level}{sure}. "

    low, high = r.interval
    lines = [
        f"{said}{r.advice}",
        f"{name}: {counted(r.n_queries, 'query', 'queries')}, mean CW {r.mean_cw:.2f} "
        f"(95% interval {low:.2f} to {high:.2f})",
    ]
    return "\n".join([*lines, *(f"- {caveat}" for caveat in r.caveats)])


@command("decide", places=("query_set",), project=())
def decide(
    run: Run,
    target: TargetQueries,
    *,
    corpus: Annotated[str, "the corpus that queries are to be written for"] = "",
    domain: Domain = "ood",
    task: Task = "",
    out: Annotated[str, "also write it as one HTML file to send; - for standard output"] = "",
) -> int:
    """One query, paraphrases or different queries, how many: what is best known, own studies first."""
    if not (corpus or target.named) and run.scope.project is not None:
        # The project's only corpus and benchmark.
        if len(run.scope.corpora) == 1:
            (corpus,) = run.scope.corpora
        if len(run.scope.benchmarks) == 1:
            target = target.replace(benchmark=run.scope.benchmarks[0])

    refuse_unless(
        corpus or target.named,
        "Name a corpus (--corpus ID), a project with one (--project NAME), or the task's queries: a query set, --file "
        "PATH, --benchmark NAME.",
    )
    about, profiled, corpus_id = [], None, ""
    if target.named:
        profiled = _profiled(run, target)
        about.append(profiled.name)
    if corpus:
        corpus_id = corpora.resolve_corpus(run.workspace, corpus).id
        about.insert(0, corpus)

    answer = service.decide(run.workspace, corpus=corpus_id, target=profiled, domain=domain, task=task)
    if out:
        options, _ = advice.list_options(run.workspace, answer, corpus_id)
        page = answer_page(answer, options, when=now(), task=", ".join(about))
        with run.output(out, ".html") as path:
            write_bytes(Path(path), page.encode())

    return run.say(answer.to_dict(), f"{answer.text}\n{_options(run, answer, corpus_id)}")


def _options(run: Run, answer: Decision, corpus: str) -> str:
    """Return every option with its score, its difference to the choice, price and training time."""
    options, writer = advice.list_options(run.workspace, answer, corpus)
    if not options:
        return ""

    heads = ("option", "ndcg@10", "to the choice (points)", "price", "training")
    rows = [dict(zip(heads, option.cells, strict=True)) for option in options]
    return f"\n{answers.table(rows)}\nPrices: {writer}."


Datasets = Annotated[Literal["multi-hop", "all"], "the four multi-hop sets (if omitted), or all 31"]


@command("principle correlation")
def correlation(run: Run, *, datasets: Datasets = "multi-hop") -> int:
    """CW against the published gains, per condition."""
    rows = correlation_table(differences(datasets))
    view = [replace(row, comparison=COMPARISONS[row.comparison]) for row in rows]
    columns = ["retriever", "comparison", "per_doc", "n_datasets", "r", "interval", "p", "rho", "rho_p"]
    return run.say(rows, answers.table(view, columns, digits=4))


@command("principle threshold")
def principle_threshold(run: Run, *, datasets: Datasets = "multi-hop") -> int:
    """The CW at which the published gains cross zero."""
    fit = threshold(differences(datasets))
    without = {name: value for name, value in fit.without_each.items() if value is not None}
    view = {
        "zero crossing (CW)": f"{fit.crossing:.2f}",
        "95% interval (datasets)": interval(fit.by_dataset),
        "zero crossing without a dataset": tally(without, "{} {:.2f}"),
        "points per content word": f"{signed(fit.slope)} (95% {interval(fit.slope_interval, sign=True)})",
        "differences": f"{fit.n_points}, r {fit.r:.2f}, {signed(fit.intercept)} points at CW 0",
        "datasets": f"{fit.n_datasets}, r {fit.r_of_dataset_means:.2f}, p {p_value(fit.p_of_dataset_means)}",
    }
    return run.say(answers.plain(fit), view)


@command("published list")
def published_list(run: Run) -> int:
    """The paper's tables and figures."""
    return run.say(tables.list_tables())


@command("published show")
def published_show(
    run: Run,
    table: Annotated[str, "its name, as multihop_scaling"],
) -> int:
    """One published table, as printed, with notes where numbers disagree."""
    made = tables.table(table)
    lines = [f"{made.info.title}. {made.info.about}", ""]
    if made.is_scores:
        columns, rows = tables.wide(made)
        lines += [answers.table(rows, columns), "", tables.MARKS_HELP]
    else:
        lines.append(answers.table(made.rows, made.columns))

    for number, remark in made.related.items():
        texts = (("printed", remark.printed), ("computed", remark.computed))
        beside = "; ".join(f"{word}: {text}" for word, text in texts if text)
        where = "all rows" if number in made.on_all else str(number)
        line = f"[{where}] {remark.note}"
        lines.append(f"{line} ({beside})" if beside else line)

    value = {"name": made.info.name, "title": made.info.title, "rows": made.rows, "notes": list(made.related.values())}
    return run.say(value, "\n".join(lines))


Trying = TypeVar("Trying", bound=TrialConfig)
Plan = Annotated[str, Reads(".yaml"), "a plan in YAML, or the name of a ready-made one"]


@command("study list", project=())
def study_list(run: Run) -> int:
    """The ready-made plans, and the studies of this workspace."""
    plans = [{"name": p.name, "what": p.about, "file": str(p.file)} for p in ready_made()]
    jobs = run.scope.keep("job", studies.list_studies(run.workspace))
    columns = ["id", "state", "phase", "done", "total", "created"]
    parts = [
        f"Ready-made plans:\n{answers.table(plans, ['name', 'what'], 'none')}",
        f"Studies:\n{answers.table(jobs, columns, 'No study yet: study run PLAN')}",
    ]
    return run.say({"plans": plans, "studies": [job.to_dict() for job in jobs]}, "\n\n".join(parts))


@command("study plan")
def study_plan(run: Run, file: Plan, *, set: Set) -> int:
    """The trainings, price and time of a study, without starting it."""
    plan = studies.plan(run.workspace, read_plan(file, set))
    return run.say(plan.to_dict(), plan_text(plan))


@command("study run", job=True)
def study_run(
    run: Run, file: Plan, *, allow_incomplete: AllowIncomplete = False, allow_leakage: AllowLeakage = False, set: Set
) -> int:
    """Run a study as a job; jobs resume continues it."""
    config = read_plan(file, set)
    run.read_input = False  # the plan was read
    return follow_study(run, config, allow_incomplete=allow_incomplete, allow_leakage=allow_leakage)


def follow_study(run: Run, config: StudyConfig, *, allow_incomplete: bool, allow_leakage: bool) -> int:
    """Start a study after its plan is shown; with ``--wait`` show its report."""
    if not run.json:
        note(plan_text(studies.plan(run.workspace, config)))
    begun = studies.run(run.workspace, config, allow_incomplete=allow_incomplete, allow_leakage=allow_leakage)
    warn_incomplete(run.workspace, *config.query_sets)
    note_queued(begun.generations)
    done = run.started(begun.job_id)
    if run.wait and not run.json:
        print(f"\n{to_markdown(studies.report(run.workspace, begun.job_id))}")
    return done


@command("study test", project=("corpus",), job=True)
def study_test(
    run: Run, config: TrialConfig, *, allow_leakage: AllowLeakage = False, yes: Annotated[bool, "start it"] = False
) -> int:
    """The test on your own data: shows what it takes, and starts it with --yes."""
    config = _with_writer(run, config)
    trial.measure(run.workspace, config)
    planned = trial.plan(run.workspace, config)
    _note_templates(run, planned)

    if not yes:
        return run.say(planned.to_dict(), {**planned.told, "next": "start it with --yes"})
    if not run.json:
        note(answers.shown(planned.told))

    begun = trial.start(run.workspace, config, allow_leakage=allow_leakage)
    note_queued(begun.generations)
    done = run.started(begun.job_id, *begun.later)

    if run.wait and not run.json:
        judged = planned.judged
        target = target_queries.profile_benchmark(run.workspace, judged.benchmark, split=judged.splits.test)
        print(f"\n{service.decide(run.workspace, corpus=config.corpus, target=target).text}")

    return done


def _with_writer(run: Run, config: Trying) -> Trying:
    """Return the settings with who writes where nothing was said."""
    if "generator" in run.given:
        return config
    first = endpoints.writer(run.workspace, corpora.resolve_corpus(run.workspace, config.corpus).id)
    return config.replace(**{name: value for name, value in first.items() if name not in run.given})


def _note_templates(run: Run, planned: Trial) -> None:
    """Say before anything starts that templates write, where nothing else was asked for."""
    if planned.by_templates and "generator" not in run.given:
        note(f"{BY_TEMPLATES} To name one: --generator openai --base-url ADDRESS --model NAME")


@command("answer", project=("corpus",), job=True)
def answer(run: Run, config: AnswerConfig, *, yes: Annotated[bool, "start it"] = False) -> int:
    """From documents to the answer as one job: judging where it is missing, training queries, the test."""
    corpus = corpora.resolve_corpus(run.workspace, config.corpus).id
    config = _with_writer(run, config)
    planned = answering.plan(run.workspace, config)
    _note_templates(run, planned.test)
    told = {
        "takes": planned.sentence, "steps": [text for text, _ in planned.steps], "problem": planned.problem,
        "note": list(planned.test.notes),
    }  # fmt: skip

    if not yes:
        value = {**told, "seconds": planned.stages, "cost": planned.cost, "test": planned.test.to_dict()}
        return run.say(value, {**told, "next": "start it with --yes"})

    if not run.json:
        note(answers.shown(told))

    done = run.started(answering.start(run.workspace, config))

    if run.wait and not run.json:
        print(f"\n{service.decide(run.workspace, corpus=corpus).text}")

    return done


@command("study report")
def study_report(run: Run, id: Annotated[str, "a study: its id, name or a unique prefix of its id"]) -> int:
    """The results of a study, finished or not, in Markdown."""
    found = studies.report(run.workspace, id)
    note(f"Q/Doc: queries per {queries.unit(run.workspace, (source.corpus for source in found.sources))}.")
    return run.say(found.to_dict(), to_markdown(found))


@command("sweep", places=("query_set",), project=("query_set",), job=True)
def sweep(
    run: Run,
    config: TrainingConfig,
    *,
    rates: Annotated[
        str, "peak learning rates; if omitted the paper's six, or six around the retriever's own", "RATE,RATE"
    ] = "",
    allow_incomplete: AllowIncomplete = False,
    allow_leakage: AllowLeakage = False,
) -> int:
    """A study that trains once per learning rate; the dev split of the benchmark chooses. See study report."""
    if config.learning_rate is not None:
        raise ConfigError("A sweep has several learning rates.", hint="Name them with --rates.")

    lora = config.loop.lora_rank is not None
    chosen = read_rates(rates) if rates else studies.grid_for(run.workspace, config.retriever, lora=lora)
    study = studies.sweep(run.workspace, config, chosen)

    return follow_study(run, study, allow_incomplete=allow_incomplete, allow_leakage=allow_leakage)
