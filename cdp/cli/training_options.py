"""The options of the commands that train."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cdp.base.config import TrainingConfig

Option = tuple[str, dict[str, Any]]

ALLOW_INCOMPLETE: Option = (
    "--allow-incomplete",
    {"action": "store_true", "help": "train although a query set is incomplete: its job failed, was stopped or runs"},
)

ALLOW_LEAKAGE: Option = (
    "--allow-leakage",
    {
        "action": "store_true",
        "help": "train on queries that a benchmark judges; the training and its results are marked as leaked for ever",
    },
)


def training_commands(
    choice: Callable[[type, str], dict[str, Any]], one_id: Option, settings: Option, wait: Option, name: Option
) -> dict[str, tuple[str, str, list[Option]]]:
    """Command words → (handler's name, help, options), to stand in the table of all commands.

    ``choice`` makes an option from a configuration's field; the others are options that commands share.
    """
    training: list[Option] = [
        ("query_set", {"help": "the query set to train on"}),
        ("--retriever", choice(TrainingConfig, "retriever")),
        ("--weighting", choice(TrainingConfig, "weighting")),
        ("--per-doc", {"type": int, "default": None, "help": "Q/Doc: only the first so many queries of each document"}),
        (
            "--pairs",
            {"type": int, "default": None, "help": "exactly so many pairs: as many first documents as --per-doc needs"},
        ),
        ALLOW_INCOMPLETE,
        ALLOW_LEAKAGE,
    ]
    return {
        "train": (
            "training.train",
            "train a retriever, as a job; with --plan only say what it would do and take",
            [
                *training,
                (
                    "--plan",
                    {
                        "action": "store_true",
                        "help": "measure a few steps: time, memory, what is left out; start nothing",
                    },
                ),
                (
                    "--evaluate",
                    {
                        "action": "append",
                        "default": [],
                        "metavar": "BENCHMARK[:SPLIT]",
                        "help": "evaluate before and after on this benchmark; repeatable",
                    },
                ),
                (
                    "--when",
                    {
                        "default": "both",
                        "choices": ("both", "before", "after"),
                        "help": "with --evaluate: only before or only after the training",
                    },
                ),
                settings,
                wait,
            ],
        ),
        "sweep run": (
            "training.sweep_run",
            "train once per learning rate, each judged on a dev benchmark: a job per rate",
            [
                *training,
                (
                    "--learning-rates",
                    {
                        "default": "",
                        "metavar": "RATE,RATE",
                        "help": "peak learning rates; if left out the paper's six, or six around the retriever's own",
                    },
                ),
                ("--benchmark", {"required": True, "metavar": "BENCHMARK[:SPLIT]", "help": "the dev benchmark"}),
                name,
                settings,
                wait,
            ],
        ),
        "sweep list": ("training.sweep_list", "the sweeps of this workspace", []),
        "sweep report": (
            "training.sweep_report",
            "each rate with its dev NDCG@10 at the checkpoints, the chosen one, and the paper's table",
            [one_id, ("--out", {"default": "", "help": "write it to this file as Markdown"})],
        ),
    }
