"""The tab "Preview and write": choice of generator, key field, preview, cost before writing, write button, export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import streamlit as st

from cdp.base import permission
from cdp.base.config import SynthesisConfig
from cdp.base.errors import CdpError, NotFoundError
from cdp.base.records import Document
from cdp.base.workspace import Workspace
from cdp.complexity import content_words
from cdp.corpus import looking
from cdp.llm.prices import dollars
from cdp.services import access, commands, completeness, endpoints, jobs, queries
from cdp.services.corpora import CorpusManifest
from cdp.services.queries import Preview, QuerySet
from cdp.synthesis import pricing
from cdp.synthesis.generators import GENERATORS, GeneratorType
from cdp.synthesis.methods import METHODS, Method
from cdp.ui.shell import forms, frame, state, tables
from cdp.ui.shell.tables import MISSING, count, cut, md, md_marked, number, written

# Of the widgets that ask what writes queries: what was chosen on Queries stands on Decide, too.
FORM = "generate"
# Where a session holds what the workspace remembered when a form was drawn last.
_SEEN = "endpoint_seen"
OWN = "own"
EXAMPLE_PROMPT = """Write {M} search queries that this document answers, as a numbered list.

<document>
{document}
</document>

1."""
# The fields that are asked for here and in no general form.
METHOD_SETTINGS = ("prompt", "source", "ranker", "teachers")
ASSUMED = "assumed for a typical query"
MAX_MATCHES = 50
# Self-BLEU that differs by less shows as the same number.
SAME = 0.0005


@dataclass(frozen=True)
class Chosen:
    """A generator with its settings (fields of SynthesisConfig).

    ``costs`` is whether using it calls an endpoint, ``slow`` whether it is only asked when a button is pressed.
    """

    name: str
    settings: dict[str, Any]
    api_key: str = ""

    @property
    def costs(self) -> bool:
        return GENERATORS[self.name].endpoint

    @property
    def slow(self) -> bool:
        return GENERATORS[self.name].is_llm


def choose_generator(
    workspace: Workspace, sets: list[QuerySet], key: str, first: Mapping[str, Any] | None = None, *,
    llm_only: bool = False,
) -> Chosen:  # fmt: skip
    """Ask for a generator. Recorded answers are offered where the corpus has some, and then come first.

    ``first`` are settings to begin with (fields of SynthesisConfig), before what the workspace remembers. ``llm_only``
    leaves out what is no LLM. Address, model and key are typed once: all forms show the same.
    """
    known = endpoints.remembered(workspace)
    first = {**known, **{name: value for name, value in (first or {}).items() if value}}

    seen = st.session_state.get(_SEEN)
    if seen not in (None, known):  # typed in another tab meanwhile
        for field in ("base_url", "model"):
            st.session_state.pop(f"{FORM}_{field}", None)
    st.session_state[_SEEN] = known

    titles: dict[str, str] = {}
    about: list[str] = []
    for offered in _offered(sets, llm_only):
        titles[offered.name] = offered.title
        about.append(f"**{offered.title}**: {md(offered.help)}")

    name = forms.segments(
        "Generator", titles, default=first.get("generator"), key=f"{key}_generator", help="  \n".join(about)
    )
    generator = GENERATORS[name]
    label = f"Model (default: {generator.model})"  # of an empty field

    if generator.local:
        return Chosen(name, {"model": forms.widget(SynthesisConfig, "model", key=f"{key}_local", label=label)})
    if not generator.endpoint:
        return Chosen(name, {})

    with st.grid(3, min_column_width=220):
        base_url = forms.widget(SynthesisConfig, "base_url", key=FORM, label="Base URL", value=first.get("base_url"))
        model = forms.widget(SynthesisConfig, "model", key=FORM, label=label, value=first.get("model"))
        api_key = ask_key(str(base_url), FORM)

    if not permission.read_only():
        endpoints.remember(workspace, name, str(base_url), str(model))

    st.session_state[_SEEN] = endpoints.remembered(workspace)
    return Chosen(name, {"base_url": base_url, "model": model}, api_key)


def _offered(sets: Sequence[QuerySet], llm_only: bool) -> list[GeneratorType]:
    """The generators to choose from, recorded answers first where a set of the corpus has some."""
    offered = [GENERATORS[name] for name in GENERATORS.offered]
    if llm_only:
        offered = [generator for generator in offered if generator.is_llm]
    if all(q.generator != "recorded" for q in sets):
        return [generator for generator in offered if generator.name != "recorded"]
    return sorted(offered, key=lambda generator: generator.name != "recorded")


def ask_key(base_url: str, key: str) -> str:
    """Ask for an endpoint's key; empty where none was typed."""
    there = "none"
    with suppress(CdpError):  # no address yet; the request says so
        if access.server_key(base_url):
            there = "server's own key"
        if access.typed_key(base_url):
            there = "typed before"

    typed = forms.secret(
        "API key", key=f"{key}_api_key", placeholder=there, persist_state="session",
        help="Used for requests and passed to the jobs you start; never written to disk. On a dashboard of your own it "
        "is held for this address until the dashboard ends. If empty, the server's own key is used when it belongs to "
        "this URL, otherwise none.",
    )  # fmt: skip

    with suppress(CdpError):
        access.hold_key(base_url, typed)
    return typed


def method_titles(methods: Sequence[Method]) -> dict[str, str]:
    """Names and titles of the methods, with the user's own prompt last."""
    return {**{m.name: m.title for m in methods}, OWN: "Your own prompt"}


def method_extras(names: Sequence[str], methods: Sequence[Method], sets: list[QuerySet], key: str) -> dict[str, Any]:
    """Ask for what the chosen methods need; fields of SynthesisConfig. Says what must be said about a method."""
    chosen = [method for method in methods if method.name in names]
    values: dict[str, Any] = {}
    for note in dict.fromkeys(filter(None, (method.note for method in chosen))):
        st.info(md(note), icon=":material/info:")

    if OWN in names:
        values["prompt"] = st.text_area(
            "Your prompt",
            value=EXAMPLE_PROMPT,
            height=200,
            key=f"{key}_prompt",
            help="Use {document} where the document goes and {M} for the number of queries. The prompt is stored "
            "with the query set, under its hash.",
            persist_state="session",
        )

    if any(method.from_queries for method in chosen):
        complete = {q.id: q.name for q in sets if q.complete and q.method != "reasoning"}
        values["source"] = forms.pick("Query set to reason over", complete, key=f"{key}_source") or ""

    for method in chosen:
        field = {"cropping": "ranker", "ranking": "teachers"}.get(method.generator)
        if field:
            values[field] = forms.widget(SynthesisConfig, field, key=key)

    return {name: value for name, value in values.items() if value}


def cost_before(workspace: Workspace, config: SynthesisConfig, unit: str) -> None:
    """Tokens and price of a job that is about to start."""
    estimate = pricing.estimate(workspace, config)
    if not estimate.requests:
        st.caption(f"{count(estimate.n_documents, unit)}. No LLM is asked, so this is free.")
        return

    margin = f"± {estimate.input_margin:,} (95%), estimated from {count(estimate.sampled, unit)}"
    batch = None
    if estimate.batch_cost not in (None, estimate.cost):
        batch = ("Cost as a batch", dollars(estimate.batch_cost))

    tables.figures(
        ("Requests", number(estimate.requests)),
        ("Input tokens", number(estimate.input_tokens), margin),
        ("Output tokens", f"≈ {number(estimate.output_tokens)}", ASSUMED),
        ("Cost", dollars(estimate.cost)),
        batch,
    )

    if estimate.cost is None:
        st.caption(f"{md(config.endpoint.model_name)} has no price. Write it into `prices.json` in the workspace.")
    elif estimate.price is not None:
        st.caption(f"Prices as of {md(estimate.price.as_of)}. Output tokens are {ASSUMED}.")


def export(workspace: Workspace, query_set: QuerySet) -> None:
    """Download the set in a format of another program."""
    with st.expander("Export", icon=":material/download:", key=f"export_{query_set.id}"):
        formats = queries.export_formats(query_set)
        form = forms.segments("Format", list(formats), key="export_format", persistent=False)
        st.caption(md(formats[form].help))
        if not query_set.complete:
            st.caption(f":material/warning: {md(completeness.check(workspace, query_set).sentence)}")

        suffix = formats[form].suffix
        if "." not in suffix:
            suffix += ".zip"

        forms.download(
            "Download", lambda: queries.download(workspace, query_set.id, form),
            f"{query_set.id}{suffix}", key="export_download",
        )  # fmt: skip
        forms.command(commands.line("queries", "export", query_set.id, format=form))


# Offered at once; the others behind "More".
FIRST, MORE = ("diverse", "paraphrase", OWN), "more"


def _method(methods: Sequence[Method], key: str) -> str:
    """Ask for a method: three side by side, the others in a list behind "More"."""
    titles, about = method_titles(methods), {method.name: method.help for method in methods}
    shown = {name: titles[name] for name in FIRST}
    helped = "  \n".join(f"**{md(titles[name])}**: {md(about[name])}" for name in FIRST if name in about)
    chosen = str(forms.segments("Method", {**shown, MORE: "More"}, default="diverse", key=f"{key}_method", help=helped))
    if chosen != MORE:
        return chosen
    others = {name: title for name, title in titles.items() if name not in FIRST}
    chosen = str(forms.pick("Other method", others, key=f"{key}_other_method"))
    st.caption(md(about[chosen]))
    return chosen


def generate(workspace: Workspace, manifest: CorpusManifest, sets: list[QuerySet], generator: Chosen, key: str) -> None:
    """The form, what it comes to, and the button that starts the job."""
    st.subheader("Write queries for all documents", anchor=False)
    all_methods = list(METHODS.values())
    method = _method(all_methods, key)
    extras = method_extras([method], all_methods, sets, key)

    if method != OWN and METHODS[method].generator:  # a method that asks no LLM
        generator = Chosen("template", {})

    settings = forms.fields(
        SynthesisConfig,
        key=key,
        leave_out=("corpus", "method", "generator", "model", "base_url", *METHOD_SETTINGS),
        labels={"per_doc": f"Queries per {manifest.unit}"},
        columns=3,
    )
    with frame.guarded():
        named = {"corpus": manifest.id, "method": method, "generator": generator.name}
        config = SynthesisConfig.from_dict({**generator.settings, **settings, **extras, **named})
        cost_before(workspace, config, manifest.unit)
        st.caption("Runs in the background. If you stop it, the finished queries are kept.")
        if forms.button("Start writing queries", type="primary", icon=":material/play_arrow:", key="generate_start"):
            frame.go("jobs", job=jobs.start(workspace, "synthesis", config, api_key=generator.api_key))
        forms.command(commands.line("queries", "generate", config=config, wait=True))


def preview(workspace: Workspace, manifest: CorpusManifest, sets: list[QuerySet], chosen: Chosen) -> None:
    """Pick a document and methods, and see what each method gives."""
    st.subheader("Preview for one document", anchor=False)
    document = _pick_document(workspace, manifest)
    if document is None:
        return

    all_methods = [method for method in METHODS.values() if method.generator != "ranking"]
    titles = method_titles(all_methods)
    methods = st.multiselect(
        "Methods to compare", list(titles), default=["diverse", "paraphrase"], format_func=titles.__getitem__,
        key="preview_methods", placeholder="Choose one or several", persist_state="session",
    )  # fmt: skip

    per_doc = st.slider(
        f"Queries per {manifest.unit} (M)", 1, 20, 5, key="preview_m", help=frame.DEFINITIONS["q_doc"],
        persist_state="session", width=320,
    )  # fmt: skip

    if not methods:
        st.caption("Select at least one method.")
        return

    extras = method_extras(methods, all_methods, sets, "preview")
    settings = {name: value for name, value in sorted({**chosen.settings, **extras}.items()) if value}

    def ask() -> Mapping[str, Preview]:
        return queries.preview(
            workspace, manifest.id, document.id, methods=methods, per_doc=per_doc, generator=chosen.name,
            api_key=chosen.api_key, **settings,
        )  # fmt: skip

    previews: Mapping[str, Preview] | None = None

    # What costs nothing follows every choice; an endpoint or a model is asked when the button is pressed.
    if chosen.slow or any(method.generator or method.joint for method in all_methods if method.name in methods):
        request = (document.id, methods, per_doc, chosen.name, settings)
        last = st.session_state.get("preview_answer")

        if forms.button("Generate queries", type="primary", icon=":material/send:", key="preview_ask"):
            with frame.guarded(), st.spinner("Waiting for the model"):
                last = st.session_state["preview_answer"] = (request, ask())

        if last is not None and last[0] == request:
            previews = last[1]
        else:
            where = md(chosen.settings.get("base_url") or "OpenAI") if chosen.costs else "a model on this server"
            if chosen.slow:
                st.caption(f"The button sends requests for {count(len(methods), 'method')} to {where}.")
    else:
        with frame.guarded():
            previews = ask()

    if previews is not None:
        _comparison(previews, titles)
        people = queries.of_people(workspace, manifest.id, document.id)
        if people is not None:
            previews = {**previews, "human": people}

        with st.grid(2, min_column_width=340):
            for name, one in previews.items():
                with st.container(border=True, height="stretch"):
                    _draw(one, titles.get(name, "Written by people"), manifest.counted_language)

    with st.expander("Document text", icon=":material/article:", expanded=previews is None):
        st.markdown(f"**{md(document.title or document.id)}**")
        st.text(document.text)

    pairs = [f"{name}={value}" for name, value in settings.items()]
    forms.command(
        commands.line(
            "queries", "preview", corpus=manifest.id, doc=document.id, methods=",".join(methods), per_doc=per_doc,
            generator=chosen.name, set=pairs,
        )
    )  # fmt: skip


def _pick_document(workspace: Workspace, manifest: CorpusManifest) -> Document | None:
    """Search and select: the matches are fetched, never the whole corpus."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        wanted = st.text_input(
            "Find a document", type="search", key=f"find_{manifest.id}", placeholder="word or ID", width=240
        )
        matches = looking.page(workspace, manifest.id, 0, MAX_MATCHES, search=wanted)
        document_id = st.query_params.get("document") or state.kept("document")
        by_id = {document.id: document for document in matches}
        if document_id and not wanted and document_id not in by_id:
            with suppress(NotFoundError):
                by_id = {document_id: looking.document(workspace, manifest.id, document_id), **by_id}

        if not by_id:
            st.caption("No matching documents.")
            return None

        names = {key: f"{document.title or cut(document.text, 60)} ({key})" for key, document in by_id.items()}
        with st.container():
            picked = state.choose("Document", names, "document", what="document")

    return by_id[str(picked)]


def _comparison(previews: Mapping[str, Preview], titles: Mapping[str, str]) -> None:
    """The methods in order of Self-BLEU, in one sentence."""
    measured = sorted((p.self_bleu, md(titles[name])) for name, p in previews.items() if p.self_bleu is not None)
    if len(measured) < 2:
        return

    (lowest, first), *rest = measured
    degree = "less" if len(rest) == 1 else "least"
    answer = f"the {first} queries repeat each other {degree}"
    if rest[-1][0] - lowest < SAME:
        answer = "the methods are equally diverse"
    values = ", ".join(f"{value:.3f} for {title}" for value, title in rest)
    st.markdown(f"#### For this document, {answer}\nSelf-BLEU {lowest:.3f} against {values}; lower is more diverse.")


def _draw(preview: Preview, title: str, language: str) -> None:
    st.markdown(f"#### {md(title)}", help=frame.DEFINITIONS.get(preview.method))
    cost = None
    if preview.usage.get("requests"):
        cost = ("This preview", dollars(preview.cost))

    tables.figures(
        ("Self-BLEU", written(preview.self_bleu, "{:.3f}".format, MISSING), frame.DEFINITIONS["self_bleu"]),
        ("Mean CW", written(preview.mean_cw, "{:.1f}".format, MISSING), frame.DEFINITIONS["cw"]),
        cost,
    )

    if preview.queries:
        st.markdown("\n".join(_line(preview, index, language) for index in range(len(preview.queries))))
    elif not preview.error:
        st.caption("The model's answer contained no usable query.")

    if preview.error:
        st.error(f"This method failed on this document: {md(preview.error)}", icon=":material/error:")
    if preview.together:
        st.caption(f"Needs this document and {md(', '.join(preview.together), 200)}.")

    frame.remarks(preview.problems, "warning")

    for note in dict.fromkeys(filter(None, preview.notes)):
        st.caption(f"Intermediate output: {md(note, 300)}")

    if preview.prompt:
        with st.expander("Prompt", type="compact"):
            st.code(preview.prompt, language=None, wrap_lines=True)


def _line(preview: Preview, index: int, language: str) -> str:
    """One query with its CW, its content words in bold."""
    query = preview.queries[index]
    text = md_marked(query, sorted(content_words(query, language)))
    from_query = ""
    if preview.sources:
        from_query = f" :small[:gray[from: {md(preview.sources[index], 120)}]]"
    return f"{index + 1}. {text} :small[:gray[CW\u00a0{preview.cw[index]}]]{from_query}"
