"""Fetching files: from dataset repositories on the Hugging Face hub, and from plain addresses.

``HF_ENDPOINT`` names another hub, authentication comes from ``HF_TOKEN``, ``HF_HUB_OFFLINE`` forbids all requests.
``CDP_FILE_MIRROR`` is an address that plain files are fetched from instead, by their names.
"""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdp.base.errors import CdpError, ConfigError
from cdp.benchmarks.convert import StoppedError

TIMEOUT_S = 30.0
BLOCK = 1 << 20
MIRROR = "CDP_FILE_MIRROR"

# Called with the bytes received since the last call; may raise to end the transfer.
Received = Callable[[int], None]


class DownloadError(CdpError):
    """The hub, or another server, could not be reached or did not answer as it should."""

    kind = "network"


@dataclass(frozen=True)
class Repository:
    """A dataset repository at one commit. ``files`` maps paths to bytes (0 where the hub does not say)."""

    name: str
    commit: str
    licence: str
    files: Mapping[str, int]


def resolve(name: str, revision: str = "") -> Repository:
    """Return a dataset repository at a branch, tag or commit; its main branch if none is named.

    DownloadError without a network; ConfigError for an unknown repository or revision, or one that is not open.
    """
    from huggingface_hub import HfApi

    with _library_errors(name, revision):
        api = HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None)
        info = api.dataset_info(name, revision=revision or None, files_metadata=True, timeout=TIMEOUT_S)
    licence = (info.card_data.to_dict() if info.card_data else {}).get("license") or "not stated"
    return Repository(
        name=name,
        commit=str(info.sha),
        licence=", ".join(licence) if isinstance(licence, list) else str(licence),
        files={sibling.rfilename: int(sibling.size or 0) for sibling in info.siblings or ()},
    )


def fetch(repository: str, path: str, commit: str, folder: Path, received: Received | None = None) -> Path:
    """Fetch one file at a commit into ``folder`` and return its path. The library resumes a partial file.

    Errors as for ``resolve``.
    """
    from huggingface_hub import hf_hub_download

    with _library_errors(repository, commit):
        return Path(
            hf_hub_download(
                repository,
                path,
                repo_type="dataset",
                revision=commit,
                local_dir=folder,
                endpoint=os.environ.get("HF_ENDPOINT") or None,
                tqdm_class=_bar(received),
            )
        )


def fetch_address(address: str, folder: Path, received: Received | None = None) -> Path:
    """Fetch one file from a plain address into ``folder`` and return its path. A whole one is not fetched again."""
    name = address.rpartition("/")[2]
    target = folder / name
    if target.is_file():
        return target
    mirror = os.environ.get(MIRROR, "").strip()
    address = f"{mirror.rstrip('/')}/{name}" if mirror else address
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{name}.part"
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer, open(partial, "wb") as file:
            stated = answer.headers.get("Content-Length")
            while block := answer.read(BLOCK):
                file.write(block)
                if received is not None:
                    received(len(block))
            if stated is not None and file.tell() != int(stated):  # a cut connection ends like a whole file
                raise DownloadError(f"{address} broke off after {file.tell():,} of {int(stated):,} bytes.")
    except urllib.error.HTTPError as error:
        raise DownloadError(f"{address} answers {error.code} ({error.reason}).") from error
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        raise DownloadError(f"{address} cannot be reached: {getattr(error, 'reason', None) or error}.") from error
    os.replace(partial, target)
    return target


@contextmanager
def _library_errors(repository: str, revision: str) -> Iterator[None]:
    """Translate the library's errors."""
    from huggingface_hub import errors

    try:
        yield
    except (CdpError, StoppedError):
        raise
    except errors.GatedRepoError as error:
        raise ConfigError(
            f"The repository {repository} asks for consent before it gives its files.",
            hint=f"Agree on its page on the hub, and set HF_TOKEN to a token of that account ({first_line(error)}).",
        ) from error
    except errors.RevisionNotFoundError as error:
        raise ConfigError(
            f"The repository {repository} has no revision {revision!r}.", hint="Give a branch, a tag or a whole commit."
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise ConfigError(
            f"There is no dataset repository {repository} on the hub, or it is not open to everyone.",
            hint="If it is a closed one, set HF_TOKEN to a token of an account that may read it.",
        ) from error
    except errors.OfflineModeIsEnabled as error:
        raise DownloadError(f"{repository} was not asked for: HF_HUB_OFFLINE is set.") from error
    except Exception as error:
        known = (errors.LocalEntryNotFoundError, errors.HfHubHTTPError)
        if not isinstance(error, known) and not is_network(error):
            raise
        raise DownloadError(f"{repository} cannot be fetched from the hub: {first_line(error)}") from error


def is_network(error: BaseException) -> bool:
    """Return whether an error comes from the network: its own kind, or of the HTTP library, which changes its name."""
    module = type(error).__module__.partition(".")[0]
    return isinstance(error, (ConnectionError, TimeoutError)) or module.startswith(("httpx", "httpcore", "requests"))


def first_line(error: BaseException | str) -> str:
    """Return the first line of a library's message, as a sentence."""
    lines = str(error).strip().splitlines()
    return (lines[0].rstrip(".") if lines else type(error).__name__) + "."


def _bar(received: Received | None) -> type[Any]:
    """Return a progress bar that draws nothing and calls ``received`` for every block."""
    from tqdm.std import tqdm  # type: ignore[import-untyped, unused-ignore]

    class Bar(tqdm):  # type: ignore[misc, type-arg, unused-ignore]
        def __init__(self, *args: Any, **options: Any) -> None:
            options.pop("name", None)
            super().__init__(*args, **{**options, "disable": True})

        def update(self, n: float | None = 1) -> None:
            if received is not None and n:
                received(int(n))

    return Bar
