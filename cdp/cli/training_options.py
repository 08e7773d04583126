"""The commands that train, and their options."""

from __future__ import annotations

from cdp.base.config import TrainingConfig
from cdp.cli.option import (
    ALLOW_INCOMPLETE,
    ALLOW_LEAKAGE,
    ID,
    NAME,
    SET,
    WAIT,
    Commands,
    flag,
    option,
    repeatable,
    setting,
)

_TRAINING = [
    option("query_set", "the query set to train on"),
    setting(TrainingConfig, "--retriever"),
    setting(TrainingConfig, "--weighting"),
    option("--per-doc", "Q/Doc: only the first so many queries of each document", type=int),
    option("--pairs", "exactly so many pairs: as many first documents as --per-doc needs", type=int),
    ALLOW_INCOMPLETE,
    ALLOW_LEAKAGE,
]

COMMANDS: Commands = {
    "train": (
        "training.train",
        "train a retriever, as a job; with --plan only say what it would do and take",
        [
            *_TRAINING,
            flag("--plan", "measure a few steps: time, memory, what is left out; start nothing"),
            repeatable(
                "--evaluate", "evaluate before and after on this benchmark; repeatable", metavar="BENCHMARK[:SPLIT]"
            ),
            option(
                "--when",
                "with --evaluate: only before or only after the training",
                default="both",
                choices=("both", "before", "after"),
            ),
            option(
                "--name",
                "a name for the trained retriever, which every command then takes; made from its inputs if left out",
            ),
            SET,
            WAIT,
        ],
    ),
    "sweep run": (
        "training.sweep_run",
        "train once per learning rate, each judged on a dev benchmark: a job per rate",
        [
            *_TRAINING,
            option(
                "--learning-rates",
                "peak learning rates; if left out the paper's six, or six around the retriever's own",
                metavar="RATE,RATE",
            ),
            option("--benchmark", "the dev benchmark", required=True, metavar="BENCHMARK[:SPLIT]"),
            NAME,
            SET,
            WAIT,
        ],
    ),
    "sweep list": ("training.sweep_list", "the sweeps of this workspace", []),
    "sweep report": (
        "training.sweep_report",
        "each rate with its dev NDCG@10 at the checkpoints, the chosen one, and the paper's table",
        [ID, option("--out", "write it to this file as Markdown")],
    ),
}
