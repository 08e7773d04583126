"""The ``recorded`` generator: answers that an LLM gave ahead of time for the documents of the demo collection."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from cdp.base.errors import NotFoundError
from cdp.base.records import Document
from cdp.base.workspace import SHIPPED_DATA, read_jsonl
from cdp.synthesis.generators.base import Answer, GeneratorType, RequestError
from cdp.synthesis.methods.base import Method

RECORDINGS = SHIPPED_DATA / "demo" / "generations"


class RecordedGenerator:
    """Replays ``<method>.jsonl`` of a folder of recordings; a document is found by its content."""

    name = "recorded"
    model = "recorded"
    concurrency = 1
    is_llm = False

    def __init__(self, folder: Path = RECORDINGS) -> None:
        self._folder = folder

    @property
    def parameters(self) -> dict[str, object]:
        return {}

    def cancel(self) -> None:
        """Nothing to give up: an answer is there at once."""

    def methods(self) -> list[str]:
        """The methods there are recordings of."""
        return sorted(path.stem for path in self._folder.glob("*.jsonl"))

    def prepare(self) -> None:
        """Nothing to load."""

    def generate(
        self, prompt: str, document: Document, method: Method, m: int, *, sample: int = 0, query: str = ""
    ) -> Answer:
        path = self._folder / f"{method.name}.jsonl"
        if not path.exists():
            raise NotFoundError(
                "recording", method.name, known=self.methods(), hint="Use the generator template or openai instead."
            )
        recorded = _read(path, path.stat().st_mtime_ns)
        queries = recorded.get(self._demo_id(document))
        if queries == ():
            raise RequestError(
                f"The recorded answer for document {document.id!r} is damaged.", hint="Restore the file."
            )
        if queries is None:
            raise RequestError(
                f"There is no recorded answer for document {document.id!r}: only the demo collection has them.",
                hint="Use the generator template or openai instead.",
            )
        return Answer(queries=queries[:m], model=self.model)

    def _demo_id(self, document: Document) -> str:
        """The demo's id of this document, recognised by its content: another corpus may use the same ids."""
        documents = self._folder.parent / "corpus.jsonl"
        if not documents.exists():
            return document.id
        return _ids_by_content(documents, documents.stat().st_mtime_ns).get(document.content_hash, "")


GENERATOR = GeneratorType(
    "recorded",
    "Recorded LLM answers",
    "Answers that an LLM gave ahead of time for the demo collection",
    lambda config, api_key: RecordedGenerator(),
    order=20,
)


@lru_cache(maxsize=8)
def _read(path: Path, changed_ns: int) -> dict[str, tuple[str, ...]]:
    """Queries by document id, none where none of them is a text. ``changed_ns`` makes the cache notice edits."""
    recorded: dict[str, tuple[str, ...]] = {}
    for record in read_jsonl(path):
        if isinstance(record, dict) and isinstance(record.get("document_id"), str):
            queries = record.get("queries")
            texts = tuple(query for query in queries if isinstance(query, str)) if isinstance(queries, list) else ()
            recorded[record["document_id"]] = texts
    return recorded


@lru_cache(maxsize=8)
def _ids_by_content(path: Path, changed_ns: int) -> dict[str, str]:
    """Content hash to id of the demo's documents (BEIR fields)."""
    documents = (Document(line["_id"], line["text"], line.get("title", "")) for line in read_jsonl(path))
    return {document.content_hash: document.id for document in documents}
