"""Settings of the jobs that look for a query's own document, and that leave out queries by what was found."""

from __future__ import annotations

from typing import Any

from cdp.base.errors import ConfigError
from cdp.base.settings import REQUIRED, Config, option

BM25 = "bm25"
USABLE = "usable"
JOINT = "&"

GPUS = option(None, "1 GPU if there is one and this is empty, 0 for CPU.", minimum=0, maximum=1, advanced=True)
BY = option(
    BM25,
    "What looks for the document: bm25, or a retriever (a preset, a training's id or name, a model's name or folder).",
    reason="It needs no model and takes seconds.",
    holds="model",
)


class RoundTripConfig(Config):
    """Round-trip ranks of a query set: at which rank each query finds the document that it was written for."""

    query_set: str = option(REQUIRED, "The query set to measure (its id).")
    by: str = BY
    gpus: int | None = GPUS


class FilterConfig(Config):
    """A query set without the queries that fail a test; the set itself stays as it is."""

    query_set: str = option(REQUIRED, "The query set to filter (its id).")
    round_trip_rank: int | None = option(
        None,
        "Keep queries that find the document they were written for among the first so many of the corpus. No such test "
        "if empty.",
        minimum=1,
        maximum=100,
    )
    by: str = BY
    cross_encoder: str = option(
        "",
        "A cross-encoder that scores each query with its document from 0 to 1, by name or folder. No such test if "
        "empty.",
        holds="model",
    )
    at_least: float | None = option(
        None, "Keep queries that the cross-encoder scores so high or higher.", minimum=0.0, maximum=1.0
    )
    usable: bool = option(
        False,
        "Leave out what is no query (refusals, the prompt, fragments of JSON, another language) and what repeats an "
        "earlier query of its document.",
        reason="Off: each filter is asked for by itself.",
    )
    name: str = option("", "A name for the new set; made from the set's and the filter if empty.")
    gpus: int | None = GPUS

    def check(self) -> None:
        if self.round_trip_rank is None and not self.cross_encoder and not self.usable:
            raise ConfigError(
                "The filter has no test.", hint="Set round_trip_rank, cross_encoder with at_least, or usable."
            )
        if bool(self.cross_encoder) != (self.at_least is not None):
            raise ConfigError(
                "A cross-encoder needs the score from which a query is kept, and that score a cross-encoder.",
                hint="Set both cross_encoder and at_least, or neither.",
            )

    @property
    def text(self) -> str:
        """The tests in one word, as plans write them and manifests keep them: ``usable&bm25@10``, ``MODEL>=0.5``."""
        tests = [USABLE] if self.usable else []
        if self.round_trip_rank is not None:
            tests.append(f"{self.by}@{self.round_trip_rank}")
        if self.cross_encoder and self.at_least is not None:
            tests.append(f"{self.cross_encoder}>={self.at_least:g}")
        return JOINT.join(tests)

    @classmethod
    def from_text(cls, query_set: str, text: str, **more: Any) -> FilterConfig:
        """The filter of such a word; ConfigError for one that is none."""
        values: dict[str, Any] = {"query_set": query_set, **more}
        for test in (part.strip() for part in text.split(JOINT)):
            model, least, score = test.rpartition(">=")
            retriever, at, rank = test.rpartition("@")
            if test == USABLE:
                values["usable"] = True
            elif least and model.strip():
                values |= {"cross_encoder": model.strip(), "at_least": score}
            elif at and retriever.strip():
                values |= {"by": retriever.strip(), "round_trip_rank": rank}
            else:
                raise ConfigError(
                    f"{test!r} is no filter of queries.",
                    hint="Write bm25@10 or RETRIEVER@10 (round-trip rank), CROSS-ENCODER>=0.5, or usable; several "
                    "joined by &.",
                )
        return cls.from_dict(values)
