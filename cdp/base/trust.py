"""Signatures of this account on jobs and clusters, which a copied workspace cannot bring; the file of its secret.

A workspace is data. What makes a program act on it (a job's specification, the address of a cluster) is signed with a
secret of this account, which lies outside every workspace: ``$XDG_STATE_HOME/cdp-studio/secret``. Without a usable
folder for it nothing is signed, and everything counts as a stranger's.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from cdp.base.workspace import FORMAT_FILE

_SECRET_BYTES = 32


def sign(what: str, value: Any) -> str:
    """Return the signature of a JSON value as a ``what`` ("job", "cluster"); "" if this account can keep no secret."""
    key = _secret(make=True)
    return _signature(key, what, value) if key else ""


def is_ours(what: str, value: Any, signature: Any) -> bool:
    """Return True if this account signed the value as a ``what``."""
    key = _secret(make=False)
    if not key or not isinstance(signature, str) or not signature.isascii():
        return False
    return hmac.compare_digest(_signature(key, what, value), signature)


def secret_file() -> Path:
    """Return the file of the secret (XDG Base Directory Specification). RuntimeError without a home folder."""
    configured = os.environ.get("XDG_STATE_HOME", "")
    base = Path(configured) if configured.startswith("/") else Path("~/.local/state").expanduser()
    return base / "cdp-studio" / "secret"


def _signature(key: bytes, what: str, value: Any) -> str:
    plain = json.loads(json.dumps([what, value], default=str))  # as it is read again
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _secret(*, make: bool) -> bytes:
    """Return the secret, made at first use with ``make``; empty if there is none that is this account's alone."""
    try:
        path = secret_file()
        if any((folder / FORMAT_FILE).exists() for folder in path.parents):
            return b""  # in a workspace, which is copied and given away
        if make and not path.exists():
            _make(path)
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with open(descriptor, "rb") as file:
            about = os.fstat(descriptor)
            key = file.read(_SECRET_BYTES + 1)
    except (OSError, RuntimeError):
        return b""
    private = about.st_uid == os.geteuid() and not about.st_mode & 0o077
    return key if private and len(key) == _SECRET_BYTES else b""


def _make(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(_SECRET_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):  # of two processes at once the first one's counts
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
