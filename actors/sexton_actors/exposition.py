"""Shows the numbers of a node to Prometheus; docs/reference/metrics.md says what each means."""

import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

from sexton_actors.label_history import Labels, most_wanted
from sexton_actors.world import World
from sexton_storage.records.blobs import ToMove
from sexton_storage.records.fleet import Census, LabelDemand
from sexton_storage.spread import Example, SpreadStatistics
from sexton_storage.statistics import JournalStatistics, SignalStatistics, StorageStatistics

STALE_MS: Final = 60_000
"""A census older than this is shown no more: what is missing alerts, and what is old would lie."""
ANY_RUNNER: Final = "(any)"
OTHER_LABELS: Final = "(other)"

Values = Mapping[tuple[str, ...], float]
"""By the values of the labels."""


class OperatorsCollector(Collector):
    """Reads plain numbers when it is scraped, and asks nobody."""

    def __init__(self, world: World, version: str, folder: Path = Path()) -> None:
        self._world = world
        self._folder = folder
        self._version = version

    def describe(self) -> Iterable[Metric]:
        """Nothing: registering must not need an open journal."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All metrics at this moment."""
        yield _gauge(
            "build_info",
            "Version of this node",
            {(self._version, platform.python_version()): 1.0},
            "version",
            "python",
        )
        yield from self._leases()
        yield from _storage(self._world.storage.statistics())
        yield from self._disk()
        yield from self._memory()
        census = self._world.meters.census
        if census is not None and self._world.now_ms() - census.at <= STALE_MS:
            yield from _census(census, self._world.now_ms())
            kept = self._world.meters.file_bytes_kept
            yield _plain("file_bytes_kept", "Bytes of files that are kept", kept)
            yield from _to_move(self._world.meters.files_to_move, self._world.now_ms())

    def _disk(self) -> Iterator[Metric]:
        try:
            disk = os.statvfs(self._folder)
        except OSError:
            return  # What is missing alerts, and a guess would lie.
        yield _plain("disk_free_bytes", "Free on the disk of the data folder", disk.f_bavail * disk.f_frsize)
        yield _plain("disk_size_bytes", "Size of that disk", disk.f_blocks * disk.f_frsize)

    def _memory(self) -> Iterator[Metric]:
        memory = self._world.meters.memory
        yield _plain("memory_resident_bytes", "Memory of the process in the last round", memory.last)
        yield _plain("memory_least_bytes", "The least since the start", memory.least)
        yield _plain("memory_peak_bytes", "The most since the start", memory.peak)
        trims = CounterMetricFamily("sexton_memory_trims", "Times that free memory was given back")
        trims.add_metric([], memory.trims)
        yield trims

    def _leases(self) -> Iterator[Metric]:
        meters = self._world.meters
        yield _counter("lease_renewals", "Renewals, by outcome", meters.renewals, "outcome")
        yield _spread(
            "lease_slack_seconds",
            "Time that leases still had when they were renewed",
            meters.slack.statistics(),
        )
        yield _counter("leases_ended", "Leases that ended on this node, by how", meters.ended, "how")
        yield _counter("leases_reclaimed", "Leases taken back, by cause", meters.reclaimed, "cause")
        yield _counter("late_writes_refused", "Writes under leases that were lost", meters.late, "write")
        yield _counter("lease_races", "Decisions that another node's write overtook", meters.races, "write")
        yield _counter("queue_full", "Events refused because too many waited", meters.queue_full, "bound")
        yield _counter(
            "webhook_records",
            "Deliveries of webhooks that were written down, and refused ones that were only counted",
            meters.deliveries,
            "outcome",
        )
        yield _counter(
            "canaries_ended", "Trials of versions that their guard ended", meters.canaries, "outcome"
        )
        yield _counter("bulk_events", "Events that bulk jobs dealt with here", meters.bulk, "outcome")
        indexed = CounterMetricFamily("sexton_words_indexed", "Events whose words were written to the index")
        indexed.add_metric([], meters.indexed)
        yield indexed
        yield _plain(
            "words_behind_seconds", "Age of the news that are not in the index", meters.index_behind_s
        )
        yield _counter(
            "transcripts", "Bytes of transcripts taken, and attempts cut", meters.transcripts, "what"
        )
        yield _counter(
            "run_connections",
            "Requests and connections of runs to hosts",
            meters.connections,
            "verdict",
        )
        yield _counter(
            "run_connection_bytes", "Bytes of runs to and from hosts", meters.connection_bytes, "way"
        )
        yield _counter(
            "file_moves", "Files sent to the store of files, or deleted there", meters.file_moves, "outcome"
        )
        yield _counter(
            "metering_compacted",
            "Metering rows compacted here, rows they became, and compactions refused",
            meters.compacted,
            "what",
        )
        yield _counter("dropped", "Rows deleted by age for a plan or workspace", meters.dropped, "what")
        yield _counter(
            "archived",
            "Batches and rows archived here, tries that failed, batches that changed",
            meters.archive.counts,
            "what",
        )
        since = meters.archive.waits_since
        waits = 0.0 if since is None else max(0, self._world.now_ms() - since) / 1000
        yield _plain("archive_waiting_seconds", "How long this node cannot write to the archive", waits)
        yield _counter("events_finished", "Events that ended with a lease here", meters.finished, "status")
        yield _spread(
            "ingress_to_lease_seconds",
            "Time from an event's arrival to its first lease",
            meters.ingress_to_lease.statistics(),
        )
        yield _counter("trace_ends", "Ends of attempts and events to be traced", meters.trace_ends, "outcome")
        yield _counter("spans", "Spans for the collector", meters.spans, "outcome")
        charged = CounterMetricFamily("sexton_charged_nanos", "Billionths of a US dollar charged")
        charged.add_metric([], meters.charged_nanos)
        yield charged


def _to_move(waiting: ToMove, now_ms: int) -> Iterator[Metric]:
    yield _plain("files_to_move", "Files that wait for the store of files", waiting.contents)
    yield _plain("file_bytes_to_move", "Their bytes", waiting.size)
    age = 0.0 if waiting.since is None else max(0.0, (now_ms - waiting.since) / 1000)
    yield _plain("file_move_oldest_seconds", "How long the oldest of them has been there", age)


def _storage(statistics: StorageStatistics) -> Iterator[Metric]:
    yield _spread("database_wait_seconds", "Time that work waited for a connection", statistics.waits)
    yield _plain("portal_outstanding", "Units of work that wait for the database", statistics.outstanding)
    yield _plain("database_connections", "Connections of the pool in use", statistics.connections)
    yield _plain("database_connections_max", "Connections that the pool may have", statistics.connections_max)
    yield from _signals(statistics.signals)
    yield from _journal(statistics.journal)


def _signals(signals: SignalStatistics) -> Iterator[Metric]:
    yield _plain("nodes_heard", "Other nodes of this database that were heard of late", signals.peers)
    counts = {"sent": signals.sent, "heard": signals.heard, "dropped": signals.dropped}
    yield _counter("node_signals", "What this node and others told one another", counts, "what")
    lost = CounterMetricFamily("sexton_node_signal_connections_lost", "Connections for signals given up")
    lost.add_metric([], signals.lost)
    yield lost


def _journal(journal: JournalStatistics) -> Iterator[Metric]:
    lanes = {"hot": journal.hot, "bulk": journal.bulk}
    yield _gauge(
        "journal_depth", "Writes that wait", {(name,): lane.depth for name, lane in lanes.items()}, "lane"
    )
    ages: Values = {(name,): lane.oldest_s for name, lane in lanes.items()}
    yield _gauge(
        "journal_oldest_seconds", "How long the oldest of the writes that wait has waited", ages, "lane"
    )
    for name, text in (
        ("writes", "Writes committed"),
        ("retries", "Batches that ran again"),
        ("refused", "Writes that the database would not take"),
        ("outages", "Times the database went away"),
        ("set_aside", "Writes that waited apart, as somebody held rows of their tenant"),
    ):
        counts = {lane_name: getattr(lane, name) for lane_name, lane in lanes.items()}
        yield _counter(f"journal_{name}", text, counts, "lane")
    for name, text, spreads in (
        ("size", "Writes of a committed batch", {name: lane.sizes for name, lane in lanes.items()}),
        ("seconds", "Time of a committed batch", {name: lane.spans for name, lane in lanes.items()}),
    ):
        family = HistogramMetricFamily(f"sexton_journal_batch_{name}", text, labels=("lane",))
        for lane_name, spread in spreads.items():
            family.add_metric([lane_name], buckets=spread.cumulative(), sum_value=spread.total)
        yield family


def _census(census: Census, now: int) -> Iterator[Metric]:
    yield _plain("events_queued", "Events that wait for a runner", census.queued)
    yield _plain(
        "oldest_event_age_seconds", "Wait of the oldest that may run", _age_s(census.oldest_event_at, now)
    )
    yield _plain("leases_active", "Leases that are held", census.leases)
    yield _plain("events_blocked", "Events that wait for their tenant's credit", census.blocked)
    yield _plain("tenants_exhausted", "Tenants whose balance is used up", census.exhausted)
    yield _plain(
        "cron_lateness_seconds", "How late the latest schedule is", _age_s(census.overdue_cron_at, now)
    )
    yield _plain("gates_pending", "Approvals that wait for a person", census.gates)
    yield _plain("oldest_gate_age_seconds", "Wait of the oldest of them", _age_s(census.oldest_gate_at, now))
    yield _plain(
        "backup_last_success_timestamp_seconds",
        "When the last backup was made; 0: none is known",
        (census.last_backup_at or 0) / 1000,
    )
    yield from _demand(census.demand)
    runners: Values = {(str(g.liveness), str(g.admin_state)): float(g.runners) for g in census.runners}
    slots: Values = {(str(g.liveness), str(g.admin_state)): float(g.slots) for g in census.runners}
    yield _gauge("runners", "Runners enrolled", runners, "liveness", "admin_state")
    yield _gauge("runner_slots", "Their slots", slots, "liveness", "admin_state")


def _demand(demand: Sequence[LabelDemand]) -> Iterator[Metric]:
    """What waits, by label, and the sets that have no numbers of their own in one."""
    shown = {_labels(labels): one for labels, one in most_wanted(demand).items()}
    events: Values = {(labels,): one.events for labels, one in shown.items()}
    slots: Values = {(labels,): one.slots for labels, one in shown.items()}
    yield _gauge("label_events_queued", "Events that wait, by the labels that they need", events, "labels")
    yield _gauge("label_slots_wanted", "Slots that agents use or would use", slots, "labels")


def _labels(labels: Labels) -> str:
    return OTHER_LABELS if labels is None else ",".join(labels) or ANY_RUNNER


def _age_s(since: int | None, now: int) -> float:
    return 0.0 if since is None else max(0, now - since) / 1000


# --- spelling -----------------------------------------------------------------------------------------------


def _plain(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"sexton_{name}", text, value=value)


def _gauge(name: str, text: str, values: Values, *labels: str) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"sexton_{name}", text, labels=labels)
    for key, value in values.items():
        family.add_metric(list(key), value)
    return family


def _counter(name: str, text: str, counts: Mapping[str, int], label: str) -> CounterMetricFamily:
    family = CounterMetricFamily(f"sexton_{name}", text, labels=(label,))
    for key, count in counts.items():
        family.add_metric([key], count)
    return family


def _exemplar(example: Example) -> Exemplar:
    return Exemplar({"trace_id": example.trace_id}, example.value, example.at_ms / 1000)


def _spread(name: str, text: str, spread: SpreadStatistics) -> HistogramMetricFamily:
    family = HistogramMetricFamily(f"sexton_{name}", text)
    examples = spread.examples or (None,) * len(spread.counts)
    buckets = [
        (bound, count) if example is None else (bound, count, _exemplar(example))
        for (bound, count), example in zip(spread.cumulative(), examples, strict=True)
    ]
    family.add_metric([], buckets=buckets, sum_value=spread.total)
    return family
