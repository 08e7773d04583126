"""A query set needs a corpus, and sometimes the job that writes it: both as the synthesis tests make them."""

from __future__ import annotations

from tests.synthesis.conftest import _no_keys, make_corpus, make_job, server

__all__ = ["_no_keys", "make_corpus", "make_job", "server"]
