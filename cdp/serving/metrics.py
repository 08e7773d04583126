"""What Prometheus is told. Every label has few values: a stranger cannot fill the memory by asking for odd paths."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """One registry per server."""

    def __init__(self, *, waiting: Callable[[], float], ready: Callable[[], bool]) -> None:
        self.registry = CollectorRegistry()
        registry = self.registry
        self.requests = Counter("cdp_requests", "Requests answered.", ["route", "status"], registry=registry)
        self.seconds = Histogram(
            "cdp_request_seconds", "From a request's head to the end of its answer.", ["route"],
            buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self.refused = Counter("cdp_refused", "Requests refused, by the error's code.", ["code"], registry=registry)
        self.open = Gauge("cdp_open_requests", "Requests being read, waiting or answered.", registry=registry)
        self.texts = Counter("cdp_texts", "Texts read by the retriever.", ["kind"], registry=registry)
        self.tokens = Counter("cdp_tokens", "Tokens of embedded texts.", registry=registry)
        self.cut = Counter("cdp_cut_texts", "Texts longer than the model reads, cut as always.", registry=registry)
        self.batch = Histogram("cdp_batch_texts", "Texts in a batch.", ["kind"], buckets=_TEXTS, registry=registry)
        self.batch_seconds = Histogram(
            "cdp_batch_seconds", "What a batch took.", ["kind"], buckets=_SECONDS, registry=registry
        )
        Gauge("cdp_waiting_texts", "Texts in the queue.", registry=registry).set_function(waiting)
        Gauge("cdp_ready", "1 once the model and the index are loaded.", registry=registry).set_function(
            lambda: float(ready())
        )
        ProcessCollector(registry=registry)

    def of_batch(self, kind: str, texts: int, seconds: float) -> None:
        self.texts.labels(kind).inc(texts)
        self.batch.labels(kind).observe(texts)
        self.batch_seconds.labels(kind).observe(seconds)

    def page(self) -> bytes:
        return generate_latest(self.registry)
