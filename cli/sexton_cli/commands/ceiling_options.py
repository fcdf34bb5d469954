"""The options that say how much a server takes on at once."""

from collections.abc import Callable
from typing import Any, Final

import click

from sexton_actors.backlog import QueueBounds
from sexton_actors.file_bounds import (
    DEFAULT_FILE_MIB,
    DEFAULT_KEEP_DAYS,
    DEFAULT_QUOTA_MIB,
    DEFAULT_WEBHOOK_MIB,
    bounds_of,
)
from sexton_actors.retention_terms import DEFAULT_SLICE_DAYS, RetentionTerms
from sexton_cli.settings import DEFAULT_ANSWER_MIB, DEFAULT_BUSY_AT_MS
from sexton_http.ceilings import DEFAULT_BODY_MEMORY, DEFAULT_SHARES, Shares
from sexton_http.identity.context import MAX_IN_FLIGHT, MAX_LONG_POLLS, MAX_STREAMS
from sexton_http.wire.connection_ceilings import MAX_CONNECTIONS
from sexton_storage.records.auth_sessions import SessionBounds
from sexton_storage.records.transcripts import TranscriptBounds

MIB: Final = 1024 * 1024
COUNT: Final = click.IntRange(1)
OR_NONE: Final = click.IntRange(0)
PERCENT: Final = click.IntRange(1, 100)
Number = click.IntRange | click.FloatRange
Option = Callable[[Any], Any]


def bound(name: str, kind: Number, default: float | None, words: str) -> Option:
    """An option with a number, which the environment may have under its name, too."""
    return click.option(
        f"--{name}",
        type=kind,
        default=default,
        show_default=default is not None,
        envvar=f"SEXTON_{name.replace('-', '_').upper()}",
        help=words,
    )


CEILING_OPTIONS: Final[tuple[Option, ...]] = (
    bound("max-in-flight", COUNT, MAX_IN_FLIGHT, "Ordinary requests at once."),
    bound("max-long-polls", COUNT, MAX_LONG_POLLS, "Long polls of runners at once."),
    bound("max-streams", COUNT, MAX_STREAMS, "Streams of server-sent events at once."),
    bound(
        "max-connections",
        COUNT,
        MAX_CONNECTIONS,
        "Connections at once; fewer where the limit on open files is lower.",
    ),
    bound(
        "max-connections-per-address",
        COUNT,
        None,
        "Connections from one address at once; trusted proxies are not counted. [default: half of all]",
    ),
    bound("caller-share", PERCENT, DEFAULT_SHARES.principal, "Percent of a ceiling for one caller."),
    bound("tenant-share", PERCENT, DEFAULT_SHARES.tenant, "Percent of a ceiling for one tenant."),
    bound("address-share", PERCENT, DEFAULT_SHARES.address, "Percent of a ceiling for one address."),
    bound(
        "operator-reserve",
        click.IntRange(0, 49),
        DEFAULT_SHARES.reserve,
        "Percent of all these kept for operators, and again for admins and runners.",
    ),
    bound(
        "max-device-logins",
        COUNT,
        SessionBounds().all,
        "Terminals that wait for a token at once, on all servers of the database.",
    ),
    bound(
        "max-device-logins-per-address",
        COUNT,
        SessionBounds().address,
        "Terminals of one address that wait for a token at once.",
    ),
    bound(
        "max-body-memory",
        COUNT,
        DEFAULT_BODY_MEMORY // MIB,
        "MiB for the bodies of all requests that are being read or answered.",
    ),
    bound(
        "max-answer-mib",
        click.IntRange(16, 65_536),
        DEFAULT_ANSWER_MIB,
        "MiB of all large answers that are made or sent at once; the next wait, then get 503.",
    ),
    bound(
        "busy-at",
        click.FloatRange(0, 10_000),
        DEFAULT_BUSY_AT_MS,
        "Milliseconds of delay in the event loop at which ingress is held back; 0: never.",
    ),
    bound(
        "max-waiting-agent",
        OR_NONE,
        QueueBounds().agent,
        "Events of one agent that may wait; 0: as many as come.",
    ),
    bound(
        "max-waiting-workspace",
        OR_NONE,
        QueueBounds().workspace,
        "Events of one workspace that may wait; 0: as many as come.",
    ),
    bound(
        "max-waiting-age",
        click.FloatRange(0),
        QueueBounds().age_s,
        "Seconds that an agent's oldest event may wait before no more are taken; 0: for ever.",
    ),
    bound(
        "max-file",
        click.IntRange(1, 1_048_576),
        DEFAULT_FILE_MIB,
        "MiB of the largest file that a run may leave.",
    ),
    bound("files-quota", OR_NONE, DEFAULT_QUOTA_MIB, "MiB of files that one workspace keeps; 0: no bound."),
    bound(
        "files-keep", click.IntRange(1, 36_500), DEFAULT_KEEP_DAYS, "Days that the files of runs are kept."
    ),
    bound(
        "webhook-bodies",
        OR_NONE,
        DEFAULT_WEBHOOK_MIB,
        "MiB of bodies of webhooks that one workspace keeps; beyond it the oldest go. 0: no bound.",
    ),
    bound(
        "transcript-days",
        click.IntRange(0, 3650),
        TranscriptBounds().days,
        "Days that transcripts of runs are kept; with 0 none are written.",
    ),
    bound(
        "max-transcript-run",
        click.IntRange(1, 1024),
        TranscriptBounds().run_bytes // MIB,
        "MiB of one attempt's transcript; what is beyond it is not kept.",
    ),
    bound(
        "max-transcript-workspace",
        COUNT,
        TranscriptBounds().workspace_bytes // MIB,
        "MiB of one workspace's transcripts; beyond it the oldest make room.",
    ),
    bound(
        "slice-days",
        click.IntRange(0, 3650),
        DEFAULT_SLICE_DAYS,
        "Days after which the metering rows of a run become one for each attempt; 0: never.",
    ),
)


def take_ceilings(given: dict[str, object]) -> dict[str, object]:
    """What the options say, taken out of ``given``, as the fields of ``NodeSettings`` that they fill."""

    def take(*names: str) -> tuple[int, ...]:
        return tuple([given.pop(name) for name in names])  # type: ignore[misc]  # click has checked each

    days, *mib = take("transcript_days", "max_transcript_run", "max_transcript_workspace")
    return {
        "transcripts": TranscriptBounds(days, *(MIB * size for size in mib)),
        "retention": RetentionTerms(*take("slice_days")),
        "max_body_memory": take("max_body_memory")[0] * MIB,
        "busy_at_ms": given.pop("busy_at"),
        "shares": Shares(*take("caller_share", "tenant_share", "address_share", "operator_reserve")),
        "device_logins": SessionBounds(*take("max_device_logins", "max_device_logins_per_address")),
        "files": bounds_of(*take("max_file", "files_quota", "files_keep", "webhook_bodies")),
        "queue_bounds": QueueBounds(*take("max_waiting_agent", "max_waiting_workspace", "max_waiting_age")),
    }
