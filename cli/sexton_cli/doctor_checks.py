"""Looks at everything that a command line depends on, and says how to fix what is wrong."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from email.utils import parsedate_to_datetime
from enum import StrEnum
from importlib.metadata import version
from typing import Any, Final

import orjson
import trio

from sexton_cli.addresses import in_the_open
from sexton_cli.caller import Caller
from sexton_cli.client import Client, field, open_client
from sexton_cli.data_folder import default_data
from sexton_cli.exchange import Reply
from sexton_cli.exits import CONFIG, FAILED, OK, UNAVAILABLE, Fault, StartupFault
from sexton_cli.identity import Identity, identify, workspace_in_use
from sexton_cli.money import BILLING
from sexton_cli.node_storage import database_excess
from sexton_cli.output import counted, dollars, moment
from sexton_cli.problems import NotSexton
from sexton_cli.sandbox_check import establish
from sexton_cli.settings import DATABASE_VARIABLE
from sexton_runner.settings import SandboxTier
from sexton_storage.embedded.programs import find_programs
from sexton_storage.startup import StartupFailed

HEALTHY: Final = 200
ABOUT_THE_CALLER: Final = ("token", "workspace", "balance")
MAX_SKEW_S: Final = 30
"""How far a user token's times may be off; see the leeway of its check."""


class State(StrEnum):
    """What came of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's."""

    name: str
    state: State
    detail: str
    way_out: str | None = None
    status: int = OK
    """What the command ends with when this is the first that fails."""

    def document(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "status"}


def check_all(caller: Caller, environ: Mapping[str, str]) -> Iterator[Check]:
    """Every check in order; what cannot be looked at because an earlier one failed is skipped."""
    yield _guarded("credentials", lambda: _credentials(caller))
    address = _guarded("address", lambda: _address(caller))
    yield address
    yield from _server(caller) if address.state is not State.FAIL else _skipped("server", "ready", "clock")
    yield from _identity(caller) if address.state is not State.FAIL else _skipped(*ABOUT_THE_CALLER)
    yield _sandbox()
    yield _database(environ)


def _guarded(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except Fault as fault:
        detail = f"{fault.code}: {fault.what}" if fault.code else fault.what
        return Check(name, State.FAIL, detail, fault.way_out or None, fault.status)


def _skipped(*names: str) -> Iterator[Check]:
    for name in names:
        yield Check(name, State.SKIP, "not checked")


# --- this command line --------------------------------------------------------------------------------------


def _credentials(caller: Caller) -> Check:
    count = len(caller.credentials.servers)
    known = counted(count, "server", "servers") if count else "no server"
    return Check("credentials", State.OK, f"{caller.file.path} knows {known}")


def _address(caller: Caller) -> Check:
    if in_the_open(caller.base_url):
        way_out = "Use https, or a tunnel to the server's own machine."
        return Check("address", State.WARN, f"{caller.base_url} is not encrypted", way_out)
    return Check("address", State.OK, caller.base_url)


# --- the server ---------------------------------------------------------------------------------------------


def _server(caller: Caller) -> Iterator[Check]:
    with open_client(caller.base_url, None) as client:
        server = _guarded("server", lambda: _healthy(caller, client))
        yield server
        if server.state is State.FAIL:
            yield from _skipped("ready", "clock")
            return
        yield _guarded("ready", lambda: _ready(client))
        yield _guarded("clock", lambda: _clock(client, time.time))


def _healthy(caller: Caller, client: Client) -> Check:
    health = _document(client.look("/healthz"))
    if health.get("service") != "sexton":
        raise NotSexton(caller.base_url, "/healthz names another service")
    theirs, ours = str(health.get("version")), version("sexton")
    if theirs != ours:
        return Check(
            "server", State.WARN, f"version {theirs}; this command is {ours}", "Install the same version."
        )
    return Check("server", State.OK, f"version {theirs}")


def _ready(client: Client) -> Check:
    reply = client.look("/readyz")
    ready = _document(reply)
    if reply.status == HEALTHY and ready.get("ready") is True:
        return Check("ready", State.OK, "the server takes work; its database answers")
    if ready.get("database") is False:
        way_out = "See the server's log; with DATABASE_URL, see to that PostgreSQL."
        return Check("ready", State.FAIL, "the server's database does not answer", way_out, UNAVAILABLE)
    return Check("ready", State.FAIL, "the server is stopping", "Start it again.", UNAVAILABLE)


def _clock(client: Client, now: Callable[[], float]) -> Check:
    before = now()
    reply = client.look("/healthz")
    middle = (before + now()) / 2
    try:
        theirs = parsedate_to_datetime(reply.headers.get("date", "")).timestamp()
    except ValueError:
        return Check("clock", State.SKIP, "the server's answer has no date")
    # Its date has whole seconds; half of one is the fairest guess.
    skew = round(theirs + 0.5 - middle)
    if abs(skew) > MAX_SKEW_S:
        detail = f"the server's clock is {skew:+} s from this machine's"
        return Check("clock", State.FAIL, detail, "Synchronise both clocks (NTP).", CONFIG)
    return Check("clock", State.OK, f"within {max(abs(skew), 1)} s of the server's")


def _document(reply: Reply) -> dict[str, Any]:
    try:
        document = orjson.loads(reply.body)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


# --- the caller ---------------------------------------------------------------------------------------------


def _identity(caller: Caller) -> Iterator[Check]:
    found: list[Identity] = []

    def token() -> Check:
        with caller.client() as client:
            found.append(identify(client, caller.token))
        return _told(caller, found[0])

    yield _guarded("token", token)
    if found:
        yield _guarded("workspace", lambda: _workspace(caller, found[0]))
        yield _guarded("balance", lambda: _balance(caller))
    else:
        yield from _skipped("workspace", "balance")


def _told(caller: Caller, identity: Identity) -> Check:
    until = f", until {moment(identity.expires_at_ms)}" if identity.expires_at_ms else ""
    said = f"{identity.name}, role {identity.role}{until}; from {caller.token.source}"
    return Check("token", State.OK, said)


def _balance(caller: Caller) -> Check:
    with caller.client() as client:
        told = client.get(BILLING)
    left = dollars(field(told, "balance_nanos", int))
    if told.get("is_exhausted"):
        detail = f"{left}: events are kept, and wait for credit"
        return Check(
            "balance", State.FAIL, detail, "A platform admin can run 'sexton billing credit DOLLARS'."
        )
    if told.get("is_unlimited"):
        return Check("balance", State.OK, f"{left}; work does not stop at zero")
    return Check("balance", State.OK, f"{left}; work stops at zero")


def _workspace(caller: Caller, identity: Identity) -> Check:
    kept = caller.kept.workspace_id
    row = workspace_in_use(identity.workspaces, given=caller.given_workspace, kept=kept)
    if row is None:
        detail = "no workspace is chosen" if kept is None else f"{kept} no longer exists"
        return Check("workspace", State.WARN, detail, "Choose one: 'sexton workspace use NAME'.")
    if row["paused"]:
        return Check("workspace", State.WARN, f"{row['name']} is paused", "An operator can resume it.")
    return Check("workspace", State.OK, f"{row['name']} ({row['workspace_id']})")


# --- this machine -------------------------------------------------------------------------------------------


def _sandbox() -> Check:
    try:
        sandbox = trio.run(establish, SandboxTier.BUBBLEWRAP)
    except StartupFault as fault:
        return Check(
            "sandbox", State.FAIL, fault.what, f"Needed only where runners run: {fault.way_out}", fault.status
        )
    bounds = "control groups" if sandbox.layout is not None else "a watchdog; there are no control groups"
    return Check("sandbox", State.OK, f"bubblewrap works, bounded by {bounds}")


def _database(environ: Mapping[str, str]) -> Check:
    if url := environ.get(DATABASE_VARIABLE):
        return _database_of_yours(url)
    try:
        programs = find_programs(environ, euid=os.geteuid())
        major = programs.major_version()
    except (StartupFailed, OSError) as fault:
        way_out = f"Needed only where the server runs: set {DATABASE_VARIABLE}, or repair the installation."
        return Check("database", State.FAIL, str(fault), way_out, CONFIG)
    where = environ.get("SEXTON_DATA") or default_data()
    return Check("database", State.OK, f"'sexton up' here would keep its own PostgreSQL {major} in {where}")


def _database_of_yours(url: str) -> Check:
    detail = f"'sexton up' here would use the PostgreSQL of {DATABASE_VARIABLE}"
    try:
        excess = trio.run(database_excess, url)
    except StartupFailed as fault:
        way_out = "Needed only where the server runs: see that it can be reached from here."
        return Check("database", State.WARN, f"{detail}, but {fault}", way_out)
    if excess:
        way_out = "Give the server a role that owns its schema, or uses it, and nothing else."
        detail = f"{detail}, whose role has more than it needs: {', '.join(excess)}"
        return Check("database", State.WARN, detail, way_out)
    return Check("database", State.OK, detail)


def verdict(checks: list[Check]) -> int:
    """The exit status: that of the first check that failed."""
    return next((check.status or FAILED for check in checks if check.state is State.FAIL), OK)
