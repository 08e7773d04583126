"""The published rule on the Decide page: target queries pasted or chosen, task type, figures, limits, CW histogram."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import dataclass
from typing import Any

import streamlit as st

from cdp import principle
from cdp.base.permission import read_only
from cdp.base.workspace import Workspace
from cdp.charts.evidence import cw_histogram, difference_against_cw
from cdp.complexity import LANGUAGES, language_of
from cdp.corpus import looking
from cdp.principle import KINDS, Decision, Recommendation
from cdp.principle.tables import prior_work
from cdp.services import benchmarks, commands, corpora, decide, queries
from cdp.studies import target_queries
from cdp.studies.target_queries import Profiled
from cdp.ui.queries import sets as stored_sets
from cdp.ui.shell import charts, forms, frame, state, tables
from cdp.ui.shell.tables import md, number

PASTE, BENCHMARK, QUERY_SET = "Pasted text", "Benchmark", "Query set"  # where the target queries are from

REAL = (
    "Queries of the task the retriever is meant for. Real ones work best: a benchmark's, or a sample of a search log."
)
DOMAINS = {"ood": "Different from the training queries", "in-domain": "Similar to the training queries"}
OUTSIDE = ("no evidence for these queries", "help", "orange")

LEVELS = {
    "avoid": ("avoid diverse queries", "do_not_disturb_on", "orange"),
    "test": ("test both kinds of queries", "balance", "blue"),
    "recommend": ("use diverse queries", "check_circle", "green"),
}


@dataclass(frozen=True, slots=True)
class AdviceRequest:
    """What advice is asked for: target queries (None while there are none), their relation to the training queries
    (``ood`` or ``in-domain``), the kind of task (empty: not stated), and the corpus to train on."""

    target: Profiled | None
    domain: str
    task: str
    corpus: str

    def recommend(self) -> Recommendation | None:
        """What the published evidence says; None without target queries."""
        return None if self.target is None else self.target.recommend(domain=self.domain, task=self.task)


def choose_task(workspace: Workspace) -> tuple[str, str, str]:
    """Ask for corpus and target queries; return (corpus, source of the queries, their name or text)."""
    stored = state.of_project(workspace, "benchmark", benchmarks.list_benchmarks(workspace))
    sets = [query_set for query_set in queries.list_query_sets(workspace) if query_set.n_queries]
    set_names = stored_sets.set_names(workspace, state.of_project(workspace, "query_set", sets))
    corpus_names = looking.titles(state.of_project(workspace, "corpus", corpora.list_corpora(workspace)))

    corpus = name = ""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if corpus_names:
            corpus = state.choose("Corpus", corpus_names, "corpus", what="corpus", width=260) or ""

        own = state.scope(workspace).selected(stored)
        source = _source(stored, set_names, preferred=BENCHMARK if own else PASTE)
        if source == BENCHMARK:
            names = {info.name: info.name for info in stored}
            name = state.choose(
                BENCHMARK, names, "target_benchmark", what="benchmark", optional=not own, width=260
            ) or ""  # fmt: skip
        elif source == QUERY_SET:
            name = state.choose(QUERY_SET, set_names, "target_set", what="query set", width=260) or ""
        else:
            with st.container():
                name = _pasted(workspace)

    return corpus, source, name


def _source(stored: Sized, sets: Sized, preferred: str) -> str:
    """Ask where the target queries come from: at first what the address names, else ``preferred``; pasted text if
    there is no benchmark and no query set."""
    offered = [PASTE]
    if sets:
        offered.insert(0, QUERY_SET)
    if stored:
        offered.insert(0, BENCHMARK)
    if len(offered) == 1:
        return PASTE

    named = {PASTE: "pasted", BENCHMARK: "target_benchmark"}
    default = next((source for source, param in named.items() if param in st.query_params), preferred)
    return str(forms.segments("Target queries from", offered, default=default, key="target_source", help=REAL))


def _pasted(workspace: Workspace) -> str:
    """The field for pasted queries. The address holds the hash of the text, so a reload finds it again."""

    def keep() -> None:
        typed = str(st.session_state.get("target_text") or "")
        if read_only():
            return

        with frame.guarded():
            saved = decide.save(workspace, typed) if typed.strip() else None
            state.write("pasted", saved)

    if "target_text" not in st.session_state and "pasted" in st.query_params:
        st.session_state["target_text"] = decide.load(workspace, st.query_params["pasted"])
    return st.text_area(
        "Target queries, one per line", key="target_text", height=72, persist_state="session", on_change=keep,
        help=REAL, placeholder="which treaty ended the war that began the year the bridge opened\nhow do tides work",
    )  # fmt: skip


def choose_rest(workspace: Workspace, corpus: str, source: str, name: str) -> AdviceRequest:
    """Ask for the rest that the published rule needs: relation to the training queries, task, language."""
    languages = {code: entry.name for code, entry in LANGUAGES.items()}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        domain = forms.segments(
            "These queries are",
            DOMAINS,
            key="target_domain",
            help="The principle applies to target queries that differ in task or style from the training queries "
            "(out of domain).",
        )
        task = forms.pick(
            "Task type", {"": "Automatic", **KINDS}, key="target_task", width=260,
            help="Automatic: known for the paper's benchmarks, otherwise unknown. The published rule comes from "
            "multi-hop questions.",
        )  # fmt: skip
        language = forms.pick(
            "Language", {"": "Automatic", **languages}, key="target_language", width=200,
            help="Determines how the text is split into words and which stopwords are not counted.",
        )  # fmt: skip

    target: Profiled | None = None

    with frame.guarded():
        if source == BENCHMARK and name:
            target = target_queries.profile_benchmark(workspace, name, language=language)
        elif source == QUERY_SET:
            target = target_queries.profile_query_set(workspace, name, language=language)
        elif name.strip():
            target = target_queries.profile_texts(name.splitlines(), language=language)

    if not name.strip():
        st.caption("No target queries yet: choose or paste some, one per line. Fifty or more make it reliable.")
    elif target is not None and target.doubt:
        st.warning(md(target.doubt), icon=":material/translate:")

    return AdviceRequest(target, domain, task, corpus)


def rule(found: Recommendation, request: AdviceRequest, target: Profiled, known: Decision) -> None:
    """The published rule in words, with the figures it rests on, how the measurement relates to it, and its limits."""
    title, icon, colour = OUTSIDE
    if found.by_rule:
        title, icon, colour = LEVELS[found.level]
    if found.scope.unknown:
        title += ", if these are multi-hop questions"

    low, high = found.interval
    with st.container(border=True):
        st.markdown(f"**:{colour}[:material/{icon}:] Published rule: {title}**")
        st.markdown(md(found.advice))
        if known.rule and found.by_rule:
            st.markdown(md(known.rule))

        tables.figures(
            ("Mean CW", f"{found.mean_cw:.2f}", frame.DEFINITIONS["cw"]),
            ("95% interval", f"{low:.2f} to {high:.2f}", frame.DEFINITIONS["interval"]),
            ("Target queries", number(found.n_queries)),
        )
        cw = target.profile
        st.markdown(f"{cw.below:.0%} of the queries are below 7, {cw.between:.0%} between, {cw.above:.0%} above 10.")
        _bullets("Limits of the rule", map(md, found.caveats))
        _bullets("Other work disagrees", (work.disagreement for work in prior_work() if work.on == "decide"))

    forms.command(command(request, target, rule=True))


def _bullets(title: str, lines: Iterable[str]) -> None:
    st.caption("  \n• ".join([f"**{title}**", *lines]))


def command(request: AdviceRequest, target: Profiled | None, *, rule: bool = False) -> str:
    """Return the command that gives the same: ``decide``, or ``cw recommend`` for the published rule."""
    words = ["cw", "recommend"] if rule else ["decide"]
    given: dict[str, Any] = {}
    if target is not None:
        words.append(target.query_set)
        given["benchmark"] = target.benchmark
        if not target.query_set and not target.benchmark:
            given["file"] = "queries.txt"

    if request.domain != "ood":
        given["domain"] = request.domain
    given |= {"task": request.task, "corpus": request.corpus}
    if target is not None and target.language != "en":
        given["language"] = target.language

    return commands.line(*words, **given)


def distribution(target: Profiled) -> None:
    """Histogram of the target queries with the published lines, and how their words were counted."""
    language = language_of(target.language)
    profile = target.profile
    charts.show(
        cw_histogram(profile.histogram),
        key="cw",
        alt=f"Distribution of content words over {profile.n} queries: mean {profile.mean:.2f}, "
        f"median {profile.median:.0f}, from {profile.minimum} to {profile.maximum}.",
    )
    st.caption(
        f"Half of the queries of {md(target.name)} have between {profile.lower_quartile:.0f} and "
        f"{profile.upper_quartile:.0f} content words. Dashed lines: the published thresholds 7 and 10.  \n"
        f"{md(language.name)}: {md(language.tokenizer)}. Stopwords: {md(language.stopwords)}."
    )


def expected(recommendation: Recommendation) -> None:
    """The published line and where these queries lie on it; nothing outside its evidence."""
    if recommendation.scope.outside:
        return

    st.subheader("The published regression line", anchor=False)
    evidence = principle.differences()
    fit = principle.threshold()
    charts.show(
        difference_against_cw(evidence, fit, here=recommendation.mean_cw),
        key="evidence",
        alt=f"{len(evidence)} published differences in NDCG@10 against content words, {fit.n_datasets} datasets; "
        f"the fitted line crosses zero at {fit.crossing:.2f}; these queries are at {recommendation.mean_cw:.2f}.",
        caption="Each point is one retriever on one dataset under one condition. Above zero, diverse queries "
        f"helped. These are only {fit.n_datasets} datasets, so read the line as a tendency.",
    )
