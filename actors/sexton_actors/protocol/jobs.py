"""What can be asked of a bulk job."""

from enum import StrEnum
from uuid import UUID

import msgspec

from sexton_actors.protocol.attributed import Attributed
from sexton_actors.refusal import Refusal
from sexton_engine import Message
from sexton_storage.records.jobs import Job, JobKind


class Wish(StrEnum):
    """What a person asks of a job."""

    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"


class Begin(Attributed, Message[Job | Refusal], frozen=True):
    """Make the job of this address, unless it was made before."""

    tenant_id: UUID
    workspace_id: UUID
    kind: JobKind
    filter: str
    by: str
    """``user:<id>`` or ``api:<id>``."""
    by_name: str
    failure_id: UUID | None = None
    request_json: str | None = None
    merges: bool = False
    asked_version: int | None = None
    rate_limit: int = 0
    budget_nanos: int | None = None
    """What the runs of a shadow may cost together."""
    events_limit: int | None = None
    """How many events a shadow repeats at most."""


class Change(Attributed, Message[Job | Refusal], frozen=True):
    """Pause it, let it go on, or end it."""

    wish: Wish


class LookForJobs(msgspec.Struct, Message[None], frozen=True):
    """Ask the database which jobs are free; said to the rounds."""


class Work(msgspec.Struct, Message[None], frozen=True):
    """Do the next page, if nobody else is at it."""
