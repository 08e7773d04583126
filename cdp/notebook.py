"""The main path as objects for notebooks and scripts, `cdp.Workspace`: documents, queries, models, scores, jobs, test.

    from cdp import Workspace

    ws = Workspace("folder")
    docs = ws.add("papers/")
    diverse = docs.write("diverse", per_doc=5, generator="template")
    model = diverse.train("minilm")
    ws.evaluate(model, "papers")
    ws.compare()
    docs.test().answer

A face, as the pages and the commands are: each method is a few lines over a service, makes the files that the dashboard
shows, and raises the same CdpError. Settings are those of docs/REFERENCE.md, by name. What takes long is a job: methods
wait for it with a progress bar, or return at once with ``wait=False``. Keys come from the environment, or from
``api_key``, which is written nowhere.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from html import escape
from itertools import islice, repeat, starmap, zip_longest
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pandas as pd

from cdp.base.config import EvaluationConfig, MetricsConfig, SynthesisConfig, TrainingConfig
from cdp.base.errors import CdpError, ConfigError
from cdp.base.text import counted, name_and_split, size
from cdp.base.workspace import Workspace, open_workspace
from cdp.corpus import CorpusManifest, ReadOptions
from cdp.jobs import JobView, State
from cdp.metrics import MEASURES
from cdp.principle import Decision
from cdp.query_sets import ImportOptions, QuerySet
from cdp.query_sets.given import AddOptions
from cdp.results import board, differences, paper
from cdp.results import models as trained
from cdp.results.differences import Comparison
from cdp.results.models import TrainedModel
from cdp.services import adding, benchmarks, corpora, demo, evaluation, jobs, metrics, training, trial
from cdp.services import decide as deciding
from cdp.services import models as giving
from cdp.services import queries as sets
from cdp.services.adding import Added
from cdp.services.queries import Preview
from cdp.studies import advice, own_test, target_queries
from cdp.studies.config import TrialConfig
from cdp.studies.own_test import Trial

if TYPE_CHECKING:
    import plotly.graph_objects as go


def _table(rows: Sequence[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Return an HTML table, the first cell of a row as its heading. All of it is escaped: content is text."""
    left = " style='text-align:left;vertical-align:top'"
    lines = []
    if head:
        lines.append(f"<tr>{_tags('th', head, left)}</tr>")
    for first, *others in rows:
        lines.append(f"<tr>{_tags('th', [first], left)}{_tags('td', others, left)}</tr>")

    return f"<table>{''.join(lines)}</table>"


def _tags(name: str, texts: Iterable[str], style: str = "") -> str:
    """Return an HTML element for each text, which is escaped."""
    return "".join(f"<{name}{style}>{escape(text)}</{name}>" for text in texts)


def _heading(title: str) -> str:
    return f"<p>{_tags('b', [title])}</p>"


class Drawn:
    """What a notebook and a terminal show of an object: a title, and facts by name."""

    def _title(self) -> str:
        """What it is, in one line."""
        return type(self).__name__

    def _facts(self) -> Mapping[str, str | Sequence[str]]:
        return {}

    def _lines(self) -> list[tuple[str, str]]:
        lines = []
        for name, value in self._facts().items():
            texts = [value] if isinstance(value, str) else value
            lines += [(name, text) for text in texts if text]
        return lines

    def __repr__(self) -> str:
        return "\n".join([self._title(), *starmap("  {}: {}".format, self._lines())])

    def _repr_html_(self) -> str:
        return _heading(self._title()) + _table(self._lines())


class ProgressBar:
    """Progress as a bar, in a notebook and on a terminal; elsewhere nothing is drawn."""

    def __init__(self) -> None:
        from tqdm.auto import tqdm

        # A notebook's output is no terminal: tqdm's own test would leave the bar out there.
        drawn = sys.stderr.isatty() or "ipykernel" in sys.modules
        self._bar = tqdm(total=1.0, bar_format="|{bar:24}| {desc}", disable=not drawn)

    def show(self, text: str, share: float) -> None:
        self._bar.n = share
        self._bar.set_description_str(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()


class JobHandle(Drawn):
    """A job in the background. It goes on where waiting is interrupted, and after Python has ended."""

    def __init__(self, folder: Workspace, id: str) -> None:
        self.folder, self.id = folder, id

    @property
    def view(self) -> JobView:
        """The job as it is now: state, phase, done of total, seconds, failure."""
        return jobs.show(self.folder, self.id, with_size=False)

    def wait(self) -> Self:
        """Wait until the job has ended; return it. CdpError with its own sentence unless it finished.

        An interrupt (Ctrl-C, a notebook's stop button) ends the waiting, not the job.
        """
        try:
            with ProgressBar() as bar:
                view = jobs.wait(self.folder, self.id, lambda v: bar.show(self._progress(v), v.fraction))
        except KeyboardInterrupt:
            again = f"ws.job({self.id!r})"
            says = f"{self.id} goes on in the background. Follow: {again}.wait() · stop: {again}.stop()"
            raise KeyboardInterrupt(says) from None

        if view.state is not State.FINISHED:
            message, hint, _ = jobs.failure(view)
            raise CdpError(message or f"{self.id}: {jobs.sentence(view)}", hint=hint)
        return self

    def stop(self) -> None:
        """Ask the job to save its progress and end."""
        jobs.stop(self.folder, self.id)

    def resume(self) -> Self:
        """Continue a job that ended early, from its last checkpoint."""
        jobs.resume(self.folder, self.id)
        return self

    def log(self) -> str:
        """Return the end of its log."""
        return jobs.log(self.folder, self.id)

    def outcome(self) -> dict[str, Any]:
        """Return its results; an evaluation's measures in percent."""
        return jobs.outcome(self.folder, self.id)

    def _progress(self, view: JobView) -> str:
        return f"{jobs.activity(view.kind)}: {jobs.doing(view)}"

    def _title(self) -> str:
        return f"{self.view.name}, {self._progress(self.view)}"

    def _facts(self) -> dict[str, str | Sequence[str]]:
        view = self.view
        return {"id": self.id, "state": jobs.sentence(view), "failure": jobs.failure(view)[:2]}


class Made(Drawn, ABC):
    """What a job makes. Until it is there, its job is shown in its place; ``job`` is None where there was none."""

    def __init__(self, folder: Workspace, id: str, job: str = "") -> None:
        self.folder, self.id = folder, id
        self.job = JobHandle(folder, job) if job else None

    @property
    @abstractmethod
    def there(self) -> bool:
        """Whether it is made."""

    def wait(self) -> Self:
        """Wait for its job, as ``JobHandle.wait``; return this object."""
        if self.job is not None:
            self.job.wait()
        return self

    def __repr__(self) -> str:
        if not self.there:
            return repr(self.job)
        return super().__repr__()

    def _repr_html_(self) -> str:
        if self.job is not None and not self.there:
            return self.job._repr_html_()
        return super()._repr_html_()


class OpenWorkspace(Drawn):
    """A workspace folder, opened; `from cdp import Workspace` gives it. Without a folder the one in use.

    ``folder`` is the ``cdp.base.workspace.Workspace`` that services take. WorkspaceError for another format.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        chosen = Workspace.default() if folder is None else Workspace(Path(folder).expanduser().resolve())
        self.folder = open_workspace(chosen)

    def add(self, path: str | Path, queries: str | Path = "", *, name: str = "", **settings: Any) -> DocumentSet:
        """Import documents (a file, zip or folder; or BEIR) with the queries and judgments that come with them.

        ``queries`` is a file of queries with their documents' ids. The settings are those of ``projects add``. Raises
        InputError for what cannot be read.

            docs = ws.add("papers/", "questions.csv")
        """
        own = settings.keys() & AddOptions.settings().keys()
        options = AddOptions.from_dict({setting: settings.pop(setting) for setting in own})
        reading = ReadOptions.from_dict(settings)

        with ProgressBar() as bar:
            added = adding.add(
                self.folder, path, queries, name=name, options=options, reading=reading,
                watch=lambda file, done, total: bar.show(file, done / max(1, total)),
            )  # fmt: skip

        return DocumentSet(self.folder, added.corpus.id, added)

    def demo(self) -> DocumentSet:
        """Add the demo, documents with queries of two kinds and judged ones; return its documents."""
        demo.load(self.folder)
        return DocumentSet(self.folder, demo.corpus(self.folder))

    def documents(self, name: str) -> DocumentSet:
        """Return documents by id, name or unique prefix. NotFoundError lists those that there are."""
        return DocumentSet(self.folder, corpora.resolve_corpus(self.folder, name).id)

    def queries(self, name: str) -> WrittenQueries:
        """Return a query set by id, name or unique prefix."""
        return WrittenQueries(self.folder, sets.show(self.folder, name).id)

    def model(self, name: str) -> Model:
        """Return a trained model by its training's id, name or unique prefix."""
        id = trained.show(self.folder, name).id
        return Model(self.folder, id, id)

    def job(self, name: str) -> JobHandle:
        """Return a job by id, unique prefix or name."""
        return JobHandle(self.folder, jobs.show(self.folder, name, with_size=False).id)

    def evaluate(
        self, retriever: Model | str, benchmark: str, *, wait: bool = True, api_key: str = "", **settings: Any
    ) -> EvaluationScores:
        """Evaluate a model, a preset or ``bm25`` on a benchmark, ``name`` or ``name:split``.

        ws.evaluate("bm25", "papers").measures["ndcg@10"]
        """
        values = {"retriever": _named(retriever), "benchmark": benchmark, **settings}
        id = jobs.start(self.folder, "evaluation", EvaluationConfig.from_dict(values), api_key=api_key)
        scores = EvaluationScores(self.folder, id, id)
        if wait:
            scores.wait()
        return scores

    def compare(self, *retrievers: Model | str, baseline: Model | str = "") -> Compared:
        """Compare results with a baseline, over the same queries, with tests; all that there are if none is named.

        Without a ``baseline`` it is the one that the Compare page takes. ConfigError while there is no result.
        """
        found = board.list_evaluations(self.folder)
        rows = board.list_rows(self.folder, found)
        if not rows:
            raise ConfigError("There is no result to compare yet.", hint='Make one: ws.evaluate("bm25", BENCHMARK).')

        against, chosen = _named(baseline) or board.baseline(rows), list(map(_named, retrievers))
        return Compared(differences.compare(self.folder, against, chosen or None, evaluations=found))

    def _title(self) -> str:
        return f"Workspace {self.folder.root}"

    def _facts(self) -> dict[str, str | Sequence[str]]:
        return {
            "documents": [f"{m.name}: {counted(m.n_documents, m.unit)}" for m in corpora.list_corpora(self.folder)],
            "queries": [f"{q.name}: {q.n_queries:,}" for q in sets.list_query_sets(self.folder)],
            "models": list(map(attrgetter("title"), trained.list_models(self.folder))),
            "benchmarks": list(map(attrgetter("name"), benchmarks.list_benchmarks(self.folder))),
            "jobs at work": list(map(attrgetter("id"), jobs.list_active(self.folder))),
        }


def _named(made: Made | str) -> str:
    return made.id if isinstance(made, Made) else made


class DocumentSet(Drawn):
    """The documents of one import. ``added`` says what came with them, where they were just added."""

    def __init__(self, folder: Workspace, id: str, added: Added | None = None) -> None:
        self.folder, self.id, self.added = folder, id, added

    @property
    def manifest(self) -> CorpusManifest:
        """What is recorded: name, numbers, languages, rejected rows."""
        return corpora.resolve_corpus(self.folder, self.id)

    @property
    def benchmarks(self) -> list[str]:
        """The names of the benchmarks that judge queries on these documents."""
        return [info.name for info in trial.of_project(self.folder, self.manifest)]

    def __len__(self) -> int:
        return self.manifest.n_documents

    def to_pandas(self) -> pd.DataFrame:
        """Return the columns id, title and text, a row per document."""
        return pd.DataFrame(map(asdict, corpora.iter_documents(self.folder, self.id)))

    def queries(self) -> list[WrittenQueries]:
        """Return the query sets of these documents, the newest first."""
        return [WrittenQueries(self.folder, q.id) for q in sets.list_query_sets(self.folder, corpus=self.id)]

    def load_queries(self, path: str | Path, *, name: str = "", **options: Any) -> WrittenQueries:
        """Import queries that exist, from a file with documents' ids; the options are those of ``queries import``."""
        done = sets.import_file(self.folder, path, self.id, name=name, options=ImportOptions.from_dict(options))
        return WrittenQueries(self.folder, done.query_set.id)

    def preview(
        self, document: str = "", *, methods: Sequence[str] = ("diverse", "paraphrase"), **settings: Any
    ) -> Previews:
        """Write queries for one document, the first unless one is named, by each method; nothing is stored."""
        document = document or next(corpora.iter_documents(self.folder, self.id)).id
        return Previews(document, sets.preview(self.folder, self.id, document, methods=methods, **settings))

    def write(
        self, method: str = "diverse", *, per_doc: int = 5, generator: str = "template", wait: bool = True,
        api_key: str = "", **settings: Any,
    ) -> WrittenQueries:  # fmt: skip
        """Write ``per_doc`` queries for every document; ``generator="openai"`` takes a ``model`` and a ``base_url``.

        diverse = docs.write("diverse", per_doc=5, generator="template")
        """
        values = {"corpus": self.id, "method": method, "per_doc": per_doc, "generator": generator, **settings}
        job = jobs.start(self.folder, "synthesis", SynthesisConfig.from_dict(values), api_key=api_key)
        written = WrittenQueries(self.folder, jobs.written_set(jobs.show(self.folder, job, with_size=False)), job)
        if wait:
            written.wait()
        return written

    def decide(self, *, benchmark: str = "", domain: str = "ood", task: str = "") -> Verdict:
        """Return what is best known: one query per document, paraphrases or different ones, and how many.

        ``benchmark`` (``name`` or ``name:split``) has the task's queries; it is the only one of these documents if
        omitted. Own studies come first, then the published results.
        """
        own = self.benchmarks
        if not benchmark and len(own) == 1:
            benchmark = own[0]

        target = None
        if benchmark:
            name, split = name_and_split(benchmark)
            target = target_queries.profile_benchmark(self.folder, name, split=split)

        answer = deciding.decide(self.folder, corpus=self.id, target=target, domain=domain, task=task)
        return Verdict(self.folder, self.id, answer)

    def test(
        self, *, start: bool | None = None, wait: bool = True, api_key: str = "", allow_leakage: bool = False,
        **settings: Any,
    ) -> DataTest:  # fmt: skip
        """Test on these documents what different queries gain: train on them, measure on judged queries.

        Without judged queries it says what it would take and starts nothing, unless ``start`` is True; ``start=False``
        never starts. ConfigError where it takes longer or costs more than ``minutes`` and ``spend`` allow.
        """
        if "generator" not in settings:
            settings = {**own_test.last_generator(self.folder, self.id), **settings}

        config = TrialConfig.from_dict({"corpus": self.id, **settings})
        if start is None:
            start = trial.has_judged(self.folder, self.id)
        if not start:
            return DataTest(self, trial.plan(self.folder, config, api_key))

        trial.measure(self.folder, config)
        planned = trial.plan(self.folder, config, api_key)
        begun = trial.start(self.folder, config, api_key=api_key, allow_leakage=allow_leakage)
        tested = DataTest(self, planned, (*begun.generations, begun.job_id, *begun.later))
        if wait:
            tested.wait()
        return tested

    def _title(self) -> str:
        return f"{self.manifest.name}: {counted(len(self), self.manifest.unit)}"

    def _facts(self) -> dict[str, str | Sequence[str]]:
        facts: dict[str, str | Sequence[str]] = {
            "id": self.id,
            "languages": ", ".join(self.manifest.languages),
            "judged by": self.benchmarks,
            "queries": [q.manifest.name for q in self.queries()],
        }
        if self.added is not None:
            left_out = [f"{n:,} {reason}" for reason, n in self.added.left_out.items()]
            facts |= {"left out": left_out, "note": self.added.stated, "missing": self.added.missing}
        return facts


class WrittenQueries(Made):
    """A query set; while it is written, what is there so far."""

    @property
    def there(self) -> bool:
        return self.folder.query_set(self.id).is_dir()

    @property
    def manifest(self) -> QuerySet:
        """What is recorded: method, generator, numbers, licence, who wrote them."""
        return sets.show(self.folder, self.id)

    def __len__(self) -> int:
        return self.manifest.n_queries

    def _rows(self, documents: int) -> Iterator[tuple[str, str]]:
        for document, texts in sets.page(self.folder, self.id, 0, documents):
            yield from zip(repeat(document), texts)

    def to_pandas(self) -> pd.DataFrame:
        """Return the columns document_id and query, a row per query."""
        return pd.DataFrame(self._rows(self.manifest.n_documents), columns=["document_id", "query"])

    def metrics(self, *, models: bool = False, **settings: Any) -> pd.DataFrame:
        """Return the Q-D metrics with 95% intervals: Self-BLEU, CW and, given ``human`` queries, Len-Sim; with
        ``models`` also those that a job measures, which is waited for."""
        config = MetricsConfig.from_dict({"query_set": self.id, **settings})
        found = list(map(asdict, metrics.quick(self.folder, self.id, human=config.scoring.human).measures))
        if models:
            job = JobHandle(self.folder, jobs.start(self.folder, "metrics", config))
            found += job.wait().outcome()["measures"]
        rows = [{**value, "measure": MEASURES[value["name"]].title} for value in found]
        return pd.DataFrame(rows)[["measure", "value", "interval", "n_documents", "model"]]

    def cw(self) -> pd.DataFrame:
        """Return the content words of each query: the columns query and cw."""
        profiled = target_queries.profile_query_set(self.folder, self.id)
        return pd.DataFrame({"query": profiled.texts, "cw": profiled.cw})

    def chart(self) -> go.Figure:
        """Return the histogram of content words."""
        from cdp.charts.evidence import cw_histogram

        return cw_histogram(target_queries.profile_query_set(self.folder, self.id).profile.histogram)

    def train(
        self, retriever: Model | str = "static-minilm", *, beside: Sequence[WrittenQueries | str] | WrittenQueries = (),
        benchmarks: Sequence[str] = (), wait: bool = True, allow_incomplete: bool = False,
        allow_leakage: bool = False, **settings: Any,
    ) -> Model:  # fmt: skip
        """Train a retriever on these queries, and on those of ``beside`` with them. On each of ``benchmarks`` it is
        evaluated before and after, as is BM25.

        InputError for a set that nothing can be learnt from, ConfigError for an incomplete one or one that holds judged
        queries, unless that is allowed.

            model = diverse.train("minilm", epochs=2, tracker="trackio")
        """
        others = [beside] if isinstance(beside, str | WrittenQueries) else beside
        named = {"retriever": _named(retriever), "beside": ", ".join(map(_named, others))}
        config = TrainingConfig.from_dict({"query_set": self.id, **named, **settings})

        begun = training.start(
            self.folder, config, benchmarks=list(map(name_and_split, benchmarks)),
            allow_incomplete=allow_incomplete, allow_leakage=allow_leakage,
        )  # fmt: skip
        if wait:
            for id in (begun.job_id, *begun.later):
                JobHandle(self.folder, id).wait()

        return Model(self.folder, begun.job_id, begun.job_id)

    def export(self, format: str, out: str | Path, *, per_doc: int | None = None) -> list[Path]:
        """Write the set for another program (see docs/INTERCHANGE.md); return the files."""
        return list(map(Path, sets.export(self.folder, self.id, format, out, per_doc=per_doc).paths))

    def _title(self) -> str:
        m = self.manifest
        return f"{m.name}: {counted(m.n_queries, 'query', 'queries')} for {counted(m.n_documents, 'document')}"

    def _facts(self) -> dict[str, str | Sequence[str]]:
        first = [text for _, text in islice(self._rows(2), 5)]
        return {"id": self.id, "written by": self.manifest.written_by, "the first": first}


class Previews(Drawn):
    """Queries of several methods for one document, side by side; ``by_method`` has all that is known of each."""

    def __init__(self, document: str, by_method: Mapping[str, Preview]) -> None:
        self.document, self.by_method = document, by_method

    def to_pandas(self) -> pd.DataFrame:
        """Return the columns method, query and cw."""
        rows: list[tuple[str, str, int]] = []
        for method, shown in self.by_method.items():
            rows += zip(repeat(method, len(shown.cw)), shown.queries, shown.cw, strict=True)

        return pd.DataFrame(rows, columns=["method", "query", "cw"])

    def _title(self) -> str:
        return f"Queries for {self.document}"

    def _facts(self) -> dict[str, str | Sequence[str]]:
        return {method: [*shown.queries, *shown.problems, shown.error] for method, shown in self.by_method.items()}

    def _repr_html_(self) -> str:
        columns = [filter(None, texts) for texts in self._facts().values()]
        rows = [[str(number), *row] for number, row in enumerate(zip_longest(*columns, fillvalue=""), 1)]
        return _heading(self._title()) + _table(rows, ["", *self.by_method])


class Model(Made):
    """A trained retriever."""

    @property
    def there(self) -> bool:
        return jobs.show(self.folder, self.id, with_size=False).has_model

    @property
    def details(self) -> TrainedModel:
        """Its files, licence, scores, and faults against publishing. NotFoundError until it is trained."""
        return trained.show(self.folder, self.id)

    @property
    def path(self) -> Path:
        """The folder that sentence-transformers loads."""
        return self.details.folder

    def curve(self, measure: str = "loss") -> go.Figure:
        """Return a live measure by step: loss, learning_rate, gradient_norm, or ndcg_at_10 on dev, in percent."""
        from cdp.charts.results import LABELS, curves

        values = jobs.curve(self.folder, self.id, measure)
        return curves({self.id: values}, LABELS.get(measure, measure))

    def to_pandas(self) -> pd.DataFrame:
        """Return its newest scores: benchmark, protocol, ndcg (percent), queries, badges, remark."""
        return pd.DataFrame(map(asdict, self.details.scores))

    def export(self, out: str | Path) -> Path:
        """Copy it with its card to a new folder, which earlier versions of sentence-transformers load, too."""
        return giving.export(self.folder, self.id, str(out))

    def push(self, repository: str, *, public: bool = False, **allowed: bool) -> dict[str, Any]:
        """Upload it to the Hugging Face hub, private unless ``public``; the token comes from ``HF_TOKEN``."""
        return giving.push(self.folder, self.id, repository, public=public, **allowed)[1]

    def _title(self) -> str:
        return self.details.title

    def _facts(self) -> dict[str, str | Sequence[str]]:
        found = self.details
        return {
            "id": self.id,
            "trained from": found.base,
            "size": size(found.bytes),
            "licence": found.licence,
            "NDCG@10": [" ".join([f"{s.benchmark}: {s.ndcg:.2f}", *s.badges]) for s in found.scores],
            "fault": [fault.sentence.replace("**", "") for fault in found.faults],
        }


class EvaluationScores(Made):
    """An evaluation."""

    @property
    def there(self) -> bool:
        return bool(self.measures)

    @property
    def measures(self) -> dict[str, float]:
        """The measures by name, in percent: ndcg@10, recall@100 …; empty until it has finished."""
        return {k: v for k, v in jobs.outcome(self.folder, self.id).items() if "@" in k and isinstance(v, float)}

    def export(self, out: str | Path) -> Path:
        """Write what was retrieved as a TREC run."""
        return evaluation.export_run(self.folder, self.id, out)[0]

    def _title(self) -> str:
        return jobs.show(self.folder, self.id, with_size=False).name

    def _facts(self) -> dict[str, str | Sequence[str]]:
        figures = {name: f"{value:.2f}" for name, value in self.measures.items()}
        return {"id": self.id, **figures, "note": jobs.outcome(self.folder, self.id)["notes"]}


class Compared(Drawn):
    """Retrievers by benchmarks, and every difference from the baseline with its tests."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per retriever and benchmark: NDCG@10 in percent, difference in points, interval, p-values."""
        names = ("retriever", "place", "ndcg", "difference", "low", "high", "p_t", "p_seeds", "p_holm", "n_queries")
        return pd.DataFrame([{name: getattr(row, name) for name in names} for row in self.comparison.rows])

    def chart(self) -> go.Figure:
        """Return the differences from the baseline with their 95% intervals."""
        from cdp.charts.results import GainPoint, gains

        points = []
        for row in self.comparison.rows:
            if row.difference is not None and row.low is not None and row.high is not None:
                name = f"{row.retriever}, {row.place}"
                points.append(GainPoint(name, row.difference, row.low, row.high, row.significant))

        return gains(points, x=f"NDCG@10 against {self.comparison.baseline}, points")

    def write(self, format: str = "markdown") -> str:
        """Return the table for a paper: markdown, latex, csv or json."""
        return paper.write(self.comparison, format)

    def __repr__(self) -> str:
        return self.write()

    def _repr_html_(self) -> str:
        table = paper.paper_table(self.comparison)
        rows = []
        for name, cells in table.rows:
            rows.append([name, *(cell.shown("{}", "{}") for cell in cells)])

        return _table(rows, ["NDCG@10", *table.columns]) + _tags("p", table.notes)


class Verdict(Drawn):
    """The answer for documents and a task. ``decision`` holds all that it rests on."""

    def __init__(self, folder: Workspace, corpus: str, decision: Decision) -> None:
        self.folder, self.corpus, self.decision = folder, corpus, decision

    @property
    def headline(self) -> str:
        return self.decision.headline

    def to_pandas(self) -> pd.DataFrame:
        """Return every option, the cheapest first: score, difference to the choice in points, price, training time."""
        rows = []
        for o in advice.list_options(self.folder, self.decision, self.corpus)[0]:
            score, difference = o.arm and o.arm.mean, o.over and o.over.points
            rows.append((o.name, score, difference, o.price_text, o.training_text))

        return pd.DataFrame(rows, columns=["option", "ndcg@10", "to the choice", "price", "training"])

    def __repr__(self) -> str:
        return self.decision.text

    def _repr_html_(self) -> str:
        first, *others = self.decision.text.splitlines()
        return _heading(first) + _tags("p", others)


class DataTest(Drawn):
    """A test on one's own documents: ``plan`` says what it takes, ``jobs`` do it, ``answer`` is what came of it."""

    def __init__(self, documents: DocumentSet, plan: Trial, jobs: Sequence[str] = ()) -> None:
        self.documents, self.plan = documents, plan
        self.jobs = [JobHandle(documents.folder, id) for id in jobs]

    @property
    def answer(self) -> Verdict:
        """What is best known now: until it has ended, earlier studies or the published results."""
        if not self.jobs:
            return self.documents.decide()

        splits = self.plan.judged.splits
        return self.documents.decide(benchmark=f"{splits.benchmark}:{splits.test}")

    def wait(self) -> Self:
        """Wait for its jobs; return this object."""
        for job in self.jobs:
            job.wait()
        return self

    def _title(self) -> str:
        if not self.jobs:
            return "Test on your own data: not started"
        return "Test on your own data"

    def _facts(self) -> dict[str, str | Sequence[str]]:
        if self.jobs:
            return {**self.plan.told, "job": [f"{job.id}: {job.view.state}" for job in self.jobs]}

        steps = ["Start it: docs.test(start=True)"]
        if not self.plan.judged.there:
            steps.insert(0, "There are no judged queries for these documents yet.")
        return {**self.plan.told, "next": steps}
