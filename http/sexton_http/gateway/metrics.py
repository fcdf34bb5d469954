"""Counts what the front end does; labels are routes and classes, never ids."""

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

CLASSES: Final = (1, 2, 3, 4, 5)
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class RouteMeter:
    """The children of one route, made when it is used first and looked up once.

    All its classes then, at zero: an increase is only seen from something.
    """

    __slots__ = ("_classes", "_metrics", "_names", "_seconds")

    def __init__(self, metrics: "HttpMetrics", method: str, route: str) -> None:
        self._metrics = metrics
        self._names = (method, route)
        self._classes: dict[int, Counter] = {}
        self._seconds: Histogram | None = None

    def done(self, status: int, seconds: float) -> None:
        if self._seconds is None:
            self._seconds = self._metrics.seconds.labels(*self._names)
            requests = self._metrics.requests
            self._classes = {number: requests.labels(*self._names, f"{number}xx") for number in CLASSES}
        self._classes[status // 100].inc()
        self._seconds.observe(seconds)


class DoorMeter:
    """The children of one door of the admission."""

    __slots__ = ("_refused", "_waits")

    def __init__(self, refused: Counter, waits: Histogram) -> None:
        self._refused = refused
        self._waits = waits

    def refused(self) -> None:
        self._refused.inc()

    def waited(self, seconds: float) -> None:
        self._waits.observe(seconds)


class HttpMetrics:
    """All metrics of the wing, registered in the registry that was handed in."""

    def __init__(self, registry: CollectorRegistry) -> None:
        # When a series began is not asked for by anybody, and would be a third of all that is shown.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # The library left its type out.
        self.requests = Counter(
            "sexton_http_requests",
            "Requests answered, by route template and status class",
            ("method", "route", "status"),
            registry=registry,
        )
        self.seconds = Histogram(
            "sexton_http_request_seconds",
            "Time from the whole request to its answer, long polls included, streams not",
            ("method", "route"),
            buckets=BUCKETS,
            registry=registry,
        )
        self.in_flight = Gauge(
            "sexton_http_in_flight", "Calls under way, by kind of wait", ("wait",), registry=registry
        )
        self.answer_bytes = Gauge(
            "sexton_http_answer_bytes",
            "Bytes of answers being made or sent, by kind",
            ("kind",),
            registry=registry,
        )
        self.connections = Gauge(
            "sexton_http_connections",
            "Open connections: ordinary ones, and those of the reserve, which may only ask after health",
            ("place",),
            registry=registry,
        )
        self.shed = Counter(
            "sexton_http_shed",
            "Requests turned away at a ceiling or a rate, by code",
            ("code",),
            registry=registry,
        )
        self.lag = Gauge(
            "sexton_admission_lag_seconds",
            "What a request that came at any moment had to wait for the loop, on average",
            registry=registry,
        )
        self._limit = Gauge(
            "sexton_admission_limit", "Requests that may be under way at once", ("door",), registry=registry
        )
        self._waiting = Gauge(
            "sexton_admission_waiting", "Requests that wait at the door", ("door",), registry=registry
        )
        self._refused = Counter(
            "sexton_admission_refused", "Requests sent away at the door", ("door",), registry=registry
        )
        self._waits = Histogram(
            "sexton_admission_wait_seconds",
            "Time that requests stood in line, those that were sent away included",
            ("door",),
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25),
            registry=registry,
        )
        self.full = Counter(
            "sexton_http_full",
            "Requests turned away at a ceiling, by what was full and whose share of it",
            ("what", "whose"),
            registry=registry,
        )
        self.body_bytes = Gauge(
            "sexton_http_body_bytes", "Bytes of request bodies in memory", registry=registry
        )
        self.webhooks = Counter(
            "sexton_http_webhooks",
            "Deliveries by outcome: a status or a code",
            ("outcome",),
            registry=registry,
        )
        self._outcomes: dict[str, Counter] = {}
        self.problems = Counter(
            "sexton_http_problems",
            "Problem documents, by route template and code",
            ("method", "route", "code"),
            registry=registry,
        )
        self.file_bytes = Counter(
            "sexton_file_bytes", "Bytes of files taken in and given out", ("direction",), registry=registry
        )
        self.files = Counter(
            "sexton_files",
            "Files of runs, by outcome: kept, or the code of the refusal",
            ("outcome",),
            registry=registry,
        )
        self.undeclared = Counter(
            "sexton_http_undeclared_codes",
            "Answers with a code that their route does not declare",
            ("route", "code"),
            registry=registry,
        )

    def webhook(self, outcome: str) -> None:
        """Count a delivery; its child is looked up once."""
        child = self._outcomes.get(outcome)
        if child is None:
            child = self._outcomes[outcome] = self.webhooks.labels(outcome)
        child.inc()

    def door(self, name: str, limit: Callable[[], float], waiting: Callable[[], float]) -> DoorMeter:
        """What one door of the admission tells."""
        self._limit.labels(name).set_function(limit)
        self._waiting.labels(name).set_function(waiting)
        return DoorMeter(self._refused.labels(name), self._waits.labels(name))
