"""A sandbox hands its port out once, and nothing else is taken; operators set hosts and bounds."""

from __future__ import annotations

import dataclasses
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from sexton_runner.doctor import Grade, examine
from sexton_runner.egress.policy import Bounds
from sexton_runner.egress_settings import BOUNDS, EgressSettings, read_egress_settings
from sexton_runner.errors import BadSettings
from sexton_runner.network import DOOR, Network
from sexton_runner.sandbox.network_door import HELPER, furnish, open_door
from tests.patience import PATIENCE_S

ESTABLISHED = b"\x01"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nbm9uZQ==\n-----END CERTIFICATE-----\n"


def a_port() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def a_port_of_all_interfaces() -> socket.socket:
    return socket.create_server(("0.0.0.0", 0))


def no_listener() -> socket.socket:
    return socket.socket()


def another_family() -> socket.socket:
    return socket.socket(socket.AF_UNIX)


async def handed(folder: Path, make: Callable[[], socket.socket] | None, times: int = 1) -> tuple[int, bytes]:
    """Go to the door as a sandbox does; give how many listeners were served, and the answer."""
    served = 0

    async def serve(listener: trio.SocketListener) -> None:
        nonlocal served
        async with listener:
            served += 1

    # The name of a socket has 107 characters at most; a folder may lie deeper.
    deep, short = folder / ("x" * 100), folder / "d"
    deep.mkdir()
    short.symlink_to(deep)
    async with open_door(Network(certificates=b"", serve=serve), deep):
        with trio.fail_after(PATIENCE_S), trio.socket.socket(socket.AF_UNIX) as door:
            await door.connect(str(short / DOOR))
            if make is None:
                await door.send(b"p")
            else:
                with make() as given, socket.fromfd(door.fileno(), door.family, door.type) as plain:
                    socket.send_fds(plain, [b"p"], [given.fileno()] * times)
            answer = await door.recv(1)
        assert not (deep / DOOR).exists(), "nobody else comes in by the same door"
    return served, answer


async def test_the_door_takes_one_open_port_of_loopback(tmp_path: Path) -> None:
    assert await handed(tmp_path, a_port) == (1, b"p")


@pytest.mark.parametrize(
    ("make", "times"),
    [(None, 1), (a_port_of_all_interfaces, 1), (no_listener, 1), (another_family, 1), (a_port, 3)],
)
async def test_the_door_takes_nothing_else(
    tmp_path: Path, make: Callable[[], socket.socket] | None, times: int
) -> None:
    assert await handed(tmp_path, make, times) == (0, b"")


async def test_a_program_may_open_all_its_connections_at_once(tmp_path: Path) -> None:
    most, states, counted = EgressSettings().connections, list[bytes](), trio.Event()

    async def serve(listener: trio.SocketListener) -> None:
        async with listener:
            program = [socket.socket() for _ in range(most)]
            for one in program:
                one.settimeout(0)
                one.connect_ex(listener.socket.getsockname())
            # Nobody takes them yet. One that finds no place in the queue would try again after a second.
            states.extend(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) for one in program)
            for one in program:
                one.close()
        counted.set()

    network = Network(certificates=b"", serve=serve)
    furnish(network, tmp_path)
    async with open_door(network, tmp_path):
        helper = tmp_path / "bin" / HELPER.name
        await trio.run_process([sys.executable, str(helper), str(tmp_path / DOOR), "0", "/bin/true"])
        await counted.wait()

    assert states == [ESTABLISHED] * most


def test_an_operator_sets_hosts_and_bounds() -> None:
    read = read_egress_settings(
        {"SEXTON_EGRESS_PRIVATE_HOSTS": "Git.lan, build.lan:8443,", "SEXTON_EGRESS_CONNECTIONS": "9"}
    )

    assert read == EgressSettings(private_hosts=frozenset({"git.lan", "build.lan:8443"}), connections=9)
    assert set(BOUNDS) <= {field.name for field in dataclasses.fields(Bounds)}
    assert all(getattr(Bounds(), name) == getattr(EgressSettings(), name) for name in BOUNDS)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PRIVATE_HOSTS", "https://git.lan"),
        ("PRIVATE_HOSTS", "git.lan/x"),
        ("PRIVATE_HOSTS", "*"),
        ("CONNECTIONS", "0"),
        ("CONNECTIONS", "257"),
        ("BYTES_IN", "1e9"),
        ("IDLE_S", ""),
        ("CA_BUNDLE", "/nonexistent"),
        ("CA_BUNDLE", __file__),
    ],
)
def test_what_an_operator_sets_wrongly_is_named(variable: str, value: str) -> None:
    with pytest.raises(BadSettings, match=f"SEXTON_EGRESS_{variable}"):
        read_egress_settings({f"SEXTON_EGRESS_{variable}": value})


def test_a_bundle_of_nonsense_is_refused(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text(CERTIFICATE)

    with pytest.raises(BadSettings, match="cannot be used"):
        read_egress_settings({"SEXTON_EGRESS_CA_BUNDLE": str(bundle)})


async def test_the_doctor_says_what_runs_may_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEXTON_EGRESS_PRIVATE_HOSTS", "git.lan")
    good = next(one for one in await examine(tmp_path) if one.name == "network of runs")
    monkeypatch.setenv("SEXTON_EGRESS_CONNECTIONS", "many")
    bad = next(one for one in await examine(tmp_path) if one.name == "network of runs")

    assert good.seen.endswith("private hosts: git.lan")
    assert (bad.grade, "SEXTON_EGRESS_CONNECTIONS" in bad.seen) == (Grade.MISSING, True)
