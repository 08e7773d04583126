"""The results in a model card: the dev benchmark while training, and every evaluation of the finished model since.

A model is evaluated after its card was written, so whoever evaluates it calls ``put_scores``. The scores stand twice:
in a table for readers, and as ``model-index`` in the metadata at the top, from which the hub draws its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdp.base.locks import locked
from cdp.base.text import public
from cdp.base.workspace import write_bytes
from cdp.retrievers.resolve import card_file, model_folder

# What stands around the results in a card.
BEGIN, END = "## Results\n", "\n## Licences\n"

# What stands around the metadata at the top of a card.
FRONT = "---\n"


# The task as sentence-transformers' own cards name it on the hub.
HUB_TASK = {"task_type": "information-retrieval", "task_name": "Information Retrieval"}


@dataclass(frozen=True, slots=True)
class BenchmarkScore:
    """NDCG@10 of the trained model on a benchmark (``name/split``), in percent; ``before`` is the untrained model's.

    ``interval`` and ``difference`` (mean, low, high) are 95% bootstrap intervals over the ``queries``, None where they
    are not known. ``badges`` say in a word or two what a score is to be read with, ``remark`` in sentences. A ``fault``
    (leaked queries, a training that was stopped) keeps it from the hub's metadata. ``dataset`` is the benchmark's
    repository on the hub and ``revision`` its commit, where it came from there.
    """

    benchmark: str
    protocol: str
    after: float
    before: float | None = None
    remark: str = ""
    interval: tuple[float, float] | None = None
    difference: tuple[float, float, float] | None = None
    queries: int = 0
    badges: tuple[str, ...] = ()
    fault: bool = False
    dataset: str = ""
    revision: str = ""


def section(result: Mapping[str, Any], scores: Sequence[BenchmarkScore] = ()) -> str:
    """The text under the heading. ``result`` is ``results/training.json``."""
    parts = [part for part in (_while_training(result), _afterwards(result, scores)) if part]
    return "\n\n".join(parts) or "Not evaluated yet."


def _while_training(result: Mapping[str, Any]) -> str:
    settings, evaluations = result["settings"], result["evaluations"]
    if not evaluations:
        return ""
    dev = "/".join(filter(None, (public(settings["benchmark"]), settings["split"])))
    lines = [
        f"While training, on the dev benchmark `{dev}`: NDCG@10 in percent, cosine. The best step's weights were kept.",
        "",
        "| Step | NDCG@10 |",
        "|---|---|",
    ]
    for evaluation in evaluations:
        score = f"{evaluation['ndcg@10']:.2f}"
        bold = f"**{score}**" if evaluation["step"] == result["best_step"] else score
        lines.append(f"| {evaluation['step']:,} | {bold} |")
    return "\n".join(lines)


def _afterwards(result: Mapping[str, Any], scores: Sequence[BenchmarkScore]) -> str:
    if not scores:
        return ""
    lines = [
        f"NDCG@10 in percent; before: {public(result['retriever'])} as it was. In brackets 95% bootstrap "
        "intervals over the queries; that of the difference is paired.",
        "",
        "| Benchmark | Protocol | Queries | Before | After | Difference | To be read with |",
        "|---|---|---|---|---|---|---|",
    ]
    for score in scores:
        before = "–" if score.before is None else f"{score.before:.2f}"
        after = f"{score.after:.2f}{_interval(score.interval, '.2f')}"
        difference = "–"
        if score.difference is not None:
            mean, *interval = score.difference
            difference = f"{mean:+.2f}{_interval(interval, '+.2f')}"
        queries = f"{score.queries:,}" if score.queries else "–"
        cells = (score.benchmark, score.protocol, queries, before, after, difference, ", ".join(score.badges) or "–")
        lines.append("| " + " | ".join(cells) + " |")
    remarks = [f"- {score.benchmark}: {score.remark}" for score in scores if score.remark]
    lines += ["", *remarks] if remarks else []
    return "\n".join(lines)


def _interval(bounds: Sequence[float] | None, form: str) -> str:
    return "" if bounds is None else f" [{bounds[0]:{form}}, {bounds[1]:{form}}]"


def put_scores(job_folder: Path, result: Mapping[str, Any], scores: Callable[[], Sequence[BenchmarkScore]]) -> None:
    """Put the scores of a trained model into its card; a card that somebody has rearranged stays as it is.

    ``scores`` is asked while nobody else writes the card: of two evaluations that end at once the later sees both.
    """
    card = card_file(model_folder(job_folder))
    if not card.is_file():
        return
    with locked(job_folder / "card.lock", "the model card"):
        head, begin, rest = card.read_text(encoding="utf-8").partition(BEGIN)
        _, end, tail = rest.partition(END)
        if begin and end:
            benchmark_scores = scores()
            text = section(result, benchmark_scores)
            write_bytes(card, f"{with_scores(head, benchmark_scores)}{BEGIN}\n{text}\n{END}{tail}".encode())


def front_matter(card: str) -> tuple[dict[str, Any], str] | None:
    """(the metadata at the top of a card, all that stands below); None where there is none that can be read."""
    import yaml

    before, begin, rest = card.partition(FRONT)
    front, end, body = rest.partition(FRONT)
    if before or not (begin and end):
        return None
    try:
        metadata = yaml.safe_load(front)
    except yaml.YAMLError:
        return None  # somebody rewrote it: not ours to repair
    return (metadata, body) if isinstance(metadata, dict) else None


def with_metadata(metadata: Mapping[str, Any], body: str) -> str:
    """A card of its metadata and what stands below."""
    from huggingface_hub.utils import yaml_dump

    return f"{FRONT}{yaml_dump(dict(metadata), sort_keys=False).rstrip()}\n{FRONT}{body}"


def with_scores(head: str, scores: Sequence[BenchmarkScore]) -> str:
    """The top of a card with the scores as ``model-index``; unchanged where it has no metadata or there is no score."""
    from huggingface_hub import EvalResult
    from huggingface_hub.repocard_data import eval_results_to_model_index

    parts = front_matter(head)
    if parts is None or all(score.fault for score in scores):
        return head
    metadata, body = parts
    title = next((line.removeprefix("# ").strip() for line in body.splitlines() if line.startswith("# ")), "model")
    results = [
        EvalResult(**HUB_TASK, **_hub_dataset(score), **_hub_metric(score)) for score in scores if not score.fault
    ]
    metadata["model-index"] = eval_results_to_model_index(title, results)
    return with_metadata(metadata, body)


def _hub_dataset(score: BenchmarkScore) -> dict[str, Any]:
    marks = "".join(f", {badge}" for badge in score.badges)
    return {
        "dataset_type": score.dataset or score.benchmark.split("/")[0],
        "dataset_name": f"{score.benchmark} ({score.protocol} protocol{marks})",
        "dataset_split": score.benchmark.rpartition("/")[2],
        "dataset_revision": score.revision or None,
    }


def _hub_metric(score: BenchmarkScore) -> dict[str, Any]:
    facts: dict[str, Any] = {"queries": score.queries} if score.queries else {}
    if score.interval is not None:
        facts["confidence_interval_95"] = [round(bound, 2) for bound in score.interval]
    return {
        "metric_type": "ndcg_at_10",
        "metric_name": "NDCG@10, percent",
        "metric_value": round(score.after, 2),
        "metric_args": facts or None,
    }
