"""Which benchmarks of a study are independent observations of the relation between CW and the gain.

A benchmark of another language counts its words in another way, one whose documents were trained on says nothing of new
tasks, and splits or subsets of one source are one dataset, however many they are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from cdp.principle import Difference

OVERLAP = 0.1
"""Two collections that share this part of the smaller one are of one source."""


@dataclass(frozen=True, slots=True)
class Kin:
    """What a benchmark shares with others: its language, its family, and whether training was on its own source."""

    name: str
    cw: float
    language: str = ""
    family: str = ""
    in_domain: bool = False


def overlap(first: Set[int], second: Set[int]) -> float:
    """The share of the smaller collection that is in both."""
    return len(first & second) / min(len(first), len(second)) if first and second else 0.0


def families(sources: Mapping[str, str], documents: Mapping[str, Set[int]]) -> dict[str, str]:
    """{benchmark: its family}: those of one ``source`` and those whose ``documents`` overlap, named by the first."""
    family_of: dict[str, str] = {}
    for name, source in sources.items():
        kin = next(
            (
                other
                for other in family_of
                if sources[other] == source or overlap(documents[name], documents[other]) >= OVERLAP
            ),
            None,
        )
        family_of[name] = family_of[kin] if kin else source
    return family_of


def left_out(kin: Sequence[Kin], *, across_languages: bool = False) -> dict[str, str]:
    """{benchmark: why it is in no line through CW}."""
    spoken = Counter(k.language or "en" for k in kin if not k.in_domain)
    main = spoken.most_common(1)[0][0] if spoken else ""
    reasons = {}
    for k in kin:
        if k.in_domain:
            reasons[k.name] = "its source is that of the training documents (in-domain)"
        elif not across_languages and (k.language or "en") != main:
            reasons[k.name] = f"its language is {k.language or 'en'}, that of the others {main}"
    return reasons


def as_independent(
    data: Sequence[Difference], kin: Sequence[Kin], *, across_languages: bool = False
) -> tuple[Difference, ...]:
    """The differences with one observation per family: the mean of its members, at their mean CW."""
    excluded = left_out(kin, across_languages=across_languages)
    members: dict[str, list[Kin]] = defaultdict(list)
    for k in kin:
        if k.name not in excluded:
            members[k.family or k.name].append(k)
    family_of = {k.name: family for family, group in members.items() for k in group}
    groups: dict[tuple[str, str, int, str], list[Difference]] = defaultdict(list)
    for d in data:
        if d.dataset in family_of:
            groups[d.retriever, d.comparison, d.per_doc, family_of[d.dataset]].append(d)
    independent = []
    for (*_, family), points in groups.items():
        group = members[family]
        if len(group) == 1:
            independent += points
            continue
        independent.append(
            replace(
                points[0],
                dataset=f"{family} ({len(group)} benchmarks)",
                cw=sum(k.cw for k in group) / len(group),
                points=sum(p.points for p in points) / len(points),
            )
        )
    return tuple(independent)
