"""Where the target queries come from, and what their content words say."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.complexity import LANGUAGES, stopword_variants
from cdp.principle import KINDS
from cdp.services import benchmarks, commands, complexity, corpora, decisions, queries, training
from cdp.services import complexity as service
from cdp.services.access import read_only
from cdp.services.complexity import Profiled, Recommendation
from cdp.services.synthesis import Writer
from cdp.ui.queries import incomplete
from cdp.ui.shell import command, forms, frame, navigation, project, state, tables
from cdp.ui.shell.text import count, md, number

OWN = "own"
STOPWORDS = {
    "standard": "Standard list",
    "question-words-kept": "Count question words",
    OWN: "Custom list",
}

PASTE, BENCHMARK, QUERY_SET = "Pasted queries", "Benchmark", "Query set"
TARGETS = {PASTE: "Pasted text", BENCHMARK: "Benchmark", QUERY_SET: "Query set"}
"""Where the target queries are from."""

DOMAINS = {"ood": "Different from the training queries", "in-domain": "Similar to the training queries"}
OUTSIDE = ("no evidence for this type of task", "help", "orange")

LEVELS = {
    "avoid": ("avoid diverse queries", "do_not_disturb_on", "orange"),
    "test": ("test both kinds of queries", "balance", "blue"),
    "recommend": ("use diverse queries", "check_circle", "green"),
}


@dataclass(frozen=True, slots=True)
class AdviceRequest:
    """The target queries (None while there are none), what they are to the training queries, the kind of task (empty:
    not said), for which corpus and how many queries may be written for how many documents."""

    target: Profiled | None
    domain: str
    task: str
    corpus: str
    budget: int | None
    n_documents: int | None

    def recommend(self) -> Recommendation | None:
        """What the published evidence says; None without target queries."""
        if self.target is None:
            return None
        return self.target.recommend(
            domain=self.domain, task=self.task, budget=self.budget, n_documents=self.n_documents
        )


def choose_task(workspace: Workspace) -> tuple[str, str, str]:
    """(corpus, where the target queries are from, their name): what the answer is about."""
    corpora_there = {c.id: c.name for c in project.keep(workspace, "corpus", corpora.list_corpora(workspace))}
    stored = project.keep(workspace, "benchmark", benchmarks.list_benchmarks(workspace))
    stored_names = {b.name: b.name for b in stored}
    sets = incomplete.names(
        workspace, project.keep(workspace, "query_set", [q for q in queries.list_query_sets(workspace) if q.n_queries])
    )
    there = [*([BENCHMARK] if stored_names else []), *([QUERY_SET] if sets else []), PASTE]
    options = {kind: TARGETS[kind] for kind in there}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        corpus = name = ""
        if corpora_there:
            with st.container(width=260):
                corpus = state.choose("Corpus", corpora_there, "corpus", what="corpus") or ""
        source = forms.segments(
            "Target queries from",
            options,
            default=BENCHMARK if stored_names and "pasted" not in st.query_params else PASTE,
            key="target_source",
            help="Queries of the task the retriever is meant for. Real ones work best: those of a benchmark, or a "
            "sample of your search log.",
        )
        if source == BENCHMARK:
            with st.container(width=260):
                name = state.choose("Benchmark", stored_names, "target_benchmark", what="benchmark") or ""
        elif source == QUERY_SET:
            with st.container(width=260):
                name = state.choose("Query set", sets, "target_set", what="query set") or ""
    return corpus, source, name


def choose_rest(workspace: Workspace, corpus: str, source: str, name: str) -> AdviceRequest:
    """What else the published rule asks: the relation to the training queries, the task, counting and budget."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        domain = forms.segments(
            "These queries are",
            DOMAINS,
            key="target_domain",
            help="The principle applies to target queries that differ in task or style from the training queries "
            "(out of domain).",
        )
        task = _task()
        language, words = _counting()
        budget, n_documents = _budget()
    target = _profiled(workspace, source, name, language, words)
    if target is not None and target.doubt:
        st.warning(md(target.doubt), icon=":material/translate:")
    return AdviceRequest(target, domain, task, corpus, budget, n_documents)


def _task() -> str:
    """The kind of task; empty to take a published dataset's own, or where it is not known."""
    kinds = KINDS
    with st.container(width=260):
        return (
            st.selectbox(
                "Task type",
                ["", *kinds],
                format_func=lambda kind: kinds.get(kind, "Automatic"),
                key="target_task",
                persist_state="session",
                help="Automatic: known for the paper's benchmarks, otherwise unknown. The published rule comes "
                "from multi-hop questions; for other task types you see the results on the published "
                "datasets most similar to yours.",
            )
            or ""
        )


def _counting() -> tuple[str, str | list[str]]:
    """How words are counted: the language, empty to find it out, and the stopwords: a list's name, or words."""
    about = "The language of the queries, and the words that are not counted."
    with st.popover("Word counting", icon=":material/translate:", type="tertiary", help=about):
        language = _language()
        stopwords = _stopwords(language)
        if stopwords != OWN:
            return language, stopwords
        words = st.text_area(
            "Your stopwords, one per line",
            key="target_own_stopwords",
            height=100,
            persist_state="session",
            placeholder="the\nof\nwhat",
        )
        return language, words.splitlines()


def _budget() -> tuple[int | None, int | None]:
    """How many queries may be written in all, and how many documents there are; None where that is not said."""
    queries_in_all = st.session_state.get("target_budget")
    label = f"Budget: {count(queries_in_all, 'query', 'queries')}" if queries_in_all else "Budget"
    with st.popover(label, icon=":material/savings:", type="tertiary", help="Limit the number of queries to write."):
        return (
            st.number_input(
                "Maximum number of queries", min_value=1, value=None, step=1000, key="target_budget",
                persist_state="session", placeholder="no limit",
                help="With a limit, more queries per document mean fewer documents.",
            ),
            st.number_input(
                "Number of documents", min_value=1, value=None, step=1000, key="target_documents",
                persist_state="session", placeholder="more than the budget covers",
            ),
        )  # fmt: skip


def _language() -> str:
    """The language of the queries; empty to find it out."""
    languages = LANGUAGES
    return (
        st.selectbox(
            "Language",
            ["", *languages],
            format_func=lambda code: languages[code].name if code else "Detect automatically",
            key="target_language",
            persist_state="session",
            help="Determines how the text is split into words and which stopwords are ignored.",
        )
        or ""
    )


def _stopwords(language: str) -> str:
    """The list of words that do not count."""
    options = [*stopword_variants(language or "en"), OWN]
    if st.session_state.get("target_stopwords", options[0]) not in options:
        st.session_state["target_stopwords"] = options[0]
    return st.selectbox(
        "Stopwords",
        options,
        format_func=lambda name: STOPWORDS[name],
        key="target_stopwords",
        persist_state="session",
        help="Words that are not counted. The French and Chinese lists contain question words (pourquoi, 为什么), "
        "which you can choose to count.",
    )


def _profiled(
    workspace: Workspace, source: str, name: str, language: str, stopwords: str | list[str]
) -> Profiled | None:
    if source == BENCHMARK:
        return service.profile_benchmark(workspace, name, language=language, stopwords=stopwords)
    if source == QUERY_SET:
        return service.profile_query_set(workspace, name, language=language, stopwords=stopwords)
    if "target_text" not in st.session_state and "pasted" in st.query_params:
        st.session_state["target_text"] = complexity.load(workspace, st.query_params["pasted"])
    text = st.text_area(
        "One query per line",
        key="target_text",
        height=110,
        persist_state="session",
        on_change=_keep_pasted,
        args=(workspace,),
        placeholder="which treaty ended the war that began the year the bridge opened\nhow do tides work",
    )
    if not text.strip():
        st.caption("No target queries yet: paste some, one per line. Use fifty or more for a reliable answer.")
        return None
    return service.profile_texts(text.splitlines(), language=language, stopwords=stopwords)


def _keep_pasted(workspace: Workspace) -> None:
    """A reload finds the pasted queries again by the address, which names them by their hash."""
    text = str(st.session_state.get("target_text") or "")
    if read_only():
        return
    with frame.guarded():
        state.write("pasted", complexity.save(workspace, text) if text.strip() else None)


def rule(
    workspace: Workspace,
    recommendation: Recommendation,
    request: AdviceRequest,
    target: Profiled,
    measured: bool,
    writer: Writer | None,
) -> None:
    """The published recommendation in words, with the figures it rests on, why, and its limits. It stands below what
    was ``measured``; prices are those of ``writer``."""
    outside = not recommendation.by_rule
    title, icon, colour = OUTSIDE if outside else LEVELS[recommendation.level]
    low, high = recommendation.interval
    decision = decisions.decide(workspace, target, recommendation, corpus=request.corpus, chosen=writer)
    with st.container(border=True):
        st.markdown(f"**:{colour}[:material/{icon}:] Published rule: {title}**")
        if measured:
            st.caption("Your own measurement above goes before it.")
        st.markdown(md(recommendation.advice))
        st.markdown(f"{'**Without a measurement:**' if measured else '**Do this:**'} {md(decision.sentence)}")
        gain = recommendation.suggestion.probability_of_a_gain
        tables.figures(
            ("Mean CW", f"{recommendation.mean_cw:.2f}", frame.definition("cw")),
            ("95% interval", f"{low:.2f} to {high:.2f}", frame.definition("interval")),
            ("Target queries", number(recommendation.n_queries)),
            None
            if gain is None
            else (
                "Probability of a gain",
                f"{gain:.0%}",
                "That several queries per document beat one for a task like this, estimated from published datasets.",
            ),
        )
        st.markdown(_why(recommendation, outside))
        st.markdown(md(recommendation.weighting.text))
        st.caption(
            "**Limits of this answer**  \n" + "  \n".join(f"• {md(caveat)}" for caveat in recommendation.caveats)
        )
        params = {"plan": decision.plan, **decision.settings}
        navigation.link("study", "Plan the study that would answer this", icon=":material/science:", **params)
        if decision.missing:
            st.caption(md(decision.missing))
    command.show(_command(request, target), decision.command)


def _command(request: AdviceRequest, target: Profiled) -> str:
    own = target.stopwords not in STOPWORDS
    benchmark, _, split = target.benchmark.partition(":")
    return commands.line(
        "cw",
        "recommend",
        target.query_set,
        file=None if target.query_set or benchmark else "queries.txt",
        benchmark=benchmark,
        split=split,
        domain=None if request.domain == "ood" else request.domain,
        task=request.task,
        corpus=request.corpus,
        budget=request.budget,
        documents=request.n_documents,
        language=None if target.language == "en" else target.language,
        stopwords="my-list.txt" if own else None if target.stopwords == "standard" else target.stopwords,
    )


def _why(recommendation: Recommendation, outside: bool) -> str:
    position = {
        "avoid": "is below 7, the lower published threshold",
        "test": "is between 7 and 10, the published thresholds",
        "recommend": "is above 10, the upper published threshold",
    }[recommendation.level]
    shares = recommendation.shares
    if outside:
        return (
            f"**The published rule alone** would say “{recommendation.level}” because the mean {position}, but it was "
            "derived from other tasks."
        )
    return (
        f"**Why:** the mean {position}. {shares['avoid']:.0%} of the queries are below 7, "
        f"{shares['test']:.0%} between, {shares['recommend']:.0%} above 10."
    )


def extremes(target: Profiled) -> None:
    """The queries at both ends, to see what the number means here."""
    simplest, hardest = target.extremes(10)
    left, right = st.columns(2, gap="medium")
    for column, name, rows in ((left, "Most complex", hardest), (right, "Least complex", simplest)):
        with column:
            st.markdown(f"**{name}**")
            tables.show(
                {"CW": [cw for _, cw in rows], "Query": [text for text, _ in rows]},
                alt=f"{name} queries with their content words",
                config={
                    "CW": st.column_config.NumberColumn(width=50),
                    "Query": st.column_config.TextColumn(width="large"),
                },
            )


def what_next(workspace: Workspace, recommendation: Recommendation, request: AdviceRequest, measured: bool) -> None:
    """The step that the answer leads to: a training, on a set of the corpus and on the benchmark that were named.
    The published rule does not say on what where it was ``measured``."""
    several = recommendation.suggestion.per_doc > 1
    why = (
        f"train on a diverse query set with {recommendation.suggestion.per_doc} queries per document."
        if several
        else "train with one query per document."
    )
    if measured:
        why = "go by the measurement above."
    page, label, params = leads_to(workspace, request)
    if page == "queries":
        why = "the selected corpus has no queries yet."
    frame.next_step(page, label, why, "complexity_next", **params)


def leads_to(workspace: Workspace, request: AdviceRequest) -> tuple[str, str, dict[str, str | list[str]]]:
    """(page, label, selections) of the next step: a query set of the corpus that was named, the named benchmark."""
    params: dict[str, str | list[str]] = {}
    corpus = request.corpus
    if not corpus and request.target is not None and request.target.query_set:
        corpus = queries.show(workspace, request.target.query_set).corpus_id
    if corpus:
        params["corpus"] = corpus
        sets = [q for q in queries.list_query_sets(workspace, corpus=corpus) if q.n_queries]
        if not sets:
            return "queries", "Write queries", params
        params["query_set"] = training.in_order(sets, corpus)[0].id
    name, _, split = request.target.benchmark.partition(":") if request.target is not None else ("", "", "")
    if name and split:
        params["benchmarks"] = [f"{name}/{split}"]
    return "launch", "Set up a training", params
