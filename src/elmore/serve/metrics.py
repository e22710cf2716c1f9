"""What the server counts, in Prometheus' text format."""

import os

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from elmore.serve.lanes import BatchReport

# prometheus_client shares the numbers of several processes through files in this folder.
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_TOKENS = (16, 64, 256, 512, 1024, 2048, 4096, 20_000)


class Metrics:
    """Counters, gauges and histograms of one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        is_shared = SHARED_FOLDER in os.environ
        if not is_shared:
            ProcessCollector(registry=self._registry)
        self._children: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self._requests = Counter(
            "elmore_requests", "Requests.", ["route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "elmore_request_seconds",
            "Time from request to answer.",
            ["route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._tokens = Counter(
            "elmore_tokens", "Tokens computed.", ["lane"], registry=self._registry
        )
        self._batches = Histogram(
            "elmore_batch_tokens",
            "Tokens computed together.",
            ["lane"],
            buckets=_TOKENS,
            registry=self._registry,
        )
        self._batch_seconds = Counter(
            "elmore_busy_seconds", "Time spent computing.", ["lane"], registry=self._registry
        )
        self._queued = Gauge(
            "elmore_queued_tokens",
            "Tokens waiting or being computed.",
            ["lane"],
            registry=self._registry,
            multiprocess_mode="livesum",
        )
        self._disconnects = Counter(
            "elmore_disconnects",
            "Clients that disconnected before the answer.",
            registry=self._registry,
        )

    def count_request(self, *, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        if (route, status) not in self._children:  # looking up labels takes longer than counting
            self._children[route, status] = (
                self._requests.labels(route, str(status)),
                self._seconds.labels(route),
            )
        counter, histogram = self._children[route, status]
        counter.inc()
        histogram.observe(seconds)

    def count_batch(self, report: BatchReport, *, lane: str) -> None:
        """Count a computed batch."""
        self._tokens.labels(lane).inc(report.num_tokens)
        self._batches.labels(lane).observe(report.num_tokens)
        self._batch_seconds.labels(lane).inc(report.seconds)

    def set_queued(self, num_tokens: int, *, lane: str) -> None:
        """Set the current length of a queue."""
        self._queued.labels(lane).set(num_tokens)

    def count_disconnect(self) -> None:
        """Count a client that left."""
        self._disconnects.inc()

    def render(self) -> bytes:
        """Return all numbers, of all processes if there are several."""
        if SHARED_FOLDER not in os.environ:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
