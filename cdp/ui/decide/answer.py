"""The answer on the Decide page: headline, badges, options; the test's button, plan, progress; Home's sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import streamlit as st

from cdp.base.condition import DIVERSE
from cdp.base.text import capital, condition_name
from cdp.base.workspace import Workspace, now
from cdp.charts.answer_page import answer_page
from cdp.charts.results import GainPoint, gains
from cdp.complexity import language_of
from cdp.principle import Decision, card
from cdp.principle.decide import ELSEWHERE, NO_EVIDENCE, RETRIEVER, ArmDifference
from cdp.principle.evidence import MODEL, PEOPLE, TEMPLATE, Arm, Expectation
from cdp.retrievers import PRESETS
from cdp.services import commands, corpora, endpoints, jobs, queries, studies, trial
from cdp.services import decide as service
from cdp.studies import advice, own_test
from cdp.studies.config import GRID, TrialConfig
from cdp.studies.own_test import Trial
from cdp.ui import jobs as job_views
from cdp.ui.benchmarks import judging
from cdp.ui.decide.rule import AdviceRequest
from cdp.ui.queries import writing
from cdp.ui.shell import charts, forms, frame, state, tables
from cdp.ui.shell.tables import count, duration, md, points

# In the address: the test is being planned.
OPEN = "test"
JUDGES = {own_test.HUMAN: "human queries", own_test.TEMPLATE: "template queries"}
# The limits of a test: labels where a setting's name says too little.
LIMITS = {"queries": "Judged queries", "seeds": "", "minutes": "At most (minutes)", "spend": "At most (US dollars)"}

SCORE = "NDCG@10 (%)"
LABEL, JUDGE = "Test it on my data", "Have your query log judged"


def test_asked() -> bool:
    """Whether the address asks for the test."""
    return st.query_params.get(OPEN) == "1"


def test_button(workspace: Workspace, known: Decision, corpus: str, *, primary: bool) -> None:
    """The button that opens the test's form; none while it is open or a test runs.

    Where templates judged the queries, a link to better judgments.
    """
    if not corpus:
        frame.page_button("documents", "Add documents to test it", "decide_corpus", icon="add")
    elif not test_asked() and trial.running(workspace, corpus) is None:
        recorded = known.basis is not None and known.basis.recorded
        retriever, label = "", LABEL
        if known.readers:
            retriever = known.readers[0]
            label = f"Test {retriever}"
        elif known.measured:
            label = "Run it here" if recorded else "Test again"

        kind = "primary" if primary else "secondary"
        if st.button(label, type=kind, icon=":material/experiment:", key="decide_test"):
            _open_test(known, retriever)

    if known.measured and known.basis is not None and known.basis.judged_by == TEMPLATE:
        frame.link("benchmarks", JUDGE, icon=":material/gavel:", tab="judge", corpus=corpus)


def _open_test(known: Decision, retriever: str) -> None:
    """Open the form of the test with the retriever and sizes that would settle the answer. Does not return."""
    if known.basis is not None and known.basis.recorded and known.basis.retriever:
        retriever = known.basis.retriever
    if retriever:
        st.session_state["trial_retriever"] = retriever

    for name in ("queries", "seeds"):
        needed = getattr(known.settling, name, 0)
        if needed:
            st.session_state[f"trial_{name}"] = needed

    state.write(OPEN, "1")
    st.rerun()


def test_panel(workspace: Workspace, corpus: str, benchmark: str) -> None:
    """The running test, or the form of a new one if the address asks for it, or why the last one failed."""
    if not corpus:
        return

    job = trial.running(workspace, corpus)
    if job is not None:
        with st.container(border=True, key="trial"):
            job_views.live(_progress, True, workspace, job.id, str(job.state))
    elif test_asked():
        with st.container(border=True, key="trial"), frame.guarded():
            _plan(workspace, corpus, benchmark)
    else:
        _failed(workspace, corpus)


def _plan(workspace: Workspace, corpus: str, benchmark: str) -> None:
    unit = queries.unit(workspace, [corpus])
    st.markdown(f"**{LABEL}**")
    st.caption(
        f"Writes diverse queries and paraphrases for a part of the {unit}s, and trains on one and on several per "
        f"{unit}. Judged queries measure the gain over BM25, over each untrained retriever at hand, and over their "
        "fusions."
    )

    sets = queries.list_query_sets(workspace, corpus=corpus)
    chosen = writing.choose_generator(workspace, sets, writing.FORM, endpoints.writer(workspace, corpus))
    sizes = choose_sizes(TrialConfig, "trial", costs=chosen.costs)
    about = {"corpus": corpus, "benchmark": benchmark, "generator": chosen.name}
    config = TrialConfig.from_dict({**about, **chosen.settings, **sizes})
    planned = trial.plan(workspace, config, chosen.api_key)
    _costs(planned)

    if planned.judged.kind == own_test.TEMPLATE:
        frame.link("benchmarks", JUDGE, icon=":material/gavel:", tab="judge", corpus=corpus)
    if planned.problem:
        config = _choice(planned)

    with st.container(horizontal=True):
        if forms.button("Start the test", type="primary", icon=":material/play_arrow:", key="trial_start"):
            with st.spinner(planned.starting):
                trial.start(workspace, config, api_key=chosen.api_key)
            state.write(OPEN, None)
            st.rerun()
        if st.button("Not now", type="tertiary", key="trial_close"):
            state.write(OPEN, None)
            st.rerun()

    forms.command(trial.command(planned.config))


def choose_sizes(kind: type[TrialConfig], key: str, *, costs: bool) -> dict[str, Any]:
    """Ask for the retriever, the queries per document and the limits of a test; 0 means the default.

    What is spent is asked for where it ``costs`` something. ``key`` begins the widgets' keys.
    """
    presets = {preset.name: preset.title for preset in PRESETS.values()}

    values: dict[str, Any] = {}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        values["retriever"] = forms.pick(
            "Retriever to train", {"": "The best at hand", **presets}, width=260, key=f"{key}_retriever",
            help="The best at hand scores highest untrained on the dev queries, of those that the time allows. "
            "All others at hand are evaluated untrained beside it.",
        )  # fmt: skip
        values["per_doc"] = forms.pick(
            "Queries per document",
            {(5,): "1 and 5", GRID: "1, 2, 5 and 10"},
            width=180,
            key=f"{key}_per_doc",
            help="The grid takes more trainings, on the first queries of one set of ten.",
        )

        for name, label in LIMITS.items():
            if name == "spend" and not costs:
                continue
            with st.container(width=160):
                value = forms.widget(kind, name, key=key, label=label)
            if value:
                values[name] = value

    return values


def _costs(planned: Trial) -> None:
    frame.remarks(filter(None, [planned.judged.splits.shared_note]), "warning")

    plan, judged = planned.plan, planned.judged
    by = judged.judge or JUDGES.get(judged.kind) or judged.splits.of or judged.benchmark
    requests = ("LLM requests", f"{plan.requests:,}") if plan.requests else None
    tables.figures(
        ("Time", f"about {duration(plan.seconds)}"),
        ("Price", planned.price),
        requests,
        (f"{planned.unit.capitalize()}s", f"{planned.documents:,} of {planned.documents_there:,}"),
        (
            "Trainings",
            plan.trainings,
            f"Of {planned.trained}. {planned.config.numbers.capitalize()} diverse queries and paraphrases per "
            f"{planned.unit}, {count(planned.config.seeds, 'seed')}: on the same documents, and on as many pairs.",
        ),
        ("Judged by", md(by, 40)),
    )

    if not plan.measured:
        frame.remarks(["The time is a guess until something was trained on this machine."])
    frame.remarks(planned.notes)


def _choice(planned: Trial) -> TrialConfig:
    """Ask whether a test beyond its limits runs as it is or on fewer documents."""
    st.warning(md(planned.problem), icon=":material/hourglass_top:")
    ways = {}
    if planned.fitting:
        ways["fewer"] = f"{planned.fitting:,} {planned.unit}s, within the limit"
    ways["all"] = f"{planned.documents:,} {planned.unit}s, as it is"

    chosen = st.radio("Test on", list(ways), format_func=ways.__getitem__, key="trial_size", horizontal=True)
    if chosen == "fewer":
        return planned.config.replace(documents=planned.fitting)

    return trial.allowing(planned.config, planned.plan.seconds, planned.cost)


def _progress(workspace: Workspace, job_id: str, drawn: str) -> None:
    """The test's progress. When its state changes, the whole page is drawn again and shows the answer."""
    with frame.guarded():
        view = jobs.show(workspace, job_id, with_size=False)
        if not view.active or str(view.state) != drawn:
            job_views.draw_again()
        shown = trial.at_work(workspace, view)
        st.progress(shown.fraction, text=f"**Test running** · {md(job_views.doing(shown))}")
        st.caption("It goes on if you close the page. The answer appears here when it ends.")
        frame.link("jobs", "Open its job", job=job_id)


def _failed(workspace: Workspace, corpus: str) -> None:
    """Why the newest test of the corpus has no answer, if it failed."""
    tests = (view for view in studies.list_studies(workspace) if view.config.get("corpus") == corpus)
    latest = next(tests, None)
    if latest is None or str(latest.state) not in ("failed", "lost"):
        return

    what, next_step = trial.trouble(workspace, latest)
    with st.container(border=True, key="trial_trouble"):
        st.markdown(f":material/info: **The last test could not answer.** {md(what)}  \n{md(next_step)}")
        frame.link("jobs", "Open its job", job=latest.id)


def test_summary(workspace: Workspace, corpus: str) -> None:
    """For other pages: the test of a corpus in one line, running or to be started."""
    job = trial.running(workspace, corpus)
    if job is not None:
        frame.link("decide", f"Test running: {job.fraction:.0%} done", corpus=corpus)
        return

    with st.container(horizontal=True):
        frame.link("decide", LABEL, icon=":material/experiment:", corpus=corpus, **{OPEN: "1"})
        if not trial.has_judged(workspace, corpus):
            frame.link("benchmarks", JUDGE, icon=":material/gavel:", tab="judge", corpus=corpus)


# How the badges look: people's judgments are the strongest.
LOOKS = {
    PEOPLE: ("how_to_reg", "green"),
    MODEL: ("smart_toy", "blue"),
    TEMPLATE: ("construction", "orange"),
    ELSEWHERE: ("menu_book", "violet"),
    NO_EVIDENCE: ("help", "gray"),
}

# Prices of an option that asks no model, or an unknown one; a table of nothing else says nothing.
PLAIN = {"free", "not known"}


def answer(workspace: Workspace, known: Decision, request: AdviceRequest) -> None:
    """The card: headline with badges, three verdicts, one caveat, one button; all else is folded away below."""
    with st.container(border=True, key="decision"):
        if known.measured or known.choice.kind == RETRIEVER:
            st.markdown(" ".join(_badges(known)))
            st.markdown(f"## {md(known.headline)}")
            st.caption(md(known.rests_on))
        else:
            _untested(known, request)

        for question, verdict in card.lines(known):
            st.markdown(f"**{question}** {md(verdict)}")

        if known.measured:
            frame.remarks(known.limits[:1], icon="warning")

        step = advice.next_step(workspace, known, request.corpus)
        with st.container(horizontal=True, vertical_alignment="center"):
            icon = ":material/model_training:"
            if step and st.button(step.label, type="primary", icon=icon, key="decide_next", help=md(step.why)):
                hand_over(step)
            test_button(workspace, known, request.corpus, primary=step is None)
            if known.measured and known.basis is not None:
                study = known.basis.study
                judging.after(workspace, known.basis.benchmark, [study] if known.basis.unjudged > 0 else [])
                frame.link("evidence", "The study", study=study, tab="studies")

        _kept(workspace, known)

    if known.measured:
        _all_findings(known)


def _all_findings(known: Decision) -> None:
    """Behind a fold: all limits but the first, what would settle the answer, and the other differences."""
    more = known.limits[1:]
    if not (more or known.settling or known.findings):
        return

    with st.expander("All limits and comparisons", icon=":material/unfold_more:", key="decide_all"):
        frame.remarks(more, icon="warning")
        if known.settling:
            frame.remarks([known.settling.text], icon="lightbulb")
        st.markdown("\n".join(f"- {md(text)}" for text in known.findings))


def _untested(known: Decision, request: AdviceRequest) -> None:
    """The card before a test: facts of the queries; what other datasets say is named as such."""
    st.markdown("## Not tested on your documents yet.")
    target = request.target
    if target is not None:
        described = (
            f"Your queries: {md(target.name, 60)}, {md(language_of(target.language).name)}, {target.profile.mean:.1f} "
            "content words on average"
        )
        st.markdown(" · ".join(filter(None, [described, md(request.task or target.task)])) + ".")

    if known.basis is not None:
        st.caption(f"Other datasets: {md(known.headline)}")
    frame.remarks(known.limits, icon="info")


def _kept(workspace: Workspace, known: Decision) -> None:
    if not known.measured or known.basis is None:
        return

    study = known.basis.study
    about = studies.kept(workspace, study)
    if about is None:
        return

    option = str(about["option"])
    st.caption(f":material/inventory_2: The model of **{md(option)}** is kept.")

    with st.container(horizontal=True):
        frame.link("launch", "Evaluate it", icon=":material/speed:", tab="evaluation", judged=study)
        frame.link("search", "Try it", icon=":material/search:", search_with=["bm25", study])

    forms.command(
        commands.line("models", "export", study, "FOLDER"),
        commands.line("serve", study, corpus=known.basis.corpus),
        key="command-kept",
    )


def _badges(known: Decision) -> Iterator[str]:
    kind = known.badge
    if known.measured and known.basis is not None:
        kind = known.basis.judged_by

    icon, colour = LOOKS.get(kind, LOOKS[NO_EVIDENCE])
    yield f":{colour}-badge[:material/{icon}: {md(capital(known.badge))}]"
    if known.basis is not None and known.basis.written_by:
        yield f":gray-badge[:material/edit: Training queries by {md(known.basis.written_by, 60)}]"


def hand_over(step: advice.Step) -> None:
    """Open the page of a step with exactly its settings. Does not return."""
    # Settings of an earlier visit must not stand where the answer says something else.
    for name in list(st.session_state):
        if str(name).startswith("train_"):
            del st.session_state[name]
    for name, value in step.settings.items():
        st.session_state[f"train_{name}"] = value
    frame.go(step.page, **dict(step.params))


def home_line(workspace: Workspace, corpus: str) -> bool:
    """For Home: the answer for a corpus in a sentence, or the test that runs; return whether there is an answer."""
    known = service.decide(workspace, corpus=corpus)
    if not known.measured and trial.running(workspace, corpus) is None:
        return False
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="home_decision"):
        if known.measured:
            st.markdown(f"**{md(known.headline)}**  \n{' '.join(_badges(known))}", width="stretch")
            frame.link("decide", "Decide", corpus=corpus)
        else:
            test_summary(workspace, corpus)
    return known.measured


def options(workspace: Workspace, known: Decision, corpus: str) -> None:
    """Every option in a table, and its difference to the choice as a chart."""
    rows, writes = advice.list_options(workspace, known, corpus)
    if not rows:
        return

    if known.measured:
        names = {manifest.id: manifest.name for manifest in corpora.list_corpora(workspace)}
        page = partial(answer_page, known, rows, when=now(), task=names.get(corpus, ""))
        forms.download("Answer as a page", page, "answer.html", key="decide_page", mime="text/html", type="tertiary")

    reference = advice.reference(known)
    against = f"Points over {reference.name}" if reference else "Difference"
    heads = ("Option", SCORE, against, "Price", "Training")
    cells = [dict(zip(heads, row.cells, strict=True)) for row in rows]
    for row, line in zip(rows, cells, strict=True):
        if row.arm and row.arm is known.chosen:
            line[against] = line[against] or "the answer"
    columns = tables.by_title(cells)

    if known.measured or set(columns["Price"]) - PLAIN:
        tables.show(
            tables.filled(columns),
            height="content",
            alt="Every option with its score, its difference to the choice, price and training time",
            digits={SCORE: 2},
            about={
                SCORE: frame.DEFINITIONS["ndcg"],
                against: "NDCG@10 points. Trainings at equal pairs answer another question and have none.",
                "Price": f"Of queries for all documents, by {writes}.",
                "Training": "One training, as measured.",
            },
            width={SCORE: 95, "Option": 230, against: 175},  # together as wide as a tablet's screen
            pinned="Option",
        )

    _chart(known, rows, reference)


def _chart(known: Decision, rows: Sequence[advice.Option], reference: Arm | None) -> None:
    """Measured differences to the choice, else those that other datasets lead to expect."""
    over = [row.over for row in rows if row.over]
    if over and reference:
        shown = [_point(difference.option.name, difference) for difference in over]
        caption, beside = "Bars: simultaneous 95% intervals.", reference.name
    elif known.evidence and known.evidence.expected:
        shown = [_point(condition_name("", DIVERSE, e.per_doc), e) for e in known.evidence.expected]
        caption = f"{known.evidence.basis.name}, at equal documents. Bars: 95% of new datasets."
        beside = condition_name("", DIVERSE, 1)
    else:
        return

    described = "; ".join(f"{point.name} {points(point.points, 1)}" for point in shown)
    charts.show(
        gains(shown, x=f"points over {beside}", digits=1),
        key="decide_differences",
        alt=f"NDCG@10 points over {beside}: {described}",
        caption=caption,
    )


def _point(name: str, difference: ArmDifference | Expectation) -> GainPoint:
    low, high = difference.low, difference.high
    return GainPoint(name, difference.points, low, high, low > 0 or high < 0)
