"""The settings of a download."""

from __future__ import annotations

from dataclasses import dataclass

from cdp.config import REQUIRED, Config, option
from cdp.errors import ConfigError


@dataclass(frozen=True)
class DownloadConfig(Config):
    """Bringing a benchmark of the registry, or all of a group, into the workspace."""

    benchmark: str = option(REQUIRED, "A benchmark of the registry, or a group: all that it is made of.")
    revision: str = option(
        "",
        "A branch, tag or commit of its repository (REPO=REVISION,… for several). Empty: the commit of an earlier "
        "download, else that of the main branch now, which is then kept.",
    )
    folder: str = option("", "Take it from this folder on the server, where it was downloaded to, not from the hub.")
    name: str = option("", "What to call it in the workspace; its own name if empty.")

    def check(self) -> None:
        if self.folder and self.revision:
            raise ConfigError("A folder has no revisions to choose from.", hint="Give either a folder or a revision.")
