"""Commands on queries, metrics and prompts: writing, measuring, reviewing, importing, exporting; choosing a prompt."""

from __future__ import annotations

from operator import itemgetter
from statistics import fmean
from typing import Annotated, Any, Literal

from cdp.base.config import (
    FilterConfig,
    MetricsConfig,
    MiningConfig,
    PromptTuningConfig,
    RoundTripConfig,
    SynthesisConfig,
)
from cdp.base.registry import Names
from cdp.base.text import comma_list, counted, name_and_split
from cdp.cli import answers
from cdp.cli.answers import Run, note, note_sent, refuse_unless, warn, warn_incomplete
from cdp.cli.declare import Id, Name, Reads, Set, check_generator, command
from cdp.cli.overview import DONE, exit_code
from cdp.corpus import looking
from cdp.query_sets import ImportOptions, QuerySet, usable
from cdp.query_sets.exports import EXPORTS
from cdp.retrievers import sending
from cdp.services import commands, completeness, jobs, queries, tuning
from cdp.services import metrics as measuring
from cdp.services import review as reviewing
from cdp.services.queries import Preview
from cdp.synthesis import candidates, pricing

EXAMPLES = 3  # documents whose queries ``queries show`` prints
Corpus = Annotated[str, "the corpus: its id, name or a unique prefix of its id"]


@command("queries preview", project=("corpus",))
def preview(
    run: Run,
    *,
    corpus: Corpus,
    doc: Annotated[str, "the document's id; the first document if omitted"] = "",
    methods: Annotated[str, "methods, separated by commas"] = "diverse,paraphrase",
    per_doc: Annotated[int | None, "queries per document; 5 if omitted"] = None,
    generator: Annotated[str, "the generator that writes them; template if omitted", Names("generator")] = "",
    set: Set,
) -> int:
    """Queries of several methods for one document, without storing them."""
    document = doc or looking.page(run.workspace, corpus, 0, 1)[0].id
    names = comma_list(methods)
    options: dict[str, Any] = {**set}
    if per_doc is not None:
        options.setdefault("per_doc", per_doc)
    if generator:
        options.setdefault("generator", generator)

    check_generator(str(options.get("generator", "template")), names[0] if len(names) == 1 else "", set)
    shown = queries.preview(run.workspace, corpus, document, methods=names, **options)

    lines = [f"document {document}"]
    for item in shown.values():
        lines += ["", *_previewed(item)]

    run.say({"document_id": document, "methods": shown}, "\n".join(lines))
    return exit_code(not all(item.error for item in shown.values()))


def _previewed(item: Preview) -> list[str]:
    """Return what a method wrote for one document, line by line."""
    title = item.method
    if item.queries or not item.error:
        measured = f"CW {fmean(item.cw or [0]):.1f}"
        if item.self_bleu is not None:
            measured = f"Self-BLEU {item.self_bleu:.3f}, {measured}"
        title += f" ({measured})"

    lines = [title]
    for i, (query, cw) in enumerate(zip(item.queries, item.cw, strict=True), 1):
        lines.append(f"{i:3}. [CW {cw:2}] {query}")

    if item.together:
        lines.append(f"     needs this document and: {', '.join(item.together)}")
    lines += [f"     note: {problem}" for problem in item.problems]
    if item.error:
        lines.append(f"     failed: {item.error}")

    return lines


@command("queries generate", project=("corpus",), job=True)
def generate(run: Run, config: SynthesisConfig) -> int:
    """Write queries for a corpus."""
    return run.started(jobs.start(run.workspace, "synthesis", config))


@command("queries estimate", project=("corpus",), defaults={"generator": "openai"})
def estimate(run: Run, config: SynthesisConfig) -> int:
    """Tokens and price of writing queries for a corpus, before it starts; generator openai if omitted."""
    expected = pricing.estimate(run.workspace, config)
    if expected.cost is None:
        cost = f"unknown: {config.endpoint.model_name} has no price; write it into prices.json in the workspace"
    elif expected.price is not None:
        dated = f"prices as of {expected.price.as_of}"
        cost = f"${expected.cost:,.2f}, as a batch ${expected.batch_cost:,.2f} ({dated})"
    else:
        cost = "nothing"

    view = {"requests": f"{expected.requests:,} for {counted(expected.n_documents, 'document')}"}
    if expected.requests:
        sampled = f"95%, of {expected.sampled} documents"
        view["input tokens"] = f"{expected.input_tokens:,} ± {expected.input_margin:,} ({sampled})"
        view["output tokens"] = f"about {expected.output_tokens:,}"

    view["cost"] = cost
    return run.say(expected, view)


@command("queries batch-write", project=("corpus",), defaults={"generator": "openai"})
def batch_write(
    run: Run, config: SynthesisConfig, *, out: Annotated[str, "the folder for the files; - for standard output"]
) -> int:
    """Write a job's open requests as OpenAI Batch JSONL, for the Batch API or vllm run-batch."""
    with run.output(out) as target:
        done = queries.batch_write(run.workspace, config, target)
    if not done.paths:
        return run.say(done, "Every answer is cached already: there is nothing to ask.")
    return run.say(done, _written(run, done, counted(done.n, "request")))


@command("queries batch-read")
def batch_read(run: Run, path: Annotated[str, Reads(".jsonl"), "the batch's output file"]) -> int:
    """Keep the answers of a batch; the same job, started as usual, then finds them."""
    return run.say(answers.plain(queries.batch_read(run.workspace, path)))


@command("queries import", project=("corpus",))
def import_(
    run: Run,
    path: Annotated[str, Reads(".csv"), "JSONL, JSON (also with negatives), CSV or TSV with document ids"],
    options: ImportOptions,
    *,
    corpus: Corpus,
    name: Name = "",
) -> int:
    """Import queries that exist."""
    done = queries.import_file(run.workspace, path, corpus, name=name, options=options)
    more = {"n_rejected": done.n_rejected, "rejected": done.rejected, "notes": done.notes}
    view = {
        **_set(done.query_set),
        "how it was read": "\n".join(done.notes),
        "rejected rows": answers.first_of(done.n_rejected, done.rejected),
    }

    return run.say(answers.plain(done.query_set, **more), view)


def _set(q: QuerySet) -> dict[str, Any]:
    """Return a query set's size and who wrote it, for the terminal."""
    return {
        "id": q.id,
        "queries": f"{q.n_queries:,} for {counted(q.n_documents, 'document')} of {q.corpus_id}",
        "written by": q.written_by,
        "licence": q.licence,
    }


@command("queries export")
def export(
    run: Run,
    id: Id,
    *,
    format: Annotated[str, "what the other program reads", Names("export format")],
    out: Annotated[str, "the file or folder, named after the set if omitted; - for standard output"] = "",
    per_doc: Annotated[int | None, "only the first so many queries per document"] = None,
    model: Annotated[str, "for openai-batch: the model to ask, if not the set's own"] = "",
) -> int:
    """Write a query set for another program."""
    query_set = queries.show(run.workspace, id)
    form = EXPORTS.named(format)
    with run.output(out or f"{query_set.id}{form.suffix}", form.suffix) as target:
        done = queries.export(run.workspace, query_set.id, format, target, per_doc=per_doc, model=model)

    warn(done.note)
    n = counted(done.n, "request") if form.write is None else counted(done.n, "query", "queries")
    return run.say(answers.plain(done, id=query_set.id), _written(run, done, n))


def _written(run: Run, done: Any, n: str) -> str:
    """Return how much was written, and where unless that is standard output."""
    if run.piped:
        return n
    return "\n".join([n, *(f"  {path}" for path in done.paths)])


@command("queries list", project=())
def list_(run: Run, *, corpus: Annotated[str, "only of this corpus"] = "") -> int:
    """The query sets."""
    rows = []
    sets = run.scope.keep("query_set", queries.list_query_sets(run.workspace, corpus=corpus))
    for query_set in sets:
        item = completeness.check(run.workspace, query_set)
        unfinished = "" if item.complete else f"{item.job_id} ({item.job_state or 'deleted'})"
        rows.append(answers.plain(query_set, state=item.label, unfinished_job=unfinished))

    columns = ["id", "name", "kind", "method", "generator", "per_doc", "n_documents", "n_queries", "n_failures"]
    for column in ("model", "licence", "state", "unfinished_job"):
        if any(map(itemgetter(column), rows)):
            columns.append(column)

    note(*usable.q_doc_notes(run.workspace, sets))
    return run.say(rows, columns=columns, empty="No query set yet: queries generate --corpus ID")


@command("queries show")
def show(run: Run, id: Id) -> int:
    """One query set: where it is from, its first queries, and what is missing and why."""
    q = queries.show(run.workspace, id)
    note(*usable.q_doc_notes(run.workspace, [q]))
    state = completeness.check(run.workspace, q)
    value = answers.plain(q, state=state.label, note=state.note, job_state=state.job_state)
    view = _set(q) | {"shared": usable.shared(q)}
    for name in ("kind", "method", "per_doc", "prompt_hash", "job_id", "state", "note"):
        view[name] = value[name]

    failed = queries.failures(run.workspace, q.id)
    reasons = [f"{line.get('document_id') or line.get('line')}: {line['reason']}" for line in failed.first]
    view["without queries or with too few, or rejected"] = answers.first_of(failed.n, reasons)

    value["examples"] = []
    for document, texts in queries.page(run.workspace, q.id, 0, EXAMPLES):
        value["examples"].append({"document_id": document, "queries": texts})
        view[f"\n{document}"] = "".join(f"\n{i:3}. {query}" for i, query in enumerate(texts, 1))

    value["failures"] = {"n": failed.n, "first": failed.first}
    return run.say(value, view)


@command("queries delete")
def delete(run: Run, id: Id) -> int:
    """Remove a query set; what was trained on it stays."""
    query_set = queries.show(run.workspace, id)
    queries.delete(run.workspace, query_set.id)
    return run.deleted(query_set.id)


@command("queries best")
def best(run: Run, id: Id, *, keep: Annotated[int, "queries to keep, over all documents"], name: Name = "") -> int:
    """Keep the best queries by mean token log-probability (InPars' filter), as a new set."""
    q, without = queries.best(run.workspace, id, keep, name=name)
    if without:
        warn(f"{without:,} queries have no log-probability and took no part.")

    return run.say(answers.plain(q, without_logprob=without), _set(q))


@command("queries leave-out")
def leave_out(
    run: Run,
    id: Id,
    *,
    judged_by: Annotated[list[str], "whose queries are left out; repeatable", "BENCHMARK[:SPLIT]"],
    name: Annotated[str, "the copy's name"] = "",
) -> int:
    """A copy of a query set without the queries that a benchmark judges."""
    q, n = queries.leave_out(run.workspace, id, list(map(name_and_split, judged_by)), called=name)
    return run.say(answers.plain(q, left_out=n), {**_set(q), "left out": n})


@command("queries round-trip", places=("query_set",), job=True)
def round_trip(run: Run, config: RoundTripConfig) -> int:
    """At which rank each query finds the document it was written for."""
    return run.started(jobs.start(run.workspace, "round-trip", config))


@command("queries filter", places=("query_set",), job=True)
def filter_(run: Run, config: FilterConfig) -> int:
    """A new set without queries that fail a test: round-trip rank, a cross-encoder's score, nonsense."""
    return run.started(jobs.start(run.workspace, "filter", config))


@command("queries mine", places=("query_set",), job=True)
def mine(run: Run, config: MiningConfig) -> int:
    """A copy of a set with hard negatives for its queries, which a retriever ranks high."""
    warn_incomplete(run.workspace, config.query_set)
    note_sent(sending.for_mining(run.workspace, config))
    return run.started(jobs.start(run.workspace, "mining", config))


@command("queries review")
def review(
    run: Run,
    id: Id,
    verdict: Annotated[
        Literal["accept", "reject", "edit", "clear", "create"] | None,
        "what is decided; create makes a set of what the decisions leave; the usable share is shown if omitted",
    ] = None,
    *,
    query: Annotated[list[str] | None, "a query's id (DOCUMENT-POSITION); repeatable", "ID"] = None,
    text: Annotated[str, "for edit: the query's new text"] = "",
    name: Annotated[str, "for create: a name for the set"] = "",
    only_accepted: Annotated[bool, "for create: leave out undecided queries too"] = False,
) -> int:
    """The share of usable queries; decide about single queries; make the reviewed set."""
    query_set = queries.show(run.workspace, id)
    if verdict is None:
        return _usable(run, query_set)

    if verdict == "create":
        made = reviewing.reviewed(run.workspace, query_set.id, name=name, only_accepted=only_accepted)
        more = {"left_out": made.dropped, "rewritten": made.rewritten}
        return run.say(answers.plain(made.query_set, **more), {**_set(made.query_set), **more})

    refuse_unless(query, "No query is named.", "Name one: --query ID")
    n = reviewing.decide(run.workspace, query_set.id, query or [], verdict, text=text)
    value = {"id": query_set.id, "decision": verdict, "queries": n}

    return run.say(value, f"{verdict}: {counted(n, 'query', 'queries')}")


def _usable(run: Run, query_set: QuerySet) -> int:
    result = usable.usability(run.workspace, query_set, usable.table(run.workspace, query_set))
    decided = usable.decisions(run.workspace, query_set)
    counts = {"accepted": len(decided.accepted), "rejected": len(decided.rejected), "edited": len(decided.edited)}
    value = answers.plain(result, id=query_set.id, share=result.share, decided=counts)
    view = {
        "usable": f"{result.usable:,} of {result.n:,} queries ({result.share:.1%})",
        "round-trip rank by": ", ".join(result.by) or "not measured",
        **result.reasons,
        "decided": counts if any(counts.values()) else "",
    }
    return run.say(value, view)


@command("metrics", places=("query_set",), project=("query_set",), job=True)
def metrics(
    run: Run, config: MetricsConfig, *, quick: Annotated[bool, "only the measures that need no model"] = False
) -> int:
    """Q-D metrics of a query set: the quick ones at once, the model-based ones as a job."""
    people = config.scoring.human
    measured = measuring.quick(run.workspace, config.query_set, human=people, per_doc=config.per_doc)
    warn_incomplete(run.workspace, config.query_set)

    if people:
        reference = queries.show(run.workspace, people)
        if reference.kind != "human":
            by = reference.written_by
            warn(f"{reference.name} stands for human queries, and is not known to be: written by {by}.")

    if measured.n_failed:
        first = measured.failed[0]
        warn(f"{counted(measured.n_failed, 'document')} failed; the first, {first['id']}: {first['reason']}")

    value = answers.plain(measured)
    del value["documents"]
    table = answers.measures(value["measures"])

    if quick:
        return run.say(value, table)
    if not run.json:
        print(table)

    return run.started(jobs.start(run.workspace, "metrics", config))


@command("prompts tune", project=("corpus",), job=True)
def tune(
    run: Run,
    config: PromptTuningConfig,
    *,
    prompt: Annotated[
        list[str] | None, "a prompt of your own with {document} and {M} in it; repeatable; - for standard input", "FILE"
    ] = None,
) -> int:
    """Try candidate prompts on a sample of documents and choose one."""
    files = [run.standard_input(".txt") if file == "-" else file for file in prompt or ()]
    job_id = tuning.start(run.workspace, config, prompts=tuning.read_prompts(files))
    done = run.started(job_id)
    if run.wait and not run.json and done == DONE:
        print(f"\n{_tuned(tuning.result(run.workspace, job_id))}")
    return done


@command("prompts show")
def prompts_show(run: Run, id: Id) -> int:
    """The measures of each candidate, and the choice."""
    found = tuning.result(run.workspace, id)
    return run.say(found, _tuned(found))


def _tuned(found: dict[str, Any]) -> str:
    """Return the candidates, nearest to the target first, then the choice and why."""
    scorer, config = found["scorer"], PromptTuningConfig.from_dict(found["config"])
    ratio = "CE" if scorer["measure"] == "paraphrase_ratio" else "CE stand-in"
    named = {scorer["measure"]: ratio, "self_bleu": "Self-BLEU", "dist_sim": "Dist-Sim", "len_sim": "Len-Sim",
             "cw": "CW"}  # fmt: skip

    rows = []
    for record in found["candidates"]:
        chosen = "→" if record["name"] == found["choice"] else " "
        row = dict.fromkeys(("prompt", "distance", "meets it", *named.values(), "corpus", "queries", "note"))
        row |= {"prompt": f"{chosen} {record['name']}", "distance": record.get("distance")}
        row |= {"queries": record.get("query_set", ""), "note": record.get("error", "")}
        if record.get("inside") is not None:
            row["meets it"] = f"{record['inside']:.0%}"
        if record.get("corpus_cost") is not None:
            row["corpus"] = f"${record['corpus_cost']:.2f}"

        for value in record.get("measures", ()):
            if value["name"] in named:
                row[named[value["name"]]] = value["value"]
        rows.append(row)

    wanted = "different" if config.target == "ood" else "alike"
    lines = [f"target: {wanted} queries, on {config.documents:,} documents", "", answers.table(rows, digits=3), ""]
    lines.append(f"Chosen: {found['choice']}. {found['why']}")
    if scorer["note"]:
        lines.append(f"CE is stood in for by {scorer['model']}: {scorer['note']}")

    lines.append(f"Next: {commands.line('queries', 'generate', config=candidates.synthesis_of(found), wait=True)}")
    return "\n".join(lines)
