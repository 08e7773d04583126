"""The published rule on the Decide page: target queries pasted or chosen, task type, figures, limits, CW histogram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from cdp import principle
from cdp.base.permission import read_only
from cdp.base.text import name_and_split
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
    """The target queries (None while there are none), what they are to the training queries, the kind of task (empty:
    not said), and the corpus that is trained on."""

    target: Profiled | None
    domain: str
    task: str
    corpus: str

    def recommend(self) -> Recommendation | None:
        """What the published evidence says; None without target queries."""
        return None if self.target is None else self.target.recommend(domain=self.domain, task=self.task)


def choose_task(workspace: Workspace) -> tuple[str, str, str]:
    """(corpus, where the target queries are from, their name or text): what the answer is about."""
    own = state.of_project(workspace, "query_set", [q for q in queries.list_query_sets(workspace) if q.n_queries])
    stored = state.of_project(workspace, "benchmark", benchmarks.list_benchmarks(workspace))
    offered = {
        BENCHMARK: ({b.name: b.name for b in stored}, "target_benchmark"),
        QUERY_SET: (stored_sets.set_names(workspace, own), "target_set"),
    }

    corpus = looking.titles(state.of_project(workspace, "corpus", corpora.list_corpora(workspace)))
    chosen = name = ""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if corpus:
            chosen = state.choose("Corpus", corpus, "corpus", what="corpus", width=260) or ""

        source = PASTE

        if any(names for names, _ in offered.values()):
            source = forms.segments(
                "Target queries from",
                [*(kind for kind, (names, _) in offered.items() if names), PASTE],
                default=BENCHMARK if stored and "pasted" not in st.query_params else PASTE,
                key="target_source",
                help=REAL,
            )

        if source in offered:
            names, param = offered[source]
            name = state.choose(source, names, param, what=source.lower(), width=260) or ""
        else:
            with st.container():
                name = _pasted(workspace)

    return chosen, source, name


def _pasted(workspace: Workspace) -> str:
    """The field of pasted queries. A reload finds its text by the address, which names it by its hash."""

    def keep() -> None:
        typed = str(st.session_state.get("target_text") or "")
        if not read_only():
            with frame.guarded():
                state.write("pasted", decide.save(workspace, typed) if typed.strip() else None)

    if "target_text" not in st.session_state and "pasted" in st.query_params:
        st.session_state["target_text"] = decide.load(workspace, st.query_params["pasted"])
    return st.text_area(
        "Target queries, one per line", key="target_text", height=72, persist_state="session", on_change=keep,
        help=REAL, placeholder="which treaty ended the war that began the year the bridge opened\nhow do tides work",
    )  # fmt: skip


def choose_rest(workspace: Workspace, corpus: str, source: str, name: str) -> AdviceRequest:
    """What else the published rule asks: the relation to the training queries, the task and how words are counted."""
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
            "Language", {"": "Automatic", **{code: entry.name for code, entry in LANGUAGES.items()}},
            key="target_language", width=200,
            help="Determines how the text is split into words and which stopwords are not counted.",
        )  # fmt: skip

    target: Profiled | None = None

    if source == BENCHMARK:
        target = target_queries.profile_benchmark(workspace, name, language=language)
    elif source == QUERY_SET:
        target = target_queries.profile_query_set(workspace, name, language=language)
    elif name.strip():
        target = target_queries.profile_texts(name.splitlines(), language=language)

    if target is None:
        st.caption("No target queries yet: paste some, one per line. Use fifty or more for a reliable answer.")
    elif target.doubt:
        st.warning(md(target.doubt), icon=":material/translate:")

    return AdviceRequest(target, domain, task, corpus)


def rule(found: Recommendation, request: AdviceRequest, target: Profiled, known: Decision) -> None:
    """The published rule in words, with the figures it rests on, how the measurement relates to it, and its limits."""
    outside = not found.by_rule
    title, icon, colour = OUTSIDE if outside else LEVELS[found.level]
    title += ", if these are multi-hop questions" if found.scope.unknown else ""
    low, high = found.interval
    with st.container(border=True):
        st.markdown(f"**:{colour}[:material/{icon}:] Published rule: {title}**")
        st.markdown(md(found.advice))
        if known.rule and not outside:
            st.markdown(md(known.rule))

        tables.figures(
            ("Mean CW", f"{found.mean_cw:.2f}", frame.DEFINITIONS["cw"]),
            ("95% interval", f"{low:.2f} to {high:.2f}", frame.DEFINITIONS["interval"]),
            ("Target queries", number(found.n_queries)),
        )
        cw = target.profile
        st.markdown(f"{cw.below:.0%} of the queries are below 7, {cw.between:.0%} between, {cw.above:.0%} above 10.")
        st.caption("**Limits of the rule**  \n" + "  \n".join(f"• {md(caveat)}" for caveat in found.caveats))
        against = [work.disagreement for work in prior_work() if work.on == "decide"]
        st.caption("**Other work disagrees**  \n" + "  \n".join(f"• {text}" for text in against))

    forms.command(command(request, target, rule=True))


def command(request: AdviceRequest, target: Profiled | None, *, rule: bool = False) -> str:
    """Return the command that gives the same: ``decide``, or ``cw recommend`` for the published rule."""
    benchmark, split = name_and_split(target.benchmark if target else "")
    query_set = target.query_set if target else ""
    given: dict[str, Any] = {
        "file": "queries.txt" if target is not None and not (target.query_set or benchmark) else None,
        "benchmark": benchmark,
        "split": split,
        "domain": None if request.domain == "ood" else request.domain,
        "task": request.task,
        "corpus": request.corpus,
        "language": None if target is None or target.language == "en" else target.language,
    }
    return commands.line("cw", "recommend", query_set, **given) if rule else commands.line("decide", query_set, **given)


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
    """The published line, and where these queries lie on it; nothing of it outside its evidence."""
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
