"""For the processes of a cluster's nodes: that they never open, list or make anything below ``$CDP_UNSEEN``, the folder
of whoever submits. Python loads this by itself where it is on its path. What it sees goes to ``$CDP_UNSEEN_LOG``."""

import os
import sys

UNSEEN, LOG = os.environ.get("CDP_UNSEEN", ""), os.environ.get("CDP_UNSEEN_LOG", "")
EVENTS = (
    "open",
    "os.listdir",
    "os.scandir",
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.chdir",
    "os.link",
    "sqlite3.connect",
)


def watch(event: str, arguments: tuple[object, ...]) -> None:
    if event in EVENTS and any(
        isinstance(path, (str, bytes)) and os.fsdecode(path).startswith(UNSEEN) for path in arguments
    ):
        with open(LOG, "a", encoding="utf-8") as log:
            log.write(f"{sys.argv} {event} {arguments}\n")
        raise PermissionError(13, "a node does not see this folder", str(arguments[0]))


if UNSEEN and LOG:
    sys.addaudithook(watch)
