"""Faults in bulk jobs and erasures, which go on over crashes."""

from __future__ import annotations

from itertools import count
from typing import Any, Final
from uuid import UUID

from msgspec.structs import replace

from tests.simulation.drill.planting import Fault

JOBS: Final = "sexton_actors.jobs"
ERASURES: Final = "sexton_storage.decisions.erasure_steps"


def _another_id(replay_id: Any) -> Any:
    tries = count()
    # As if each attempt made a new id: what a page did before a crash is not found again.
    return lambda job_id, event_id, asked_at: replay_id(
        job_id, UUID(int=event_id.int + next(tries)), asked_at
    )


def _page_lost(take: Any) -> Any:
    def changed(job: Any, found: Any, me: Any, now: int) -> Any:
        lost = bool(job.page) and job.holder != me
        return take(replace(job, page=(), page_agents=()) if lost else job, found, me, now)

    return changed


def _counted_again(settle: Any) -> Any:
    def changed(job: Any, page: Any, outcomes: Any, took_ms: int, now: int) -> Any:
        before = replace(job, page=tuple(page), page_agents=job.page_agents or (job.id,) * len(page))
        return settle(before if len(page) == len(before.page_agents) else job, page, outcomes, took_ms, now)

    return changed


def _all_of_them(_: Any) -> Any:
    return lambda *_: True


def _waits_for_nothing(moved: Any) -> Any:
    return lambda erasure, found, now: moved(erasure, found._replace(waits=0), now)


def _all_but_frames(surfaces: Any) -> Any:
    return tuple(name for name in surfaces if name != "frames")


def _all_but_transcripts(surfaces: Any) -> Any:
    return tuple(name for name in surfaces if name != "transcripts")


def _charge_too(put_event: Any) -> Any:
    return lambda tables, event, left: put_event(tables, event, {**left, "charged_nanos": 0})


FAULTS: Final = (
    Fault(
        "job-replays-again",
        "a page that is done again after a crash makes other events",
        f"{JOBS}.replay_ids",
        "replay_id",
        _another_id,
    ),
    Fault(
        "job-page-lost",
        "whoever goes on with a job after a crash begins behind the page in hand",
        f"{JOBS}.transitions",
        "take",
        _page_lost,
    ),
    Fault(
        "job-counts-again",
        "a page that two nodes have done is counted by both",
        f"{JOBS}.transitions",
        "settle",
        _counted_again,
    ),
    Fault(
        "job-takes-all",
        "a job is about every event, whatever its filter picks",
        "sexton_storage.event_filter.predicate",
        "picks",
        _all_of_them,
    ),
    Fault(
        "erasure-waits-for-nothing",
        "an erasure is done although what has the value goes on",
        ERASURES,
        "moved",
        _waits_for_nothing,
    ),
    Fault(
        "erasure-leaves-frames",
        "an erasure does not look through frames",
        ERASURES,
        "SURFACES",
        _all_but_frames,
    ),
    Fault(
        "erasure-leaves-transcripts",
        "an erasure does not look through transcripts",
        ERASURES,
        "SURFACES",
        _all_but_transcripts,
    ),
    Fault(
        "erasure-takes-charges",
        "an erasure takes what an event was charged as well",
        "sexton_storage.memory.erasure_surfaces",
        "_put_event",
        _charge_too,
    ),
)
