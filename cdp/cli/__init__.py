"""The command line: one function per command, over services; ``--version``, a start that loads no commands.

Exit code 0: done; 1: the job failed; 2: bad input, one line on stderr; 130: interrupted by Ctrl-C or SIGTERM. With
``--json`` the answer is one JSON value on stdout and nothing else; progress goes to stderr. ``-`` is standard input or
output wherever a file is named. ``declare.py`` makes parser, help, reference and completion from the functions.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence

from cdp.base.version import __version__
from cdp.cli.overview import BAD_INPUT, DONE, overview


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    if argv is None:
        _write_utf8()

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


def _write_utf8() -> None:
    """Start again in Python's UTF-8 mode where the locale has another encoding, as ``LANG=en_US`` on older clusters."""
    # Names and sentences have signs that it lacks, and files are UTF-8 anyway.
    if sys.getfilesystemencoding() != "utf-8":
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])

    # PYTHONIOENCODING may still name another one, which JSON may not have.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
