"""Giving a trained model to the Hugging Face hub: which files, whether it may be given away, and the upload.

``HF_ENDPOINT`` names another hub. Who one is says ``HF_TOKEN`` or ``hf auth login``, never a setting of ours: a token
on a command line stands in the shell's history and in lists of processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from cdp import __version__
from cdp.base.errors import CdpError, ConfigError
from cdp.base.workspace import Workspace
from cdp.benchmarks.hub import first_line, is_network
from cdp.retrievers.card_results import front_matter, with_metadata
from cdp.retrievers.trained import CARD
from cdp.services import models
from cdp.services.models import Fault, TrainedModel
from cdp.services.sharing import access
from cdp.training.card import FOLDER

FLAGS = {"leaked": "--allow-leakage", "incomplete": "--allow-incomplete"}


class HubError(CdpError):
    """The hub could not be reached, or refused."""

    kind = "network"


@dataclass(frozen=True)
class Push:
    """What is, or would be, on the hub: files with their bytes, the card. ``url`` and ``commit`` are empty before."""

    repository: str
    private: bool
    files: tuple[tuple[str, int], ...]
    card: str
    faults: tuple[str, ...] = ()
    url: str = ""
    commit: str = ""

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.files)


@access.runs
def push(
    workspace: Workspace,
    name: str,
    repository: str,
    *,
    public: bool = False,
    dry_run: bool = False,
    allow_leakage: bool = False,
    allow_incomplete: bool = False,
) -> Push:
    """Upload a model that was trained here as one commit, private unless ``public``; with ``dry_run`` only say what.

    ConfigError for a name that the hub would not take, a model that saw judged queries or was not trained to its end
    (unless that is allowed: then the card says it at its top), no token, or a repository that is open to everyone while
    ``public`` was not said. HubError where the hub does not answer or refuses.
    """
    _check_name(repository)
    model = models.show(workspace, name)
    allowed = {"leaked": allow_leakage, "incomplete": allow_incomplete}
    for fault in model.faults:
        if not allowed[fault.kind]:
            raise ConfigError(
                f"{model.title} is not given away unasked: {fault.sentence.replace('**', '')}",
                hint=f"If you mean it: {FLAGS[fault.kind]}; the card says it at its top.",
            )
    card = published(models.card(workspace, model.id), repository, model.faults)
    files = tuple((path, len(card.encode()) if path == CARD else size) for path, size in model.files)
    planned = Push(repository, not public, files, card, tuple(fault.sentence for fault in model.faults))
    return planned if dry_run else _upload(model, planned)


def published(card: str, repository: str, faults: tuple[Fault, ...]) -> str:
    """The card as it stands on the hub: it loads the model from there, and says at its top what is wrong with it."""
    card = card.replace(f'"{FOLDER}"', f'"{repository}"')
    missing = [f"> {fault.sentence}\n\n" for fault in faults if f"> {fault.sentence}" not in card]
    parts = front_matter(card)
    if not missing:
        return card
    metadata, body = parts or ({}, card)
    before, heading, rest = body.partition("\n# ")
    title, _, below = rest.partition("\n")
    marked = f"{before}{heading}{title}\n\n{''.join(missing)}{below.lstrip()}" if heading else "".join(missing) + body
    return with_metadata(metadata, marked) if parts else marked


def _check_name(repository: str) -> None:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(repository)
    except HFValidationError as error:
        raise ConfigError(f"{repository!r} is no name of a repository.", hint="Write owner/name.") from error
    if "/" not in repository:
        raise ConfigError(f"{repository!r} does not say whose it is.", hint=f"Write owner/{repository}.")


def _upload(model: TrainedModel, planned: Push) -> Push:
    from huggingface_hub import CommitOperationAdd, HfApi, get_token
    from huggingface_hub.errors import RepositoryNotFoundError

    if not get_token():
        raise ConfigError("Nobody is logged in to the hub.", hint="Log in with hf auth login, or set HF_TOKEN.")
    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None, library_name="cdp-studio", library_version=__version__)
    repository = planned.repository
    with _library_errors(repository):
        try:
            private = bool(api.model_info(repository).private)
        except RepositoryNotFoundError:
            api.create_repo(repository, private=planned.private)
            private = planned.private
        if planned.private and not private:
            raise ConfigError(
                f"{repository} is there already, and open to everyone.",
                hint="Name another repository, or say --public.",
            )
        operations = [
            CommitOperationAdd(path, planned.card.encode() if path == CARD else str(model.folder / path))
            for path, _ in planned.files
        ]
        message = f"{model.title}, trained with CDP Studio {__version__} ({model.result['model_hash']})"
        done = api.create_commit(repository, operations, commit_message=message.splitlines()[0])
    url = f"{api.endpoint}/{repository}"
    return Push(repository, private, planned.files, planned.card, planned.faults, url, str(done.oid))


@contextmanager
def _library_errors(repository: str) -> Iterator[None]:
    """The library's errors in our words."""
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    try:
        yield
    except CdpError:
        raise
    except OfflineModeIsEnabled as error:
        raise ConfigError("HF_HUB_OFFLINE forbids asking the hub.", hint="Unset it to upload.") from error
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        reason = first_line(error.server_message or error)
        if status in (401, 403):
            raise HubError(
                f"The hub refuses to let you write {repository}: {reason}",
                hint="Log in with a token that may write there: hf auth login, or HF_TOKEN.",
            ) from error
        raise HubError(f"The hub did not take {repository}: {reason}", hint="Try again later.") from error
    except (RuntimeError, ValueError) as error:  # a part of the upload failed, or the hub refuses the card's metadata
        cause = f" ({first_line(error.__cause__)})" if error.__cause__ else ""
        raise HubError(f"The hub did not take {repository}: {' '.join(str(error).split())}{cause}") from error
    except Exception as error:
        if not is_network(error):
            raise
        raise HubError(f"The hub cannot be reached: {first_line(error)}", hint="Is there a network?") from error
