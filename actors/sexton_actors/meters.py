"""Counts what operators ask about and no row tells: plain numbers of one node, for the loop's own thread."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from sexton_actors.backlog import AGE, AGENT, WORKSPACE
from sexton_actors.label_history import LabelHistory
from sexton_actors.memory_rounds import MemoryState
from sexton_actors.refusal import Refusal
from sexton_storage.records.blobs import ToMove
from sexton_storage.records.fleet import Census
from sexton_storage.records.retention import KeptClass
from sexton_storage.spread import Spread

SLACK_BOUNDS: Final = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 18.0, 20.0, 22.0, 25.0, 30.0)
"""Seconds that a lease still had when it was renewed: of 30, with renewals each 10, about 20."""
WAIT_BOUNDS: Final = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
    1800.0,
)
"""Seconds from an event's arrival to its first lease."""
RENEWED: Final = "renewed"
LATE_CODES: Final = frozenset({"UZ-RUN-005", "UZ-RUN-011"})
"""What a runner hears that writes under a lease it no longer has."""

FINISHED: Final = ("processed", "agent_error", "cancelled", "dead_lettered")
RACING: Final = ("renew", "end")
BULK: Final = ("done", "skipped", "failed")
DELIVERIES: Final = ("taken", "refused", "unkept")
VERDICTS: Final = ("allowed", "refused", "bound", "failed")
MAX_TOLD: Final = 1_000_000
MAX_TOLD_BYTES: Final = 1 << 40
"""A runner is believed so far about one frame."""
TRANSCRIPTS: Final = ("bytes", "cut")
TRACE_ENDS: Final = ("made", "unsampled", "unread", "full")
SPANS: Final = ("sent", "rejected", "lost")
FILE_MOVES: Final = ("moved", "failed", "removed", "stray")
COMPACTED: Final = ("slices", "runs", "refused")
ARCHIVED: Final = ("batches", "rows", "failed", "changed")
CANARIES: Final = ("promoted", "withdrawn")
WRITES: Final = ("renew", "activity", "report", "release", "park", "askapproval", "transcript")


class ArchiveMeter:
    """What went by way of the archive from here."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter(dict.fromkeys(ARCHIVED, 0))
        """Batches and their rows, tries that failed, and batches whose rows changed meanwhile."""
        self.waits_since: int | None = None
        """Since when this node cannot write to the archive (Unix ms); None: it can, as far as it knows."""

    def __repr__(self) -> str:
        return f"<ArchiveMeter, {self.counts['batches']} batches>"


class Meters:
    """One for a node. Labels are outcomes and causes, never ids."""

    def __init__(self) -> None:
        # What can happen is there from the start, at zero: an increase is only seen from something.
        self.renewals: Counter[str] = Counter({RENEWED: 0})
        """By outcome: ``renewed``, or the code of the refusal."""
        self.slack = Spread(SLACK_BOUNDS)
        self.ended: Counter[str] = Counter(dict.fromkeys(("reported", "released", "parked", "reclaimed"), 0))
        """Leases that ended here, by how."""
        self.reclaimed: Counter[str] = Counter({"expired": 0, "revoked": 0, "died": 0})
        """The leases that were taken back, by cause: ``expired`` or ``revoked``."""
        self.finished: Counter[str] = Counter(dict.fromkeys(FINISHED, 0))
        """Events that ended with a lease of this node, by their status."""
        self.late: Counter[str] = Counter(dict.fromkeys(WRITES, 0))
        """Writes that were refused because their lease is another's by now, by what they were."""
        self.races: Counter[str] = Counter(dict.fromkeys(RACING, 0))
        """Decisions about leases that were made again, as another node had written first; by write."""
        self.queue_full: Counter[str] = Counter(dict.fromkeys((AGENT, WORKSPACE, AGE), 0))
        """Events that were refused because too many waited, by the bound that was reached."""
        self.bulk: Counter[str] = Counter(dict.fromkeys(BULK, 0))
        """Events of bulk jobs that were dealt with here, by outcome."""
        self.deliveries: Counter[str] = Counter(dict.fromkeys(DELIVERIES, 0))
        """Deliveries of webhooks that were written down, and refused ones that were only counted."""
        self.connections: Counter[str] = Counter(dict.fromkeys(VERDICTS, 0))
        """Requests and connections of runs to the network, as their runners told them, by verdict."""
        self.connection_bytes: Counter[str] = Counter({"in": 0, "out": 0})
        self.ingress_to_lease = Spread(WAIT_BOUNDS)
        self.transcripts: Counter[str] = Counter(dict.fromkeys(TRANSCRIPTS, 0))
        """Bytes of transcripts that were taken, and attempts that reached their bound."""
        self.file_moves: Counter[str] = Counter(dict.fromkeys(FILE_MOVES, 0))
        """Contents that went to the store of files, or were deleted there, by outcome."""
        self.canaries: Counter[str] = Counter(dict.fromkeys(CANARIES, 0))
        """Trials of versions that their guard ended here, by what became of the candidate."""
        self.trace_ends: Counter[str] = Counter(dict.fromkeys(TRACE_ENDS, 0))
        """Ends of attempts and events that were to be traced, by what became of that."""
        self.spans: Counter[str] = Counter(dict.fromkeys(SPANS, 0))
        """Spans that were made of them, by whether the collector has taken them."""
        self.compacted: Counter[str] = Counter(dict.fromkeys(COMPACTED, 0))
        """Metering rows compacted here, the rows that they became, and compactions that were refused."""
        self.dropped: Counter[str] = Counter(dict.fromkeys(KeptClass, 0))
        """Rows deleted here because their plan or their workspace no longer keeps them, by class."""
        self.archive = ArchiveMeter()
        self.charged_nanos = 0
        self.heard: dict[UUID, int] = {}
        """When runners renewed or reported here last (Unix ms), as long as nobody has written it down."""
        self.memory, self.label_history = MemoryState(), LabelHistory()
        self.indexed, self.index_behind_s = 0, 0.0
        """Events whose words this node wrote to the index, and how far that was behind at the last look."""
        self.file_bytes_kept = 0
        """As the database counted them with the last census."""
        self.files_to_move = ToMove()
        """The same of what waits for the store of files; nothing does without one."""
        self.census: Census | None = None
        """The latest that the database gave; None before the first."""

    def __repr__(self) -> str:
        return f"<Meters, {self.renewals.total()} renewals>"

    def take_heard(self) -> Sequence[tuple[UUID, int]]:
        """Who was heard of since the last time, by their ids: nodes must not lock them crosswise."""
        heard, self.heard = self.heard, {}
        return tuple(sorted(heard.items()))

    def refused(self, what: str, reply: object) -> None:
        """Count a write that came too late, if that is what the reply says."""
        if isinstance(reply, Refusal) and reply.code in LATE_CODES:
            self.late[what] += 1

    def connected(self, frame: Mapping[str, Any]) -> None:
        """Count what a runner's frame tells of a run's connections; what it calls otherwise is left out."""
        verdict, count = frame.get("verdict"), frame.get("count", 1)
        if verdict in VERDICTS:
            self.connections[verdict] += count if isinstance(count, int) and 0 < count <= MAX_TOLD else 1
        for way in ("in", "out"):
            told = frame.get(f"bytes_{way}")
            if isinstance(told, int) and told > 0:
                self.connection_bytes[way] += min(told, MAX_TOLD_BYTES)

    def renewed(self, reply: object) -> None:
        """Count a renewal by what its runner is told."""
        self.renewals[reply.code if isinstance(reply, Refusal) else RENEWED] += 1
