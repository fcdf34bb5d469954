"""What a workspace has been doing of late, minute by minute."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import msgspec

from sexton_http.bodies.shapes import Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, operation
from sexton_storage.records.insights import MINUTE_MS, MinuteOfEvents

TAG: Final = "Events"
MOST_EVENTS: Final = 20_000
"""The newest events of the time asked for are counted; of more, older minutes are left out."""


class ThroughputQuery(Query):
    minutes: Annotated[int, msgspec.Meta(ge=1, le=180)] = 60
    """How many to show, that of now included."""


class MinuteItem(Shape):
    at: int
    """When the minute began."""
    came: int
    """Events that came in it; all else is what became of these."""
    done: int
    failed: int
    """Ended in an error, or given up."""
    charged_nanos: int
    longest_wait_ms: int
    """From coming to the first lease; 0 where none was leased."""


class Throughput(Shape):
    minutes: list[MinuteItem]
    """Oldest first, those in which nothing came included."""
    counted_since: int
    """Minutes before this are not whole: only the newest 20,000 events are counted."""


@operation("GET", "/v1/workspaces/{workspace_id}/throughput", tag=TAG)
async def get_throughput(call: Call[NoBody, ThroughputQuery]) -> Throughput:
    """Show how many events came in each of the last minutes, and what became of them."""
    this_minute = call.ctx.world.now_ms() // MINUTE_MS * MINUTE_MS
    since = this_minute - (call.query.minutes - 1) * MINUTE_MS
    insights = call.ctx.world.storage.insights
    found = await insights.throughput(call.id("workspace_id"), since=since, limit=MOST_EVENTS)
    return throughput_of(found, since, this_minute)


def throughput_of(found: Sequence[MinuteOfEvents], since: int, until: int) -> Throughput:
    """Put the minutes in which nothing came between the others.

    >>> shown = throughput_of([MinuteOfEvents(60_000, 2, 1, 1, 9, 40)], 0, 120_000)
    >>> [(minute.at, minute.came) for minute in shown.minutes], shown.counted_since
    ([(0, 0), (60000, 2), (120000, 0)], 0)
    >>> throughput_of([MinuteOfEvents(60_000, MOST_EVENTS, 0, 0, 0, 0)], 0, 60_000).counted_since
    120000
    """
    by_time: Mapping[int, MinuteOfEvents] = {minute.at: minute for minute in found}
    nothing = MinuteOfEvents(0, 0, 0, 0, 0, 0)
    minutes = [
        MinuteItem(**(msgspec.structs.asdict(by_time.get(at, nothing)) | {"at": at}))
        for at in range(since, until + MINUTE_MS, MINUTE_MS)
    ]
    is_cut = sum(minute.came for minute in found) >= MOST_EVENTS
    return Throughput(minutes, found[0].at + MINUTE_MS if is_cut else since)
