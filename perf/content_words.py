"""How much faster is counting English content words than NLTK's word tokenizer with the same filter, on one core?

The peer is ``NLTKWordTokenizer``, what ``nltk.word_tokenize`` runs on each sentence (its sentence splitter needs data
that has to be downloaded and would only add to its time), then lower case, letters only, longer than one character, no
stopword. Queries are HotpotQA's 7,405 test questions if they are beside the repository, else the demo collection's.

    python -m perf.content_words
"""

from __future__ import annotations

import gzip
import json

from nltk.tokenize import NLTKWordTokenizer

from cdp.base.workspace import REPOSITORY, SHIPPED_DATA
from cdp.complexity import count_content_words, stopword_list
from perf.timing import Row, compare, show

TARGET = 5.0


def run() -> list[Row]:
    """One row."""
    texts = queries()
    tokenize, stop = NLTKWordTokenizer().tokenize, stopword_list("en")

    def peer() -> list[int]:
        return [
            len({word for word in tokenize(text.lower()) if len(word) > 1 and word.isalpha() and word not in stop})
            for text in texts
        ]

    rows = [
        compare(
            "CW of English queries against NLTK's tokenizer",
            lambda: count_content_words(texts),
            peer,
            amount=len(texts),
            unit="queries",
            target=TARGET,
        )
    ]
    show(rows)
    return rows


def queries() -> list[str]:
    """Real English queries."""
    path = REPOSITORY.parent / "shared" / "data" / "queries_only" / "beir_hotpotqa" / "queries.jsonl.gz"
    if path.exists():
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return [json.loads(line)["text"] for line in file]
    lines = (SHIPPED_DATA / "demo" / "queries.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines] * 20


if __name__ == "__main__":
    run()
