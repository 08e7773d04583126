"""What a reader needs before the first number: the words of the document, and what such an experiment can show."""

from __future__ import annotations

WORDS = (
    ("Point", "a hundredth of NDCG@10, the quality of the first ten documents found (0 to 100)."),
    (
        "Q/Doc",
        "training queries per document. Q/Doc 5 minus one: trained on five queries of each document, minus on one.",
    ),
    (
        "CW",
        "content words: distinct words of a query that are no stopwords; of a judged set, the mean over its queries.",
    ),
    (
        "Equal documents, equal pairs",
        "what stays the same when Q/Doc grows: the documents (so there are more pairs of query and document to train "
        "on), or the number of pairs (so there are fewer documents).",
    ),
    ("Judged set", "queries with documents known to be relevant, on which a trained retriever is scored."),
    ("In-domain, out of domain", "the judged documents are of the source that was trained on, or of another."),
    ("Family", "judged sets made of the same documents or queries; each counts as one independent observation."),
    (
        "Names of judged sets",
        "`-and2`: two queries of a set joined by “and”, by program; `-hops-…`: its queries of that many reasoning "
        "steps; `_heldout`: documents of the training source that were kept out of training.",
    ),
    (
        "Weightings",
        "how much each pair counts in the loss: `none` all alike; `cw` by the content words of its query; `cw@4` with "
        "CW capped at 4 (the cap is κ); `cw-question-words` with question words counted; `ri` by how much easier the "
        "query gets for the model once it is reasoned through (RI); `ri-cw` by both.",
    ),
    (
        "Retrievers",
        "`static-minilm` embeds a text as the mean of one vector for each word piece; `minilm` is a transformer. Both "
        "are small, so that the whole experiment runs on two cores. BM25 matches words and is not trained.",
    ),
    (
        "95%",
        "a 95% interval. Of a single difference it is over queries and seeds; of a pooled model over families, too. df "
        "are its degrees of freedom: below about four it is a rough one.",
    ),
)

LIMITS = (
    "At equal documents the arms with more queries per document also train for more steps (6 against 42, for example), "
    "and none is near convergence: such a difference is one of steps as much as of queries.",
    "The retrievers are small and the judged sets are samples, not whole collections. A claim that fails here may hold "
    "for the paper's retrievers, and the other way round.",
    "Each criterion is judged at its own 95% level, without a correction for their number: the more criteria there "
    "are, the likelier it is that one is met by chance.",
    "“Not decided” is no evidence against a claim: its interval says what is ruled out. “Not supported” stands where a "
    "plan says what supports a claim and not what contradicts it: the numbers below say which way they point.",
    "Trained on the same few sources, all differences of a study share what is peculiar to these: the errors of the "
    "pooled models here are robust for families alone. Run again, they are robust for training corpora as well.",
)


def lines() -> list[str]:
    """The preface as Markdown."""
    return [
        "## How to read it",
        "",
        *(f"- **{word}**: {meaning}" for word, meaning in WORDS),
        "",
        "Limits:",
        "",
        *(f"- {text}" for text in LIMITS),
        "",
    ]
