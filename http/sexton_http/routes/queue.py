"""What waits for a runner in a workspace and for how long, by label, and what its leases have left."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Final
from uuid import UUID

import msgspec
from msgspec.structs import astuple

from sexton_http.bodies.shapes import Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, operation
from sexton_storage.records.insights import MINUTE_MS, QueueLook, SlackBand, TagsMinute, TagsWaiting

TAG: Final = "Events"
MOST_EVENTS: Final = 20_000
"""The oldest events that wait, and the newest of the time asked for, are looked at; no more."""
MOST_LABELS: Final = 20


class QueueQuery(Query):
    minutes: Annotated[int, msgspec.Meta(ge=1, le=180)] = 60
    """How many to show, that of now included."""


class LabelQueue(Shape):
    """Events that wait for a runner, of the agents that need the same labels of one."""

    required_tags: tuple[str, ...]
    """Empty: any runner will do."""
    events: int
    """Stopped agents' events are among them."""
    oldest_age_ms: int | None
    """How long the oldest of them has waited whose agent may run."""
    ages_ms: list[int]
    """The same at the end of each of the minutes, the oldest first, the last one now; 0 where none waited."""


class AgentQueue(Shape):
    """An agent with events that wait for a runner, for their turn, or for what keeps it from running."""

    zombie_id: UUID
    zombie_name: str
    events: int
    oldest_event_id: UUID
    """``GET …/events/{event_id}/why`` tells what it waits for."""
    oldest_at: int


class LeaseSlack(Shape):
    """Leases that have about the same time left."""

    from_ms: int
    """They have this much left, and less than 5 s more; 0 takes in those that are overdue."""
    leases: int


class WorkspaceQueue(Shape):
    labels: list[LabelQueue]
    """Those whose oldest event has waited longest first; of more than 20 the first ones."""
    agents: list[AgentQueue]
    """The 20 whose oldest event has waited longest, that first, whether or not they may run."""
    leases: int
    """Live ones, up to 10,000."""
    least_slack_ms: int | None
    """What the one has left that has the least; below 0 it is about to be taken back."""
    slack: list[LeaseSlack]
    """By time left, the least first; a lease has 30 s at most."""


@operation("GET", "/v1/workspaces/{workspace_id}/queue", tag=TAG)
async def get_queue(call: Call[NoBody, QueueQuery]) -> WorkspaceQueue:
    """Show how long events wait for a runner, by the labels that they need, and what leases have left.

    Ages of the past are those of the events that came within the minutes asked for, of the newest 20,000.
    """
    minutes = call.query.minutes
    since = call.ctx.world.now_ms() // MINUTE_MS * MINUTE_MS - (minutes - 1) * MINUTE_MS
    insights = call.ctx.world.storage.insights
    found = await insights.queue(call.id("workspace_id"), since=since, limit=MOST_EVENTS)
    return queue_of(found, since, minutes)


def queue_of(found: QueueLook, since: int, minutes: int) -> WorkspaceQueue:
    """Put the labels in order, with their ages at the end of each minute from ``since`` on."""
    ends = [min(since + number * MINUTE_MS, found.at) for number in range(1, minutes)] + [found.at]
    waiting: dict[tuple[str, ...], TagsWaiting] = {}
    for group in found.waiting:
        tags = tuple(sorted(group.required_tags))
        waiting[tags] = both(waiting[tags], group) if tags in waiting else group
    waited: dict[tuple[str, ...], list[TagsMinute]] = {tags: [] for tags in waiting}
    for one in found.minutes:
        waited.setdefault(tuple(sorted(one.required_tags)), []).append(one)
    labels = []
    for tags, of_minutes in waited.items():
        now = waiting.get(tags)
        oldest_at = None if now is None else now.oldest_at
        older = [] if oldest_at is None else [TagsMinute(tags, oldest_at, None)]
        ages = ages_of([*older, *(one for one in of_minutes if one.left_at is not None)], ends)
        age = None if oldest_at is None else max(0, found.at - oldest_at)
        labels.append(LabelQueue(tags, 0 if now is None else now.events, age, ages))
    labels.sort(key=lambda label: (-(label.oldest_age_ms or 0), -max(label.ages_ms), label.required_tags))
    agents = [AgentQueue(*astuple(one)) for one in found.longest]
    return WorkspaceQueue(labels[:MOST_LABELS], agents, *slack_of(found.slack))


def both(one: TagsWaiting, other: TagsWaiting) -> TagsWaiting:
    """Two agents may name the same labels in another order.

    >>> both(TagsWaiting(("a", "b"), 2, None), TagsWaiting(("b", "a"), 3, 7))
    TagsWaiting(required_tags=('a', 'b'), events=5, oldest_at=7)
    """
    oldest = min((at for at in (one.oldest_at, other.oldest_at) if at is not None), default=None)
    return TagsWaiting(one.required_tags, one.events + other.events, oldest)


def ages_of(waited: Iterable[TagsMinute], ends: Sequence[int]) -> list[int]:
    """How old the oldest one was that waited at each of these times.

    >>> first, second = TagsMinute((), 30, 250), TagsMinute((), 110, None)
    >>> ages_of([second, first], [100, 200, 300, 400])
    [70, 170, 190, 290]
    >>> ages_of([first], [100, 200, 300]), ages_of([], [100])
    ([70, 170, 0], [0])
    """
    ages, told = [0] * len(ends), 0
    # The oldest first: while one of these waits, none that came later is older.
    for one in sorted(waited, key=lambda one: one.oldest_at):
        for place in range(told, len(ends)):
            if one.left_at is not None and one.left_at <= ends[place]:
                break
            if one.oldest_at <= ends[place]:
                ages[place], told = ends[place] - one.oldest_at, place + 1
    return ages


def slack_of(bands: Sequence[SlackBand]) -> tuple[int, int | None, list[LeaseSlack]]:
    """The number of leases, the least that one has left, and how many have how much.

    >>> slack_of([SlackBand(5_000, 2, 6_200), SlackBand(25_000, 1, 29_000)])[:2], slack_of([])
    ((3, 6200), (0, None, []))
    """
    least = min((band.least_ms for band in bands), default=None)
    return (
        sum(band.leases for band in bands),
        least,
        [LeaseSlack(band.from_ms, band.leases) for band in bands],
    )
