"""The parts of leasebench: timetable, diary, proxy, and what a flush can serve."""

import doctest
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import trio
from trio.testing import open_stream_to_socket_listener

from bench.leasebench import checker, costs, plots, rates
from bench.leasebench.__main__ import Found, _kept, arguments, options
from bench.leasebench.adapter import load
from bench.leasebench.checker import DOUBLE, STALE_REPORT, TOKEN, Entry, check
from bench.leasebench.processes import HolderFailed
from bench.leasebench.proxy import Proxy, open_proxy
from bench.leasebench.rates import Seen, Timetable
from bench.leasebench.referee import System
from bench.leasebench.trial import read

CLAIM = Entry("claim", "a", "k", 1, 1, 0, 1, 10, ok=True)


@pytest.mark.parametrize("module", [checker, costs, plots, rates])
def test_its_examples_hold(module: ModuleType) -> None:
    found = doctest.testmod(module)

    assert found.attempted > 0
    assert found.failed == 0


def test_a_call_that_waits_behind_a_stall_counts_from_when_it_was_due() -> None:
    seen = Seen(began=0.0, over=1.0)
    table = Timetable(1, 10)

    # The first takes half a second; those behind it are sent as soon as it has been answered.
    seen.note(table.due(0, 1, 1.0), 1.1, 1.6, 1)
    seen.note(table.due(0, 2, 1.0), 1.6, 1.601, 1)

    assert [round(ns / 1e6) for ns in seen.due_ns] == [500, 401]
    assert [round(ns / 1e6) for ns in seen.sent_ns] == [500, 1]


def test_a_torn_last_line_of_a_killed_holder_is_passed_over(tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    diary.write_text(json.dumps(CLAIM) + "\n" + json.dumps(CLAIM)[:20])

    assert read(diary) == [CLAIM]


def test_the_same_holder_may_not_hold_twice_either() -> None:
    again = CLAIM._replace(grant=2, token=2, had=5, until=15)

    assert [fault.what for fault in check([CLAIM, again])] == [DOUBLE]


def test_a_token_that_is_given_again_is_a_fault_also_when_nobody_held_twice() -> None:
    again = CLAIM._replace(holder="b", had=11, until=20)
    assert [fault.what for fault in check([CLAIM, again])] == [TOKEN]


def test_work_that_was_reported_and_is_given_again_is_a_fault() -> None:
    report = CLAIM._replace(kind="report", sent=4, had=5)
    again = CLAIM._replace(holder="b", token=2, had=20, until=30)

    assert [fault.what for fault in check([CLAIM, report, again])] == [STALE_REPORT]


def test_an_answer_that_was_long_under_way_accuses_nobody() -> None:
    # It was sent before the next grant and answered after it: it may have been taken at once.
    renewed = CLAIM._replace(kind="renew", sent=5, had=40, until=15)
    later = CLAIM._replace(holder="b", token=2, had=20, until=30)

    assert check([CLAIM, renewed, later]) == []


async def test_a_system_that_fails_inside_the_proxies_is_told_and_ends_nothing(tmp_path: Path) -> None:
    found = Found(options(arguments([])), tmp_path)
    found.systems["x"] = {"about": {"title": "x", "does_not": []}, "failed": None}

    async def play(_: System) -> dict[str, Any]:
        raise ExceptionGroup("outer", [ExceptionGroup("inner", [HolderFailed("no connection is left")])])

    await _kept(found, "failures", System("x", "python", {}), play)

    assert found.systems["x"]["failed"] == "failures: no connection is left"
    assert "no connection is left" in (tmp_path / "leasebench.html").read_text(encoding="utf-8")


def test_an_adapter_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(LookupError, match="plain_sql, plain_sql_batches"):
        load("oracle")
    with pytest.raises(LookupError, match="no adapter at"):
        load("/nowhere/mine.py")


async def test_what_is_held_back_is_delivered_late_and_in_order(nursery: trio.Nursery) -> None:
    async with EchoProxy(nursery) as proxy, await connect(proxy) as stream:
        assert await echoed(stream)

        proxy.hold()
        await stream.send_all(b"two")
        await stream.send_all(b"three")
        with trio.move_on_after(0.05) as waited:
            await stream.receive_some()
        assert waited.cancelled_caught

        proxy.mend()
        assert await stream.receive_some() in (b"two", b"twothree")


async def test_a_cut_closes_what_is_open_and_what_comes(nursery: trio.Nursery) -> None:
    async with EchoProxy(nursery) as proxy:
        async with await connect(proxy) as stream:
            assert await echoed(stream)

            await proxy.cut()
            assert await ended(stream)

        async with await connect(proxy) as stream:
            assert await ended(stream)

        proxy.mend()
        async with await connect(proxy) as stream:
            assert await echoed(stream)


async def connect(proxy: Proxy) -> trio.SocketStream:
    return await trio.open_tcp_stream("127.0.0.1", proxy.port)


async def echoed(stream: trio.SocketStream) -> bool:
    await stream.send_all(b"one")
    return await stream.receive_some() == b"one"


async def ended(stream: trio.SocketStream) -> bool:
    try:
        return await stream.receive_some() == b""
    except trio.BrokenResourceError:
        return True


class EchoProxy:
    """A proxy before a server that says what it hears."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery

    async def __aenter__(self) -> Proxy:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self._nursery.start_soon(trio.serve_listeners, echo, listeners)
        self._proxy = open_proxy(lambda: open_stream_to_socket_listener(listeners[0]))
        return await self._proxy.__aenter__()

    async def __aexit__(self, *what: object) -> None:
        await self._proxy.__aexit__(None, None, None)
        self._nursery.cancel_scope.cancel()


async def echo(stream: trio.SocketStream) -> None:
    async with stream:
        async for data in stream:
            await stream.send_all(data)
