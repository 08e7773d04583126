"""Settings of the job that exports a retriever."""

from __future__ import annotations

from cdp.base.settings import REQUIRED, Config, option


class ExportConfig(Config):
    """Exporting a retriever to ONNX, with a comparison of what comes of it."""

    retriever: str = option(
        REQUIRED, "A preset, a training's id or name, or any model's name or folder.", holds="model"
    )
    out: str = option(REQUIRED, "The folder to write; there must be none of that name.", holds="path")
    format: str = option(
        "onnx",
        "onnx: fp32; onnx-int8: weights in int8, a quarter of the size, faster on a CPU, a little less exact.",
        reason="It gives the model's own vectors.",
        choices=("onnx", "onnx-int8"),
    )
    benchmark: str = option(
        "", "Evaluate model and export on this benchmark and state NDCG@10 of both; off if empty.", holds="benchmark"
    )
    split: str = option("", "The split of that benchmark; test, or the only one, if empty.")
