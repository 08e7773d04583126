"""The model that a test keeps: of each option its best seed by dev while it runs, the winning option's at the end.

While a study runs the candidates lie in ``models/<option>/`` of its job; at the end the winner becomes the job's own
``model/`` with ``results/training.json``, as a training leaves them, and the others leave unless the plan keeps all.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from cdp.base.condition import Condition
from cdp.base.records import Count, Real, fields, whole
from cdp.base.worker import Job
from cdp.base.workspace import slug, write_json
from cdp.evaluation.card import model_card, save_model
from cdp.evaluation.evaluate import length_of
from cdp.principle.evidence import Arm
from cdp.retrievers import ResolvedRetriever, leakage
from cdp.retrievers.resolve import model_folder, title_of
from cdp.studies import records
from cdp.studies.advice import answer_from
from cdp.studies.config import BEST, StudyConfig
from cdp.studies.plan import PlannedTraining
from cdp.training.plan import licence_notes
from cdp.training.record import record_of, written_of

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from cdp.training.loop import Training
    from cdp.training.pairs import PairSet
    from cdp.training.tokens import TokenStore

FOLDER, ABOUT = "models", "about.json"

# What is known of a candidate: the option, its best seed with NDCG@10 on dev in [0, 1], and its training's record.
_CANDIDATE = fields(
    {"query_set": str, "per_doc": Count, "held": str, "seed": Count, "dev": Real | None, "result": dict[str, Any]}
)


def folder_of(job: Path, query_set: str, option: Condition) -> Path:
    """Return the folder of an option's candidate."""
    return job / FOLDER / slug(f"{query_set} {option.per_doc} {option.held}", length=110)


def offer(
    job: Job, planned: PlannedTraining, retriever: ResolvedRetriever, pairs: PairSet, documents: TokenStore,
    made: Training, model: SentenceTransformer,
) -> None:  # fmt: skip
    """Keep a trained model as its option's candidate, unless another seed of it was better on dev."""
    from cdp.training.checkpoint import write_folder

    condition, query_set = planned.condition, pairs.query_set
    target = folder_of(job.folder, query_set.id, condition)

    before = whole(_CANDIDATE, target / ABOUT)
    score = made.outcome.best_score
    if before is not None and before["seed"] != planned.seed and (before["dev"] or 0.0) >= (score or 0.0):
        return

    limit = length_of(model) or made.config.loop.max_length
    result = record_of(job.id, made.config, pairs, documents, made, model, limit=limit)
    result["leakage"] = job.spec.get("inputs", {}).get(leakage.LEAKAGE, [])
    title = title_of(str(job.spec.get("kind")), str(job.spec.get("name") or job.id))
    card = partial(
        model_card, result, retriever, written_of(query_set), [pairs.language],
        licence_notes(retriever, query_set, job.workspace), job.workspace, title,
    )  # fmt: skip

    def write(folder: Path) -> None:
        model_folder(folder).mkdir()
        save_model(model, model_folder(folder), card)
        leakage.write_hashes(folder, pairs.queries, pairs.documents[: pairs.n_documents])
        about = {"query_set": query_set.id, "per_doc": condition.per_doc, "held": condition.held}
        write_json(folder / ABOUT, {**about, "seed": planned.seed, "dev": score, "result": result})

    write_folder(target, write)


def winner(job: Job, corpus: str) -> tuple[Arm, bool] | None:
    """Return the trained option whose model is worth keeping, and whether the answer chose it, else the best training.
    None without a training."""
    name = str(job.spec.get("name") or job.id)
    view: Any = SimpleNamespace(id=job.id, name=name, state="finished", folder=job.folder)
    answer = answer_from(job.workspace, [view], corpus=corpus)
    if answer.chosen is not None and answer.chosen.trained:
        return answer.chosen, True

    trained = [arm for arm in answer.options if arm.trained]
    if not trained:
        return None
    return max(trained, key=lambda arm: arm.mean), False


def settle(job: Job, config: StudyConfig, corpus: str, train: Callable[[Condition], None]) -> None:
    """Make the winning option's model the job's own. ``train`` makes a candidate that is not there: its scores were
    another study's."""
    found = winner(job, corpus)
    if found is None:
        return

    arm, chosen = found
    folder = folder_of(job.folder, arm.query_set, arm.condition)
    if not folder.is_dir():
        train(arm.condition._replace(fused=False))

    about = whole(_CANDIDATE, folder / ABOUT)
    if about is None:
        return

    result: dict[str, Any] = about["result"]
    shutil.rmtree(model_folder(job.folder), ignore_errors=True)
    shutil.copytree(model_folder(folder), model_folder(job.folder))
    for name in (leakage.FILE, leakage.DOCUMENTS):
        shutil.copyfile(folder / name, job.results / name)
    job.result("training", result)
    facts = {"query_set": arm.query_set, "per_doc": arm.per_doc, "held": arm.held, "option": arm.name}
    facts |= {"chosen": chosen, "seed": about["seed"], "retriever": result["retriever"]}
    job.result(records.KEPT, {**facts, "settings": result["settings"]})
    if config.keep == BEST:
        shutil.rmtree(job.folder / FOLDER, ignore_errors=True)
