"""The paper's claims, each with its rule, the plans whose criteria it follows, and what would settle it.

The criteria were written before the runs and are quoted beside each verdict. Where one can be read in two ways the
stricter reading is taken, and ``reading`` says so. A verdict needs every study that the criterion names, whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cdp.studies import read_plan
from cdp.studies.gains import PARAPHRASE, SCALING
from reproduction import evidence as ev
from reproduction import rules
from reproduction.evidence import Evidence
from reproduction.outcomes import NOT_RUN, Finding, spread_over_seeds

# How the criteria of several plans are combined: said here, and by the document from here.
COMBINED = (
    "A claim is judged by the studies whose plans name it, each of them whole; no other study enters its models.",
    f"A and D: `{ev.DOCUMENTS}` and `{ev.PAIRS}` state the criteria; `{ev.MINILM}` says that it enters their models "
    "and decides nothing alone. There is one regression over these studies for each design.",
    f"B: `{ev.DOCUMENTS}` alone. F, G and H: `{ev.RECORDED}` alone; `{ev.TEMPLATE}` is a control, which cannot change "
    "a verdict: where templates show the same difference, it is said that form explains it.",
    "`paper-full` repeats these criteria for the paper's own size. It was not run.",
    "Which studies are pooled for A, B and D was settled after the criteria were written, before any of them was run.",
)


@dataclass(frozen=True)
class Claim:
    """``plans`` as (plan, how the part of its criteria about the claim begins; empty for all of it). Without the
    studies in ``needs`` the rule is not asked. ``reading`` says how a choice in the criterion was made."""

    name: str
    rule: rules.Rule
    plans: tuple[tuple[str, str], ...]
    settles: str
    needs: tuple[str, ...] = ()
    reading: str = ""


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict. ``spread`` is that over seeds; ``criteria`` as (plan, what it says)."""

    claim: Claim
    finding: Finding
    spread: str
    criteria: tuple[tuple[str, str], ...]

    @property
    def verdict(self) -> str:
        return self.finding.verdict


_HELD_READING = (
    "Length and overlap are held in the model over queries, in both comparisons, and in the one over datasets too "
    'where there are enough families for it (nine; the plan names seven). "Stays above 0" means: with the whole '
    "interval."
)

CLAIMS = (
    Claim(
        "A. The gain from more queries per document grows with CW.",
        rules.slopes(
            [("people", rules.DOCUMENTS_OUT), ("people", rules.PAIRS_OUT)],
            rules.out_of_domain(SCALING, ev.DOCUMENTS, ev.PAIRS, ev.MINILM),
        ),
        ((ev.DOCUMENTS, "Claim A"), (ev.PAIRS, "Claim A"), (ev.MINILM, "")),
        "Whole collections of a dozen sources from CW 4 to 20, thousands of queries each, and the paper's retrievers.",
        needs=(ev.DOCUMENTS, ev.PAIRS, ev.MINILM),
        reading=_HELD_READING,
    ),
    Claim(
        "B. Simple tasks (CW below 7) lose from more queries per document.",
        rules.simple_tasks_lose,
        ((ev.DOCUMENTS, "Claim B"),),
        "As A, with several sources of simple queries.",
        needs=(ev.DOCUMENTS,),
        reading="A difference counts as significantly above 0 where its own 95% interval is, without a correction for "
        "their number. A majority is more than half. The plan does not say what would contradict the claim.",
    ),
    Claim(
        "C. In-domain, more diverse queries do not help.",
        rules.untestable("The criterion is for TREC-DL and an LLM's queries for MS MARCO; that plan was not run."),
        ((ev.DOCUMENTS, "Claim C"), (ev.FULL, "")),
        "`make reproduction-full`, or several sources with an LLM's queries and held-out documents of each.",
    ),
    Claim(
        "D. For the same number of pairs, more queries on fewer documents are better.",
        rules.mean("people", rules.PAIRS_OUT, rules.out_of_domain(SCALING, ev.PAIRS)),
        ((ev.PAIRS, "Claim D"), (ev.MINILM, "")),
        "Budgets of 8,000 documents and more, as the paper's.",
        needs=(ev.PAIRS, ev.MINILM),
    ),
    Claim(
        "E. The relation holds in other languages.",
        rules.untestable("There is one judged set per language, so no slope.", rules.by_language),
        ((ev.LANGUAGES, ""),),
        "MIRACL with a multilingual retriever: the retriever here reads English word pieces.",
        reading="The published MIRACL tables have no training with fewer queries per document, so there is no "
        "published sign of this gain to differ from; those of CW weighting stand beside the last claim.",
    ),
    Claim(
        "F. Out of domain, diverse queries beat paraphrases (LLM-written).",
        rules.diverse_beat_paraphrases,
        ((ev.RECORDED, "Claim F"), (ev.TEMPLATE, "")),
        "An LLM's queries for thousands of documents, judged on whole collections.",
        needs=(ev.RECORDED,),
        reading="The pooled mean is that over every number of queries per document, one included.",
    ),
    Claim(
        "G. What diversity brings grows with CW.",
        rules.slopes(
            [("contrast", rules.CONTRAST_OUT), ("contrast at 5", rules.DOCUMENTS_OUT)],
            rules.out_of_domain(PARAPHRASE, ev.RECORDED),
        ),
        ((ev.RECORDED, "Claim G"), (ev.DOCUMENTS, "Claim A")),
        "As F, with judged sets on both sides of CW 10.",
        needs=(ev.RECORDED,),
        reading=f"As claim A, with these two comparisons in place of the two designs. {_HELD_READING}",
    ),
    Claim(
        "H. At one query per document, both kinds are as good (LLM-written).",
        rules.no_difference_at_one,
        ((ev.RECORDED, "Claim H"),),
        "A margin set beforehand within which both count as equal, and intervals narrower than it: an interval that "
        "holds 0 does not show that there is no difference, only how large one can be.",
        needs=(ev.RECORDED,),
        reading="Both intervals are those of the pooled mean out of domain. The plan does not say what would "
        "contradict the claim.",
    ),
    Claim(
        "I. Weighting the loss by CW helps out of domain.",
        rules.mean("weighting", rules.weighting_out("cw"), rules.weighted("cw", ev.GRID)),
        ((ev.GRID, "Claim I"),),
        "The paper's retrievers and its training queries, whose CW spreads wider.",
        needs=(ev.GRID,),
    ),
    Claim(
        "κ. The cap κ of CW weighting matters.",
        rules.cap_matters,
        ((ev.GRID, "κ matters"),),
        "As I: a cap can only matter where many training queries have more content words than it.",
        needs=(ev.GRID,),
        reading="No two of the three intervals may overlap, out of domain. The plan does not say what would contradict "
        "the claim.",
    ),
    Claim(
        "J. RI and RI×CW help beyond CW.",
        rules.untestable("Neither the paper's reasoned queries nor their generator are public.", rules.reasoned),
        ((ev.REASONING, ""),),
        "The paper's reasoned queries or their generator; a template does not reason.",
    ),
    Claim(
        "K. The principle holds across retrievers.",
        rules.untestable(
            "The criterion is for the paper's three retrievers; that plan was not run.", rules.transformer_beside_static
        ),
        ((ev.FULL, ""), (ev.MINILM, "")),
        "Contriever, RetroMAE and Qwen3-Embedding on GPUs: `make reproduction-full` says what that takes.",
    ),
    Claim(
        "Question words. CW weighting loses in French because the stopword list takes question words away.",
        rules.question_words_explain,
        ((ev.FRENCH, ""),),
        "Several judged sets in French and a multilingual retriever: here it is one observation.",
        needs=(ev.FRENCH,),
        reading="Both the loss, and what is given back beyond half of it, must be clear of 0 by their whole interval.",
    ),
)


def judged(evidence: Evidence) -> list[Judged]:
    """Every claim with its verdict."""
    return [judge(claim, evidence) for claim in CLAIMS]


def judge(claim: Claim, evidence: Evidence) -> Judged:
    lacking = evidence.lacking(claim.needs)
    finding = Finding(NOT_RUN, f"{'; '.join(lacking)}.") if lacking else claim.rule(evidence)
    criteria = tuple((plan, quoted(plan, opening)) for plan, opening in claim.plans)
    return Judged(claim, finding, spread_over_seeds(finding.differences), criteria)


def quoted(plan: str, opening: str) -> str:
    """The part of a plan's criteria that begins so, up to where the next claim begins; all of it without an opening."""
    text = " ".join(read_plan(plan).criteria.split())
    if not opening:
        return text
    start = text.index(opening)
    after = re.search(r"(?<=\. )(?:Claim [A-K] |κ matters)", text[start:])
    return text[start : start + after.start() if after else None].strip()
