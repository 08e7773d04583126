"""The parts of a preview: one method's queries and what can be told of them, the comparison, the cost."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from cdp.base.config import SynthesisConfig
from cdp.base.workspace import Workspace
from cdp.services import job_words
from cdp.services.queries import Preview
from cdp.services.synthesis import dollars
from cdp.ui.queries import costs
from cdp.ui.shell import frame, tables
from cdp.ui.shell.text import md

SAME = 0.0005
"""Self-BLEU that differs by less shows as the same number."""

OVERLAP_HELP = (
    "Pairs of queries that share at least 35% of their content words. This is only a hint from the wording; the "
    "paraphrase ratio (CE) is measured by a cross-encoder over whole query sets."
)


def comparison(previews: Mapping[str, Preview], titles: Mapping[str, str]) -> None:
    """The methods in order of Self-BLEU, in one sentence."""
    self_bleu = {name: p.self_bleu for name, p in previews.items() if p.self_bleu is not None}
    if len(self_bleu) < 2:
        if not self_bleu:
            st.caption("Self-BLEU needs at least two queries.")
        return
    ordered = sorted(self_bleu, key=lambda name: self_bleu[name])
    first, rest = ordered[0], ordered[1:]
    values = ", ".join(f"{self_bleu[name]:.3f} for {md(titles.get(name, name))}" for name in rest)
    if self_bleu[rest[-1]] - self_bleu[first] < SAME:
        st.markdown(
            f"#### For this document, the methods are equally diverse\n"
            f"Self-BLEU {self_bleu[first]:.3f} for each of them."
        )
        return
    degree = "less" if len(rest) == 1 else "least"
    st.markdown(
        f"#### For this document, the {md(titles.get(first, first))} queries repeat each other {degree}\nSelf-BLEU "
        f"{self_bleu[first]:.3f} against {values}; lower is more diverse."
    )


def draw(preview: Preview, title: str) -> None:
    """One method's queries, each with its CW and format, and what they look like together."""
    st.markdown(f"#### {md(title)}", help=frame.DEFINITIONS.get(preview.method))
    cw = "–" if not preview.cw else f"{sum(preview.cw) / len(preview.cw):.1f}"
    bleu = "–" if preview.self_bleu is None else f"{preview.self_bleu:.3f}"
    tables.figures(
        ("Self-BLEU", bleu, frame.definition("self_bleu")),
        ("Mean CW", cw, frame.definition("cw")),
        ("Formats", len(preview.mix), "The number of different query formats, such as questions and keywords."),
        ("Overlapping pairs", len(preview.overlaps), OVERLAP_HELP) if len(preview.queries) > 1 else None,
    )
    if preview.queries:
        st.markdown("\n".join(_line(preview, index) for index in range(len(preview.queries))))
        st.caption(" · ".join(f"{md(name)} {n}" for name, n in preview.mix.items()))
    elif not preview.error:
        st.caption("The model's answer contained no usable query.")
    if preview.error:
        st.error(f"This method failed on this document: {md(preview.error)}", icon=":material/error:")
        if preview.traceback:
            with st.expander("Traceback", type="compact"):
                st.code(preview.traceback, language=None)
    frame.remarks(preview.problems, "warning")
    for note in dict.fromkeys(note for note in preview.notes if note):
        st.caption(f"Intermediate output: {md(note, 300)}")
    if preview.prompt:
        with st.expander("Prompt", type="compact"):
            st.code(preview.prompt, language=None, wrap_lines=True)


def _line(preview: Preview, index: int) -> str:
    """One query with its CW, its format, and the numbers of those that say much the same."""
    marks = [f"CW\u00a0{preview.cw[index]}", md(preview.formats[index])]
    alike = sorted({i + j - index for i, j, _ in preview.overlaps if index in (i, j)})
    if alike:
        marks.append(f"≈\u00a0{', '.join(str(other + 1) for other in alike)}")
    from_query = f" :small[:gray[from: {md(preview.sources[index], 120)}]]" if preview.sources else ""
    return f"{index + 1}. {md(preview.queries[index])} :small[:gray[{' · '.join(marks)}]]{from_query}"


def cost(workspace: Workspace, previews: Mapping[str, tuple[SynthesisConfig, Preview]]) -> None:
    """What this preview cost, and what the same costs for the whole corpus."""
    estimates = {name: costs.estimated(workspace, config) for name, (config, _) in previews.items()}
    st.markdown("#### Cost of this preview and of the whole corpus")
    tables.show(
        {
            "Method": list(previews),
            "Requests": [preview.usage.get("requests", 0) for _, preview in previews.values()],
            "Input tokens": [preview.usage.get("input_tokens", 0) for _, preview in previews.values()],
            "Output tokens": [preview.usage.get("output_tokens", 0) for _, preview in previews.values()],
            "This preview": [dollars(preview.cost) for _, preview in previews.values()],
            "Whole corpus": [dollars(estimate.cost) for estimate in estimates.values()],
            "Cost as a batch": [dollars(estimate.batch_cost) for estimate in estimates.values()],
            "Time": [
                "–" if estimate.seconds is None else job_words.duration(estimate.seconds)
                for estimate in estimates.values()
            ],
        },
        alt="Cost of the preview and of the whole corpus, by method",
    )
