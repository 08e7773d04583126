"""The evidence of ``situations.yaml``: studies with given means, drawn with a fixed seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from cdp.base.condition import Condition
from cdp.base.statistics import Floats
from cdp.principle.evidence import Arm, Basis, Evidence, Expectation, Task
from cdp.principle.recommend import expected, measured

FILE = Path(__file__).with_suffix(".yaml")


def situations() -> list[dict[str, Any]]:
    """The situations as they stand in the file."""
    return list(yaml.safe_load(FILE.read_text(encoding="utf-8")))


def evidence_of(situation: Mapping[str, Any]) -> list[Evidence]:
    made = []
    for facts in situation["evidence"]:
        if "published" in facts:
            published = tuple(Expectation(*entry) for entry in facts["published"])
            made.append(Evidence(Basis(name="published results"), expected=published))
        elif "prior" in facts:
            _, limits = measured()
            made.append(Evidence(Basis(name="published results"), expected=expected(), limits=limits))
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
    spreads: Mapping[str, float] | None = None,
    noise: float = 0.3,
    steps: Mapping[str, int] | None = None,
    seen: Mapping[str, int] | None = None,
    held: Mapping[str, float] | None = None,
    clusters: int = 0,
    shared: float = 0.0,
    people: Mapping[str, float] | None = None,
    labels: int = 0,
    ungraded: Mapping[str, int] | None = None,
    unjudged: Mapping[str, float] | None = None,
    top: Mapping[str, float] | None = None,
    apis: Sequence[str] = (),
    **basis: Any,
) -> Evidence:
    """Arms with exactly these ``means``; ``held`` at equal pairs; ``basis`` changes a good study.

    An option is ``[retriever@]kind [Q/Doc] [fused]``.
    """
    random = np.random.default_rng(0)
    common = random.normal(0, 25, n)
    groups = np.arange(n) % clusters if clusters else np.arange(n)
    arms = []
    for what, group in (("", means), ("equal pairs", held or {})):
        for name, mean in group.items():
            retriever, _, option = name.rpartition("@")
            kind, *rest = option.split()
            per_doc = int(rest[0]) if rest else 0
            scores = common + random.normal(0, (spreads or {}).get(name, spread), n)
            scores = scores + np.zeros((seeds if per_doc else 1, 1))
            if shared:
                scores += random.normal(0, shared, n)[groups]
            scores += random.normal(0, noise, (len(scores), 1)) if per_doc else 0.0
            scores[:, :labels] -= scores[:, :labels].mean() if labels else 0.0
            scores[:, labels:] -= scores[:, labels:].mean()
            scores += mean
            more: dict[str, Any] = {
                "seen": (seen or {}).get(name),
                "api": name in apis,
                "unjudged": (unjudged or {}).get(name),
            }
            more = {fact: value for fact, value in more.items() if value}
            if people:
                more["people"] = _people(scores, people[name], labels, (ungraded or {}).get(name, 0), len(arms))
            if top:
                more["top"] = scores - mean + top.get(name, mean)
            length = (steps or {}).get(name, 87) if per_doc else 0
            option = Condition(retriever, kind, per_doc, held=what, fused="fused" in rest)
            arms.append(Arm(option, scores, what, documents=745, pairs=745 * per_doc, steps=length, **more))
    facts: dict[str, Any] = {
        "study": "study-1", "name": "Test on my documents", "retriever": "static-minilm", "corpus": "my documents",
        "benchmark": "my-queries", "split": "test", "documents": 745, "of_documents": 745, "judged_queries": n,
        "written_by": "gpt-4o-mini", "labels": labels, "finished": 12, "planned": 12, "queries": f"{n} queries",
        "equal_steps": len(set((steps or {}).values())) < 2,
    }  # fmt: skip
    grouped = {"clusters": tuple(groups.tolist())} if clusters else {}
    return Evidence(Basis(**{**facts, **basis}), tuple(arms), **grouped)


def _people(scores: Floats, mean: float, labels: int, ungraded: int, seed: int) -> Floats:
    """People's scores of the first ``labels`` queries, ``mean`` where the judge's grades give the arm's; the first
    ``ungraded`` of these are not known."""
    noise = np.random.default_rng(seed).normal(0, 6, labels)
    found = np.full_like(scores, np.nan)
    found[:, :labels] = scores[:, :labels] - scores.mean() + mean + noise - noise.mean()
    found[:, :ungraded] = np.nan
    return found
