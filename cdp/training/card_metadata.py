"""The metadata at the top of a model card, in the hub's schema: what its filters, badges and links are made from.

What is not known is left out: the hub takes a wrong licence or data set for a fact. Scores come in when the model is
evaluated, see ``cdp.retrievers.card_results``.
"""

from __future__ import annotations

import re
from typing import Any

from cdp.base.workspace import Workspace
from cdp.retrievers import PRESETS, ResolvedRetriever
from cdp.retrievers.leakage import chain
from cdp.training.pairs import PairSet

LIBRARY = "sentence-transformers"
TASK = "sentence-similarity"
TAGS = (LIBRARY, TASK, "feature-extraction", "dense-retrieval", "information-retrieval", "cdp-studio")

_HUB_NAME = re.compile(r"[\w.\-]+/[\w.\-]+")


def hub_base(retriever: ResolvedRetriever, workspace: Workspace) -> str:
    """The hub's name of the model that a training starts from, however many trainings lie between; empty where it has
    none, as a folder."""
    if retriever.preset is not None:
        return retriever.preset.source if _HUB_NAME.fullmatch(retriever.preset.source) else ""
    if retriever.origin == "hub":
        return retriever.source if _HUB_NAME.fullmatch(retriever.source) else ""
    first = [str(spec["config"].get("retriever", "")) for _, spec in chain(workspace, retriever.name)][-1:]
    if not first or first[0] not in PRESETS:
        return ""
    source = PRESETS[first[0]].source
    return source if _HUB_NAME.fullmatch(source) else ""


def metadata(
    retriever: ResolvedRetriever, workspace: Workspace, pairs: PairSet, title: str, loss: str
) -> dict[str, Any]:
    """The metadata of a retriever that was trained from ``retriever`` on ``pairs``."""
    from huggingface_hub import ModelCardData

    tags = [*TAGS, f"dataset_size:{len(pairs)}", f"loss:{loss}"]
    tags += ["synthetic-queries"] if pairs.query_set.kind == "synthetic" else []
    languages = sorted(set(pairs.query_set.languages.values())) or [pairs.language]
    base = hub_base(retriever, workspace)
    data = ModelCardData(
        model_name=title,
        language=languages if len(languages) > 1 else languages[0],
        license=retriever.licence_id or None,
        base_model=base or None,
        library_name=LIBRARY,
        pipeline_tag=TASK,
        tags=tags,
        **({"base_model_relation": "finetune"} if base else {}),
    )
    values: dict[str, Any] = data.to_dict()
    return values
