"""The ``recorded`` generator: answers of an LLM that are shipped, for the demo collection and some passages."""

from __future__ import annotations

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
        paths = [path for folder in self._folders if (path := folder / f"{method.name}.jsonl").exists()]
        if not paths:
            raise NotFoundError(
                "recording", method.name, known=self.methods(), hint="Use the generator template or openai instead."
            )

        recordings = (ANSWERS.get(path, "recorded", lambda path=path: _read(path)) for path in paths)  # type: ignore[misc]

        queries = next((kept for recorded in recordings if (kept := recorded.get(document.content_hash))), None)
        if queries is None:
            raise RequestError(
                f"There is no recorded answer for document {document.id!r}: only the demo collection and the passages "
                "of data/recorded have them.",
                hint="Use the generator template or openai instead.",
            )

        return Answer(queries=queries[:m], model=self.model)


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
    collection = path.parent.parent / "corpus.jsonl"
    rows = read_jsonl(collection) if collection.exists() else ()
    hashes = {row["_id"]: Document(row["_id"], row["text"], row.get("title", "")).content_hash for row in rows}
    records = ((record.get("content_hash") or hashes.get(record["document_id"]), record) for record in read_jsonl(path))
    return {content_hash: tuple(record["queries"]) for content_hash, record in records if content_hash}
