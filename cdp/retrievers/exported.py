"""What is known of an exported model without loading it: the small file beside its graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from cdp.base.errors import ConfigError, ModelError
from cdp.base.paths import typed_folder
from cdp.base.workspace import read_json_or_none, write_json

GRAPH, TOKENIZER, CONFIG = "model.onnx", "tokenizer.json", "onnx_config.json"
FORMATS = ("onnx", "onnx-int8")
"""fp32, and weights in int8 with activations quantised as they come."""


@dataclass(frozen=True)
class OnnxConfig:
    """``max_length`` in tokens, None if nothing is cut; ``similarity`` is cosine or dot; ``retriever`` is what was
    exported, by its ``model_hash``."""

    format: str
    dimension: int
    max_length: int | None
    similarity: str
    prompts: Mapping[str, str]
    retriever: str
    model_hash: str

    @classmethod
    def read(cls, folder: Path) -> OnnxConfig:
        value = read_json_or_none(folder / CONFIG)
        try:
            return cls(**value)  # type: ignore[arg-type]
        except TypeError as error:
            raise ModelError(f"{folder} holds no exported model: {CONFIG} is missing or damaged.") from error

    def write(self, folder: Path) -> None:
        write_json(folder / CONFIG, asdict(self))


def is_exported(folder: Path) -> bool:
    """Whether a folder holds an exported model."""
    return (folder / CONFIG).is_file()


def exported_from(name: str) -> str:
    """What the exported model in a folder of that name was made from; empty for anything else."""
    folder = typed_folder(name)
    return OnnxConfig.read(folder).retriever if folder is not None and is_exported(folder) else ""


def require_runtime(*more: str) -> None:
    """ConfigError where onnxruntime, or what else is named, is not installed."""
    missing = [name for name in ("onnxruntime", *more) if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"ONNX needs {' and '.join(missing)}, which is not installed.", hint="pip install 'cdp-studio[onnx]'"
        )
