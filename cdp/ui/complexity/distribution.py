"""The distribution of content words: of the target queries, beside other sets, and language by language."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.charts.decide import cw_cumulative, cw_histogram
from cdp.complexity import language_of
from cdp.services import benchmarks, queries
from cdp.services import complexity as service
from cdp.services.complexity import Profiled
from cdp.ui.queries import incomplete
from cdp.ui.shell import charts, frame, paper_notes, project, state, tables
from cdp.ui.shell.text import md


def heading() -> None:
    """The title of the part on the distribution."""
    st.subheader("Content words per query", anchor=False, help=frame.definition("cw"))


def compared(workspace: Workspace, target: Profiled) -> list[Profiled]:
    """Other query sets and benchmarks to lay over the target queries, each counted in its own language."""
    own = project.scope(workspace)
    stored = own.keep("benchmark", benchmarks.list_benchmarks(workspace))
    items = {f"benchmark:{b.name}": f"{b.name} (benchmark)" for b in stored}
    sets = own.keep("query_set", queries.list_query_sets(workspace))
    items |= {f"set:{q.id}": incomplete.name(workspace, q) for q in sets if q.n_queries}
    chosen = state.choose_many(
        "Compare with", items, "with", most=7, placeholder="Query sets and benchmarks to compare"
    )
    others = []
    for key in chosen:
        kind, _, name = key.partition(":")
        with frame.guarded():
            if kind == "benchmark":
                others.append(service.profile_benchmark(workspace, name, language=""))
            else:
                others.append(service.profile_query_set(workspace, name))
    return [other for other in others if other.name != target.name]


def distribution(target: Profiled, others: Sequence[Profiled]) -> None:
    """Histogram and cumulative share of all sets, with the published lines."""
    series = {p.name: p.profile.histogram for p in (target, *others)}
    profile = target.profile
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**Distribution**")
        charts.show(
            cw_histogram(series),
            key="cw",
            alt=f"Distribution of content words over {profile.n} queries: mean {profile.mean:.2f}, "
            f"median {profile.median:.0f}, from {profile.minimum} to {profile.maximum}.",
        )
    with right:
        st.markdown("**Cumulative share**")
        charts.show(
            cw_cumulative(series),
            key="cw_cumulative",
            alt=f"Cumulative share of queries by content words: {profile.below:.0%} below 7, "
            f"{1 - profile.above:.0%} up to 10.",
        )
    st.caption(
        f"Half of the queries of {md(target.name)} have between {profile.lower_quartile:.0f} and "
        f"{profile.upper_quartile:.0f} content words. Dashed lines: the published thresholds 7 and 10."
    )


def by_language(target: Profiled, others: Sequence[Profiled]) -> None:
    """Every set with its language and how its words were counted, and what question words change."""
    rows = sorted((target, *others), key=lambda p: (language_of(p.language).name, p.name))
    several = len({p.language for p in rows}) > 1
    with st.expander(
        "By language" if several else "How words were counted",
        expanded=several or target.language != "en",
        icon=":material/translate:",
    ):
        ranges = [service.published_range(p.language) for p in rows]
        tables.show(
            {
                "Language": [language_of(p.language).name for p in rows],
                "Source": [p.name for p in rows],
                "Queries": [p.profile.n for p in rows],
                "Mean CW": [_mean(p) for p in rows],
                "Below 7": [f"{p.profile.below:.0%}" for p in rows],
                "Above 10": [f"{p.profile.above:.0%}" for p in rows],
                "Published range": ["–" if r is None else f"{r[0]} to {r[1]}" for r in ranges],
                "Tokenizer": [language_of(p.language).tokenizer for p in rows],
                "Stopwords": [f"{p.stopwords}: {language_of(p.language).stopwords}" for p in rows],
            },
            alt="Content words by language, with tokenizer and stopword list",
            config={
                "Published range": st.column_config.TextColumn(
                    help="The lowest and highest CW that the paper reports for MIRACL's training queries."
                )
            },
        )
        if any(p.language == "en" for p in rows):
            paper_notes.beside("cw-english")
        if several:
            st.caption(
                "Counts are not comparable across languages: words carry more information in some languages than in "
                "others, and the thresholds 7 and 10 come from English queries."
            )
    for profiled in rows:
        _question_words(profiled)


def _mean(profiled: Profiled) -> str:
    low, high = profiled.profile.interval
    return f"{profiled.profile.mean:.2f}  [{low:.2f}, {high:.2f}]"


def _question_words(profiled: Profiled) -> None:
    """Both counts of the same queries, where the language's question words are set apart."""
    effect = service.question_words(profiled)
    if effect is None:
        return
    language = language_of(profiled.language).name
    st.markdown(f"**Effect of question words: {md(profiled.name)} ({language})**")
    low, high = effect.interval
    tables.figures(
        ("Standard list", f"{effect.standard.mean:.2f}"),
        ("Question words counted", f"{effect.kept.mean:.2f}"),
        ("Difference", f"+{effect.difference:.2f}", f"95% interval {low:.2f} to {high:.2f}"),
        ("Queries affected", f"{effect.changed:.0%}"),
        ("Still below 7", f"{effect.kept.below:.0%}"),
    )
    charts.show(
        cw_histogram({"standard list": effect.standard.histogram, "question words counted": effect.kept.histogram}),
        key=f"question_words_{profiled.name}",
        alt=f"Content words of {profiled.name} with and without question words among the stopwords",
        caption=f"The paper suspects that its result on {language} comes from question words in the stopword list.",
    )
