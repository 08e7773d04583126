"""Settings of the job that mines hard negatives for a query set."""

from __future__ import annotations

from cdp.base.config.filtering import GPUS
from cdp.base.errors import ConfigError
from cdp.base.settings import REQUIRED, Config, option


class MiningConfig(Config):
    """A copy of a query set with hard negatives for its queries; the set itself stays as it is."""

    query_set: str = option(REQUIRED, "The query set to mine for (its id).")
    retriever: str = option(
        "static-minilm",
        "What looks for look-alikes: a preset, a training's id or name, or a model's name or folder.",
        reason="It comes with the installation and takes seconds on a CPU.",
        holds="model",
    )
    negatives: int = option(
        5, "Hard negatives per query.", reason="More than a training takes, so that it can choose.", minimum=1,
        maximum=100,
    )  # fmt: skip
    range_min: int = option(
        10,
        "Leave out so many of the nearest documents: they are often answers that nobody judged.",
        reason="As sentence-transformers' own example has it.",
        unit="documents",
        minimum=0,
        maximum=10000,
    )
    range_max: int = option(
        50, "Take negatives from so many of the nearest documents.", reason="Further ones are easy.", unit="documents",
        minimum=1, maximum=10000,
    )  # fmt: skip
    relative_margin: float | None = option(
        0.05,
        "Leave out documents whose similarity is above (1 - margin) of the own document's. No such rule if empty.",
        reason="TopK-PercPos with 95%, which NV-Retriever found to work best.",
        minimum=0.0,
        maximum=1.0,
    )
    max_score: float | None = option(
        None, "Leave out documents that are more similar to the query than this (cosine).", minimum=-1.0, maximum=1.0,
        advanced=True,
    )  # fmt: skip
    cross_encoder: str = option(
        "",
        "A cross-encoder that scores each query with its document and its negatives, by name or folder: soft labels "
        "for training with 'distil'. None if empty.",
        holds="model",
    )
    name: str = option("", "A name for the new set; made from the set's and the retriever if empty.")
    gpus: int | None = GPUS

    def check(self) -> None:
        if self.range_max - self.range_min < self.negatives:
            raise ConfigError(
                f"From rank {self.range_min} to {self.range_max} there are fewer than {self.negatives} documents.",
                hint="Raise range_max, or lower range_min or negatives.",
            )

    @property
    def text(self) -> str:
        """What was done, as the new set's manifest keeps it."""
        margin = "" if self.relative_margin is None else f", margin {self.relative_margin:g}"
        return f"{self.negatives} of ranks {self.range_min} to {self.range_max} by {self.retriever}{margin}"
