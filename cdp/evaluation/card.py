"""The model card of a retriever that was trained here: the README.md beside its model, in the hub's format.

It is written from the training's record (``results/training.json``). A model is evaluated after its card was written,
so each evaluation calls ``refresh``: the scores go into a table, and as ``model-index`` into the metadata at the top.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdp.base.locks import locked
from cdp.base.statistics import paired_test
from cdp.base.text import public
from cdp.base.workspace import Workspace, read_json_or_none, write_bytes
from cdp.benchmarks import manifests
from cdp.evaluation import combined
from cdp.evaluation.results import KIND, read_result
from cdp.retrievers import leakage
from cdp.retrievers.presets import PRESETS
from cdp.retrievers.resolve import ResolvedRetriever, card_file, chain, model_folder, training_result

# What a card calls the model where it is loaded; its name on the hub once it is there.
FOLDER = "path/to/this/folder"

# What stands around the scores in a card.
_BEGIN, _END = "## Results\n", "\n## Licences\n"

_BODY = """
# {title}

{warnings}A dense retriever trained with CDP Studio from **{base}** on queries for documents of the corpus `{corpus}`.

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{folder}")
queries = model.encode_query(["your query"])
documents = model.encode_document(["your document"])
scores = model.similarity(queries, documents)   # cosine
```

## Training

InfoNCE with in-batch negatives, weighting **{weighting}**.

| What | Value |
|---|---|
{facts}
{notes}
{begin}
Not evaluated yet.
{end}
{licences}

## Record

```json
{record}
```
"""


@dataclass(frozen=True, slots=True)
class Score:
    """NDCG@10 in percent on a benchmark (``name/split``); ``before`` is the untrained model's.

    ``difference`` is (mean, low, high) with the 95% interval of the paired bootstrap. ``badges`` and ``remark`` say
    what a score is to be read with. A ``fault`` (leaked queries, a stopped training) keeps it from the hub's metadata.
    """

    benchmark: str
    protocol: str
    after: float
    before: float | None
    difference: tuple[float, float, float] | None
    queries: int
    badges: tuple[str, ...]
    remark: str
    fault: bool


def model_card(
    result: Mapping[str, Any],
    retriever: ResolvedRetriever,
    queries: str,
    languages: Sequence[str],
    licences: Mapping[str, str],
    workspace: Workspace,
    title: str,
) -> str:
    """Return the card of a training from its record.

    ``retriever`` is what it started from, ``queries`` what it was trained on, in words.
    """
    from huggingface_hub import ModelCard, ModelCardData

    notes = [str(note) for note in result["notes"]]
    base = _hub_base(retriever, workspace)
    data = ModelCardData(
        model_name=title,
        language=list(languages) if len(languages) > 1 else languages[0],
        license=retriever.licence_id or None,
        base_model=base or None,
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity",
        tags=["sentence-transformers", "dense-retrieval", "cdp-studio", f"dataset_size:{result['pairs']}"],
    )
    body = _BODY.format(
        title=title,
        warnings="".join(f"> {note}\n\n" for note in notes if note.startswith("**")),
        base=public(retriever.name),
        corpus=result["corpus"],
        folder=FOLDER,
        weighting=result["weighting"],
        facts="\n".join(
            f"| {name} | {_cell(value)} |" for name, value in {"queries": queries, **_facts(result)}.items()
        ),
        notes="".join(f"\n- {note}" for note in notes) + "\n" * bool(notes),
        begin=_BEGIN,
        end=_END,
        licences="\n".join(f"- **{what.capitalize()}**: {terms}" for what, terms in licences.items()),
        record=json.dumps(public(result), ensure_ascii=False, indent=2),
    )
    return str(ModelCard(f"---\n{data.to_yaml()}\n---\n{body}"))


def _facts(result: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of the table; everything else stands in the record below."""
    prompt = str(result["query_prompt"]).replace("\n", "\\n")
    return {
        "pairs": f"{result['pairs']:,} over {result['documents']:,} documents",
        "queries per document": result["settings"]["per_doc"] or "all",
        "steps": f"{result['steps']:,} of {result['steps_planned']:,}, {result['batch_size']} pairs each",
        "learning rate": f"{result['settings']['learning_rate']:g}",
        "seed": result["settings"]["seed"],
        "query prompt": f"`{prompt}`" if prompt else "none",
        "longest text": f"{result['max_length']} tokens" if result["max_length"] else "nothing is cut",
        "NDCG@10 on the dev benchmark": "–" if result["best_ndcg@10"] is None else f"{result['best_ndcg@10']:.2f}",
        "hash of the query set": f"`{result['query_set_hash']}`",
        "model hash": f"`{result['model_hash']}` (from `{result['base_hash']}`)",
        "made with": result["software"],
    }


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|")


def _hub_base(retriever: ResolvedRetriever, workspace: Workspace) -> str:
    """The hub's name of the model that a training starts from, however many trainings lie between; else empty."""
    first = [str(spec["config"].get("retriever", "")) for _, spec in chain(workspace, retriever.name)][-1:]
    preset = retriever.preset or (PRESETS.get(first[0]) if first else None)
    source = preset.source if preset is not None else retriever.source if retriever.origin == "hub" else ""
    return source if re.fullmatch(r"[\w.\-]+/[\w.\-]+", source) else ""


def licence_in(path: Path) -> str:
    """Return the licence in a card's metadata; empty where there is none that can be read."""
    from huggingface_hub import ModelCard
    from yaml import YAMLError

    try:
        return str(ModelCard(path.read_text(encoding="utf-8")).data.license or "")
    except (OSError, ValueError, YAMLError):
        return ""


def refresh(workspace: Workspace, training_job: str) -> None:
    """Put every evaluation of a trained model into its card. A card that somebody has rewritten stays as it is."""
    from huggingface_hub import ModelCard
    from yaml import YAMLError

    folder = workspace.job(training_job)
    path, result = card_file(model_folder(folder)), training_result(folder)
    if result is None or not path.is_file():
        return
    with locked(folder / "card.lock", "the model card"):
        try:
            card = ModelCard(path.read_text(encoding="utf-8"))
        except (ValueError, YAMLError):
            return
        head, begin, rest = card.text.partition(_BEGIN)
        _, end, tail = rest.partition(_END)
        scores = scores_of(workspace, training_job, result)
        if begin and end and scores:
            card.text = f"{head}{_BEGIN}\n{_table(scores)}\n{_END}{tail}"
            card.data.model_name = card.data.model_name or training_job
            alone = [score for score in scores if not score.fault and "," not in score.benchmark]
            card.data.eval_results = [_hub_result(score) for score in alone] or None
            write_bytes(path, str(card).encode())


def scores_of(workspace: Workspace, training_job: str, result: Mapping[str, Any]) -> list[Score]:
    """Return the newest evaluation of this very model on each benchmark, split and protocol, by benchmark.

    A model is known by its hash; ``result`` is the record of its training.
    """
    newest: dict[str, dict[tuple[str, str, str], dict[str, Any]]] = {}
    for path in sorted(workspace.jobs.glob("*/spec.json")):
        spec = read_json_or_none(path) or {}
        if spec.get("kind") != KIND or spec["config"]["retriever"] not in (training_job, result["retriever"]):
            continue
        record = read_result(path.parent)
        if record is None:
            continue
        benchmark = record["benchmark"]
        how = combined.title("", *combined.settings_of(record.get("settings", {})))
        kind = (f"{benchmark['name']}/{benchmark['split']}{how}", record["protocol"], benchmark["hash"])
        known = newest.setdefault(record["retriever"]["hash"], {})
        if kind not in known or record["created"] >= known[kind]["created"]:
            known[kind] = record
    before, after = newest.get(result["base_hash"], {}), newest.get(result["model_hash"], {})
    return [_score(kind, after[kind], before.get(kind)) for kind in sorted(after)]


def _score(kind: tuple[str, str, str], record: Mapping[str, Any], before: Mapping[str, Any] | None) -> Score:
    counts, benchmark = record.get("counts", {}), record["benchmark"]
    folder = str(benchmark.get("folder") or "")
    manifest = manifests.read(Path(folder)) if folder else manifests.Manifest()
    marks, queries = leakage.marks(counts), int(benchmark.get("n_queries") or 0)
    difference = None
    if before is not None and (ours := _per_query(record)) and ours.keys() == (theirs := _per_query(before)).keys():
        test = paired_test([100 * (value - theirs[query]) for query, value in ours.items()])
        difference = (test.mean, test.low, test.high)
    subset = [f"a subset of {manifest.subset.of}"] if manifest.subset is not None else []
    return Score(
        benchmark=kind[0],
        protocol=kind[1],
        after=100 * record["measures"]["ndcg@10"],
        before=None if before is None else 100 * before["measures"]["ndcg@10"],
        difference=difference,
        queries=queries,
        badges=(*marks, *(["in-domain"] if leakage.in_domain(counts) else []), *subset),
        remark=" ".join(leakage.remarks(counts, queries)),
        fault=bool(marks),
    )


def _per_query(record: Mapping[str, Any]) -> dict[str, float]:
    """{query: NDCG@10}; empty where the record has none."""
    scores = record.get("per_query", {})
    return dict(zip(scores.get("query_ids", ()), scores.get("ndcg@10", ()), strict=False))


def _table(scores: Sequence[Score]) -> str:
    lines = [
        "NDCG@10 in percent before and after the training, with the 95% interval of the paired difference.",
        "",
        "| Benchmark | Protocol | Queries | Before | After | Difference | To be read with |",
        "|---|---|---|---|---|---|---|",
    ]
    for s in scores:
        difference = "–" if s.difference is None else "{:+.2f} [{:+.2f}, {:+.2f}]".format(*s.difference)
        before = "–" if s.before is None else f"{s.before:.2f}"
        cells = (s.benchmark, s.protocol, f"{s.queries:,}", before, f"{s.after:.2f}", difference, ", ".join(s.badges))
        lines.append(f"| {' | '.join(cell or '–' for cell in cells)} |")
    remarks = [f"- {s.benchmark}: {s.remark}" for s in scores if s.remark]
    return "\n".join([*lines, *([""] if remarks else []), *remarks])


def _hub_result(score: Score) -> Any:
    from huggingface_hub import EvalResult

    marks = "".join(f", {badge}" for badge in score.badges)
    return EvalResult(
        task_type="information-retrieval",
        task_name="Information Retrieval",
        dataset_type=score.benchmark.split("/")[0],
        dataset_name=f"{score.benchmark} ({score.protocol} protocol{marks})",
        dataset_split=score.benchmark.rpartition("/")[2],
        metric_type="ndcg_at_10",
        metric_name="NDCG@10, percent",
        metric_value=round(score.after, 2),
    )
