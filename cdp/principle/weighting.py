"""Whether to weight the loss by CW: what the published trainings say, and for which spread of CW."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cdp.base.numbers import signed
from cdp.principle.published import read, results


@dataclass(frozen=True, slots=True)
class WeightingAdvice:
    """Whether to weight the loss by CW. ``use`` is "compare" or "no"; ``narrow`` warns of too little spread of CW."""

    use: str
    narrow: bool
    text: str


@dataclass(frozen=True, slots=True)
class TrainedLanguage:
    """One training of MIRACL: ``width`` is its queries' largest CW minus their smallest, as printed; ``change`` that
    of the OOD average when weighted, in percent of it."""

    language: str
    code: str
    width: int
    largest: int
    change: float


@lru_cache(maxsize=1)
def trained_languages() -> tuple[TrainedLanguage, ...]:
    """The six languages of tab:miracl_results, the narrowest first: all the evidence there is on the spread of CW."""
    change = {
        row["train_data"].removeprefix("MIRACL-"): row["value"]
        for row in results()
        if row["table"] == "tab:miracl_results" and row["metric"] == "relative_change"
    }
    languages = [
        TrainedLanguage(row["language"], row["code"], row["cw_max"] - row["cw_min"], row["cw_max"], change[row["code"]])
        for row in read("multilingual")
    ]
    return tuple(sorted(languages, key=lambda t: t.width))


def narrow_width() -> int:
    """The widest range of CW, largest minus smallest, with which CW weighting clearly lost on MIRACL (more than 5%)."""
    return max(t.width for t in trained_languages() if t.change < -5)


def weighting_gains() -> dict[str, dict[str, float]]:
    """{group: {retriever: CW-weighted minus equal weights, NDCG@10 points}}, as printed in tab:cw_weighting."""
    scores = {
        (row["group"], row["retriever"], row["weighting"]): row["value"]
        for row in results()
        if row["table"] == "tab:cw_weighting"
    }
    gains: dict[str, dict[str, float]] = {}
    for (group, retriever, weighting), value in scores.items():
        if weighting == "CW":
            gains.setdefault(group, {})[retriever] = value - scores[group, retriever, "none"]
    return gains


def weighting_advice(cw: NDArray[np.float64], domain: str, language: str = "en") -> WeightingAdvice:
    """Whether to weight by CW, for queries with these CW. The spread that counts is that of the training queries;
    these stand for it where nothing else is known.

    Decided by the statistic of the evidence, the largest CW minus the smallest: MIRACL prints no other. It grows with
    the number of queries, and the evidence is one training in each of six languages; the text says so.
    """
    gains = weighting_gains()
    if domain == "in-domain":
        lost = list(gains["TREC-DL"].values())
        return WeightingAdvice(
            "no",
            False,
            f"Do not weight by CW: in-domain it cost {-max(lost):.1f} to {-min(lost):.1f} points with every published "
            "retriever.",
        )
    width = int(cw.max() - cw.min())
    span = f"their CW spans {cw.min():.0f} to {cw.max():.0f}"
    thin = "one training per language, so this is a hint."
    # The narrowest language that did not lose marks where "no" ends: between the two there is no evidence.
    if width <= narrow_width():
        losses = ", ".join(
            f"{t.language} {signed(t.change, 1)}%" for t in trained_languages() if t.width <= narrow_width()
        )
        return WeightingAdvice(
            "no",
            True,
            f"Do not weight by CW if your training queries look like these: {span}. With ranges of "
            f"{narrow_width()} or less weighting lost on MIRACL ({losses}); {thin}",
        )
    wide = [t for t in trained_languages() if t.width > narrow_width()]
    own = next((t for t in wide if t.code == language), None)
    if language != "en":
        own_text = f"trained on {own.language} it changed the OOD average by {signed(own.change, 1)}%; " if own else ""
        listed = ", ".join(f"{t.language} {signed(t.change, 1)}%" for t in wide if t is not own)
        return WeightingAdvice(
            "compare",
            False,
            f"CW weighting may be worth a second training: {span}, and on MIRACL {own_text}languages with such ranges "
            f"got {listed}; {thin} Compare with and without.",
        )
    up = [value for group in ("BEIR", "BRIGHT") for value in gains[group].values()]
    hop = sorted(gains["Multi-hop"].values())
    return WeightingAdvice(
        "compare",
        False,
        f"CW weighting may be worth a second training: with three retrievers it gained {min(up):.2f} to {max(up):.2f} "
        f"points on BEIR and BRIGHT averages, and from {signed(hop[0])} to {signed(hop[-1])} on multi-hop (one "
        "training each). Compare with and without.",
    )
