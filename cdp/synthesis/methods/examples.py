"""The few-shot examples of the InPars, SAP and DRAMA prompts: the project's own texts and queries."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """A document with a summary, a good query that takes some of it to answer, the plain query, and its task."""

    document: str
    question: str
    summary: str = ""
    plain: str = ""
    task: str = ""


EXAMPLES: tuple[Example, ...] = (
    Example(
        document="Cork oaks are stripped of their bark every nine to twelve years. The harvesters cut by hand in early "
        "summer, when the bark comes off easily, and leave the inner layer unharmed so that the tree can grow a new "
        "one. A tree is first stripped at about twenty-five years, and only from the third harvest on is the cork "
        "even enough for bottle stoppers.",
        summary="Cork bark is harvested by hand about once a decade without harming the tree, but good stoppers come "
        "only from the third harvest onwards.",
        question="How old is a cork oak before its bark can be made into bottle stoppers?",
        plain="cork oak bark",
        task="Given a question about agriculture, retrieve a passage that answers it.",
    ),
    Example(
        document="Tempered glass is heated to about 620 degrees and then cooled rapidly with jets of air. The surface "
        "hardens first; when the core shrinks afterwards, it pulls the surface into compression. That is why a "
        "tempered pane withstands blows that would crack an ordinary one, and also why it bursts into small, blunt "
        "pieces once a crack reaches the core.",
        summary="Rapid cooling puts the surface of tempered glass under compression, which makes it strong and lets it "
        "burst into blunt pieces when it does fail.",
        question="Why does tempered glass break into small blunt pieces instead of sharp splinters?",
        plain="What is tempered glass?",
        task="Given a how or why question about materials, retrieve a passage that explains it.",
    ),
    Example(
        document="The ferry to the island runs four times a day from May to September and twice a day in the other "
        "months. Bicycles travel free; cars must be booked two days ahead, since the deck holds only twelve. In a "
        "swell of more than two metres the crossing is cancelled and tickets stay valid for a year.",
        summary="The island ferry runs less often in winter, takes few cars, and keeps tickets valid when high swell "
        "stops it.",
        question="Can I use my island ferry ticket later if the crossing is cancelled because of the waves?",
        plain="island ferry timetable",
        task="Given a traveller's question, retrieve the notice that settles it.",
    ),
    Example(
        document="In double-entry bookkeeping every transaction is written twice, as a debit in one account and as an "
        "equal credit in another. If the totals of both sides differ, a mistake has been made somewhere. The method "
        "was in use among Venetian merchants long before Luca Pacioli described it in print in 1494.",
        summary="Writing each transaction in two accounts makes mistakes visible; merchants of Venice used the method "
        "before it was printed in 1494.",
        question="How does writing each transaction twice help an accountant notice mistakes?",
        plain="Who invented bookkeeping?",
        task="Given a question about the history of trade, retrieve a passage that answers it.",
    ),
    Example(
        document="Sourdough rises through wild yeasts and lactic acid bacteria that live in the starter. The bacteria "
        "make the dough sour, which slows mould and helps release minerals from the bran. Because wild yeasts work "
        "slowly, the dough needs many hours, and a cool night in the refrigerator lets more aroma develop.",
        summary="Wild yeasts raise sourdough slowly while bacteria acidify it, which keeps mould away and builds "
        "aroma.",
        question="Why does sourdough bread keep longer without mould than bread made with baker's yeast?",
        plain="sourdough bread",
        task="Given a cooking question, retrieve a passage that explains the answer.",
    ),
)


def shots(n: int, form: str) -> str:
    """The first ``n`` examples one after another, each written by ``form`` (a format string over the fields and n)."""
    numbered = enumerate(EXAMPLES[:n], start=1)
    return "\n\n".join(form.format(n=number, **dataclasses.asdict(example)) for number, example in numbered)
