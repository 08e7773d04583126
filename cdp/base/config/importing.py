"""Settings of the job that takes in what another program retrieved or measured."""

from __future__ import annotations

from cdp.base.settings import REQUIRED, Config, option

FORMATS = ("auto", "trec-run", "mteb-predictions", "ir-measures")


class ResultImportConfig(Config):
    """A run, or scores per query, of a retriever that was not evaluated here."""

    path: str = option(REQUIRED, "The file.", holds="path")
    retriever: str = option(REQUIRED, "What the retriever is called in results; no preset and no training job.")
    benchmark: str = option(
        REQUIRED, "The benchmark that it was evaluated on: its name in the workspace, or a folder.", holds="benchmark"
    )
    split: str = option("", "The qrels to judge by; test, or the only one, if empty.")
    format: str = option(
        "auto",
        "trec-run: query Q0 document rank score tag; mteb-predictions: the JSON of MTEB's prediction_folder; "
        "ir-measures: scores per query, as ir_measures --by_query prints them (TSV or JSONL).",
        reason="The first line tells them apart.",
        choices=FORMATS,
    )
    protocol: str = option(
        "published",
        "Beside which evaluations it is to stand: published or paper.",
        reason="As evaluations here.",
        choices=("published", "paper"),
    )
