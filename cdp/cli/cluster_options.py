"""The commands on Ray clusters, and the options by which every command that starts jobs chooses where they run."""

from __future__ import annotations

from cdp.cli.option import WAIT, Commands, option
from cdp.jobs.place import EXAMPLE, HERE, RESOURCES
from cdp.jobs.store.bucket import EXAMPLE as STORE

_ADDRESS = option("address", f"the address of its Jobs API, as {EXAMPLE}; {HERE} for this machine")
_RESOURCES = option(
    "--resources",
    f"what a job asks of a cluster, as {RESOURCES} (memory in GB; workers are for a training, and each has the rest)",
    metavar="NAME=VALUE,…",
)

COMMANDS: Commands = {
    "cluster use": (
        "cluster.use",
        "give all jobs of this workspace to a Ray cluster, once it is seen that they can run there",
        [
            _ADDRESS,
            _RESOURCES,
            option(
                "--store",
                f"an object store that every node reaches, as {STORE}, where they do not see the workspace's files",
                metavar="ADDRESS",
            ),
        ],
    ),
    "cluster show": (
        "cluster.show",
        "what a Ray cluster has, and whether jobs of this workspace can run there",
        [(_ADDRESS[0], {**_ADDRESS[1], "nargs": "?", "default": ""})],
    ),
}

_CHOICE = [
    option("--on", f"run it on this Ray cluster, as {EXAMPLE}; {HERE} for this machine", metavar="ADDRESS"),
    _RESOURCES,
]


def with_place(commands: Commands) -> Commands:
    """The commands, with ``--on`` and ``--resources`` for those that start jobs: those that can wait for one."""
    return {
        name: (handler, text, [*options, *_CHOICE] if WAIT in options else options)
        for name, (handler, text, options) in commands.items()
    }
