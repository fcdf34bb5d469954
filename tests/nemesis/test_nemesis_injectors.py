"""Each injector harms a real process, and heals it; links, disks and clocks do what their faults need."""

import errno
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
import trio

from tests.nemesis.injectors import Injectors
from tests.nemesis.schedule import Fault, Kind
from tests.nemesis.wires.bundle import open_wires
from tests.nemesis.world import SOCKET, NemesisNode, World
from tests.patience import PATIENCE_S
from tests.worlds.server_process import ServerProcess
from tests.worlds.small_disk import SmallDisk, open_small_disk
from tests.worlds.wrong_clock import LIBRARY, Clock

SHORT_S = 0.5
LOOK_S = 0.02


@pytest.fixture
def short() -> Iterator[Path]:
    """Short enough for a socket's path."""
    with tempfile.TemporaryDirectory(prefix="sx") as folder:
        yield Path(folder)


@pytest.fixture
async def world(tmp_path: Path, short: Path, postgres_dsn: str) -> AsyncIterator[World]:
    """One node, as the nemesis has three."""
    address, _, host = postgres_dsn.partition("host=")
    async with open_wires({"database": (short / SOCKET, Path(host) / SOCKET)}) as ways:
        own = tmp_path / "node-0"
        own.mkdir()
        words = ("--database-url", f"{address}host={short}", "--runners", "0")
        node = NemesisNode(ServerProcess(own, *words, data=tmp_path / "data"), [*ways.values()], None)
        await node.start()
        async with open_wires({"clients": (None, node.address)}) as door:
            node.link = door["clients"]
            yield World(tmp_path, None, [node])
        node.server.kill()


async def until(base_url: str, *, answers: bool, path: str = "/readyz") -> None:
    with trio.fail_after(PATIENCE_S):
        while await is_ready(base_url, path) is not answers:
            await trio.sleep(LOOK_S)


async def is_ready(base_url: str, path: str) -> bool:
    async with httpx2.AsyncClient(timeout=SHORT_S) as http:
        with suppress(httpx2.HTTPError):
            return (await http.get(f"{base_url}{path}")).status_code < 300
    return False


async def test_a_node_is_killed_frozen_and_cut_off_and_answers_again_where_it_did(world: World) -> None:
    [node] = world.nodes
    lines: list[str] = []
    injectors = Injectors(world, [], lines.append)
    before = node.address

    for kind in (Kind.FREEZE_NODE, Kind.CUT_CLIENTS, Kind.KILL_NODE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(injectors.suffer, Fault(0, kind, 0, 2 * SHORT_S))
            await until(node.base_url, answers=False)
        await until(node.base_url, answers=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(injectors.suffer, Fault(0, Kind.CUT_DATABASE, 0, 2 * SHORT_S))
        await until(node.base_url, answers=False)
    await until(node.base_url, answers=True)

    assert node.address == before
    assert set(injectors.done.values()) == {1}
    assert lines[:2] == ["freeze-node 0, 1 s", "freeze-node 0 has healed"]


async def test_faults_of_one_victim_wait_for_each_other(world: World) -> None:
    lines: list[str] = []
    injectors = Injectors(world, [], lines.append)

    await injectors.suffer_all(
        [Fault(0, Kind.CUT_CLIENTS, 0, SHORT_S), Fault(0, Kind.FREEZE_NODE, 0, SHORT_S)]
    )

    assert [line.partition(",")[0] for line in lines] == [
        "cut-clients 0",
        "cut-clients 0 has healed",
        "freeze-node 0",
        "freeze-node 0 has healed",
    ]


async def test_a_disk_that_is_full_takes_nothing_until_it_is_emptied(tmp_path: Path) -> None:
    async with open_small_disk(tmp_path / "disk") as disk:
        if not isinstance(disk, SmallDisk):
            pytest.skip(disk)
        (disk.folder / "before").write_bytes(bytes(1 << 20))

        await disk.fill()
        with pytest.raises(OSError, match="No space left") as full:
            (disk.folder / "more").write_bytes(bytes(1 << 20))
        await disk.empty()
        (disk.folder / "more").write_bytes(bytes(1 << 20))

        assert full.value.errno == errno.ENOSPC
        assert (disk.folder / "before").stat().st_size == (disk.folder / "more").stat().st_size


@pytest.mark.skipif(LIBRARY is None, reason="libfaketime is missing: install the package `faketime`")
def test_a_clock_is_wrong_by_what_it_is_set_to(tmp_path: Path) -> None:
    clock = Clock(tmp_path / "clock")
    words = ["date", "+%s"]

    clock.set("+10d")
    wrong = int(subprocess.check_output(words, env=clock.environment))
    clock.set_right()
    right = int(subprocess.check_output(words, env=clock.environment))

    assert 9 * 86_400 < wrong - right < 11 * 86_400
