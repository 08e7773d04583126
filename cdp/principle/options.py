"""Options of a decision: their names, what to do for each, and which costs more."""

from __future__ import annotations

from cdp.base.condition import BM25, BY, DIVERSE, HUMAN, HYBRID, PARAPHRASED, UNTRAINED, Condition
from cdp.principle.evidence import Arm

# Names of the options without training queries: as something compared, and as something to do.
FIXED = {
    UNTRAINED: ("the untrained retriever", "keep {} untrained"),
    BM25: ("BM25", "use BM25"),
    HYBRID: ("the untrained retriever with BM25", "combine the untrained retriever with BM25"),
}

# One and several training queries by their method.
WRITTEN = {
    DIVERSE: ("one query", "different queries"),
    PARAPHRASED: ("one paraphrase", "paraphrases"),
    HUMAN: ("the human queries", "human queries"),
}

# The order of cost, the cheapest first: the retriever as it is, an index of words, both, a training on queries that are
# there; then one on queries that an LLM writes.
KINDS = (UNTRAINED, BM25, HYBRID, HUMAN)


def cost(arm: Arm) -> tuple[bool, int, int, bool]:
    """The order of cost: a service that is asked for every query, the kind, the queries that are written for each
    document, a fusion with BM25."""
    option = arm.condition
    kind = KINDS.index(option.kind) if option.kind in KINDS else len(KINDS)
    return arm.api, kind, option.per_doc, option.fused


def name_of(option: Condition) -> str:
    """An option in words: ``5 different queries for minilm``, ``one paraphrase with BM25``, ``BM25``."""
    if option.retriever and option.kind == UNTRAINED:
        return f"untrained {option.retriever}"
    if option.retriever and option.kind == HYBRID:
        return f"untrained {option.retriever} with BM25"
    if option.kind in FIXED:
        return FIXED[option.kind][0]

    kind, _, by = option.kind.partition(BY)
    one, several = WRITTEN.get(kind, (f"one query of {kind}", f"queries of {kind}"))
    name = one if option.per_doc == 1 else f"{option.per_doc} {several}"
    if by:
        name += f" by {by}"
    if option.retriever:
        name += f" for {option.retriever}"
    if option.fused:
        name += " with BM25"

    return name


def one_over(option: Condition, against: Condition) -> str:
    """Two options in words, a retriever that both train named once: ``5 paraphrases over one query for minilm``."""
    first, second = name_of(option), name_of(against)
    both = f" for {option.retriever}"
    if option.retriever and first.endswith(both) and second.endswith(both):
        first = first.removesuffix(both)
    return f"{first} over {second}"


def action_of(option: Condition, retriever: str, unit: str = "document") -> str:
    """What to do: ``write 5 different queries per document for minilm``, ``use BM25``."""
    if option.kind == HYBRID and option.retriever:
        return f"combine {name_of(option)}"
    if option.kind in FIXED:
        return FIXED[option.kind][1].format(option.retriever or retriever)
    also = ", and combine with BM25" if option.fused else ""
    own = option.retriever and f" for {option.retriever}"
    name = name_of(option).removesuffix(" with BM25").removesuffix(own)
    if option.kind == HUMAN:
        return f"train {option.retriever or retriever} on {name}{also}" if own else f"train on {name}{also}"
    return f"write {name} per {unit}{own}{also}"


def does(option: Condition, verb: str) -> str:
    """An option as the subject of a verb: ``BM25 suffices``, ``5 paraphrases suffice``."""
    several = option.per_doc > 1 or option.kind == HUMAN
    return f"{name_of(option)} {verb if several else f'{verb}s'}"
