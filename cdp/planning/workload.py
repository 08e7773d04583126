"""What is to be done, and on what."""

from __future__ import annotations

from dataclasses import dataclass

CPU, GPU = "cpu", "gpu"


@dataclass(frozen=True, slots=True)
class Hardware:
    """``machines`` of one kind, each with ``cpus`` processors and ``gpus``; ``dollars_per_hour`` is the price of one,
    None where nobody has named it."""

    machines: int = 1
    cpus: int = 1
    gpus: int = 0
    memory_gb: float | None = None
    dollars_per_hour: float | None = None

    @property
    def device(self) -> str:
        """What encodes, trains and searches."""
        return GPU if self.gpus else CPU

    @property
    def devices(self) -> int:
        """How many of these there are: GPUs, or else machines."""
        return self.machines * (self.gpus or 1)


@dataclass(frozen=True, slots=True)
class Writer:
    """What writes the queries. ``kind``: ``processor`` (no LLM, a document at a time on each processor), ``endpoint``,
    ``device`` (a model of one's own), ``free`` (queries that are there).

    ``processes`` is how many write at once on one machine. Requests and tokens are those of the whole corpus.
    ``dollars`` is None where the model has no price; ``price`` says how it was reckoned.
    """

    name: str
    kind: str
    processes: int = 1
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = 0.0
    price: str = ""


@dataclass(frozen=True, slots=True)
class Model:
    """A retriever's facts; 0 where nobody knows."""

    name: str
    dimensions: int
    n_parameters: int
    epochs: int
    batch_size: int


@dataclass(frozen=True, slots=True)
class Workload:
    """Documents of ``characters`` on average, ``per_doc`` queries of ``query_characters`` each, a retriever that is
    trained on them, and ``queries`` for which the ``top_k`` documents are then searched."""

    documents: int
    characters: float
    per_doc: int
    query_characters: float
    queries: int
    model: Model
    writer: Writer
    top_k: int = 100

    @property
    def pairs(self) -> int:
        return self.documents * self.per_doc

    @property
    def text(self) -> float:
        """Characters of all documents."""
        return self.documents * self.characters
