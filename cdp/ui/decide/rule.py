"""The published rule on the Decide page: target queries, their content words, and the evidence behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from cdp import principle
from cdp.base.workspace import Workspace
from cdp.charts.decide import cw_histogram
from cdp.charts.evidence import difference_against_cw
from cdp.complexity import LANGUAGES, CwProfile, language_of, stopword_variants
from cdp.principle import KINDS, Answer
from cdp.principle.prior import priors
from cdp.principle.prior_work import prior_work
from cdp.services import benchmarks, commands, complexity, corpora, queries
from cdp.services.access import read_only
from cdp.services.complexity import Profiled, Recommendation
from cdp.ui.queries import sets as stored_sets
from cdp.ui.shell import charts, forms, frame, state, tables
from cdp.ui.shell.tables import interval, md, number, points

STOPWORDS = {"standard": "Standard list", "question-words-kept": "Count question words"}

PASTE, BENCHMARK, QUERY_SET = "Pasted text", "Benchmark", "Query set"  # where the target queries are from

REAL = (
    "Queries of the task the retriever is meant for. Real ones work best: a benchmark's, or a sample of a search log."
)
DOMAINS = {"ood": "Different from the training queries", "in-domain": "Similar to the training queries"}
MINUS = {principle.SCALING: "one query", principle.PARAPHRASE: "paraphrases"}
OUTSIDE = ("no evidence for this type of task", "help", "orange")

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
    corpus = {c.id: c.name for c in state.of_project(workspace, "corpus", corpora.list_corpora(workspace))}
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
                state.write("pasted", complexity.save(workspace, typed) if typed.strip() else None)

    if "target_text" not in st.session_state and "pasted" in st.query_params:
        st.session_state["target_text"] = complexity.load(workspace, st.query_params["pasted"])
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
            "multi-hop questions; for other task types you see the results on the published datasets most similar to "
            "yours.",
        )  # fmt: skip
        language, words = _counting()
    target: Profiled | None = None
    if source == BENCHMARK:
        target = complexity.profile_benchmark(workspace, name, language=language, stopwords=words)
    elif source == QUERY_SET:
        target = complexity.profile_query_set(workspace, name, language=language, stopwords=words)
    elif name.strip():
        target = complexity.profile_texts(name.splitlines(), language=language, stopwords=words)
    if target is None:
        st.caption("No target queries yet: paste some, one per line. Use fifty or more for a reliable answer.")
    elif target.doubt:
        st.warning(md(target.doubt), icon=":material/translate:")
    return AdviceRequest(target, domain, task, corpus)


def _counting() -> tuple[str, str]:
    """How words are counted: the language, empty to detect it, and the name of a list of stopwords."""
    about = "The language of the queries, and the words that are not counted."
    with st.popover("Word counting", icon=":material/translate:", type="tertiary", help=about):
        language = forms.pick(
            "Language", {"": "Detect automatically", **{code: entry.name for code, entry in LANGUAGES.items()}},
            key="target_language",
            help="Determines how the text is split into words and which stopwords are ignored.",
        )  # fmt: skip
        options = stopword_variants(language or "en")
        if st.session_state.get("target_stopwords", options[0]) not in options:
            st.session_state["target_stopwords"] = options[0]
        stopwords = forms.pick(
            "Stopwords", {option: STOPWORDS[option] for option in options}, key="target_stopwords",
            help="Words that are not counted. The French and Chinese lists contain question words (pourquoi, 为什么), "
            "which you can choose to count.",
        )  # fmt: skip
        return language or "", stopwords


def rule(found: Recommendation, request: AdviceRequest, target: Profiled, known: Answer) -> None:
    """The published rule in words, with the figures it rests on, how the measurement relates to it, and its limits."""
    outside = not found.by_rule
    title, icon, colour = OUTSIDE if outside else LEVELS[found.level]
    low, high = found.interval
    with st.container(border=True):
        st.markdown(f"**:{colour}[:material/{icon}:] Published rule: {title}**")
        if known.rule:
            st.markdown(md(known.rule))
        st.markdown(md(found.advice))
        tables.figures(
            ("Mean CW", f"{found.mean_cw:.2f}", frame.DEFINITIONS["cw"]),
            ("95% interval", f"{low:.2f} to {high:.2f}", frame.DEFINITIONS["interval"]),
            ("Target queries", number(found.n_queries)),
        )
        st.markdown(_why(found, target.profile, outside))
        st.markdown(md(found.weighting))
        st.caption("**Limits of the rule**  \n" + "  \n".join(f"• {md(caveat)}" for caveat in found.caveats))
        against = [work.disagreement for work in prior_work() if work.on == "decide"]
        st.caption("**Other work disagrees**  \n" + "  \n".join(f"• {text}" for text in against))
    forms.command(command(request, target, rule=True))


def command(request: AdviceRequest, target: Profiled | None, *, rule: bool = False) -> str:
    """Return the command that gives the same: ``decide``, or ``cw recommend`` for the published rule."""
    benchmark, _, split = (target.benchmark if target else "").partition(":")
    query_set = target.query_set if target else ""
    given: dict[str, Any] = {
        "file": "queries.txt" if target is not None and not (target.query_set or benchmark) else None,
        "benchmark": benchmark,
        "split": split,
        "domain": None if request.domain == "ood" else request.domain,
        "task": request.task,
        "corpus": request.corpus,
        "language": None if target is None or target.language == "en" else target.language,
        "stopwords": None if target is None or target.stopwords == "standard" else target.stopwords,
    }
    return commands.line("cw", "recommend", query_set, **given) if rule else commands.line("decide", query_set, **given)


def _why(found: Recommendation, profile: CwProfile, outside: bool) -> str:
    position = {
        "avoid": "is below 7, the lower published threshold",
        "test": "is between 7 and 10, the published thresholds",
        "recommend": "is above 10, the upper published threshold",
    }[found.level]
    if outside:
        return (
            f"**The published rule alone** would say “{found.level}” because the mean {position}, but it was derived "
            "from other tasks."
        )
    return (
        f"**Why:** the mean {position}. {profile.below:.0%} of the queries are below 7, "
        f"{profile.between:.0%} between, {profile.above:.0%} above 10."
    )


def distribution(target: Profiled) -> None:
    """Histogram of the target queries with the published lines, and how their words were counted."""
    language = language_of(target.language)
    profile = target.profile
    charts.show(
        cw_histogram({target.name: profile.histogram}),
        key="cw",
        alt=f"Distribution of content words over {profile.n} queries: mean {profile.mean:.2f}, "
        f"median {profile.median:.0f}, from {profile.minimum} to {profile.maximum}.",
    )
    st.caption(
        f"Half of the queries of {md(target.name)} have between {profile.lower_quartile:.0f} and "
        f"{profile.upper_quartile:.0f} content words. Dashed lines: the published thresholds 7 and 10.  \n"
        f"{md(language.name)}: {md(language.tokenizer)}. Stopwords ({md(target.stopwords)}): {md(language.stopwords)}."
    )


def similar(recommendation: Recommendation) -> None:
    """What happened on the published datasets most like the task."""
    if not recommendation.similar:
        return
    n = len(recommendation.similar)
    st.subheader(f"Results on the {n} published datasets most similar to yours", anchor=False)
    rows = [(s, retriever, gains) for s in recommendation.similar for retriever, gains in s.gains.items()]
    per_docs = sorted(rows[0][2])
    tables.show(
        {
            "Dataset": [s.dataset for s, _, _ in rows],
            "Task type": [KINDS[s.kind] for s, _, _ in rows],
            "CW": [s.cw for s, _, _ in rows],
            "Retriever": [retriever for _, retriever, _ in rows],
            **{f"Q/Doc {m}": [points(gains[m]) for _, _, gains in rows] for m in per_docs},
        },
        alt="Printed gains of diverse queries over one query per document on the published datasets most similar "
        "to the task",
        digits={"CW": 2},
    )
    st.caption(
        "Gain in NDCG@10 points over one query per document, as printed in the paper. Datasets are chosen by task "
        "type, then by CW; all are in English, with queries written by GPT-4o-mini."
    )


def prior() -> None:
    """What a new dataset lets expect, by design and loss."""
    st.subheader("A new dataset, before anything is measured on it", anchor=False)
    rows = priors()
    tables.show(
        {
            "Diverse queries minus": [MINUS[p.comparison] for p in rows],
            "Held equal": [p.design for p in rows],
            "Loss": [p.loss for p in rows],
            "Q/Doc": [p.per_doc for p in rows],
            "Points": [points(p.points) for p in rows],
            "95% prediction interval": [interval((p.low, p.high), sign=True) for p in rows],
            "Probability of a gain": [f"{p.probability:.0%}" for p in rows],
            "Datasets (published)": [f"{p.datasets} ({p.published})" for p in rows],
            "Held, left out": [f"{p.covered:.0%}" for p in rows],
        },
        alt="Expected differences in NDCG@10 points on a new dataset, by design and loss, with prediction intervals",
        about={"Held, left out": "How often the interval held for a dataset that was left out of its estimate."},
    )
    st.caption(
        "The paper's differences and those of its reproduction here, out of domain, in English. The paper's trainings "
        "take more steps with more queries."
    )
    forms.command(commands.line("principle", "prior"))


def expected(recommendation: Recommendation) -> None:
    """The published line, and where these queries lie on it; nothing of it outside its evidence."""
    if not recommendation.expected:
        return
    st.subheader("Prediction from the published regression line", anchor=False)
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
    with st.expander("Expected differences at this CW", icon=":material/table_chart:"):
        tables.show(
            {
                "Comparison": [principle.COMPARISONS.get(e.comparison, e.comparison) for e in recommendation.expected],
                "Q/Doc": [e.per_doc for e in recommendation.expected],
                "Points": [points(e.points) for e in recommendation.expected],
                "95% prediction interval": [interval((e.low, e.high), sign=True) for e in recommendation.expected],
                "Probability of a gain": [f"{e.probability:.0%}" for e in recommendation.expected],
                "Datasets": [e.n_datasets for e in recommendation.expected],
            },
            alt="Expected differences in NDCG@10 points at this mean CW, with prediction intervals",
        )
        st.caption(
            "Difference in NDCG@10 points, from the line through the dataset means. The interval is for one new "
            "dataset, so it includes the variation between datasets."
        )
