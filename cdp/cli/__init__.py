"""The command line: one function per command, over services; ``--version``, a start that loads no commands.

Exit code 0: done; 1: the job failed; 2: bad input, one line on stderr; 130: interrupted by Ctrl-C or SIGTERM. With
``--json`` the answer is one JSON value on stdout and nothing else; progress goes to stderr. ``-`` is standard input or
output wherever a file is named. ``declare.py`` makes parser, help, reference and completion from the functions.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

from cdp.base.version import __version__
from cdp.cli.overview import BAD_INPUT, DONE, overview


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help"):
        print(overview())
        return DONE if words else BAD_INPUT
    if words == ["--version"]:
        print(f"CDP Studio {__version__}")
        return DONE
    from cdp.cli.declare import execute

    if argv is None:
        # SIGTERM unwinds as Ctrl-C does, so that child processes and temporary files end too. A command that a script
        # starts in the background ignores Ctrl-C, and SIGTERM alone ends it.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    return execute(words)
