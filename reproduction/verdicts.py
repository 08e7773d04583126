"""One of four verdicts for each claim, from the intervals of its figures, and what they leave of the published effect.

A figure is equivalent to none where its 90% interval lies inside ±margin, for then both one-sided tests at 5% reject a
larger one (Schuirmann 1987, J. Pharmacokinet. Biopharm. 15, 657–680). Else its 95% interval decides by its sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cdp.base.statistics import Coefficient, holm
from cdp.base.text import counted, interval, signed
from cdp.principle.tables import PublishedRow
from cdp.principle.tables import read as read_published
from reproduction.criteria import (
    DIFFERENCE,
    GAIN,
    LOSS,
    NO_DIFFERENCE,
    NO_GAIN,
    SLOPE,
    Claim,
    Criterion,
    Published,
    wanted,
)
from reproduction.figures import Figure, figure
from reproduction.kept import Kept

SUPPORTED, CONTRADICTED, EQUIVALENT, CANNOT_TELL = "supported", "contradicted", "equivalent", "cannot tell"
VERDICTS = (SUPPORTED, CONTRADICTED, EQUIVALENT, CANNOT_TELL)

SIGNIFICANT = 0.05

# Columns of the published results that tell no two conditions apart.
_OF_VALUE = ("value", "value_printed", "bold", "underlined", "dagger", "llm_cost_pct")


@dataclass(frozen=True)
class Decided:
    """A criterion with its figure and the verdict of that alone."""

    criterion: Criterion
    figure: Figure
    verdict: str

    @property
    def told(self) -> str:
        """``+0.62 points, 95% +0.10 to +1.14``, or why there is no figure."""
        c = self.figure.coefficient
        if c is None:
            return f"no figure: {self.figure.problem}"
        return f"{signed(c.value)} {self.criterion.unit}, 95% {interval((c.low, c.high), sign=True)}"

    @property
    def basis(self) -> str:
        """What the figure rests on; empty where nothing was measured."""
        if not self.figure.sets:
            return ""
        free = "" if self.figure.coefficient is None else f", df {self.figure.coefficient.degrees:.1f}"
        shown = self.figure
        families = counted(shown.n_families, "family", "families")
        corpora = counted(shown.n_corpora, "corpus", "corpora")
        return f"{counted(len(shown.sets), 'judged set')} of {families}, {corpora}{free}"

    @property
    def why(self) -> str:
        margin = f"±{self.criterion.margin:g}"
        if self.figure.coefficient is None:
            return f"There is {self.told}."
        ninety = interval(self.figure.ninety, sign=True)
        reach = {
            EQUIVALENT: f"the 90% interval ({ninety}) lies inside {margin}",
            CANNOT_TELL: f"the interval holds 0, and the 90% interval ({ninety}) is not inside {margin}",
        }
        return f"{self.told}; {reach.get(self.verdict, f'the 90% interval is {ninety}, the margin {margin}')}."


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict. ``published`` says what the first figure leaves of the published effect."""

    claim: Claim
    verdict: str
    why: str
    criteria: tuple[Decided, ...] = ()
    controls: tuple[Decided, ...] = ()
    published: str = ""

    def figures(self) -> dict[str, str]:
        """{name: figure in words}: the claim's own by its id, the others by id and name."""
        said = " and ".join(c.told for c in self.criteria if c.figure.coefficient) or self.why.rstrip(".")
        named = {f"{self.claim.id} {d.criterion.name}": d.told for d in (*self.criteria, *self.controls)}
        return {**named, self.claim.id: said}


def advice(judged: Sequence[Judged], question: str, studies: Mapping[str, Kept] | None = None) -> str:
    """What the claims that answer a question say by their verdicts. In their sentences ``{figure}`` is the claim's own,
    ``{F}`` that of claim F, ``{F in-domain}`` that of its criterion or control of this name, ``{seen}`` what its
    ``studies`` trained."""
    known = {name: told for j in judged for name, told in j.figures().items()}
    after = advised(judged)
    said = [
        j.claim.then[verdict].format_map(
            {**known, "figure": known[j.claim.id], "seen": seen_with(studies or {}, j.claim.studies)}
        )
        for j, verdict in zip(judged, after, strict=True)
        if j.claim.question == question and verdict in j.claim.then
    ]
    return " ".join(said)


def sizes(studies: Iterable[Kept], what: str) -> list[int]:
    """The ``documents`` or ``steps`` of all trainings, ascending."""
    return sorted(int(t["training"][what]) for kept in studies for t in kept.trained if t["training"].get(what))


def seen_with(studies: Mapping[str, Kept], names: Sequence[str]) -> str:
    """``with static-minilm on 250 documents``: the retrievers and the median size of these studies' trainings."""
    kept = [studies[name] for name in names if name in studies]
    documents = sizes(kept, "documents")
    if not documents:
        return "yet"
    retrievers = " and ".join(dict.fromkeys(str(t["retriever"]) for study in kept for t in study.trained))
    return f"with {retrievers} on {documents[len(documents) // 2]:,} documents"


def advised(judged: Sequence[Judged]) -> list[str]:
    """The verdicts that advice follows: of a shown difference only where it survives Holm's correction over all claims
    with a figure, by the largest p of a claim's criteria."""
    largest = [max((d.figure.coefficient.p for d in j.criteria if d.figure.coefficient), default=1.0) for j in judged]
    measured = [number for number, j in enumerate(judged) if any(d.figure.coefficient for d in j.criteria)]
    corrected = dict(zip(measured, holm([largest[number] for number in measured]), strict=True))
    shown = (SUPPORTED, CONTRADICTED)
    return [
        CANNOT_TELL if j.verdict in shown and corrected.get(number, 1.0) >= SIGNIFICANT else j.verdict
        for number, j in enumerate(judged)
    ]


def judge(claim: Claim, studies: Mapping[str, Kept]) -> Judged:
    """The verdict of one claim. Every criterion needs its studies whole, and must be older than all of them."""
    controls = tuple(_decided(c, studies) for c in claim.controls)
    if claim.untestable:
        return Judged(claim, CANNOT_TELL, f"{claim.untestable.rstrip('.')}.", controls=controls)
    criteria = tuple(_decided(c, studies) for c in claim.criteria)
    effect = published_effect(claim.published, claim.criteria[0].figure) if claim.published else None
    first = criteria[0].figure.coefficient
    left = excluded(first, effect, claim.criteria[0].margin) if first is not None and effect is not None else ""
    if reasons := _not_ready(claim, studies):
        return Judged(claim, CANNOT_TELL, f"{'; '.join(reasons)}.", criteria, controls, left)
    verdict = combined([c.verdict for c in criteria])
    named = [f"{c.criterion.name}: {c.why}" if c.criterion.name else c.why for c in criteria]
    return Judged(claim, verdict, " ".join(named), criteria, controls, left)


def _not_ready(claim: Claim, studies: Mapping[str, Kept]) -> list[str]:
    """Why a claim is not judged: studies that are missing or not whole, or began before its criteria were as now."""
    reasons = []
    for name in claim.studies:
        kept = studies.get(name)
        if kept is None:
            reasons.append(f"{name} was not run")
        elif kept.lacking:
            reasons.append(kept.lacking)
        elif kept.frozen.get("criteria", {}).get(claim.id) != claim.digest:
            reasons.append(f"{name} began before the criterion was as it is now")
    return reasons


def _decided(criterion: Criterion, studies: Mapping[str, Kept]) -> Decided:
    found = figure(criterion, studies)
    c = found.coefficient
    verdict = CANNOT_TELL if c is None else decide(criterion.direction, (c.low, c.high), found.ninety, criterion.margin)
    return Decided(criterion, found, verdict)


def decide(direction: str, whole: tuple[float, float], ninety: tuple[float, float], margin: float) -> str:
    """The verdict from the 95% interval ``whole``, the 90% interval and the margin, as ``claims.yaml`` defines it."""
    above, below = whole[0] > 0, whole[1] < 0
    if -margin < ninety[0] and ninety[1] < margin:
        return EQUIVALENT
    if direction == NO_GAIN and ninety[1] < margin:
        return SUPPORTED
    supports = {GAIN: above, LOSS: below, DIFFERENCE: above or below}
    contradicts = {GAIN: below, LOSS: above, NO_DIFFERENCE: above or below, NO_GAIN: above}
    if supports.get(direction):
        return SUPPORTED
    return CONTRADICTED if contradicts.get(direction) else CANNOT_TELL


def combined(verdicts: Sequence[str]) -> str:
    """The verdict of a claim that must meet several criteria."""
    if CONTRADICTED in verdicts:
        return CONTRADICTED
    return verdicts[0] if len(set(verdicts)) == 1 else CANNOT_TELL


def published_effect(published: Published, of_claim: str) -> float:
    """The mean difference of the published rows, or the slope of all differences on the datasets' CW."""
    rows = [
        row
        for row in read_published("results")
        if row["table"] in published.tables and row["metric"] == "NDCG@10" and row["value"] is not None
    ]

    single = [row for row in rows if not row["is_average"]]
    at = {_key(row): row for row in single or rows}
    fits = [row for row in at.values() if all(row[name] in wanted(value) for name, value in published.of.items())]
    pairs = [(row, control) for row in fits if (control := at.get(_key({**row, **published.against}))) is not None]
    differences = np.array([row["value"] - control["value"] for row, control in pairs])

    if (published.figure or of_claim) != SLOPE:
        return float(differences.mean())

    cw = {row["dataset"]: row["cw"] for row in read_published("datasets")}
    return float(np.polyfit([cw[row["dataset"]] for row, _ in pairs], differences, 1)[0])


def _key(row: PublishedRow) -> tuple[object, ...]:
    return tuple(value for name, value in row.items() if name not in _OF_VALUE)


def excluded(c: Coefficient, effect: float, margin: float) -> str:
    """Which part of a published effect a 95% interval excludes, in a sentence."""
    low, high = (c.low, c.high) if effect > 0 else (-c.high, -c.low)
    whole = f"the published {signed(effect)}"
    if abs(effect) <= margin:
        return f"{'Holds' if low <= abs(effect) <= high else 'Excludes'} {whole}, itself inside the margin."
    if high <= 0:
        return f"Excludes {whole}, and every effect of its sign."
    if high < abs(effect):
        return f"Excludes {whole}: at most {high / abs(effect):.0%} of it is left."
    if low > abs(effect):
        return f"Lies beyond {whole}."
    if low > 0:
        return f"Holds {whole}; excludes what is below {low / abs(effect):.0%} of it."
    return f"Excludes no part of {whole}."
