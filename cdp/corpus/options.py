"""Import settings: the user's choices, and limits (longest line, document, id) that protect the machine."""

from __future__ import annotations

import codecs
from typing import Any

from pydantic import field_validator

from cdp.base.errors import ConfigError
from cdp.base.registry import Names
from cdp.base.settings import Config, option

# The fields of a file are those of its first rows, for JSON objects need not all have the same.
ROWS_FOR_FIELDS = 100

# A longer line of a row file is not held in memory: JSONL and TSV report it as rejected, quoted CSV stops there.
MAX_LINE_CHARACTERS = 32 * 2**20

# A longer text is rejected: no encoder or generator reads it, and it would make one huge row group.
MAX_DOCUMENT_CHARACTERS = 10_000_000

MAX_ID_CHARACTERS = 512
# Rejected rows kept with line and reason; all are counted.
KEPT_REJECTIONS = 1_000

# UTF-8, or the encoding that each file seems to be in.
AUTO = "auto"

# Named for the id or the title: documents are numbered, or have no title, for any field names. A field that
# is called so itself goes first.
NO_FIELD = "-"

# Words of a passage of a file, where no other number is chosen.
PASSAGE_WORDS = 200


class ReadOptions(Config):
    """Choices of the user about one import. The defaults read BEIR files and what common tools export."""

    format: str = option(
        "auto",
        "What the file is; auto goes by the file's ending. Of a folder or a zip, the format of a single file (jsonl, "
        "csv, text …) reads every file in it as that.", reason="The ending of a file almost always tells its format.",
        choices=Names("corpus format", first=("auto",)),
    )  # fmt: skip
    encoding: str = option(
        AUTO,
        "The text encoding: auto takes UTF-8, and for each file that is not UTF-8 what it seems to be in. Or utf-8, "
        "utf-16, cp1252, shift_jis, gb18030 …", reason="Files of one folder come from different programs.",
    )  # fmt: skip
    id_field: str | None = option(
        None, "The field with the document's id; auto tries _id, id, doc_id, docid, pid …; - numbers the rows.",
    )  # fmt: skip
    title_field: str | None = option(None, "The field with the title; auto tries title, name …; - leaves it out.")
    text_field: str | None = option(
        None, "The field with the text; auto tries text, content, passage, body, abstract, description …",
    )  # fmt: skip
    query_field: str | None = option(
        None, "The field with queries for the document, a text or a list of texts; auto tries queries, query.",
    )  # fmt: skip
    grade_field: str | None = option(
        None, "Beside a field with queries: the field that judges them, with numbers, yes/no, true/false or relevant/"
        "not relevant; queries of 0, below and no are left out. auto tries grade, score, relevance, label …",
    )  # fmt: skip
    passages: int | None = option(
        None,
        "Words of a passage, into which documents are cut at headings, paragraphs and sentences; off keeps all whole. "
        f"auto cuts files (text, Markdown, PDF, Office, web pages, EPUB) at {PASSAGE_WORDS} and keeps rows whole "
        "(JSON Lines, CSV, Parquet, BEIR); a number cuts both.", reason="About what retrievers read whole, and one "
        "subject.", unit="words", minimum=0, maximum=10_000,
    )  # fmt: skip
    keep_repeated: bool = option(
        False, "Keep lines that return in most files (headers, footers, notices) and passages that repeat another one.",
        reason="Off: what every file repeats says nothing about its documents.",
    )  # fmt: skip
    scan_languages: str = option(
        "",
        "The languages of scanned pages, as Tesseract names them (deu+eng) or in two letters; empty takes that of the "
        "document's other text, else the packs that are installed.",
    )
    header: bool = option(
        True,
        "Whether the first row of a CSV or TSV file names the columns. Without, the columns are called 1, 2, 3 …, and "
        "two are taken as id and text, three as id, title and text.", reason="Almost every CSV file has one.",
    )  # fmt: skip
    licence: str = option(
        "", "The licence of the documents, such as CC BY 4.0: model cards of what is trained on them say it.",
    )  # fmt: skip

    @field_validator("passages", mode="before")
    @classmethod
    def _off(cls, value: Any) -> Any:
        return 0 if value == "off" else value

    def check(self) -> None:
        check_encoding(self.encoding)


# Encodings that Python has for names and for tests; no file is written in them, and decoding takes quadratic time.
NO_TEXT_FILES = ("punycode", "idna", "undefined")


def check_encoding(name: str) -> None:
    """ConfigError if Python knows no text encoding of that name, or none that a file is written in."""
    if name == AUTO:
        return
    try:
        b"a b ".decode(name, "replace")
        if codecs.lookup(name).name in NO_TEXT_FILES:
            raise LookupError(name)
    except (LookupError, ValueError) as error:
        raise ConfigError(
            f"{name!r} is not a text encoding.", hint="Common ones: utf-8, utf-16, cp1252, latin-1."
        ) from error
