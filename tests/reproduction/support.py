"""Studies with differences that are known beforehand, as they are kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reproduction import kept
from reproduction.criteria import Criterion
from reproduction.kept import Kept
from reproduction.stages import Stage
from tests.studies.support import Truth, made

# Eight judged sets of as many families; the last is of the first corpus.
SETS = {f"set{i}": 4.0 + i for i in range(8)}
CORPORA = ("one", "two", "three", "four")
N_QUERIES = 40


def study(
    folder: Path,
    truth: Truth,
    *,
    plan: str = "recorded-contrast",
    methods: tuple[str, ...] = ("diverse", "paraphrase"),
    corpora: tuple[str, ...] = CORPORA,
    frozen: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Kept:
    """A study of ``methods`` on each corpus, kept in ``folder`` and read from there."""
    rng = np.random.default_rng(1)
    kinds = [f"{method} on {corpus}" for corpus in corpora for method in methods]
    facts = {
        name: {
            "family": name,
            "in_domain_of": [kind for kind in kinds if kind.endswith(" one")] if name == "set7" else [],
            "cw_of": {f"q{i}": int(cw + rng.integers(-3, 4)) for i in range(N_QUERIES)},
            "facts_of": {
                f"q{i}": {"words": int(rng.integers(5, 20)), "overlap": rng.uniform()} for i in range(N_QUERIES)
            },
        }
        for name, cw in SETS.items()
    }
    about, records = made(truth, benchmarks=SETS, kinds=kinds, facts=facts, n_queries=N_QUERIES, **settings)
    about["sources"] = [
        {**source, "kind": kind.partition(" on ")[0], "corpus": kind.partition(" on ")[2]}
        for source, kind in zip(about["sources"], kinds, strict=True)
    ]
    about["corpora"] = [{"source": kind, "corpus": kind.partition(" on ")[2]} for kind in kinds]
    for number, record in enumerate(records):
        record["key"] = f"{number:024x}"
    whole = {"id": f"study-{plan}", "state": "finished", "frozen": frozen or {}, "limits": [], "about": about}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{plan}{kept.ENDING}").write_bytes(kept.packed(whole, records))
    return kept.read(folder, [Stage(plan, 1)])[plan]


def criterion(**changes: Any) -> Criterion:
    values: dict[str, Any] = {
        "studies": ("recorded-contrast",),
        "of": {"method": "diverse", "per_doc": [2, 5]},
        "against": {"method": "paraphrase"},
        "direction": "gain",
        "margin": 0.5,
    }
    return Criterion(**{**values, **changes})
