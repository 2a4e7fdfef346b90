"""`ServiceMetrics`: what Prometheus reads at /metrics. No metric contains text of users."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from manyheads.answer.request import AnswerRequest

if TYPE_CHECKING:
    from manyheads.serve.service.worker_pool import WorkerPool

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class ServiceMetrics:
    """Counters of one service, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter("manyheads_requests", "Answered requests", ["path", "status"], registry=self.registry)
        self._seconds = Histogram(
            "manyheads_request_seconds",
            "Seconds from request to answer",
            ["path"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._texts = Counter("manyheads_texts", "Texts received", ["bundle"], registry=self.registry)
        self._characters = Counter("manyheads_characters", "Characters received", ["bundle"], registry=self.registry)
        self._batch = Histogram(
            "manyheads_batch_texts", "Texts in a batch", buckets=(1, 2, 4, 8, 16, 32, 64), registry=self.registry
        )
        self._batch_seconds = Histogram(
            "manyheads_batch_seconds", "Seconds of a batch", buckets=_SECONDS, registry=self.registry
        )
        self._cancelled = Counter("manyheads_cancelled", "Requests whose client disconnected", registry=self.registry)

    def watch(self, pool: "WorkerPool") -> None:
        """Report the state of the workers whenever metrics are read."""
        for name, description, value in (
            ("manyheads_workers_ready", "Workers that can answer", lambda: pool.n_ready),
            ("manyheads_workers", "Workers that there should be", lambda: pool.n_workers),
            ("manyheads_worker_restarts", "Workers that stopped and were started again", lambda: pool.n_restarts),
            ("manyheads_queue_texts_waiting", "Texts that wait for a worker", lambda: pool.queue.n_texts),
            ("manyheads_streams_open", "Streams under way", lambda: pool.n_streams),
        ):
            Gauge(name, description, registry=self.registry).set_function(value)

    def watch_pauses(self, longest: Callable[[], float]) -> None:
        """Report the longest time since metrics were read in which the HTTP process answered nobody."""
        name, description = (
            "manyheads_longest_pause_seconds",
            "Longest busy time of the event loop since the last reading",
        )
        Gauge(name, description, registry=self.registry).set_function(longest)

    def texts_received(self, request: AnswerRequest) -> None:
        """Count the texts of a request."""
        self._texts.labels(request.bundle).inc(len(request.texts))
        self._characters.labels(request.bundle).inc(sum(map(len, request.texts)))

    def batch_done(self, n_texts: int, seconds: float) -> None:
        """Count a batch."""
        self._batch.observe(n_texts)
        self._batch_seconds.observe(seconds)

    def request_done(self, path: str, status: int, seconds: float) -> None:
        """Count a request; `path` is the path of a route, not of the request."""
        self._requests.labels(path, status).inc()
        self._seconds.labels(path).observe(seconds)

    def request_cancelled(self) -> None:
        """Count a request whose client has gone."""
        self._cancelled.inc()

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
