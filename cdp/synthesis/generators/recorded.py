"""The ``recorded`` generator: answers of an LLM that are shipped, for the demo collection and some passages."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from cdp.base.errors import NotFoundError
from cdp.base.records import Document
from cdp.base.workspace import ANSWERS, SHIPPED_DATA, read_jsonl
from cdp.llm.answers import Answer, RequestError
from cdp.synthesis.generators import Generator, GeneratorType
from cdp.synthesis.methods import Method

# For the demo collection, which lies beside it.
RECORDINGS = SHIPPED_DATA / "demo" / "generations"

# For passages of public benchmarks, known by their content alone; see the README there.
PASSAGES = SHIPPED_DATA / "recorded"

# The model of a recorded answer: an LLM wrote it, and which one is not known.
NOT_RECORDED = "not recorded"


class RecordedGenerator(Generator):
    """Replays ``<method>.jsonl`` of folders of recordings; a document is found by its content."""

    name = "recorded"
    model = NOT_RECORDED

    def __init__(self, *folders: Path) -> None:
        self._folders = folders or (RECORDINGS, PASSAGES)

    def methods(self) -> list[str]:
        """The methods there are recordings of."""
        return sorted({path.stem for folder in self._folders for path in folder.glob("*.jsonl")})

    def generate(
        self, prompt: str, document: Document, method: Method, m: int, *, sample: int = 0, query: str = ""
    ) -> Answer:
        paths = [folder / f"{method.name}.jsonl" for folder in self._folders]
        paths = [path for path in paths if path.exists()]
        if not paths:
            raise NotFoundError(
                "recording", method.name, known=self.methods(), hint="Use the generator template or openai instead."
            )

        for path in paths:
            recorded = ANSWERS.get(path, "recorded", partial(_read, path))
            if queries := recorded.get(document.content_hash):
                return Answer(queries=queries[:m], model=self.model)

        raise RequestError(
            f"There is no recorded answer for document {document.id!r}: only the demo collection and the passages of "
            "data/recorded have them.",
            hint="Use the generator template or openai instead.",
        )


GENERATOR = GeneratorType(
    "recorded",
    "Recorded LLM answers",
    "Answers that an LLM gave ahead of time, for the demo collection and some passages of public benchmarks",
    lambda config, api_key: RecordedGenerator(),
    reads=frozenset(),
    order=20,
)


def _read(path: Path) -> dict[str, tuple[str, ...]]:
    """Queries by the document's content hash; a line without one names a document of the collection beside its
    folder."""
    hashes: dict[str, str] = {}
    collection = path.parent.parent / "corpus.jsonl"
    for row in read_jsonl(collection) if collection.exists() else ():
        hashes[row["_id"]] = Document(row["_id"], row["text"], row.get("title", "")).content_hash

    recorded = {}
    for record in read_jsonl(path):
        if content_hash := record.get("content_hash") or hashes.get(record["document_id"]):
            recorded[content_hash] = tuple(record["queries"])

    return recorded
