"""The commands on Ray clusters, and the option by which every command that starts jobs chooses where they run."""

from __future__ import annotations

from cdp.cli.option import WAIT, Commands, option
from cdp.jobs.place import EXAMPLE, HERE

_ADDRESS = option("address", f"the address of its Jobs API, as {EXAMPLE}; {HERE} for this machine")

COMMANDS: Commands = {
    "cluster use": (
        "cluster.use",
        "give all jobs of this workspace to a Ray cluster, once it is seen that they can run there",
        [_ADDRESS],
    ),
    "cluster show": (
        "cluster.show",
        "what a Ray cluster has, and whether jobs of this workspace can run there",
        [(_ADDRESS[0], {**_ADDRESS[1], "nargs": "?", "default": ""})],
    ),
}

_ON = option("--on", f"run it on this Ray cluster, as {EXAMPLE}; {HERE} for this machine", metavar="ADDRESS")


def with_place(commands: Commands) -> Commands:
    """Return the commands with ``--on`` for those that start jobs: those that can wait for one."""
    return {
        name: (handler, text, [*options, _ON] if WAIT in options else options)
        for name, (handler, text, options) in commands.items()
    }
