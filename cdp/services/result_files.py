"""Taking in what another program retrieved or measured: a job makes an evaluation of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cdp import __version__, jobs
from cdp.base.config import ResultImportConfig
from cdp.base.errors import CdpError, ConfigError, InputError, WorkspaceError
from cdp.base.workspace import Workspace, is_name, write_bytes
from cdp.benchmarks import describe, manifests
from cdp.evaluation import bm25
from cdp.evaluation.foreign import by_query_lines
from cdp.evaluation.results import qrels_lines, run_lines
from cdp.jobs import DeviceRequest
from cdp.retrievers import PRESETS, leakage
from cdp.services import access, evaluated, evaluation, paths

WORKER, KIND = "cdp.workers.importing", "import"


@access.runs
def start(workspace: Workspace, config: ResultImportConfig) -> str:
    """Submit the import; the job's id. ConfigError for a name that a retriever of one's own has already."""
    name = " ".join(config.retriever.split())
    own = is_name(name) and workspace.job(name).is_dir()
    if not name or name in PRESETS or own or bm25.language_in(name) is not None:
        raise ConfigError(
            f"{name!r} is a retriever of this workspace: imported scores would stand as its own.",
            hint="Choose another name, such as the name of the file.",
        )
    source = paths.to_read(workspace, config.path)
    if not source.is_file():
        raise InputError(f"There is no file {source}.", hint="Check the path; it is read on the server.")
    benchmark, split, info = evaluation.judged_on(workspace, config.benchmark, config.split)
    config = config.replace(path=str(source.resolve()), retriever=name, benchmark=benchmark, split=split)
    return jobs.submit(
        workspace,
        kind=KIND,
        name=f"{name} on {info.name}",
        module=WORKER,
        config=config.to_dict(),
        device=DeviceRequest.light(),
        inputs={"benchmark": info.name, "benchmark_hash": info.content_hash, "split": config.split},
    )


SUFFIXES = {
    "trec-run": ".run",
    "trec-qrels": ".qrels",
    "mteb": ".json",
    "mteb-predictions": "_predictions.json",
    "ir-measures": ".tsv",
}
FORMATS = tuple(SUFFIXES)

LANGUAGES = {
    "en": "eng-Latn", "fr": "fra-Latn", "zh": "zho-Hans", "ja": "jpn-Jpan", "ko": "kor-Hang", "ru": "rus-Cyrl",
    "ar": "ara-Arab", "bn": "ben-Beng", "de": "deu-Latn", "el": "ell-Grek", "es": "spa-Latn", "fa": "fas-Arab",
    "fi": "fin-Latn", "he": "heb-Hebr", "hi": "hin-Deva", "id": "ind-Latn", "it": "ita-Latn", "nl": "nld-Latn",
    "pl": "pol-Latn", "pt": "por-Latn", "sw": "swa-Latn", "ta": "tam-Taml", "te": "tel-Telu", "th": "tha-Thai",
    "tr": "tur-Latn", "uk": "ukr-Cyrl", "vi": "vie-Latn", "yo": "yor-Latn",
}  # fmt: skip
"""A language as MTEB names it: ISO 639-3 and the script."""

UNNAMED = "und-Zyyy"
"""A language that is not in the table, as ISO 639-3 and ISO 15924 write one that is undetermined."""


def content(workspace: Workspace, evaluation: str, form: str) -> str:
    """The text of an evaluation (its id or the beginning of it) in one of ``FORMATS``.

    A run holds every document that was kept, at most ``top_k`` per query; qrels are those of the queries that were
    evaluated, grades as the benchmark has them. Errors as ``evaluated`` raises them; ConfigError for another format.
    """
    if form not in FORMATS:
        raise ConfigError(f"{form!r} is not a format for results.", hint=f"There is: {', '.join(FORMATS)}.")
    row = evaluated.find(workspace, evaluation)
    if form == "trec-run":
        tag = "-".join(str(row["retriever_id"]).split()) or "cdp"
        return "".join(run_lines(evaluated.retrieved(workspace, row), tag))
    if form == "trec-qrels":
        queries = evaluated.record(workspace, row)["per_query"]["query_ids"]
        return "".join(qrels_lines(evaluated.judgments(workspace, row, queries)))
    if form == "ir-measures":
        return "".join(by_query_lines(evaluated.record(workspace, row)["per_query"], _relevant_from(workspace, row)))
    if form == "mteb-predictions":
        record = evaluated.record(workspace, row)
        meta = {"model_name": record["retriever"]["name"], "revision": record["retriever"]["hash"]}
        run = {record["benchmark"]["split"]: evaluated.retrieved(workspace, row)}
        return json.dumps({"mteb_model_meta": meta, "default": run}, ensure_ascii=False) + "\n"
    return json.dumps(_mteb(workspace, row), ensure_ascii=False, indent=2) + "\n"


def _relevant_from(workspace: Workspace, row: dict[str, Any]) -> int:
    try:
        return evaluated.relevant_from(workspace, row)
    except CdpError:  # the benchmark has gone: the usual grade
        return 1


def available(workspace: Workspace, row: dict[str, Any]) -> list[str]:
    """The formats that an evaluation can be written in: is its run kept, is its benchmark still there?

    ``row`` is the catalogue's.
    """
    try:
        evaluated.folder(workspace, row)
        there = True
    except CdpError:
        there = False
    has_run, has_record = evaluated.file_of_run(workspace, row).is_file(), "study" not in row["settings"]
    has = {
        "trec-run": has_run,
        "trec-qrels": there,
        "mteb": has_record,
        "mteb-predictions": has_run and has_record,
        "ir-measures": has_record,
    }
    return [form for form in FORMATS if has[form]]


@access.writes
def save(workspace: Workspace, evaluation: str, form: str, target: str | Path = "") -> Path:
    """Write that file, named after the evaluation if no ``target`` is given; its path."""
    row = evaluated.find(workspace, evaluation)
    path = paths.to_write(workspace, str(target) or f"{row['id']}{SUFFIXES.get(form, '')}")
    data = content(workspace, row["id"], form).encode("utf-8")
    if path.is_dir():
        path = path / f"{row['id']}{SUFFIXES[form]}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, data)
    except OSError as error:
        raise WorkspaceError(f"{path} cannot be written: {error.strerror or error}.") from error
    return path


def _mteb(workspace: Workspace, row: dict[str, Any]) -> dict[str, Any]:
    """A task result in MTEB's schema. No version of MTEB is claimed: ``cdp_studio`` says who wrote it, and how."""
    record = evaluated.record(workspace, row)
    benchmark, settings = record["benchmark"], record.get("settings", {})
    try:
        folder = evaluated.folder(workspace, row)
        manifest, spoken = manifests.read(folder), describe(folder, workspace).language or "en"
    except CdpError:  # the benchmark may have gone: the scores do not depend on it
        manifest, spoken = manifests.Manifest(), ""
    commits = list(manifest.commits.values())
    language = LANGUAGES.get(spoken, UNNAMED)
    scores = {_mteb_name(name): value for name, value in record["measures"].items()}
    return {
        "dataset_revision": commits[0] if commits else benchmark["hash"],
        "task_name": benchmark["name"],
        "mteb_version": None,
        "scores": {
            benchmark["split"]: [
                {**scores, "main_score": scores["ndcg_at_10"], "hf_subset": "default", "languages": [language]}
            ]
        },
        "evaluation_time": record.get("seconds"),
        "kg_co2_emissions": None,
        "date": record.get("created"),
        "cdp_studio": {
            "note": "Written by CDP Studio from its own evaluation; MTEB did not run.",
            "version": __version__,
            "evaluation": row["id"],
            "retriever": record["retriever"],
            "protocol": record.get("protocol"),
            "benchmark_hash": benchmark["hash"],
            "n_queries": benchmark["n_queries"],
            "n_documents": benchmark["n_documents"],
            "settings": settings,
            "marks": leakage.marks(row["counts"]),
            "remarks": evaluated.of_counts(row["counts"]),
            "created": record.get("created"),
        },
    }


def _mteb_name(measure: str) -> str:
    """``ndcg@10`` as MTEB writes it: ``ndcg_at_10``; ``p@1`` is ``precision_at_1``."""
    kind, _, k = measure.partition("@")
    return f"{'precision' if kind == 'p' else kind}_at_{k}"
