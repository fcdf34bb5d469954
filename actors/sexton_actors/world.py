"""What the actors are given: the stores, the vault's keeper, the prices, ids and randomness."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from sexton_actors.backlog import Backlog
from sexton_actors.catalogue import Catalogue
from sexton_actors.changed_records import ChangedRecords
from sexton_actors.entitlements import Entitlements
from sexton_actors.file_bounds import FileBounds
from sexton_actors.manifest.known_names import Surroundings
from sexton_actors.memory_use import MemoryUse
from sexton_actors.meters import Meters
from sexton_actors.plans import DEFAULT_TERMS, BillingTerms
from sexton_actors.ports.chat import ChatPlatform
from sexton_actors.ports.traces import TraceSink
from sexton_actors.ports.vault import MasterKeys
from sexton_actors.providers import Providers
from sexton_actors.renewal_units import RenewalUnits
from sexton_actors.retention_terms import RetentionTerms
from sexton_actors.secrets import Secrets
from sexton_actors.terms import LOOK_EVERY_S
from sexton_actors.webhooks.delivery_log import DeliveryLog
from sexton_storage.archives.batches import Archiver
from sexton_storage.objects.store import ObjectStore
from sexton_storage.records.auth_sessions import SessionBounds
from sexton_storage.records.transcripts import TranscriptBounds
from sexton_storage.stores import Storage


@dataclass(frozen=True, slots=True)
class World:
    """One for a server, made in the composition root; nothing in it is a global."""

    storage: Storage
    secrets: Secrets
    catalogue: Catalogue
    new_id: Callable[[], UUID]
    new_token: Callable[[int], str]
    """Gives that many random bytes, as lower-case hex."""
    chat: ChatPlatform | None = None
    """Where approval requests are shown too; None: nowhere, they wait in the inbox."""
    meters: Meters = field(default_factory=Meters)
    backlog: Backlog = field(default_factory=Backlog)
    terms: BillingTerms = DEFAULT_TERMS
    vault: MasterKeys | None = None
    """The master keys of ``secrets``; None: those are kept in another way."""
    around: Surroundings = field(default_factory=Surroundings)
    """What an operator has added for the runners, so that no agent is warned of it."""
    look_every_s: float = LOOK_EVERY_S
    """How often this node looks for what others did and could not tell it; what it knows is no older."""
    device_logins: SessionBounds = field(default_factory=SessionBounds)
    """How many terminals may wait for a token at once."""
    files: FileBounds = field(default_factory=FileBounds)
    """How much of files is kept, and for how long."""
    objects: ObjectStore | None = None
    """Where files go that are whole; None: they stay in the database."""
    archive: Archiver | None = None
    """Where rows go before they are deleted by age; None: they are deleted at once."""
    transcripts: TranscriptBounds = field(default_factory=TranscriptBounds)
    """How much of what runs said and did is kept."""
    traces: TraceSink | None = None
    """Who is told of what has ended, to trace it; None: nobody traces."""
    retention: RetentionTerms = field(default_factory=RetentionTerms)
    """What goes by age, beside files and transcripts."""
    erasures_file: Path | None = None
    """Where the list of erasures is kept beside the database; None: nowhere."""
    memory: MemoryUse | None = None
    """The memory of the process, if this node is to look after it."""
    changed_records: ChangedRecords = field(default_factory=ChangedRecords)
    renewal_units: RenewalUnits = field(default_factory=RenewalUnits)
    delivery_log: DeliveryLog = field(default_factory=DeliveryLog)
    """What came to the addresses of webhooks here and is not written yet."""
    providers: Providers = field(init=False)
    entitlements: Entitlements = field(init=False)

    def __post_init__(self) -> None:
        storage = self.storage
        providers = Providers(storage.providers, self.secrets, self.catalogue, storage.clock)
        object.__setattr__(self, "providers", providers)
        entitlements = Entitlements(storage.tenants, storage.holdings, self.terms, storage.clock)
        object.__setattr__(self, "entitlements", entitlements)

    @property
    def fresh_ms(self) -> int:
        """How old a record may be that another node may have changed and could not tell."""
        return round(1_000 * self.look_every_s)

    def traced(self, event_id: UUID, attempt: int | None, *, over: bool) -> None:
        """Tell whoever traces that an attempt has ended, or with None an event without one."""
        if self.traces is not None:
            self.traces.ended(event_id, attempt, over=over)

    def now_ms(self) -> int:
        """The database's time."""
        return self.storage.clock.now_ms()
