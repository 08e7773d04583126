"""The commands on trained models and their options."""

from __future__ import annotations

from cdp.cli.option import Commands, flag, option, repeatable

_MODEL = option("retriever", "a training job, by its id, name or the beginning of its id")

COMMANDS: Commands = {
    "models list": ("models.list_", "the models that were trained here", []),
    "models show": (
        "models.show",
        "one model: its files, scores, licence, and what keeps it from being given away",
        [_MODEL],
    ),
    "models card": (
        "models.card",
        "print a model's card, with every evaluation made so far",
        [
            _MODEL,
            option("--licence", "put this licence in, as the hub writes it: apache-2.0, cc-by-4.0 …", metavar="ID"),
            repeatable("--dataset", "name this data set of the hub; repeatable", metavar="OWNER/NAME"),
        ],
    ),
    "models push": (
        "models.push",
        "upload a model with its card to the Hugging Face hub; private unless --public",
        [
            _MODEL,
            option("repository", "its name on the hub: owner/name"),
            flag("--dry-run", "show files, sizes and card; ask the hub nothing"),
            flag("--public", "open to everyone"),
            flag("--allow-leakage", "upload although it saw judged queries; the card says so at its top"),
            flag(
                "--allow-incomplete",
                "upload although its training was stopped or its query set was not whole; the card says so at its top",
            ),
        ],
    ),
    "models export": (
        "models.export",
        "a retriever as an ONNX folder for onnxruntime",
        [
            option("retriever", "a preset, a training's id or name, or any model's name or folder"),
            option("out", "the folder to write; there must be none of that name"),
        ],
    ),
}
