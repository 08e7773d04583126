"""Where this process puts what it needs for a moment only: a folder of its own in the workspace.

It goes when the process ends, and the next process that needs one removes what a killed one left, so that documents do
not stay behind in the system's folder for temporary files, where others may look.
"""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import ExitStack
from pathlib import Path

from cdp.base.errors import CdpError
from cdp.base.staging import staging
from cdp.base.workspace import Workspace

_folders: dict[tuple[int, Path], Path] = {}
_lock = threading.Lock()


def scratch() -> Path | None:
    """The folder, for ``dir=`` of ``tempfile``; None (the system's own) without a workspace that can be written."""
    root = Workspace.default().root
    key = (os.getpid(), root)
    with _lock:
        folder = _folders.get(key)
        if folder is not None and folder.is_dir():
            return folder
        if not root.is_dir():
            return None
        stack = ExitStack()
        try:
            _folders[key] = stack.enter_context(staging(root / "tmp"))
        except (CdpError, OSError):
            return None
        atexit.register(stack.close)
        return _folders[key]
