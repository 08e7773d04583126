"""The model that comes with the installation is found, and is refused if its weights were changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.errors import ModelError
from cdp.retrievers import presets


def test_the_shipped_model_is_found_and_is_the_official_one() -> None:
    folder = presets.minilm_folder()
    assert (folder / "config.json").is_file()
    assert (folder / "modules.json").is_file()


def test_changed_weights_are_refused_and_a_repair_is_seen(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"changed")
    good = "239d84a5a7ad65f27c2e1f4bd7b0fdbf2b79e9e1ff4d40b3fdc8a3fa4b3fe9ca"
    with pytest.raises(ModelError, match="SHA-256") as caught:
        presets.verified_folder(tmp_path, good)
    assert "pip install" in caught.value.hint
    import hashlib

    weights.write_bytes(b"the right bytes")
    assert presets.verified_folder(tmp_path, hashlib.sha256(b"the right bytes").hexdigest()) == tmp_path


def test_missing_weights_are_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no weights"):
        presets.verified_folder(tmp_path, presets.MINILM_SHA256)
