"""The three lines of an answer's card: different queries against paraphrases, how many, where to spend."""

from __future__ import annotations

from cdp.principle.decide import ArmDifference, Decision
from cdp.principle.evidence import DIVERSE, PARAPHRASE, Arm


def lines(known: Decision) -> list[tuple[str, str]]:
    """Return (question, verdict) of what was measured: of the most different queries per document that were tried, with
    the retriever that was trained, not fused. A question that nothing was measured for is left out."""
    arms = [arm for arm in known.options if arm.trained and not (arm.fused or arm.held)]
    most = max((arm for arm in arms if arm.kind == DIVERSE), key=lambda arm: arm.per_doc, default=None)
    if most is None:
        return []

    def against(kind: str, per_doc: int) -> ArmDifference | None:
        found = (c for c in known.comparisons if c.option is most and _is(c.against, kind, per_doc))
        return next(found, None)

    spending = next((c for c in known.equal_pairs if c.option.kind == DIVERSE and c.option.per_doc > 1), None)
    asked = (
        ("Different queries or paraphrases?", against(PARAPHRASE, most.per_doc)),
        ("How many?", against(DIVERSE, 1) if most.per_doc > 1 else None),
        ("Where to spend: more queries per document, or more documents?", spending),
    )
    return [(question, c.sentence) for question, c in asked if c is not None]


def _is(arm: Arm, kind: str, per_doc: int) -> bool:
    return (arm.kind, arm.per_doc, arm.fused, arm.held) == (kind, per_doc, False, "")
