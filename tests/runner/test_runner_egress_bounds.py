"""A run is held to its bounds by the egress proxy, and is told which one it reached."""

import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

from sexton_runner.egress import programs
from sexton_runner.egress.meter import BURST_S, MAX_PACE_S, Meter
from sexton_runner.egress.policy import Bounds
from sexton_runner.egress.refusals import Refused
from sexton_runner.egress.seen import Answer, Asked
from tests.patience import PATIENCE_S
from tests.worlds.egress import BOUND, EgressWorld, Reply, head, open_egress, read_reply, send

CHUNK = 1 << 16


async def endless(stream: trio.abc.Stream) -> None:
    """Answer with a body that has no end."""
    await stream.receive_some(CHUNK)
    await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        await stream.send_all(bytes(CHUNK))


async def silent(stream: trio.abc.Stream) -> None:
    """Read, and say nothing."""
    while await stream.receive_some(CHUNK):
        pass


async def dripping(stream: trio.abc.Stream) -> None:
    """Answer with a body that has no end, a little at a time."""
    await stream.receive_some(CHUNK)
    await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        await stream.send_all(b"drip")
        await trio.sleep(0.02)


async def told(world: EgressWorld, count: int = 1) -> list[tuple[str, str]]:
    """The verdicts and reasons, once there are that many."""
    with trio.fail_after(PATIENCE_S):
        while len(world.seen) < count:
            await trio.testing.wait_all_tasks_blocked(0.001)
    return [(one.verdict.value, one.reason.value) for one in world.seen]


@pytest.mark.parametrize("host", ["plain.example", "bound.example", "open.example"])
async def test_an_answer_without_end_is_cut_at_the_bound(tmp_path: Path, host: str) -> None:
    bounds = Bounds(bytes_in=1 << 20)
    async with open_egress(tmp_path, bindings=[BOUND], bounds=bounds, handlers={host: endless}) as world:
        if host == "plain.example":
            reply = await world.get(host, "/")
        else:
            reply = await world.get_tls(host, "/")
        ends = await told(world)

    assert ends == [("bound", "bytes_in")]
    assert not reply.whole or host == "open.example", "within TLS that passes through nothing can be said"
    assert len(reply.body) <= 1 << 20


async def test_a_body_without_end_is_cut_at_the_bound(tmp_path: Path) -> None:
    async with open_egress(
        tmp_path, bounds=Bounds(bytes_out=1 << 20), handlers={"plain.example": silent}
    ) as world:
        reply = await world.get("plain.example", "/", method="POST", body=bytes(2 << 20))

    assert (reply.status, reply.problem()["reason"]) == (429, "bytes_out")
    assert len(world.origins["plain.example"].text) <= 1 << 20


async def test_a_program_that_never_reads_is_cut(tmp_path: Path) -> None:
    async with open_egress(tmp_path, bounds=Bounds(idle_s=0.3), handlers={"plain.example": endless}) as world:
        stream = await world.connect()
        async with stream:
            url = f"http://{world.authority('plain.example')}/"
            await send(stream, head("GET", url, world.authority("plain.example")))
            ends = await told(world)

    assert ends == [("bound", "idle")]


async def test_a_half_closed_tunnel_is_carried_until_nothing_moves(tmp_path: Path) -> None:
    async with open_egress(tmp_path, bounds=Bounds(idle_s=0.5)) as world:
        stream = await world.tls("open.example")
        await send(stream, head("GET", "/", "open.example"))
        await stream.transport_stream.send_eof()
        reply = await read_reply(stream)
        ends = await told(world)
        await trio.aclose_forcefully(stream)

    assert reply.status == 200
    assert ends in ([("allowed", "")], [("bound", "idle")])


async def test_a_server_that_says_nothing_is_given_up_with_a_reason(tmp_path: Path) -> None:
    async with open_egress(tmp_path, bounds=Bounds(idle_s=0.3), handlers={"plain.example": silent}) as world:
        reply = await world.get("plain.example", "/")

    assert (reply.status, reply.problem()["reason"]) == (504, "idle")


async def test_a_tunnel_on_which_nothing_moves_is_cut_without_a_word_in_it(tmp_path: Path) -> None:
    async with open_egress(tmp_path, bounds=Bounds(idle_s=0.3), handlers={"plain.example": silent}) as world:
        stream, reply = await world.tunnel(world.authority("plain.example"))
        async with stream:
            await send(stream, b"hello")
            with trio.fail_after(PATIENCE_S):
                rest = await stream.receive_some(CHUNK)
        ends = await told(world)

    assert (reply.status, rest, ends) == (200, b"", [("bound", "idle")])


async def test_a_connection_on_which_something_always_moves_has_an_end(tmp_path: Path) -> None:
    hosts = ("plain.example", "bound.example", "open.example")
    bounds = Bounds(idle_s=30.0, life_s=0.8)
    replies: dict[str, Reply] = {}
    handlers = dict.fromkeys(hosts, dripping)
    async with open_egress(tmp_path, bindings=[BOUND], bounds=bounds, handlers=handlers) as world:

        async def ask(host: str) -> None:
            replies[host] = await (world.get if host == "plain.example" else world.get_tls)(host, "/")

        async with trio.open_nursery() as nursery:
            for host in hosts:
                nursery.start_soon(ask, host)
        ends = await told(world, len(hosts))
        proxy = world.proxy

    assert {(reply.status, reply.body[:4]) for reply in replies.values()} == {(200, b"drip")}
    assert not replies["plain.example"].whole
    assert not replies["bound.example"].whole
    assert ends == [("bound", "life")] * len(hosts)
    assert proxy is not None
    assert proxy.statistics().reached == "life"


async def test_a_request_waits_for_a_person_as_long_as_its_connection_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(_world: EgressWorld, _asked: Asked) -> Answer:
        return await trio.sleep_forever()

    monkeypatch.setattr(EgressWorld, "ask", ask)
    async with open_egress(tmp_path, inspects=True, bounds=Bounds(idle_s=0.1, life_s=0.4)) as world:
        reply = await world.get("plain.example", "/")
        ends = await told(world)

    assert (reply.status, reply.problem()["reason"], ends) == (504, "life", [("bound", "life")])
    assert world.origins["plain.example"].connections == 0


async def test_who_asks_for_nothing_is_not_told_of(tmp_path: Path) -> None:
    async with open_egress(tmp_path) as world:
        for beginning in (b"", b"GET http://pl"):
            stream = await world.connect()
            await send(stream, beginning)
            await stream.aclose()
        await world.get("plain.example", "/")
        await told(world)
        await trio.testing.wait_all_tasks_blocked(0.01)

    assert [one.host for one in world.seen] == ["plain.example"]


async def test_a_head_that_comes_slowly_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "HEAD_S", 0.3)
    async with open_egress(tmp_path) as world:
        reply = await world.say(b"GET http://plain.example/ HTTP/1.1\r\n")

    assert (reply.status, reply.problem()["reason"]) == (408, "head")


async def test_connections_at_a_time_and_in_all_are_bounded(tmp_path: Path) -> None:
    async with open_egress(tmp_path, bounds=Bounds(connections=4, connections_total=6)) as world:
        held = [await world.connect() for _ in range(4)]
        await trio.testing.wait_all_tasks_blocked(0.01)
        fifth = await world.get("plain.example", "/")
        for stream in held:
            await stream.aclose()
        await trio.testing.wait_all_tasks_blocked(0.01)
        served = [(await world.get("plain.example", "/")).status for _ in range(2)]
        flood = [await world.get("plain.example", "/") for _ in range(20)]
        proxy = world.proxy

    assert fifth.problem()["reason"] == "connections"
    assert served == [200, 200]
    assert {reply.problem()["reason"] for reply in flood} == {"connections_total"}
    assert sum(one.reason == "connections_total" for one in world.seen) <= 2, "a flood is told together"

    told_of = Counter[str]()
    for one in world.seen:
        told_of[one.reason] += one.count
    assert (told_of["connections"], told_of["connections_total"]) == (1, 20), "and the last of it, too"
    assert proxy is not None
    assert proxy.statistics().reached == "connections_total"


async def test_a_packed_answer_costs_no_memory(tmp_path: Path) -> None:
    bounds = Bounds(bytes_in=4 << 20)
    bomb = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + _zeros(16 << 20)

    async def packed(stream: trio.abc.Stream) -> None:
        await stream.receive_some(CHUNK)
        length = f"Content-Length: {len(bomb)}\r\n".encode()
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n" + length + b"\r\n" + bomb)

    async with open_egress(
        tmp_path, bindings=[BOUND], bounds=bounds, handlers={"plain.example": packed}
    ) as world:
        reply = await world.get("plain.example", "/")
        ends = await told(world)

    assert ends == [("bound", "bytes_in")]
    assert len(reply.body) <= 4 << 20


@pytest.mark.parametrize(("asks", "waits"), [([0.0] * 3, [0.0, 0.0, 0.0]), ([0.0] * 22, [0.0] * 21 + [0.1])])
async def test_requests_wait_for_their_turn(
    asks: Sequence[float], waits: Sequence[float], autojump_clock: trio.testing.MockClock
) -> None:
    meter = Meter(Bounds(requests_per_s=10))
    taken = []
    for _ in asks:
        before = trio.current_time()
        await meter.pace()
        taken.append(round(trio.current_time() - before, 3))

    assert taken == waits
    assert BURST_S * 10 == 20


async def test_a_request_whose_turn_is_far_is_refused(autojump_clock: trio.testing.MockClock) -> None:
    meter = Meter(Bounds(requests_per_s=1))
    async with trio.open_nursery() as nursery:
        for _ in range(int(MAX_PACE_S + BURST_S) + 1):
            nursery.start_soon(meter.pace)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(Refused, match="more than 1 requests a second"):
            await meter.pace()
        nursery.cancel_scope.cancel()

    assert meter.statistics().reached == "rate"


def _zeros(count: int) -> bytes:
    pack = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return pack.compress(bytes(count)) + pack.flush()
