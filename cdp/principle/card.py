"""The three lines of an answer's card: different queries against paraphrases, how many, where to spend."""

from __future__ import annotations

from cdp.base.condition import DIVERSE
from cdp.principle.decide import Decision


def lines(known: Decision) -> list[tuple[str, str]]:
    """Return (question, verdict) of what was measured: of the most different queries per document that were tried, with
    the retriever that was trained, not fused. A question that nothing was measured for is left out."""
    options = [arm.condition for arm in known.options]
    different = [option for option in options if option.kind == DIVERSE and not option.fused]
    if not different:
        return []

    most = max(different, key=lambda option: option.per_doc)
    asked = {"Different queries or paraphrases?": most.paraphrased, "How many?": most.single}

    found = []
    for question, control in asked.items():
        for c in known.comparisons:
            if (c.option.condition, c.against.condition) == (most, control):
                found.append((question, c.sentence))

    for c in known.equal_pairs:
        if c.option.condition.kind == DIVERSE and c.option.condition.per_doc > 1:
            found.append(
                ("Where to spend: more queries per document, or more documents?", f"At equal pairs, {c.sentence}")
            )
            break

    return found
