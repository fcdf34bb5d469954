"""Plays each system's rates and failures, over one PostgreSQL, and puts together what was seen."""

import signal
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import trio

from bench import harness, machine
from bench.leasebench import costs
from bench.leasebench.checker import Entry, check, takeovers
from bench.leasebench.latencies import summary
from bench.leasebench.processes import Holder, HolderFailed, open_holder, open_service
from bench.leasebench.proxy import Proxy, open_proxy
from bench.leasebench.trial import read

FAILURES: Final = ("killed", "stopped", "held back", "cut off")
LEASES = 8
"""How many each holder that fails has."""
LOOPS: Final = ("renew closed", "renew open", "cycle closed", "cycle open")
LONG_S = 30.0
"""The term while rates are measured: what lapses between two loops would be refused in the second."""
SETTLE_S = 3.0
"""For late writes to arrive after the pause."""


@dataclass(frozen=True, slots=True)
class Options:
    """How long and how hard."""

    product: str
    """The interpreters: the product's own, and that of the peers."""
    peers: str | None
    seconds: float
    """How long each of the four loops takes."""
    pause_s: float
    """How long a holder is stopped, and the network is away."""
    term_s: float
    """The leases' term, where it can be chosen."""
    at_once: int
    """Systems whose failures are tried at the same time: they wait more than they work."""
    tell_s: float = 1.2
    """How long PostgreSQL's processes, which tell their counts once a second, are waited for."""
    rates: bool = True
    failures: bool = True


@dataclass(frozen=True, slots=True)
class System:
    """One adapter, as it described itself."""

    name: str
    python: str
    about: dict[str, Any]

    def term_s(self, options: Options) -> float:
        return float(self.about["fixed_term_s"] or options.term_s)


class Referee:
    """One PostgreSQL, with an empty database for each system and each part."""

    def __init__(self, dsn: str, postmaster: int, folder: Path, options: Options) -> None:
        self._dsn = dsn
        self._postmaster = postmaster
        self._folder = folder
        self._options = options
        self._numbers = count(1)

    async def describe(self, name: str) -> System:
        """Ask an adapter about itself, in the interpreter that can load it; raises HolderFailed."""
        failed = HolderFailed(f"{name}: no interpreter for it")
        for python in filter(None, (self._options.product, self._options.peers)):
            spec = self._spec(name, "describe", self._place(self._dsn, "describe", {}))
            try:
                async with open_holder(
                    python, spec, self._log(name, f"describe-{next(self._numbers)}")
                ) as holder:
                    return System(name, python, await holder.told())
            except HolderFailed as error:
                failed = error
        raise failed

    async def rates(self, system: System) -> dict[str, Any]:
        """The four loops, and what each cost."""
        async with self._prepared(system) as (dsn, facts, service):
            place = self._place(dsn, "holder", facts, system) | {
                "term_s": system.about["fixed_term_s"] or LONG_S
            }
            folder = self._folder / "latencies" / _stem(system.name)
            folder.mkdir(parents=True)
            spec = self._spec(system.name, "rates", place, seconds=self._options.seconds, folder=str(folder))
            seen: dict[str, Any] = {}
            async with open_holder(system.python, spec, self._log(system.name, "rates")) as holder:
                for loop in LOOPS if system.about["renews"] else LOOPS[2:]:
                    costed = loop.endswith("closed")
                    await holder.marked(f"{loop} begins")
                    before = await self._spent(holder, service) if costed else None
                    await holder.say("go on")
                    told = await holder.marked(loop)
                    seen[loop] = _loop(told, folder / loop)
                    if before is not None:
                        spent = (await self._spent(holder, service)).since(before)
                        seen[loop] |= _cost(system, told["done"], spent)
                    await holder.say("go on")
                    harness.tell(f"{system.name}: {loop}, {seen[loop]['per_second']:,.0f}/s")
                await holder.ended()
            return seen

    async def failures(self, system: System) -> dict[str, Any]:
        """Four holders fail in four ways at one moment, and come back after the pause; a fifth takes over."""
        term_s = system.term_s(self._options)
        if self._options.pause_s < term_s + 2:
            return {"skipped": f"its term of {term_s:g} s is longer than the pause allows for"}
        async with AsyncExitStack() as stack:
            dsn, facts, _ = await stack.enter_async_context(self._prepared(system))
            ways: dict[str, Proxy] = {}
            holders: dict[str, Holder] = {}
            for name in (*FAILURES, "survivor"):
                reach, told = dsn, facts
                if name in ("held back", "cut off"):
                    ways[name] = await stack.enter_async_context(open_proxy(_connect(dsn, facts)))
                    reach, told = _through(dsn, facts, ways[name].port)
                role = "survives" if name == "survivor" else "fails"
                leases = LEASES * len(FAILURES) if name == "survivor" else LEASES
                place = self._place(reach, name, told, system, leases) | {"first": LEASES * len(holders)}
                spec = self._spec(system.name, role, place, leases=leases, log=str(self._diary(system, name)))
                log = self._log(system.name, f"failures-{_stem(name)}")
                holders[name] = await stack.enter_async_context(open_holder(system.python, spec, log))
                # One after the other, so that nobody takes what another has put in for himself.
                await holders[name].marked("held")
                await holders[name].say("go on")
            await trio.sleep(term_s / 3 + 0.5)
            began = await _break(holders, ways)
            await trio.sleep(self._options.pause_s)
            holders["stopped"].send(signal.SIGCONT)
            for way in ways.values():
                way.mend()
            await trio.sleep(SETTLE_S)
            # The survivor first: what those that failed give up as they end is no takeover.
            for name in ("survivor", *FAILURES[1:]):
                await holders[name].say("finish")
                await holders[name].ended()
        diaries = {name: read(self._diary(system, name)) for name in holders}
        return judged(diaries, began, term_s)

    @asynccontextmanager
    async def _prepared(self, system: System) -> AsyncIterator[tuple[str, dict[str, Any], int | None]]:
        """An empty database with the system's tables in it, and its server."""
        number = next(self._numbers)
        name = f"run_{number}"
        maintenance = machine.superuser(self._dsn).replace("/sexton?", "/postgres?")
        await trio.to_thread.run_sync(machine.query, maintenance, f"CREATE DATABASE {name} OWNER sexton")
        dsn = self._dsn.replace("/sexton?", f"/{name}?")
        folder = self._folder / name
        folder.mkdir()
        log = self._log(system.name, "describe")
        spec = self._spec(system.name, "describe", self._place(dsn, "setup", {}, system), folder=str(folder))
        async with open_holder(system.python, spec, log) as holder:
            command = (await holder.told())["service"]
        async with open_service(command, self._log(system.name, "service")) as service:
            spec = self._spec(system.name, "setup", self._place(dsn, "setup", {}, system), folder=str(folder))
            async with open_holder(system.python, spec, self._log(system.name, "setup")) as holder:
                facts = (await holder.told())["facts"]
            yield dsn, facts, service

    def _place(
        self, dsn: str, holder: str, facts: Mapping[str, Any], system: System | None = None, most: int = 0
    ) -> dict[str, Any]:
        return {
            "dsn": dsn,
            "holder": holder,
            "facts": dict(facts),
            "term_s": system.term_s(self._options) if system else self._options.term_s,
            "workers": system.about["workers"] if system else 1,
            "most": most or (system.about["workers"] * system.about["batch"] if system else 1),
        }

    def _spec(self, adapter: str, role: str, place: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        return {"adapter": adapter, "role": role, "place": place, "folder": str(self._folder), **more}

    def _log(self, adapter: str, what: str) -> Path:
        return self._folder / f"{_stem(adapter)}-{what}.log"

    def _diary(self, system: System, holder: str) -> Path:
        return self._folder / f"{_stem(system.name)}-{_stem(holder)}.diary"

    async def _spent(self, holder: Holder, service: int | None) -> costs.Spent:
        await trio.sleep(self._options.tell_s)
        flushes, commits = await trio.to_thread.run_sync(costs.counted, machine.superuser(self._dsn))
        return costs.Spent(
            time.monotonic(),
            costs.tree_s(service) if service else 0.0,
            costs.tree_s(holder.pid),
            costs.tree_s(self._postmaster),
            flushes,
            commits,
        )


def _stem(name: str) -> str:
    return Path(name).stem.replace(" ", "-")


def _loop(told: Mapping[str, Any], latencies: Path) -> dict[str, Any]:
    """What one loop did."""
    return {
        "per_second": told["done"] / told["seconds"],
        "asked": told.get("rate"),
        **{name: told[name] for name in ("done", "refused", "late", "slack_s")},
        "due": summary(latencies.with_suffix(".due")),
        "sent": summary(latencies.with_suffix(".sent")),
    }


def _cost(system: System, done: int, spent: costs.Spent) -> dict[str, Any]:
    """What it cost, in seconds of one core, and whether it was flushed."""
    under_way = system.about["workers"] * system.about["batch"]
    return {
        "service_s": spent.service_s,
        "holder_s": spent.holder_s,
        "database_s": spent.database_s,
        "flushes": spent.flushes,
        "commits": spent.commits,
        "flushed": costs.flushed(done, under_way, spent.flushes),
    }


async def _break(holders: Mapping[str, Holder], ways: Mapping[str, Proxy]) -> int:
    """All four at one moment, which is given in ns of the monotonic clock."""
    began = time.monotonic_ns()
    holders["killed"].send(signal.SIGKILL)
    holders["stopped"].send(signal.SIGSTOP)
    ways["held back"].hold()
    await ways["cut off"].cut()
    for name in ("stopped", "held back", "cut off"):
        await holders[name].say("write")
    return began


def judged(diaries: Mapping[str, list[Entry]], began: int, term_s: float) -> dict[str, Any]:
    """What the checker says of all diaries together."""
    entries = [entry for diary in diaries.values() for entry in diary]
    faults = check(entries)
    late = [one for one in entries if one.kind != "claim" and one.holder in FAILURES and one.sent >= began]
    return {
        "term_s": term_s,
        "entries": len(entries),
        "grants": sum(entry.kind == "claim" for entry in entries),
        "faults": [fault._asdict() for fault in faults],
        "late_writes": len(late),
        "late_writes_taken": sum(one.ok for one in late),
        "takeovers": {name: takeovers(entries, name, began)._asdict() for name in FAILURES},
        "beliefs": [[*one, began] for one in entries],
    }


def _connect(dsn: str, facts: Mapping[str, Any]) -> Any:
    """How the proxy reaches what it stands before: the system's own server, or else the database."""
    if "address" in facts:
        host, port = facts["address"]
        return partial(trio.open_tcp_stream, host, port)
    asked = parse_qs(urlsplit(dsn).query)
    path = f"{asked['host'][0]}/.s.PGSQL.{asked.get('port', ['5432'])[0]}"
    return partial(trio.open_unix_socket, path)


def _through(dsn: str, facts: Mapping[str, Any], port: int) -> tuple[str, dict[str, Any]]:
    """The same places by way of the proxy."""
    if "address" in facts:
        return dsn, {**facts, "address": ["127.0.0.1", port]}
    url = urlsplit(dsn)
    user = url.username or parse_qs(url.query)["user"][0]
    return f"postgresql://{user}@127.0.0.1:{port}{url.path}?sslmode=disable", dict(facts)
