"""Faults in what servers decide and remember."""

from __future__ import annotations

import time
from typing import Any, Final

from msgspec.structs import replace

from sexton_actors.protocol.hub import News
from sexton_storage.writes import EndLease, RenewLease
from tests.simulation.drill.planting import Fault

LEASE: Final = "sexton_actors.lease"


def _nothing(_: Any) -> Any:
    return lambda *_, **__: None


def _no_frames(end_lease: Any) -> Any:
    return lambda *given: replace(end_lease(*given), frames=())


def _frames_twice(end_lease: Any) -> Any:
    def changed(*given: Any) -> Any:
        write = end_lease(*given)
        return replace(write, frames=write.frames * 2)

    return changed


def _from_the_grant(next_slice: Any) -> Any:
    # As after a reload that has lost the cursor of what was metered.
    return lambda lease, usage, waits, now: next_slice(
        replace(lease, metered_at=lease.granted_at, run_ms=0), usage, waits, now
    )


def _tokens_again(next_slice: Any) -> Any:
    return lambda lease, usage, waits, now: next_slice(
        replace(lease, input_tokens=0, cached_input_tokens=0, output_tokens=0), usage, waits, now
    )


def _no_time(release: Any) -> Any:
    def changed(state: Any, message: Any, now: int) -> Any:
        ended = release(state, message, now)
        if not isinstance(ended, EndLease) or message.usage is not None:
            return ended
        return replace(ended, event=replace(ended.event, wall_ms=0))

    return changed


def _until_the_ceiling(renew: Any) -> Any:
    def changed(state: Any, message: Any, now: int) -> Any:
        decision = renew(state, message, now)
        if not isinstance(decision, RenewLease):
            return decision
        return replace(decision, lease=replace(decision.lease, expires_at=decision.lease.ceiling_at))

    return changed


def _for_a_moment(renew: Any) -> Any:
    def changed(state: Any, message: Any, now: int) -> Any:
        decision = renew(state, message, now)
        if not isinstance(decision, RenewLease):
            return decision
        return replace(decision, lease=replace(decision.lease, expires_at=now + 1_000))

    return changed


def _node_clock(_: Any) -> Any:
    return lambda self: round(time.time() * 1000)


def _skips_one(news: Any) -> Any:
    def changed(self: Any, after: int) -> Any:
        told = news(self, after)
        if told is not None and len(told.frames) > 1:
            return News(told.head, told.frames[1:])
        return told

    return changed


def _repeats_one(news: Any) -> Any:
    def changed(self: Any, after: int) -> Any:
        told = news(self, after)
        if told is not None and told.frames:
            return News(told.head, (told.frames[0], *told.frames))
        return told

    return changed


def _lost_is_death(_: Any) -> Any:
    async def changed(held: Any, message: Any) -> Any:
        del message
        return held.unknown()

    return changed


def _blind(_: Any) -> Any:
    return lambda *_: None


FAULTS: Final = (
    Fault(
        "drained-for-nothing",
        "a run that drains does not count in its event's time",
        f"{LEASE}.transitions.releases",
        "release",
        _no_time,
    ),
    Fault(
        "end-untold",
        "the end of an event is not told in its stream",
        f"{LEASE}.transitions.end",
        "end_lease",
        _no_frames,
    ),
    Fault(
        "end-told-twice",
        "the end of an event is told twice",
        f"{LEASE}.transitions.end",
        "end_lease",
        _frames_twice,
    ),
    Fault(
        "metered-from-grant",
        "after a reload all time is metered again",
        f"{LEASE}.metering",
        "next_slice",
        _from_the_grant,
    ),
    Fault(
        "tokens-again",
        "each renewal meters all tokens again",
        f"{LEASE}.metering",
        "next_slice",
        _tokens_again,
    ),
    Fault(
        "renewed-for-hours",
        "a renewal holds until the ceiling",
        f"{LEASE}.transitions.renewals",
        "renew",
        _until_the_ceiling,
    ),
    Fault(
        "renewed-for-a-moment",
        "a renewal holds for a second, and says nothing of it",
        f"{LEASE}.transitions.renewals",
        "renew",
        _for_a_moment,
    ),
    Fault(
        "race-is-death",
        "a renewal that loses a race is answered as a lease that is lost",
        f"{LEASE}.renewals",
        "_again",
        _lost_is_death,
    ),
    Fault(
        "gates-stay-open", "no gate is ever timed out", "sexton_actors.gate.transitions", "expire", _nothing
    ),
    Fault(
        "rescan-missing",
        "the dispatcher trusts what it is told, and never looks",
        "sexton_actors.dispatcher.actor",
        "Dispatcher._rescan",
        _blind,
    ),
    Fault(
        "node-clock-decides",
        "deadlines are counted by the calendar of the node",
        "sexton_storage.clock",
        "NodeClock.now_ms",
        _node_clock,
    ),
    Fault(
        "stream-skips",
        "a reader of several frames is not sent the first",
        "sexton_actors.hub.channel",
        "Channel.news",
        _skips_one,
    ),
    Fault(
        "stream-repeats",
        "a reader is sent a frame twice",
        "sexton_actors.hub.channel",
        "Channel.news",
        _repeats_one,
    ),
)
