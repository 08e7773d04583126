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
from cdp.base.workspace import write_bytes
from cdp.retrievers.trained import card_file, model_folder

BEGIN, END = "## Results\n", "\n## Licences\n"
"""What stands around the results in a card."""

FRONT = "---\n"
"""What stands around the metadata at the top of a card."""


@dataclass(frozen=True, slots=True)
class BenchmarkScore:
    """NDCG@10 of the trained model on a benchmark, in percent; ``before`` is the untrained model's, if it is known.
    ``remark`` says what has to be known of the score: leaked queries, a training that was stopped."""

    benchmark: str
    protocol: str
    after: float
    before: float | None = None
    remark: str = ""


def section(result: Mapping[str, Any], scores: Sequence[BenchmarkScore] = ()) -> str:
    """The text under the heading. ``result`` is ``results/training.json``."""
    parts = [part for part in (_while_training(result), _afterwards(result, scores)) if part]
    return "\n\n".join(parts) or "Not evaluated yet."


def _while_training(result: Mapping[str, Any]) -> str:
    settings, evaluations = result["settings"], result["evaluations"]
    if not evaluations:
        return ""
    dev = "/".join(filter(None, (settings["benchmark"], settings["split"])))
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
        f"NDCG@10 in percent; before: {result['retriever']} as it was.",
        "",
        "| Benchmark | Protocol | Before | After |",
        "|---|---|---|---|",
    ]
    for score in scores:
        before = "–" if score.before is None else f"{score.before:.2f}"
        mark = " (see below)" if score.remark else ""
        lines.append(f"| {score.benchmark} | {score.protocol} | {before} | {score.after:.2f}{mark} |")
    remarks = [f"- {score.benchmark}: {score.remark}" for score in scores if score.remark]
    lines += ["", *remarks] if remarks else []
    return "\n".join(lines)


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


def with_scores(head: str, scores: Sequence[BenchmarkScore]) -> str:
    """The top of a card with the scores as ``model-index``; unchanged where it has no metadata or there is no score."""
    import yaml
    from huggingface_hub import EvalResult
    from huggingface_hub.repocard_data import eval_results_to_model_index
    from huggingface_hub.utils import yaml_dump

    before, begin, rest = head.partition(FRONT)
    front, end, body = rest.partition(FRONT)
    if all(score.remark for score in scores) or before or not (begin and end):
        return head
    try:
        metadata = yaml.safe_load(front)
    except yaml.YAMLError:
        return head  # somebody rewrote it: not ours to repair
    if not isinstance(metadata, dict):
        return head
    title = next((line.removeprefix("# ").strip() for line in body.splitlines() if line.startswith("# ")), "model")
    results = [
        EvalResult(
            task_type="information-retrieval",
            dataset_type=score.benchmark.split("/")[0],
            dataset_name=f"{score.benchmark} ({score.protocol} protocol)",
            dataset_split=score.benchmark.rpartition("/")[2],
            metric_type="ndcg_at_10",
            metric_name="NDCG@10, percent",
            metric_value=round(score.after, 2),
        )
        for score in scores
        if not score.remark
    ]
    metadata["model-index"] = eval_results_to_model_index(title, results)
    return f"{FRONT}{yaml_dump(metadata, sort_keys=False).rstrip()}\n{FRONT}{body}"
