"""Adds up the metrics of all workers of a server, so that one scrape shows the whole and each."""

import os
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
import structlog
import trio
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar, Sample

from sexton_http.identity.context import WorkerHealth
from sexton_http.wire.relay import Relay
from sexton_http.wire.worker_mail import Parcel, drop

Encode = Callable[[CollectorRegistry], bytes]
"""Spells all metrics of a registry."""

ASK: Final = b"M"
"""A parcel that has a worker keep its numbers where all can read them, and say so on the pipe with it."""
ANSWER_S: Final = 1.0
"""How long another worker may take; after that what it counted last is taken."""
ADDING_KINDS: Final = frozenset({"counter", "histogram", "summary"})
"""What only grows. It is kept when a worker ends, so that a sum never shrinks."""
SHARED_GAUGES: Final = frozenset(
    f"sexton_{name}"
    for name in (
        "build_info",
        "disk_free_bytes",
        "disk_size_bytes",
        "events_blocked",
        "events_queued",
        "file_bytes_kept",
        "file_bytes_to_move",
        "files_to_move",
        "gates_pending",
        "label_events_queued",
        "label_slots_wanted",
        "leases_active",
        "nodes_heard",
        "runner_slots",
        "runners",
        "tenants_exhausted",
    )
) | {"python_info"}
"""Gauges that each worker shows of the same thing; so do those of ages and delays, whose worst counts."""
_HEAD: Final = struct.Struct("=QQ")

log = structlog.get_logger()


class Family(msgspec.Struct, frozen=True, array_like=True):
    """The numbers of one name: each with its name, its labels and its value."""

    name: str
    text: str
    kind: str
    samples: list[tuple[str, dict[str, str], float]]
    examples: list[tuple[str, dict[str, str], float, float]] = []
    """The newest exemplar of a bucket, by its bound: labels, value, and when it was (Unix seconds)."""


Families = Sequence[Family]


def families_of(registry: CollectorRegistry) -> list[Family]:
    """All that a registry shows now."""
    return [
        Family(
            one.name,
            one.documentation,
            one.type,
            [(s.name, s.labels, s.value) for s in one.samples],
            [
                (s.labels["le"], dict(s.exemplar.labels), s.exemplar.value, float(s.exemplar.timestamp or 0))
                for s in one.samples
                if s.exemplar is not None and s.labels.keys() == {"le"}
            ],
        )
        for one in registry.collect()
    ]


def takes_worst(family: Family) -> bool:
    """Whether the largest of the workers' values stands for all, and not the sum."""
    if family.kind in ADDING_KINDS:
        return False
    return family.name.endswith("_seconds") or family.name in SHARED_GAUGES


def added_up(parts: Sequence[Families]) -> list[Family]:
    """One family for each name, over all parts.

    >>> one = Family(
    ...     "hits", "", "counter", [("hits_total", {"to": "a"}, 2.0), ("hits_total", {"to": "b"}, 1.0)]
    ... )
    >>> two = Family("hits", "", "counter", [("hits_total", {"to": "a"}, 3.0)])
    >>> [value for _, _, value in added_up([[one], [two]])[0].samples]
    [5.0, 1.0]
    >>> late = Family("late_seconds", "", "gauge", [("late_seconds", {}, 2.0)])
    >>> added_up([[late], [late]])[0].samples
    [('late_seconds', {}, 2.0)]
    """
    found: dict[str, Family] = {}
    values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
    for family in (one for part in parts for one in part):
        found.setdefault(family.name, family)
        sums = values.setdefault(family.name, {})
        worst = takes_worst(family)
        for name, labels, value in family.samples:
            key = (name, tuple(labels.items()))
            before = sums.get(key)
            if before is None:
                sums[key] = value
            else:
                sums[key] = max(before, value) if worst else before + value
    merged = {
        name: [(sample, dict(labels), value) for (sample, labels), value in sums.items()]
        for name, sums in values.items()
    }
    examples = _newest(parts)
    return [
        msgspec.structs.replace(found[name], samples=samples, examples=examples.get(name, []))
        for name, samples in merged.items()
    ]


def _newest(parts: Sequence[Families]) -> dict[str, list[tuple[str, dict[str, str], float, float]]]:
    """The newest exemplar of each bucket, over all parts.

    >>> old, new = (
    ...     Family("wait", "", "histogram", [], [("1.0", {"trace_id": one}, 0.5, at)])
    ...     for one, at in (("a", 1.0), ("b", 2.0))
    ... )
    >>> _newest([[new], [old]])
    {'wait': [('1.0', {'trace_id': 'b'}, 0.5, 2.0)]}
    """
    newest: dict[str, dict[str, tuple[str, dict[str, str], float, float]]] = {}
    for family in (one for part in parts for one in part if one.examples):
        kept = newest.setdefault(family.name, {})
        for example in family.examples:
            before = kept.get(example[0])
            if before is None or before[3] <= example[3]:
                kept[example[0]] = example
    return {name: list(kept.values()) for name, kept in newest.items()}


def told_apart(parts: Mapping[int, Families]) -> list[Family]:
    """Each worker's numbers, with its own as the label ``worker``.

    >>> hits = Family("hits", "", "counter", [("hits_total", {}, 2.0)])
    >>> told_apart({1: [hits]})[0].samples
    [('hits_total', {'worker': '1'}, 2.0)]
    """
    return added_up([[_labelled(family, slot) for family in families] for slot, families in parts.items()])


def _labelled(family: Family, slot: int) -> Family:
    samples = [(name, {**labels, "worker": str(slot)}, value) for name, labels, value in family.samples]
    return msgspec.structs.replace(family, samples=samples)


def growing(families: Families) -> list[Family]:
    """What stays true of a worker that has ended."""
    return [family for family in families if family.kind in ADDING_KINDS]


class _Shown(CollectorRegistry):
    """For ``generate_latest``."""

    def __init__(self, families: Families) -> None:
        super().__init__()
        self._families = families

    def collect(self) -> Iterator[Metric]:
        for family in self._families:
            metric = Metric(family.name, family.text, family.kind)
            by_bound = {bound: Exemplar(labels, value, at) for bound, labels, value, at in family.examples}
            metric.samples = [
                Sample(name, labels, value, None, by_bound.get(labels.get("le", "")))
                for name, labels, value in family.samples
            ]
            yield metric


def text_of(families: Families, encode: Encode) -> bytes:
    """As Prometheus reads them."""
    return encode(_Shown(families))


class WorkerMetrics(Collector):
    """One worker's numbers and its way to the others'."""

    def __init__(self, registry: CollectorRegistry, relay: Relay, files: Sequence[int]) -> None:
        """``files``: memory by slot, in which each worker keeps what it has shown."""
        self._registry = registry
        self._relay = relay
        self._files = files
        self._before = growing(self._load(relay.slot))
        """What earlier processes of this slot have counted."""
        relay.on(ASK, self._answer)
        registry.register(self)

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """What the relay counts."""
        handed = CounterMetricFamily(
            "sexton_worker_connections_handed", "Connections given to another worker, by why", labels=("why",)
        )
        for why, count in self._relay.handed.items():
            handed.add_metric([why], count)
        yield handed

    async def text(self, encode: Encode, *, by_worker: bool) -> bytes:
        """The sums over all workers, or each worker's own numbers under its label; and how each worker is."""
        parts = await self._gather()
        families = told_apart(parts) if by_worker else added_up(list(parts.values()))
        return text_of([*families, *self._workers()], encode)

    def health(self) -> list[WorkerHealth]:
        """How each worker is."""
        board = self._relay.board
        return [
            WorkerHealth(slot, row.state.name.lower(), board.is_up(slot), row.restarts)
            for slot, row in enumerate(board.rows())
        ]

    def keep(self) -> list[Family]:
        """What this worker shows now; from now on the sums hold it, whatever becomes of this process."""
        mine = added_up([families_of(self._registry), self._before])
        body = msgspec.msgpack.encode(mine)
        file = self._files[self._relay.slot]
        os.pwrite(file, body, _HEAD.size)
        os.pwrite(file, _HEAD.pack(len(body), zlib.crc32(body)), 0)
        return mine

    async def _gather(self) -> dict[int, Families]:
        asked: dict[int, int] = {}
        for slot in self._relay.others_up():
            ours, theirs = os.pipe()
            if self._relay.put(slot, Parcel(ASK, b"", (theirs,))):
                asked[slot] = ours
            else:
                os.close(ours)
            os.close(theirs)
        parts: dict[int, Families] = {self._relay.slot: self.keep()}
        told: set[int] = set()
        try:
            with trio.move_on_after(ANSWER_S):
                for slot, pipe in asked.items():
                    await trio.lowlevel.wait_readable(pipe)
                    if os.read(pipe, 1):
                        told.add(slot)
        finally:
            for pipe in asked.values():
                os.close(pipe)
        for slot in range(self._relay.board.slots):
            if slot != self._relay.slot:
                kept = self._load(slot)
                parts[slot] = kept if slot in told else growing(kept)
        return dict(sorted(parts.items()))

    def _answer(self, parcel: Parcel) -> None:
        self.keep()
        for pipe in parcel.files:
            try:
                os.write(pipe, b".")
            except OSError:
                log.info("scrape_gave_up")
        drop(parcel)

    def _load(self, slot: int) -> list[Family]:
        file = self._files[slot]
        for _ in range(3):  # It may be written at this moment.
            head = os.pread(file, _HEAD.size, 0)
            if len(head) < _HEAD.size:
                return []
            size, check = _HEAD.unpack(head)
            body = os.pread(file, size, _HEAD.size)
            if zlib.crc32(body) == check:
                return msgspec.msgpack.decode(body, type=list[Family])
        return []

    def _workers(self) -> list[Family]:
        rows = [({"worker": str(one.worker)}, one) for one in self.health()]
        return [
            Family(
                "sexton_worker_up",
                "Whether the worker serves and says so",
                "gauge",
                [("sexton_worker_up", labels, float(one.up)) for labels, one in rows],
            ),
            Family(
                "sexton_worker_restarts",
                "Processes that this worker's place has had before",
                "counter",
                [("sexton_worker_restarts_total", labels, float(one.restarts)) for labels, one in rows],
            ),
        ]
