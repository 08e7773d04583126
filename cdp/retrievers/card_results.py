"""The results in a model card: the dev benchmark while training, and every evaluation of the finished model since.

A model is evaluated after its card was written, so whoever evaluates it calls ``refresh``. The scores stand twice: in a
table for readers, and as ``model-index`` in the metadata at the top, from which the hub draws its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdp.base.locks import locked
from cdp.base.workspace import Workspace, read_json_or_none, write_bytes
from cdp.benchmarks import leakage

BEGIN, END = "## Results\n", "\n## Licences\n"
"""What stands around the results in a card."""

FRONT = "---\n"
"""What stands around the metadata at the top of a card."""


@dataclass(frozen=True, slots=True)
class Judged:
    """NDCG@10 of the trained model on a benchmark, in percent; ``before`` is the untrained model's, if it is known.
    ``remark`` says what has to be known of the score: leaked queries, a training that was stopped."""

    benchmark: str
    protocol: str
    after: float
    before: float | None = None
    remark: str = ""


def section(result: Mapping[str, Any], judged: Sequence[Judged] = ()) -> str:
    """The text under the heading. ``result`` is ``results/training.json``."""
    parts = [part for part in (_while_training(result), _afterwards(result, judged)) if part]
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


def _afterwards(result: Mapping[str, Any], judged: Sequence[Judged]) -> str:
    if not judged:
        return ""
    lines = [
        f"NDCG@10 in percent; before: {result['retriever']} as it was.",
        "",
        "| Benchmark | Protocol | Before | After |",
        "|---|---|---|---|",
    ]
    for one in judged:
        before = "–" if one.before is None else f"{one.before:.2f}"
        mark = " (see below)" if one.remark else ""
        lines.append(f"| {one.benchmark} | {one.protocol} | {before} | {one.after:.2f}{mark} |")
    remarks = [f"- {one.benchmark}: {one.remark}" for one in judged if one.remark]
    lines += ["", *remarks] if remarks else []
    return "\n".join(lines)


def evaluations_of(workspace: Workspace, training_job: str, result: Mapping[str, Any]) -> list[Judged]:
    """Every evaluation of this very model in the workspace, the newest of each kind, by benchmark.

    Two are of one kind on the same content of a benchmark, the same split and protocol; a model is known by its hash.
    """
    scores: dict[str, dict[tuple[str, str, str], tuple[str, float, str]]] = {}
    for path in sorted(workspace.jobs.glob("*/spec.json")):
        spec = read_json_or_none(path) or {}
        if spec.get("kind") != "evaluation" or spec["config"]["retriever"] not in (training_job, result["retriever"]):
            continue
        found = read_json_or_none(path.parent / "results" / "evaluation.json")
        if not isinstance(found, dict):
            continue
        benchmark = found["benchmark"]
        kind = (f"{benchmark['name']}/{benchmark['split']}", found["protocol"], benchmark["hash"])
        known = scores.setdefault(found["retriever"]["hash"], {})
        remark = " ".join(leakage.remarks(found.get("counts", {}), int(benchmark.get("n_queries") or 0)))
        score = (found["created"], 100 * found["measures"]["ndcg@10"], remark)
        known[kind] = max(known.get(kind, ("", 0.0, "")), score)
    before = scores.get(result["base_hash"], {})
    return [
        Judged(kind[0], kind[1], score, before[kind][1] if kind in before else None, remark)
        for kind, (_, score, remark) in sorted(scores.get(result["model_hash"], {}).items())
    ]


def refresh(workspace: Workspace, training_job: str) -> None:
    """Put what is known of a trained model into its card; a card that somebody has rearranged stays as it is."""
    job = workspace.job(training_job)
    card = job / "model" / "README.md"
    result = read_json_or_none(job / "results" / "training.json")
    if not isinstance(result, dict) or not card.is_file():
        return
    with locked(job / "card.lock", "the model card"):
        head, begin, rest = card.read_text(encoding="utf-8").partition(BEGIN)
        _, end, tail = rest.partition(END)
        if begin and end:
            judged = evaluations_of(workspace, training_job, result)
            text = section(result, judged)
            write_bytes(card, f"{with_scores(head, judged)}{BEGIN}\n{text}\n{END}{tail}".encode())


def with_scores(head: str, judged: Sequence[Judged]) -> str:
    """The top of a card with the scores as ``model-index``; unchanged where it has no metadata or there is no score."""
    import yaml
    from huggingface_hub import EvalResult
    from huggingface_hub.repocard_data import eval_results_to_model_index
    from huggingface_hub.utils import yaml_dump

    before, begin, rest = head.partition(FRONT)
    front, end, body = rest.partition(FRONT)
    if not any(not one.remark for one in judged) or before or not (begin and end):
        return head
    try:
        metadata = yaml.safe_load(front)
    except yaml.YAMLError:
        return head  # somebody rewrote it: not ours to repair
    if not isinstance(metadata, dict):
        return head
    title = next((line.removeprefix("# ").strip() for line in body.splitlines() if line.startswith("# ")), "model")
    scores = [
        EvalResult(
            task_type="information-retrieval",
            dataset_type=one.benchmark.split("/")[0],
            dataset_name=f"{one.benchmark} ({one.protocol} protocol)",
            dataset_split=one.benchmark.rpartition("/")[2],
            metric_type="ndcg_at_10",
            metric_name="NDCG@10, percent",
            metric_value=round(one.after, 2),
        )
        for one in judged
        if not one.remark
    ]
    metadata["model-index"] = eval_results_to_model_index(title, scores)
    return f"{FRONT}{yaml_dump(metadata, sort_keys=False).rstrip()}\n{FRONT}{body}"
