"""The statistics as Prometheus metrics, labelled by kind of actor, never by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sexton_engine.statistics import KindStatistics, SystemStatistics

__all__ = ["EngineCollector"]

BY_KIND = ("kind",)


class EngineCollector(Collector):
    """Reads the statistics when it is scraped; the messages themselves pay only for a few additions."""

    def __init__(self, statistics: Callable[[], SystemStatistics]) -> None:
        self._statistics = statistics

    def describe(self) -> Iterable[Metric]:
        """The names, without values: registering must not need a running system."""
        return self._families(())

    def collect(self) -> Iterable[Metric]:
        """All metrics at this moment."""
        statistics = self._statistics()
        yield from self._families(statistics.kinds)
        lag = GaugeMetricFamily(
            "sexton_event_loop_lag_seconds", "How late the latest probe of the event loop ran"
        )
        lag.add_metric([], statistics.loop_lag_s)
        yield lag
        peak = GaugeMetricFamily("sexton_event_loop_lag_peak_seconds", "The largest lag of the last minute")
        peak.add_metric([], statistics.loop_lag_peak_s)
        yield peak
        deadlines = GaugeMetricFamily("sexton_engine_deadlines", "Deadlines armed: asks, timers, idle actors")
        deadlines.add_metric([], statistics.deadlines)
        yield deadlines
        workers = GaugeMetricFamily("sexton_engine_workers", "Tasks that run actors", labels=["state"])
        workers.add_metric(["idle"], statistics.workers_idle)
        workers.add_metric(["busy"], statistics.workers - statistics.workers_idle)
        yield workers

    def _families(self, kinds: Iterable[KindStatistics]) -> Iterable[Metric]:
        kinds = tuple(kinds)
        yield _gauge("live", "Activations in memory", kinds, lambda kind: kind.live)
        yield _gauge("mailbox_depth", "Messages waiting", kinds, lambda kind: kind.mailbox_depth)
        yield _gauge(
            "mailbox_age_seconds", "Age of the oldest message waiting", kinds, lambda kind: kind.mailbox_age_s
        )
        yield _counter("activations", "Activations begun", kinds, lambda kind: kind.activations)
        yield _counter("passivations", "Activations put to sleep", kinds, lambda kind: kind.passivations)
        yield _counter("crashes", "Crashes", kinds, lambda kind: kind.crashes)
        yield _counter("restarts", "Restarts", kinds, lambda kind: kind.restarts)
        yield _counter("escalations", "Crashes that were one too many", kinds, lambda kind: kind.escalations)
        yield from _by_message(kinds)
        yield _dead_letters(kinds)


def _gauge(
    name: str, text: str, kinds: Iterable[KindStatistics], value: Callable[[KindStatistics], float]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"sexton_actor_{name}", text, labels=BY_KIND)
    for kind in kinds:
        family.add_metric([kind.kind], value(kind))
    return family


def _counter(
    name: str, text: str, kinds: Iterable[KindStatistics], value: Callable[[KindStatistics], float]
) -> CounterMetricFamily:
    family = CounterMetricFamily(f"sexton_actor_{name}", text, labels=BY_KIND)
    for kind in kinds:
        family.add_metric([kind.kind], value(kind))
    return family


def _by_message(kinds: Iterable[KindStatistics]) -> Iterable[CounterMetricFamily]:
    labels = ("kind", "message")
    counts = CounterMetricFamily("sexton_actor_messages", "Messages handled", labels=labels)
    seconds = CounterMetricFamily("sexton_actor_message_seconds", "Seconds spent on them", labels=labels)
    for kind in kinds:
        for message in kind.messages:
            counts.add_metric([kind.kind, message.message], message.count)
            seconds.add_metric([kind.kind, message.message], message.seconds)
    return (counts, seconds)


def _dead_letters(kinds: Iterable[KindStatistics]) -> CounterMetricFamily:
    family = CounterMetricFamily(
        "sexton_actor_dead_letters", "Messages nobody handled", labels=("kind", "reason")
    )
    for kind in kinds:
        for reason, count in kind.dead_letters.items():
            family.add_metric([kind.kind, reason], count)
    return family
