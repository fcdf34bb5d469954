"""Opens connections: to the host that takes writes, with bounds that are really in force."""

import asyncio
import socket
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import asyncpg

from sexton_storage.postgres.connections.bounds import (
    CONNECT_S,
    KEEPALIVE_EVERY_S,
    KEEPALIVE_IDLE_S,
    KEEPALIVES,
    LANE_SESSION,
    NEXT_HOST_S,
    STALL_MS,
    UNKNOWN_BEFORE,
)
from sexton_storage.postgres.connections.connection import FAULTS, Connection
from sexton_storage.postgres.connections.hosts import Host, hosts_of, without_hosts

_OPTIONS: Final = tuple(
    (level, getattr(socket, name), value)
    for level, name, value in (
        (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
        (socket.IPPROTO_TCP, "TCP_KEEPIDLE", KEEPALIVE_IDLE_S),
        (socket.IPPROTO_TCP, "TCP_KEEPINTVL", KEEPALIVE_EVERY_S),
        (socket.IPPROTO_TCP, "TCP_KEEPCNT", KEEPALIVES),
        (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", STALL_MS),
    )
    # Not every system has each of them.
    if hasattr(socket, name)
)
_SET = (
    "SELECT v.name, set_config(v.name, v.value, false) FROM unnest($1::text[], $2::text[]) AS v(name, value)"
)
_SHOW = "SELECT v.name, current_setting(v.name) FROM unnest($1::text[]) AS v(name)"
# A lane's statements go from a batch's few rows to their keys, in pages that are in memory. Their plans are
# kept, so none may be of the kind that only suits tables that are still small: no hash of a whole table.
# (That is also why no statement of a lane joins two batches' worth of rows that have no index.)
_LANE_PLANS: Final = {
    "plan_cache_mode": "force_generic_plan",
    "random_page_cost": "0.1",
    "seq_page_cost": "0.1",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
FORGET_PLANS = "DISCARD PLANS"
_LANE_TYPES = "SELECT $1::int[], $2::bigint[], $3::uuid[], $4::text[], $5::bytea[], $6::bool[]"


# Each promotion begins a timeline, whose number begins the names of the files of the log of writes.
_TIMELINE = "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)"
_latest_timelines: dict[str, int] = {}
"""By address, the highest that a host was on: one that is on a lower is a primary that was replaced."""


class NoServer(ConnectionError):
    """None of the hosts took the connection; the text has a word about each."""


class SettingsDropped(asyncpg.InterfaceError):  # type: ignore[misc] # asyncpg is not typed
    """What the session was told is not in force in its next statement: a pooler gives each another one."""


class BoundedConnection(asyncpg.Connection):  # type: ignore[misc] # asyncpg is not typed
    """Notices by itself, within the time that the bounds allow, that nobody is at the other end any more."""

    __slots__ = ()

    def __init__(self, protocol: Any, transport: asyncio.Transport, *args: Any) -> None:
        super().__init__(protocol, transport, *args)
        opened = transport.get_extra_info("socket")
        if opened is not None and opened.family in {socket.AF_INET, socket.AF_INET6}:
            for option in _OPTIONS:
                opened.setsockopt(*option)


async def connect(
    dsn: str, session: Mapping[str, str], *, timeout_s: float = CONNECT_S, name: str = "sexton"
) -> Connection:
    """Open one connection; statements are prepared once and kept for as long as it lives.

    Of several hosts the first that takes writes is taken; each is given ``timeout_s``. Raises what asyncpg
    raises, NoServer and SettingsDropped.
    """
    hosts = hosts_of(dsn)
    if len(hosts) < 2:  # noqa: PLR2004 - with one there is nothing to choose
        connection = await _open(dsn, None, timeout_s, name)
    else:
        connection = await _first_of(dsn, hosts, timeout_s, name)
    try:
        await put_in_force(connection, session)
    except BaseException:
        connection.terminate()
        raise
    return connection


async def _first_of(dsn: str, hosts: Sequence[Host], timeout_s: float, name: str) -> Connection:
    """Ask one host after the other, and the next already when one is slow to answer."""
    said: list[str] = []
    waiting: dict[asyncio.Task[Connection], Host] = {}
    left = list(hosts)
    try:
        while left or waiting:
            if left:
                host = left.pop(0)
                waiting[asyncio.create_task(_open(dsn, host, timeout_s, name))] = host
            done, _ = await asyncio.wait(
                waiting, timeout=NEXT_HOST_S if left else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                host = waiting.pop(task)
                try:
                    return await _of_latest_timeline(dsn, task.result(), timeout_s)
                except FAULTS as error:
                    said.append(f"{host}: {error or type(error).__name__}")
    finally:
        for task in waiting:
            # Whatever it still opens is closed again.
            task.add_done_callback(_discard)
            task.cancel()
    raise NoServer("; ".join(said))


async def _of_latest_timeline(dsn: str, connection: Connection, timeout_s: float) -> Connection:
    """Give the connection unless its host was replaced. Raises NoServer.

    A primary that stood still while a standby was promoted takes connections and writes when it goes on.
    """
    try:
        async with asyncio.timeout(timeout_s):
            timeline = int(await connection.fetchval(_TIMELINE), 16)
    except BaseException:
        connection.terminate()
        raise
    latest = _latest_timelines.get(dsn, 0)
    if timeline < latest:
        connection.terminate()
        raise NoServer(f"it is an old primary, on timeline {timeline}: another is on {latest}")
    _latest_timelines[dsn] = timeline
    return connection


def _discard(task: "asyncio.Task[Connection]") -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().terminate()


async def _open(dsn: str, host: Host | None, timeout_s: float, name: str) -> Connection:
    place = {} if host is None else {"host": host.name, "port": host.port}
    # As a mapping, for asyncpg's default of 60 makes a type checker take every timeout for a whole number.
    options: dict[str, Any] = {"timeout": timeout_s, "max_cached_statement_lifetime": 0, **place}
    try:
        opened = await asyncpg.connect(
            dsn if host is None else without_hosts(dsn),
            # A standby, or a primary that was demoted and stays up, lets us in and then refuses every write.
            target_session_attrs="read-write",
            connection_class=BoundedConnection,
            # All else is set later: a pooler refuses settings of a start that it does not know.
            server_settings={"application_name": name},
            **options,
        )
    except asyncpg.TargetServerAttributeNotMatched as error:
        raise NoServer(
            "it takes no writes: it is a standby, or default_transaction_read_only is on"
        ) from error
    except TimeoutError as error:
        raise NoServer(f"no answer within {timeout_s:g} s") from error
    return cast("Connection", opened)


async def put_in_force(connection: Connection, session: Mapping[str, str]) -> None:
    """Set what the session goes by, and look whether its next statement does. Raises SettingsDropped."""
    major = connection.get_server_version().major
    known = {name: value for name, value in session.items() if UNKNOWN_BEFORE.get(name, 0) <= major}
    told = dict(await _pairs(connection, _SET, list(known), list(known.values())))
    found = dict(await _pairs(connection, _SHOW, list(known)))
    lost = [name for name in known if told[name] != found[name]]
    if lost:
        raise SettingsDropped(f"{', '.join(lost)} did not last from one statement to the next")


async def _pairs(connection: Connection, query: str, *args: object) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in await connection.fetch(query, *args)]


async def connect_lane(dsn: str) -> Connection:
    """Open a connection for a lane of the journal."""
    connection = await connect(dsn, LANE_SESSION)
    # asyncpg looks every array type up in the catalogue when it first meets it: before the lookup's own joins
    # are forbidden their hashes, for it would take seconds then.
    await connection.fetchrow(_LANE_TYPES, [], [], [], [], [], [])
    await connection.execute("; ".join(f"SET {name} = {value}" for name, value in _LANE_PLANS.items()))
    return connection
