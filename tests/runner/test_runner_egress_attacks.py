"""No attack on the egress proxy reaches a server that is not allowed, or learns a credential."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing

from sexton_runner.egress import tunnels
from sexton_runner.egress.policy import Rule
from tests.runner.egress_attacks import ATTACKS, Attack
from tests.worlds.egress import (
    BOUND,
    PASSWORD,
    PLACEHOLDER,
    QUERY,
    SECRET,
    EgressWorld,
    head,
    open_egress,
    read_reply,
    send,
)
from tests.worlds.egress_fuzz import BINDINGS, UNBOUND, fuzz

ALL = (BOUND, PASSWORD, QUERY)


async def test_the_attack_table(tmp_path: Path) -> None:
    async with open_egress(tmp_path, bindings=ALL) as world:
        ends = {attack.name: await end_of(world, attack) for attack in ATTACKS}
    sys.stdout.writelines(f"{name:60} {end}\n" for name, end in ends.items())

    assert ends == {attack.name: attack.ends for attack in ATTACKS}
    assert world.origins["shut.example"].connections == 0
    assert "shut.example" not in world.looked_up
    assert [name for name, origin in world.origins.items() if SECRET.encode() in origin.text] == [
        "bound.example"
    ]
    assert SECRET not in repr(world.seen)


async def end_of(world: EgressWorld, attack: Attack) -> str:
    before = len(world.seen)
    try:
        await attack.attempt(world)
        # An account is closed once the answer has gone out.
        with trio.move_on_after(2):
            while len(world.seen) == before:
                await trio.testing.wait_all_tasks_blocked(0.001)
    except AssertionError as fault:
        return f"it succeeds: {fault}"
    except trio.TooSlowError:
        return "it hangs"
    if len(world.seen) == before:
        return "it is not told"
    last = world.seen[-1]
    return f"{last.verdict} {last.reason}".strip()


CLOSED = (
    ("10.0.0.7",),
    ("127.0.0.1",),
    ("169.254.169.254",),
    ("100.100.100.200",),
    ("192.0.0.192",),
    ("0.0.0.0",),
    ("224.0.0.1",),
    ("::1",),
    ("::",),
    ("::ffff:127.0.0.1",),
    ("64:ff9b::7f00:1",),
    ("2002:7f00:1::",),
    ("fd00:ec2::254",),
    ("fe80::1",),
    ("93.184.215.14", "127.0.0.1"),
)
"""Answers of a resolver: the last is one closed address among open ones."""


async def test_a_name_that_leads_to_a_closed_address_is_refused_by_url_and_by_tunnel(tmp_path: Path) -> None:
    ends = []
    wild = Rule(host="*.wild.example", ports=(80, 443))
    async with open_egress(tmp_path, private=False, further=[wild]) as world:
        for number, addresses in enumerate(CLOSED):
            name = f"n{number}.wild.example"
            world.addresses[name] = addresses
            reply = await world.say(head("GET", f"http://{name}/", name))
            stream, refused = await world.tunnel(f"{name}:443")
            await stream.aclose()
            ends.append((reply.problem()["reason"], refused.problem()["reason"]))

    assert ends == [("address", "address")] * len(CLOSED)


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "100.100.100.200", "fd00:ec2::254", "fe80::1", "0.0.0.0"]
)
async def test_metadata_stays_closed_also_for_names_that_may_lead_to_private_addresses(
    tmp_path: Path, address: str
) -> None:
    async with open_egress(tmp_path) as world:
        world.addresses["plain.example"] = (address,)
        reply = await world.get("plain.example", "/")

    assert reply.problem()["reason"] == "address"


async def test_a_name_that_is_bound_again_leads_where_it_led_before(tmp_path: Path) -> None:
    async with open_egress(tmp_path, bindings=ALL) as world:
        first = await world.get("plain.example", "/")
        world.addresses["plain.example"] = ("127.0.0.2",)
        second = await world.get("plain.example", "/")

    assert (first.status, second.status) == (200, 200)
    assert world.looked_up == ["plain.example"]
    assert {one.address for one in world.seen} == {"127.0.0.1"}


async def test_names_asked_at_once_are_looked_up_once(tmp_path: Path) -> None:
    async with open_egress(tmp_path) as world, trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(world.get, "plain.example", "/")

    assert world.looked_up == ["plain.example"]


async def test_what_is_no_tls_does_not_pass_to_port_443(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_egress(tmp_path) as world:
        monkeypatch.setattr(tunnels, "HTTPS_PORT", world.port("open.example"))
        stream, reply = await world.tunnel(world.authority("open.example"))
        async with stream:
            await send(stream, b"SSH-2.0-OpenSSH_9.2\r\n")
            told = await read_reply(stream)

    assert (reply.status, told.problem()["reason"]) == (200, "not_tls")
    assert world.origins["open.example"].text == b""


async def test_a_credential_goes_to_no_server_without_tls_but_on_loopback(tmp_path: Path) -> None:
    far = Rule(host="far.example")
    one = replace(BOUND, hosts=("far.example", "plain.example"))
    async with open_egress(tmp_path, bindings=[one], further=[far]) as world:
        world.addresses["far.example"] = ("93.184.215.14",)
        refused = await world.say(
            head("GET", "http://far.example/", "far.example", f"Authorization: {PLACEHOLDER}")
        )
        near = await world.get("plain.example", "/", f"Authorization: {PLACEHOLDER}")

    assert (refused.problem()["reason"], near.status) == ("secret", 200)
    assert SECRET.encode() in world.origins["plain.example"].text


async def test_a_secret_that_would_begin_another_header_is_not_sent(tmp_path: Path) -> None:
    async with open_egress(tmp_path, bindings=[replace(BOUND, secret="abcdef\r\nHost: x")]) as world:
        reply = await world.get_tls("bound.example", "/", f"Authorization: {PLACEHOLDER}")

    assert reply.problem()["reason"] == "secret"


async def test_requests_that_chance_made_neither_leak_nor_pass(tmp_path: Path) -> None:
    count = int(os.environ.get("EGRESS_FUZZ", "600"))
    seed = int(os.environ.get("EGRESS_FUZZ_SEED", "14"))
    async with open_egress(tmp_path, bindings=BINDINGS, bounds=UNBOUND) as world:
        found = await fuzz(world, count, seed)
    sys.stdout.write(f"{found.sent} requests, {found.secrets_delivered} with a secret: {found.verdicts}\n")

    assert (found.leaks, found.passes, found.faults) == ([], [], [])
    assert found.verdicts["allowed"] > count // 10, "most of them were no requests at all"
    assert found.secrets_delivered > count // 100
