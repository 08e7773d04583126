"""The three lines of an answer's card: different queries against paraphrases, how many, where to spend."""

from __future__ import annotations

from cdp.principle.decide import ArmDifference, Decision
from cdp.principle.evidence import DIVERSE, PARAPHRASE, Arm


def lines(known: Decision) -> list[tuple[str, str]]:
    """Return (question, verdict) of what was measured: of the most different queries per document that were tried, with
    the retriever that was trained, not fused. A question that nothing was measured for is left out."""
    different = [arm for arm in known.options if arm.kind == DIVERSE and arm.trained and not (arm.fused or arm.held)]
    if not different:
        return []

    most = max(different, key=lambda arm: arm.per_doc)
    found = []
    over_paraphrase = _against(known, most, PARAPHRASE, most.per_doc)
    if over_paraphrase is not None:
        found.append(("Different queries or paraphrases?", over_paraphrase.sentence))

    over_one = _against(known, most, DIVERSE, 1)
    if over_one is not None and most.per_doc > 1:
        found.append(("How many?", over_one.sentence))

    for c in known.equal_pairs:
        if c.option.kind == DIVERSE and c.option.per_doc > 1:
            found.append(
                ("Where to spend: more queries per document, or more documents?", f"At equal pairs, {c.sentence}")
            )
            break

    return found


def _against(known: Decision, most: Arm, kind: str, per_doc: int) -> ArmDifference | None:
    for c in known.comparisons:
        if c.option is most and _is(c.against, kind, per_doc):
            return c

    return None


def _is(arm: Arm, kind: str, per_doc: int) -> bool:
    return (arm.kind, arm.per_doc, arm.fused, arm.held) == (kind, per_doc, False, "")
