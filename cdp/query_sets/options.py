"""How a file of queries is read: the user's choices about one import."""

from __future__ import annotations

from cdp.base.settings import Config, option
from cdp.corpus.options import check_encoding
from cdp.corpus.origin import ORIGINS, UNKNOWN, check_origin


class ImportOptions(Config):
    """Choices of the user about one import of queries. The defaults read what common tools export."""

    query_field: str | None = option(
        None,
        "The field or column with the query (in JSON also a list of queries); auto tries queries, query, questions, "
        "question, text. A query needs no id: the first one of document d becomes d-1.",
    )
    document_field: str | None = option(
        None,
        "The field or column with the id of the document that a query is for; auto tries document_id, doc_id, docid, "
        "corpus-id, corpus_id, _id, id, pid.",
    )
    encoding: str = option(
        "utf-8",
        "The text encoding: utf-8, utf-16, cp1252, shift_jis, gb18030 …",
        reason="Nearly all data sets are published in it; another encoding is refused, not misread.",
    )
    split: str = option(
        "",
        "Of a BEIR folder only the qrels of this split. If empty all but test, which is for measuring: queries of it "
        "are imported only where it is named.",
    )
    reasoning_field: str = option(
        "",
        "The field or column with the reasoned form q′ of each query (in JSON also a list, one per query). They become "
        "a query set of their own, which RI compares with.",
    )
    origin: str = option(
        UNKNOWN,
        "Who wrote the queries: human, llm (a language model), or unknown.",
        reason="A file does not say; nothing is claimed until somebody knows.",
        choices=ORIGINS,
    )
    model: str = option("", "For llm: the model that wrote them, as far as known. Nothing is loaded.")
    prompt: str = option("", "For llm: the prompt, its name, or where it is described.")
    licence: str = option("", "The licence of the queries, such as CC BY-NC-SA 4.0.")

    def check(self) -> None:
        check_encoding(self.encoding)
        check_origin(self.origin, self.model, self.prompt)
