"""How a trial begins and ends: pure decisions on the newest trial of an agent."""

from typing import Final
from uuid import UUID

import msgspec
from msgspec.structs import replace

from sexton_actors.canaries.guard import Promote, Verdict
from sexton_actors.canaries.record import Canary, CanaryStatus, Guard, kept_as
from sexton_actors.refusal import Refusal
from sexton_actors.run_versions import CANNOT_RUN, RunVersion
from sexton_storage.records.canaries import Tallies
from sexton_storage.records.chats import ChatNotice
from sexton_storage.records.frame_kinds import FrameKind
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.zombies import Zombie

BY_GUARD: Final = "system:guard"
PERSON: Final = "person"
OTHER_VERSION: Final = "other_version"
NOT_POSSIBLE: Final = "UZ-REQ-009"


class Wish(msgspec.Struct, frozen=True):
    """How a version is to be tried out."""

    share: int
    """1 to 99 percent."""
    guard: Guard = Guard()
    promote_after: int | None = None


class Ending(msgspec.Struct, frozen=True):
    """How a trial ends, and by whom."""

    status: CanaryStatus
    by: str
    why: str
    detail: str = ""


def begin(
    known: Canary | None,
    zombie: Zombie,
    version: RunVersion,
    wish: Wish,
    *,
    canary_id: UUID,
    by: str,
    now: int,
) -> Canary | Refusal:
    """Put a version on trial: one at a time, and never the one that is active."""
    if known is not None and known.status is CanaryStatus.ON_TRIAL:
        detail = f"Version {known.version} is on trial; promote or withdraw it first."
        return Refusal(NOT_POSSIBLE, detail, {"current_state": str(known.status)})
    if version.config_version_id == zombie.config_version_id:
        return Refusal(CANNOT_RUN, f"Version {version.number} is the active one.")
    return Canary(
        id=canary_id,
        config_version_id=version.config_version_id,
        version=version.number,
        base_version=zombie.config_revision,
        share=wish.share,
        guard=wish.guard,
        promote_after=wish.promote_after,
        status=CanaryStatus.ON_TRIAL,
        started_at=now,
        started_by=by,
    )


def end(known: Canary | None, ending: Ending, tallies: Tallies | None, now: int) -> Canary | Refusal:
    """Promote or withdraw what is on trial; what is over stays as it is."""
    if known is None:
        detail = "No version of the agent was ever on trial."
        return Refusal(NOT_POSSIBLE, detail, {"current_state": "none"})
    if known.status is not CanaryStatus.ON_TRIAL:
        detail = f"Version {known.version} was {known.status}; nothing is on trial."
        return Refusal(NOT_POSSIBLE, detail, {"current_state": str(known.status)})
    return replace(
        known,
        status=ending.status,
        ended_at=now,
        ended_by=ending.by,
        why=ending.why,
        detail=ending.detail,
        tallies=tallies,
    )


def by_verdict(verdict: Verdict) -> Ending:
    if isinstance(verdict, Promote):
        return Ending(CanaryStatus.PROMOTED, BY_GUARD, "runs", verdict.detail)
    return Ending(CanaryStatus.WITHDRAWN, BY_GUARD, verdict.why, verdict.detail)


def after_activation(known: Canary | None, version: RunVersion, by: str) -> Ending | None:
    """How a trial ends when a version becomes active while it goes on; None: there is none.

    The candidate is promoted by whoever activates it. Any other version leaves nothing to compare with.
    """
    if known is None or known.status is not CanaryStatus.ON_TRIAL:
        return None
    if known.config_version_id == version.config_version_id:
        return Ending(CanaryStatus.PROMOTED, by, PERSON)
    detail = f"Version {version.number} was made the active one."
    return Ending(CanaryStatus.WITHDRAWN, by, OTHER_VERSION, detail)


def changed_frame(zombie_id: UUID, canary: Canary, now: int) -> NewFrame:
    """What the agent's stream says of a trial that began or ended."""
    data = {
        "canary_id": str(canary.id),
        "status": str(canary.status),
        "agent_version": canary.version,
        "base_version": canary.base_version,
        "share": canary.share,
        "by": canary.ended_by or canary.started_by,
        "why": canary.why,
        "detail": canary.detail,
    }
    return NewFrame(zombie_id, None, FrameKind.CANARY_CHANGED, now, data)


def notice_of(zombie: Zombie, canary: Canary, now: int) -> ChatNotice | None:
    """What the workspace's chat is told of a trial that ended; None: a person has ended it, and knows."""
    if canary.ended_by != BY_GUARD:
        return None
    return ChatNotice(
        id=canary.id,
        zombie_id=zombie.id,
        workspace_id=zombie.workspace_id,
        zombie_name=zombie.name,
        facts=kept_as(canary),
        attempts=0,
        due_at=now,
        created_at=now,
    )
