"""Shards of embeddings made by the workers of a crew: each is one part, the same bytes wherever it is made.

A worker reads the retriever by its name, once for all its shards, and checks that it is the one that the job loaded.
It writes the shard where one machine would; what comes back is nothing but its number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from cdp.base.crew import Crew, kept
from cdp.base.errors import ModelError
from cdp.base.workspace import Workspace
from cdp.retrievers.encode import Encoding, cast, is_whole, make_shard
from cdp.retrievers.load import load, model_hash
from cdp.retrievers.resolve import ResolvedRetriever, resolve

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


@dataclass(frozen=True)
class ShardPart:
    """One shard to make: its texts, the file it goes to, and by what it is encoded."""

    path: str
    texts: Sequence[str] = field(repr=False)
    workspace: str
    retriever: str
    max_length: int | None
    encoding: Encoding
    batch_size: int


@dataclass(frozen=True)
class Elsewhere:
    """Has a crew make shards, for an ``EmbeddingStore``.

    ``retriever`` is the name by which each worker loads the model, cut at ``max_length`` tokens as ``load`` takes it.
    """

    crew: Crew
    workspace: Workspace
    retriever: str
    max_length: int | None = None

    @classmethod
    def of(
        cls, crew: Crew | None, workspace: Workspace, retriever: ResolvedRetriever, max_length: int | None = None
    ) -> Self | None:
        """For a retriever that was found here; None without a crew. A folder goes by its whole path: the workers start
        elsewhere."""
        name = retriever.source if retriever.origin == "folder" else retriever.name
        return cls(crew, workspace, name, max_length) if crew is not None else None

    def make(
        self,
        shards: Iterable[tuple[Path, Sequence[str]]],
        encoding: Encoding,
        batch_size: int,
        *,
        should_stop: Callable[[], bool] | None = None,
        on_done: Callable[[int], None] | None = None,
    ) -> Iterator[int]:
        """The numbers of the shards, each once its file is there. ModelError where a node has another model of that
        name; ``Stopped`` once ``should_stop`` says so. ``on_done`` as ``Crew.each`` calls it."""
        name, length = self.retriever, self.max_length
        parts = (
            ShardPart(str(path), texts, str(self.workspace.root), name, length, encoding, batch_size)
            for path, texts in shards
        )
        for number, _ in self.crew.each(encode_shard, parts, should_stop=should_stop, on_done=on_done):
            yield number


def encode_shard(part: ShardPart) -> int:
    """Write one shard, unless it is there; how many texts were encoded."""
    path = Path(part.path)
    if is_whole(path, len(part.texts)):
        return 0
    by = (part.workspace, part.retriever, part.max_length, part.encoding.model_hash, part.encoding.precision)
    model = kept("model", by, lambda: _loaded(part))
    make_shard(path, model, part.texts, part.encoding, batch_size=part.batch_size)
    return len(part.texts)


def _loaded(part: ShardPart) -> SentenceTransformer:
    """On a GPU if this worker has one."""
    model = load(resolve(part.retriever, Workspace(Path(part.workspace))), None, part.max_length)
    identity = model_hash(model)
    if identity != part.encoding.model_hash:
        raise ModelError(
            f"A node of the cluster has another model called {part.retriever} than the job's own "
            f"({identity}, not {part.encoding.model_hash}).",
            hint="Have every node use the same one: a folder in the workspace, or the same snapshot of the hub.",
        )
    return cast(model, part.encoding.precision)
