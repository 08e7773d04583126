"""The evidence of ``situations.yaml``: studies with given means, drawn with a fixed seed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from cdp.principle.evidence import Arm, Basis, Evidence, Expectation, Task

FILE = Path(__file__).with_suffix(".yaml")


def situations() -> list[dict[str, Any]]:
    """The situations as they stand in the file."""
    return list(yaml.safe_load(FILE.read_text(encoding="utf-8")))


def evidence_of(situation: Mapping[str, Any]) -> list[Evidence]:
    made = []
    for facts in situation["evidence"]:
        if "published" in facts:
            expected = tuple(Expectation(*entry) for entry in facts["published"])
            made.append(Evidence(Basis(name="published results"), expected=expected))
        elif "unread" in facts:
            made.append(Evidence(Basis(retriever="static-minilm", reads_language=False, language="zh")))
        else:
            made.append(study(**facts))
    return made


def task_of(situation: Mapping[str, Any]) -> Task:
    return Task(**situation.get("task", {}))


def study(
    means: Mapping[str, float],
    *,
    n: int = 1000,
    seeds: int = 3,
    spread: float = 10.0,
    noise: float = 0.3,
    steps: Mapping[str, int] | None = None,
    held: Mapping[str, float] | None = None,
    **basis: Any,
) -> Evidence:
    """Arms with exactly these ``means``; ``held`` at equal pairs; ``basis`` changes a good study."""
    random = np.random.default_rng(0)
    shared = random.normal(0, 25, n)
    arms = []
    for what, group in (("", means), ("equal pairs", held or {})):
        for name, mean in group.items():
            kind, _, number = name.partition(" ")
            per_doc = int(number or 0)
            scores = shared + random.normal(0, spread, n) + np.zeros((seeds if per_doc else 1, 1))
            scores += random.normal(0, noise, (len(scores), 1)) if per_doc else 0.0
            scores += mean - scores.mean()
            length = (steps or {}).get(name, 87) if per_doc else 0
            arms.append(Arm(kind, scores, per_doc, what, documents=745, pairs=745 * per_doc, steps=length))
    facts: dict[str, Any] = {
        "study": "study-1", "name": "Test on my documents", "retriever": "static-minilm", "corpus": "my documents",
        "benchmark": "my-queries", "split": "test", "documents": 745, "of_documents": 745, "judged_queries": n,
        "written_by": "gpt-4o-mini", "finished": 12, "planned": 12, "queries": f"{n} queries",
        "equal_steps": len(set((steps or {}).values())) < 2,
    }  # fmt: skip
    return Evidence(Basis(**{**facts, **basis}), tuple(arms))
