"""The three lines of an answer's card: different queries against paraphrases, how many, where to spend."""

from __future__ import annotations

from cdp.principle.decide import Decision
from cdp.principle.evidence import DIVERSE, PARAPHRASE


def lines(known: Decision) -> list[tuple[str, str]]:
    """Return (question, verdict) of what was measured: of the most different queries per document that were tried, with
    the retriever that was trained, not fused. A question that nothing was measured for is left out."""
    different = [arm for arm in known.options if arm.kind == DIVERSE and arm.trained and not (arm.fused or arm.held)]
    if not different:
        return []

    most = max(different, key=lambda arm: arm.per_doc)
    asked = {"Different queries or paraphrases?": (PARAPHRASE, most.per_doc)}
    if most.per_doc > 1:
        asked["How many?"] = (DIVERSE, 1)

    found = []
    for question, (kind, per_doc) in asked.items():
        for c in known.comparisons:
            other = (c.against.kind, c.against.per_doc, c.against.fused, c.against.held)
            if c.option is most and other == (kind, per_doc, False, ""):
                found.append((question, c.sentence))
                break

    for c in known.equal_pairs:
        if c.option.kind == DIVERSE and c.option.per_doc > 1:
            found.append(
                ("Where to spend: more queries per document, or more documents?", f"At equal pairs, {c.sentence}")
            )
            break

    return found
