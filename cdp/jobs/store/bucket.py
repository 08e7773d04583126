"""An object store by its address: ``s3://bucket/prefix``, ``file:///folder``, or another that pyarrow knows.

Keys are never part of an address: each machine has its own, as the libraries of the store find them (``AWS_*``, a
profile, an instance's role). pyarrow's file systems are loaded where a store is opened and nowhere else.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from cdp.base.errors import ClusterError, ConfigError

EXAMPLE = "s3://bucket/prefix"

SCHEMES = ("s3", "file", "gs", "abfs")
OPTIONS = ("endpoint_override", "region", "scheme")
"""What may follow the ``?`` of an address on S3, as pyarrow calls it."""

ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")

REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")

CONNECT_S, ANSWER_S, TRIES = 5.0, 20.0, 3

_FAULTS: tuple[tuple[str, str, str], ...] = (
    ("NO_SUCH_BUCKET|bucket does not exist", "there is no such bucket", "Make the bucket, or correct its name."),
    (
        "INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|SignatureDoesNotMatch|EXPIRED_TOKEN|ExpiredToken|INVALID_CLIENT",
        "it does not accept the credentials",
        "Correct or renew AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile, of that machine.",
    ),
    (
        "QuotaExceeded|StorageFull|HTTP status 507|No space left|Disk quota|EntityTooLarge",
        "it is full, or its quota is used up",
        "Make room in it, then go on.",
    ),
    ("ACCESS_DENIED|Forbidden|HTTP status 403|Permission denied", "that is not permitted",
     "Let the account of that machine read, write, list and delete there."),
    ("NETWORK_CONNECTION|Could not connect|resolve host|curlCode", "nothing answers there",
     "Is the endpoint right (AWS_ENDPOINT_URL, or ?endpoint_override= in the address), and the network up?"),
)  # fmt: skip
"""(what the library says, what it means, what to do next)."""


def checked_store(text: str) -> str:
    """The address of a store in one spelling, with the endpoint and the region that the environment names,
    so that every machine asks the same one; "" for none. ConfigError if
    it is no address, or holds a key."""
    text = text.strip().rstrip("/")
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError:
        parts, options = urlsplit(""), {}
    if "@" in parts.netloc or any(re.search("key|secret|token", name, re.IGNORECASE) for name in options):
        raise ConfigError(
            "The address of a store holds no keys.",
            hint="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile, here and on the nodes.",
        )
    whole = bool(parts.netloc) != (parts.scheme == "file") and (parts.scheme != "file" or parts.path.startswith("/"))
    if parts.scheme not in SCHEMES or not whole or parts.fragment or re.search(r"[\s\\\x00-\x1f\x7f]", text):
        raise ConfigError(
            f"{text[:200]!r} is not the address of a store.", hint=f"It is one like {EXAMPLE} or file:///folder."
        )
    if parts.scheme == "s3":
        if unknown := sorted(set(options) - set(OPTIONS)):
            raise ConfigError(f"The address of a store has no {unknown[0]}.", hint=f"It may have {', '.join(OPTIONS)}.")
        named = next((os.environ[name].strip() for name in ENDPOINTS if os.environ.get(name, "").strip()), "")
        if named and "endpoint_override" not in options:
            options["endpoint_override"] = named
        region = next((os.environ[name].strip() for name in REGIONS if os.environ.get(name, "").strip()), "")
        if region and "region" not in options:
            options["region"] = region
    query = f"?{urlencode(options, safe=':/')}" if options else ""
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}{query}"


def shown(address: str) -> str:
    """An address as people know it: without its options."""
    return address.partition("?")[0]


class Bucket:
    """What lies below one address. Names are relative to it, with ``/`` between their parts."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.puts = self.put_bytes = 0
        try:
            self._files, self._root, self._local = _opened(address)
        except Exception as error:
            raise self._told("opened", error) from error

    def put(self, name: str, data: bytes) -> None:
        """Write an object: whoever reads sees the old or the new one, never a part."""
        path = f"{self._root}/{name}"
        target = f"{path}.{secrets.token_hex(4)}.part" if self._local else path
        try:
            if self._local:
                self._files.create_dir(path.rpartition("/")[0], recursive=True)
            with self._files.open_output_stream(target) as stream:
                stream.write(data)
            if self._local:
                self._files.move(target, path)
        except OSError as error:
            if self._local:
                with suppress(OSError):
                    self._files.delete_file(target)
            raise self._told("written", error) from error
        self.puts += 1
        self.put_bytes += len(data)

    def get(self, name: str) -> bytes | None:
        """An object; None where there is none of that name."""
        try:
            with self._files.open_input_stream(f"{self._root}/{name}") as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._told("read", error) from error

    def has(self, name: str) -> bool:
        try:
            return bool(self._files.get_file_info(f"{self._root}/{name}").is_file)
        except OSError as error:
            raise self._told("read", error) from error

    def names(self, folder: str) -> list[str]:
        """The names of the objects right below a folder."""
        from pyarrow.fs import FileSelector

        try:
            listed = self._files.get_file_info(FileSelector(f"{self._root}/{folder}", allow_not_found=True))
        except OSError as error:
            raise self._told("listed", error) from error
        return sorted(info.base_name for info in listed if info.is_file)

    def delete(self, name: str) -> None:
        """Delete an object; nothing where it is gone."""
        self._removed(self._files.delete_file, name)

    def clear(self, folder: str) -> None:
        """Delete all objects below a folder."""
        self._removed(self._files.delete_dir, folder)

    def _removed(self, step: Callable[[str], None], name: str) -> None:
        try:
            step(f"{self._root}/{name}")
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._told("written", error) from error

    def _told(self, what: str, error: Exception) -> ClusterError:
        return fault_of(self.address, what, error)


def fault_of(address: str, what: str, error: Exception) -> ClusterError:
    """What is wrong with a store that could not be read, written …, with the next step."""
    text = " ".join(str(error).split())
    for pattern, meaning, cure in _FAULTS:
        if re.search(pattern, text, re.IGNORECASE):
            return ClusterError(f"The store {shown(address)} could not be {what}: {meaning}.", hint=cure)
    if "INTERNAL_FAILURE during" in text or "credentials" in text.lower():
        return ClusterError(
            f"The store {shown(address)} could not be {what}: there are no credentials for it.",
            hint="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile, on that machine.",
        )
    return ClusterError(f"The store {shown(address)} could not be {what} ({text[:300]}).", hint="Try again.")


def _opened(address: str) -> tuple[Any, str, bool]:
    """(file system, what lies before every name in it, whether it is a folder of this machine)."""
    from pyarrow import fs

    parts = urlsplit(address)
    if parts.scheme == "s3":
        return _s3(dict(parse_qsl(parts.query)), parts.netloc), f"{parts.netloc}{parts.path}", False
    files, root = fs.FileSystem.from_uri(address)
    return files, root.rstrip("/"), isinstance(files, fs.LocalFileSystem)


def _s3(options: Mapping[str, str], bucket: str) -> Any:
    from pyarrow import fs

    endpoint = options.get("endpoint_override", "")
    scheme, _, host = endpoint.rpartition("://")
    region = options.get("region") or ("" if endpoint else fs.resolve_s3_region(bucket))
    return fs.S3FileSystem(
        endpoint_override=host or None,
        scheme=options.get("scheme") or scheme or "https",
        region=region or None,
        connect_timeout=CONNECT_S,
        request_timeout=ANSWER_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=TRIES),
        # What is written here is small: it goes out in one request when it is closed.
        allow_delayed_open=True,
        background_writes=False,
    )
