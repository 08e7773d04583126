"""Making harder and easier benchmarks of a stored one: what would come of it is shown before it is made."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import benchmarks, commands
from cdp.services import derived_benchmarks as derived
from cdp.services.derived_benchmarks import Part, Preview
from cdp.ui.shell import access, command, forms, frame, imports, project, tables
from cdp.ui.shell.text import count

CONJUNCTIONS = "conjunctions"
WAYS = {
    derived.CW: "Content words",
    derived.HOPS: "Hops",
    derived.RELEVANT: "Relevant documents",
    CONJUNCTIONS: "Conjunctions",
}
EXPLAINED = {
    derived.CW: "A benchmark for each range of content words (CW) of the queries; three of about the same size without "
    "bounds.",
    derived.HOPS: "A benchmark for each number of hops that the ids of the queries tell, as MuSiQue's do (3hop1__…).",
    derived.RELEVANT: "A benchmark for each number of documents that are relevant for a query.",
    CONJUNCTIONS: "Queries joined by “and”; relevant is what is relevant for any of them. Made by program: nobody "
    "asked them in this form.",
}


@dataclass(frozen=True)
class _Chosen:
    """What the form says."""

    name: str
    split: str
    way: str
    bounds: str = ""
    fewest: int = derived.FEWEST
    of: int = 2
    queries: int = derived.CONJUNCTIONS


def form(workspace: Workspace) -> None:
    """Pick a benchmark and a way, look at what would come of it, make it."""
    here = project.keep(workspace, "benchmark", benchmarks.list_benchmarks(workspace))
    stored = {b.name: b for b in here if not b.problem}
    if not stored:
        return
    with st.expander("Derive harder or easier benchmarks", icon=":material/call_split:", key="derive"):
        st.caption("All documents stay, so scores on the parts can be compared with the whole.")
        with st.container(horizontal=True):
            name = st.selectbox("Benchmark", list(stored), key="derive_benchmark")
            split = st.selectbox("Split", stored[name].splits, key=f"derive_split_{name}")
        way = forms.segments("Divide by", WAYS, key="derive_way")
        st.caption(EXPLAINED[way])
        chosen = _conjunctions(name, split) if way == CONJUNCTIONS else _parts(name, split, way)
        with st.container(horizontal=True):
            previewed = st.button("Preview", icon=":material/visibility:", key="derive_preview")
            pressed = access.button("Create benchmarks", icon=":material/call_split:", key="derive_make")
        command.show(_command(chosen))
        if previewed:
            with frame.guarded():
                _show(*_preview(workspace, chosen))
        if pressed:
            with frame.guarded(), st.spinner("Writing the benchmarks"):
                made, left_out = _make(workspace, chosen)
                imports.remember(_made(made), [*(_line(part) for part in made), *_left_out(left_out)])
                st.rerun()


def _parts(name: str, split: str, way: str) -> _Chosen:
    with st.container(horizontal=True):
        bounds = st.text_input(
            "Parts begin at",
            key=f"derive_bounds_{way}",
            placeholder="6 9",
            help="6 9 makes the parts below 6, 6 to 8, and 9 or more.",
            max_chars=80,
        )
        fewest = st.number_input(
            "Fewest queries of a part",
            min_value=1,
            value=derived.FEWEST,
            key="derive_fewest",
            help="Smaller parts are left out: their means would say little.",
        )
    return _Chosen(name, split, way, bounds=bounds, fewest=int(fewest))


def _conjunctions(name: str, split: str) -> _Chosen:
    with st.container(horizontal=True):
        of = st.number_input("Queries joined", min_value=2, max_value=5, value=2, key="derive_of")
        queries = st.number_input(
            "Conjunctions at most", min_value=1, max_value=10_000, value=derived.CONJUNCTIONS, key="derive_queries"
        )
    return _Chosen(name, split, CONJUNCTIONS, of=int(of), queries=int(queries))


def _preview(workspace: Workspace, c: _Chosen) -> tuple[list[Preview], int]:
    if c.way == CONJUNCTIONS:
        one, left_out = derived.preview_conjunctions(workspace, c.name, of=c.of, queries=c.queries, split=c.split)
        return [one], left_out
    edges = derived.edges_of(c.bounds)
    return derived.preview_parts(workspace, c.name, c.way, split=c.split, edges=edges, fewest=c.fewest)


def _make(workspace: Workspace, c: _Chosen) -> tuple[list[Part], int]:
    if c.way == CONJUNCTIONS:
        one, left_out = derived.derive_conjunctions(workspace, c.name, of=c.of, queries=c.queries, split=c.split)
        return [one], left_out
    edges = derived.edges_of(c.bounds)
    return derived.derive_parts(workspace, c.name, c.way, split=c.split, edges=edges, fewest=c.fewest)


def _show(previews: list[Preview], left_out: int) -> None:
    tables.show(
        {
            "Benchmark": [p.name for p in previews],
            "Queries": [p.n_queries for p in previews],
            "CW": [p.cw for p in previews],
        },
        alt="The benchmarks that would be made, with their queries and content words",
        config={
            "Queries": st.column_config.NumberColumn(format="localized"),
            "CW": st.column_config.NumberColumn(format="%.2f"),
        },
    )
    for note in _left_out(left_out):
        st.caption(note)


def _left_out(left_out: int) -> list[str]:
    return [f"{count(left_out, 'query is', 'queries are')} in none of them."] if left_out else []


def _made(parts: list[Part]) -> str:
    new = sum(not part.existed for part in parts)
    there = len(parts) - new
    return f"{count(new, 'benchmark')} added" + (f", {there} already in the workspace." if there else ".")


def _line(part: Part) -> str:
    return f"{part.info.name}: {count(part.info.n_queries, 'query', 'queries')}"


def _command(c: _Chosen) -> str:
    start = ("benchmarks", "derive", c.name)
    if c.way == CONJUNCTIONS:
        return commands.line(*start, conjunctions=c.of, queries=c.queries, split=c.split)
    bounds = c.bounds.replace(",", " ").split()
    at = ("--at", *bounds) if bounds else ()
    return commands.line(*start, "--by", c.way, *at, fewest=c.fewest, split=c.split)
