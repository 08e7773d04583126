"""Freezing the lower layers of an encoder: what they give is kept per text; its place, limit, eviction.

No step changes the frozen layers, so their output is the same at every step, for every training on the same base model
and at every dev evaluation. It lies in ``layers/<key>/`` of the workspace as float16, by model, layer, length and text.
"""

from __future__ import annotations

import copy
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cdp.base.errors import ConfigError, ModelError
from cdp.base.text import PhaseProgress, silent
from cdp.base.workspace import folder_size, sha256_text, write_bytes
from cdp.retrievers import DENSE, MULTI_VECTOR
from cdp.retrievers.encode import npy
from cdp.retrievers.load import is_routed, kind_of, transformers_of
from cdp.training.forward import IDS, forward
from cdp.training.tokens import TokenStore, groups, overhead_on, tokenise

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# All kept states of a workspace together; the least recently used models leave first.
LIMIT_BYTES = 8 << 30

# Of one part: written at once, so lost at most by a kill.
PART_BYTES = 64 << 20

# Tokens of one pass through the frozen layers.
TOKENS_A_PASS = 8192

# A text's hash, its first row in the part, and its rows.
_TEXTS = np.dtype([("key", "V16"), ("start", "<i8"), ("rows", "<i8")])


def stack_of(model: SentenceTransformer) -> tuple[str, nn.ModuleList]:
    """Return the model's stack of layers, with its name in the transformer. ModelError for a model without one, or with
    a transformer each for queries and documents."""
    if len(transformers_of(model)) > 1:
        raise ModelError("The model has two transformers.", hint="Leave trained_layers empty.")
    transformer = model.transformers_model
    n = getattr(getattr(transformer, "config", None), "num_hidden_layers", None)
    if transformer is not None:
        for name, module in transformer.named_modules():
            if isinstance(module, nn.ModuleList) and len(module) == n:
                return name, module
    raise ModelError("The model has no stack of layers.", hint="Leave trained_layers empty.")


def freeze_below(model: SentenceTransformer, trained: int) -> None:
    """Freeze all of the transformer but its upper ``trained`` layers and what follows them; no dropout in the frozen.

    ConfigError where the model has fewer layers.
    """
    name, stack = stack_of(model)
    if trained > len(stack):
        raise ConfigError(
            f"'trained_layers' is {trained}, and the model has {len(stack)} layers.",
            hint="Lower it, or leave it empty to train everything.",
        )
    transformer = model.transformers_model
    assert transformer is not None
    place, _, own = name.rpartition(".")
    parent = transformer.get_submodule(place)
    siblings = list(parent._modules)
    # What stands behind the stack is a last normalisation. Tables that the layers share stand there, too: they take
    # part in the frozen layers, so they are frozen with these.
    last = [parent._modules[s] for s in siblings[siblings.index(own) + 1 :] if "norm" in s]
    free = [*stack[len(stack) - trained :], *last]

    kept = {id(parameter) for module in free if module is not None for parameter in module.parameters()}
    # A language model's head, but for the word embeddings that it shares with the frozen ones.
    kept |= {id(p) for p in transformer.parameters()} - {id(p) for p in transformer.base_model.parameters()}
    for parameter in transformer.parameters():
        parameter.requires_grad_(id(parameter) in kept)

    upper = {id(module) for top in free if top is not None for module in top.modules()}
    for module in transformer.modules():
        if id(module) in upper:
            continue
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = 0.0


class _Given(nn.Module):
    """Stands where the embeddings do: hands on the states that it is given."""

    def forward(self, inputs_embeds: Tensor, **_: Any) -> Tensor:
        return inputs_embeds


class LowerLayers:
    """The frozen layers of a model and their kept states; the layers above as a function of these.

    ``root`` is the workspace's folder of states, ``identity`` the hash of the untrained model. With ``dtype`` float32
    nothing is rounded.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        trained: int,
        root: Path,
        identity: str,
        *,
        dtype: type[np.floating[Any]] = np.float16,
        limit: int = LIMIT_BYTES,
    ) -> None:
        self.model, self.kind = model, kind_of(model)
        transformer = model.transformers_model
        assert transformer is not None
        encoder = transformer.base_model
        self.dim = int(transformer.config.hidden_size)
        _, stack = stack_of(model)
        n_frozen = len(stack) - trained

        self._lower = _with_layers(encoder, stack[:n_frozen])
        upper = _with_layers(encoder, stack[n_frozen:])
        upper._modules["embeddings"] = _Given()

        if encoder is not transformer:  # a language model, whose head stays above its encoder
            language_model = _shallow(transformer)
            language_model._modules[transformer.base_model_prefix] = upper
            upper = language_model

        first = _shallow(model[0])
        first._modules["model"] = upper
        self._upper = _shallow(model)
        self._upper._modules["0"] = first

        length = model.max_seq_length
        facts = (identity, f"below={n_frozen}", f"length={length}", f"dtype={np.dtype(dtype).name}")
        self._kept = _Kept(root, sha256_text(*facts)[:24], self.dim, dtype, limit)

    @staticmethod
    def fits(model: SentenceTransformer) -> bool:
        """Return True for an encoder whose layers take nothing but states and a mask: BERT and its like."""
        base = getattr(model.transformers_model, "base_model", None)
        encoder = getattr(base, "encoder", None)
        if base is None or encoder is None or not isinstance(getattr(encoder, "layer", None), nn.ModuleList):
            return False
        if getattr(base.config, "is_decoder", False) or getattr(model.tokenizer, "padding_side", "") == "left":
            return False
        # Of a router the layers may be one role's; a mean over layers needs the states of those below, too.
        if is_routed(model) or getattr(base.config, "output_hidden_states", False):
            return False
        names = {name for name, module in base.named_children() if any(True for _ in module.parameters())}
        inside = {name for name, _ in encoder.named_parameters()}
        return names <= {"embeddings", "encoder", "pooler"} and all(name.startswith("layer.") for name in inside)

    def states(
        self, texts: Sequence[str], prompt: str, tokens: TokenStore, report: PhaseProgress = silent
    ) -> StateStore:
        """Return the texts with the states below the trained layers; those that are not kept are computed.

        ``tokens`` are the texts', with the prompt. ``report`` hears how many texts are done.
        """
        keys = [_key(prompt, text, tokens.role) for text in texts]
        unknown = {key: i for i, key in enumerate(keys) if key not in self._kept.places}
        missing = np.fromiter(unknown.values(), np.int64, len(unknown))
        done = len(texts) - len(missing)
        report(done, len(texts))

        part: list[NDArray[Any]] = []
        names: list[bytes] = []
        for rows in _passes(tokens.lengths, missing):
            part += self._computed(tokens, rows)
            names += [keys[row] for row in rows]
            done += len(rows)
            report(done, len(texts))
            if sum(state.nbytes for state in part) >= PART_BYTES:
                self._kept.add(names, part)
                part, names = [], []
        if part:
            self._kept.add(names, part)
        return StateStore(self, keys, tokens.lengths, tokens.constants, tokens, tokens.role)

    def _computed(self, tokens: TokenStore, rows: NDArray[np.int64]) -> list[NDArray[Any]]:
        """What the frozen layers give for these texts: one array (tokens, dim) each."""
        device = self.model.device
        features = {
            name: value.to(device) for name, value in tokens.features(rows).items() if isinstance(value, Tensor)
        }
        self._lower.eval()

        with torch.no_grad():
            found = self._lower(**features).last_hidden_state.float().cpu().numpy()

        states = [found[i, : tokens.lengths[row]].astype(self._kept.dtype) for i, row in enumerate(rows)]
        if not all(np.isfinite(state).all() for state in states):
            raise ModelError(
                "The lower layers give numbers that do not fit half precision.",
                hint="Leave trained_layers empty to train everything.",
            )

        return states

    def read(self, store: StateStore, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the states of these texts, (n, longest, dim), zeros behind a text's end."""
        lengths = store.lengths[rows]
        padded = np.zeros((len(rows), int(lengths.max(initial=1)), self.dim), self._kept.dtype)
        absent = []
        for i, row in enumerate(rows):
            place = self._kept.places.get(store.keys[row])
            if place is None or place[2] != lengths[i]:
                absent.append(i)
                continue
            part, start, n = place
            padded[i, :n] = part[start : start + n]

        # There was no room to keep them.
        if absent:
            assert store.tokens is not None
            for i, state in zip(absent, self._computed(store.tokens, rows[absent]), strict=True):
                padded[i, : len(state)] = state
        return padded

    def forward(self, features: dict[str, Any], role: str = "") -> Tensor:
        """Return what ``forward`` gives for texts by their states, as ``StateStore.features`` gives them."""
        dtype = next(self._upper.parameters()).dtype
        features = {**features, "inputs_embeds": features["inputs_embeds"].to(dtype)}
        return forward(self._upper, self.kind, features, role)

    def embed(
        self, texts: Sequence[str], prompt: str, batch_size: int, role: str = "document"
    ) -> list[NDArray[np.float32]]:
        """Return what the model gives for each text, float32: (dim,), (words,), of late interaction (tokens, dim).

        Their states are kept for the next time.
        """
        store = self._store(texts, prompt, role)
        device = self.model.device
        found: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(texts)

        with torch.no_grad():
            for rows in groups(store.lengths, overhead_on(device), batch_size):
                features = {n: v.to(device) if isinstance(v, Tensor) else v for n, v in store.features(rows).items()}
                part = self.forward(features, store.role).float().cpu().numpy()
                for row, vectors in zip(rows.tolist(), part, strict=True):
                    found[row] = vectors[vectors.any(1)] if self.kind == MULTI_VECTOR else vectors

        return found

    def _store(self, texts: Sequence[str], prompt: str, role: str) -> StateStore:
        """The texts by their states. They are tokenised where one is not kept, or its ids are asked for."""
        role = "" if self.kind == DENSE else role
        keys = [_key(prompt, text, role) for text in texts]
        kept = [place for place in map(self._kept.places.get, keys) if place is not None]

        if self.kind == MULTI_VECTOR or len(kept) < len(keys):
            return self.states(texts, prompt, tokenise(self.model, texts, prompt, role=role))

        # One text's tokens tell what all have in common, such as the length of the prompt.
        common = tokenise(self.model, texts[:1], prompt, role=role)
        lengths = np.array([rows for _, _, rows in kept], np.int64)
        return StateStore(self, keys, lengths, common.constants, role=role)


class StateStore:
    """Texts by what the frozen layers give for them, in place of a ``TokenStore``. Without ``tokens`` all are kept."""

    def __init__(
        self,
        lower: LowerLayers,
        keys: list[bytes],
        lengths: NDArray[np.int64],
        constants: dict[str, Any],
        tokens: TokenStore | None = None,
        role: str = "",
    ) -> None:
        self.lower, self.keys, self.lengths = lower, keys, lengths
        self.constants, self.tokens, self.role = constants, tokens, role

    def features(self, rows: NDArray[np.int64]) -> dict[str, Any]:
        """What ``LowerLayers.forward`` takes for these texts, padded to the longest of them."""
        lengths = self.lengths[rows]
        mask = np.arange(int(lengths.max(initial=1))) < lengths[:, None]
        features = {
            "inputs_embeds": torch.from_numpy(self.lower.read(self, rows)),
            "attention_mask": torch.from_numpy(mask.astype(np.int64)),
            **self.constants,
        }

        # Late interaction leaves some words out by their ids, such as punctuation.
        if self.lower.kind == MULTI_VECTOR:
            assert self.tokens is not None
            features[IDS] = self.tokens.features(rows)["input_ids"]

        return features

    def content(self) -> Iterator[bytes | memoryview]:
        """All that the texts are made of, for a hash."""
        assert self.tokens is not None
        return self.tokens.content()


class _Kept:
    """States on disk, read as memory maps; a text by the hash of its prompt and content.

    A part is two files: ``NAME.npy``, (tokens, dim), and ``NAME.texts.npy``, written last, which says where each text
    lies. A part whose files do not belong together is deleted, so that its texts are computed again.
    """

    def __init__(self, root: Path, key: str, dim: int, dtype: type[np.floating[Any]], limit: int) -> None:
        self.folder, self.dim, self.dtype, self.limit = root / key, dim, dtype, limit
        self.places: dict[bytes, tuple[NDArray[Any], int, int]] = {}
        self._full = False
        for listing in self.folder.glob("*.texts.npy"):
            self._open(listing)
        with suppress(OSError):
            os.utime(self.folder)  # used now: others leave before it

    def _open(self, listing: Path) -> None:
        data = listing.with_name(listing.name.replace(".texts.npy", ".npy"))

        try:
            texts = np.load(listing, allow_pickle=False)
            states = np.load(data, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            whole = False
        else:
            whole = states.dtype == self.dtype and states.shape[1:] == (self.dim,) and _lies_in(texts, len(states))

        if not whole:
            for path in (listing, data):
                with suppress(OSError):
                    path.unlink()
            return

        for key, start, rows in texts.tolist():
            self.places[key] = (states, start, rows)

    def add(self, keys: Sequence[bytes], states: Sequence[NDArray[Any]]) -> None:
        """Keep the states of these texts, if there is room."""
        size = sum(state.nbytes for state in states)
        if self._full or not self._room_for(size):
            self._full = True
            return
        rows = np.array([len(state) for state in states], np.int64)
        texts = np.empty(len(states), _TEXTS)
        texts["key"] = np.array([np.void(key) for key in keys])
        texts["start"] = np.cumsum(rows) - rows
        texts["rows"] = rows

        name = secrets.token_hex(8)
        write_bytes(self.folder / f"{name}.npy", npy(np.concatenate(states)))
        write_bytes(self.folder / f"{name}.texts.npy", npy(texts))
        self._open(self.folder / f"{name}.texts.npy")

    def _room_for(self, size: int) -> bool:
        """Delete the states of other models, the least recently used first, until so many bytes fit."""
        folders = [path for path in self.folder.parent.glob("[!.]*") if path.is_dir()]
        sizes = {path: folder_size(path) for path in folders}
        others = sorted((path for path in folders if path != self.folder), key=lambda path: path.stat().st_mtime)
        while sum(sizes.values()) + size > self.limit and others:
            oldest = others.pop(0)
            shutil.rmtree(oldest, ignore_errors=True)
            del sizes[oldest]
        return sum(sizes.values()) + size <= self.limit


def _lies_in(texts: NDArray[Any], rows: int) -> bool:
    """Return True for a listing of texts that fill a part of so many rows."""
    if texts.dtype != _TEXTS or texts.ndim != 1 or not len(texts):
        return False
    ends = texts["start"] + texts["rows"]
    return bool(texts["start"].min() == 0 and texts["rows"].min() >= 0 and ends.max() == rows)


def _key(prompt: str, text: str, role: str = "") -> bytes:
    whole = f"{role}{len(prompt)}:{prompt}{text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(whole, digest_size=16).digest()


def _shallow(module: nn.Module) -> Any:
    """Return a copy of a module with the same parts, whose parts can be replaced."""
    copied = copy.copy(module)
    copied._modules = dict(module._modules)
    return copied


def _with_layers(transformer: nn.Module, layers: nn.ModuleList) -> Any:
    """Return an encoder that shares everything with this one but has these layers alone."""
    whole, encoder = _shallow(transformer), _shallow(transformer.encoder)
    encoder._modules["layer"] = layers
    whole._modules |= {"encoder": encoder, "pooler": None}
    whole.pooler = None
    return whole


def _passes(lengths: NDArray[np.int64], rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield these texts in groups of similar length, so many that a pass fits in memory."""
    ordered = rows[np.argsort(-lengths[rows], kind="stable")]
    start = 0
    while start < len(ordered):
        n = max(1, TOKENS_A_PASS // max(1, int(lengths[ordered[start]])))
        yield ordered[start : start + n]
        start += n
