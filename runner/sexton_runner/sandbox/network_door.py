"""Takes over the port that a sandbox opened on its own loopback, once, and has the run's proxy serve it."""

import contextlib
import os
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import structlog
import trio

from sexton_runner.background_tasks import run_in_background
from sexton_runner.network import BUNDLE, DOOR, PORT, Network
from sexton_runner.sandbox.tiers import Tier
from sexton_runner.sandbox.walls import Loopback

HELPER = Path(__file__).resolve().parent.parent / "helper" / "sexton-network"
TAKEN = b"p"
QUEUE = 1024
"""As ``HELPER`` has it within a sandbox."""
log = structlog.get_logger()


@asynccontextmanager
async def connected(
    network: Network | None,
    tier: Tier,
    argv: Sequence[str],
    run_dir: Path,
    workspace: Path,
    *,
    python: str,
) -> AsyncIterator[tuple[Sequence[str], Mapping[str, str]]]:
    """Give the words that open the proxy's port before the program, and the variables that tell of it.

    ``python`` is a path inside.
    """
    if network is None or tier.walls.loopback is Loopback.NONE:
        # Without sockets there is nothing that could reach a proxy.
        yield argv, {}
        return
    inside = tier.inside(run_dir, workspace).run_dir
    furnish(network, run_dir)
    if tier.walls.loopback is Loopback.HOST:
        async with open_own_port(network) as port:
            yield argv, network.environment(port=port, run_dir=inside)
        return
    words = [python, "-I", "-S", f"{inside}/bin/{HELPER.name}", f"{inside}/{DOOR}", str(PORT)]
    async with open_door(network, run_dir):
        yield [*words, *argv], network.environment(port=PORT, run_dir=inside)


def furnish(network: Network, run_dir: Path) -> None:
    """Put into a run's folder what its programs need: the certificates, and the helper that opens a port."""
    (run_dir / BUNDLE).write_bytes(network.certificates)
    (run_dir / "bin").mkdir(exist_ok=True)
    (run_dir / "bin" / HELPER.name).write_bytes(HELPER.read_bytes())


@asynccontextmanager
async def open_door(network: Network, run_dir: Path) -> AsyncIterator[None]:
    """Wait, beside the body, for the sandbox whose run folder this is; raises ``OSError``.

    The door is shut behind the first who comes, which is the helper: it runs before any program does.
    """
    door = _listen(run_dir)

    async def attend() -> None:
        listener = await _handed_out(door, run_dir / DOOR)
        if listener is not None:
            await network.serve(listener)

    try:
        async with run_in_background(attend):
            yield
    finally:
        door.close()


@asynccontextmanager
async def open_own_port(network: Network) -> AsyncIterator[int]:
    """Serve a port of this host's loopback, where there are no walls; gives its number."""
    sock = trio.socket.socket()
    await sock.bind(("127.0.0.1", 0))
    sock.listen(QUEUE)
    listener = trio.SocketListener(sock)

    async def attend() -> None:
        await network.serve(listener)

    async with run_in_background(attend):
        yield int(sock.getsockname()[1])


def _listen(run_dir: Path) -> trio.socket.SocketType:
    sock = socket.socket(socket.AF_UNIX)
    folder = os.open(run_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # By the folder's descriptor: the name of a socket has 107 characters at most, and folders lie deep.
        sock.bind(f"/proc/self/fd/{folder}/{DOOR}")
        (run_dir / DOOR).chmod(0o666)
        sock.listen(1)
    except BaseException:
        sock.close()
        raise
    finally:
        os.close(folder)
    return trio.socket.from_stdlib_socket(sock)


async def _handed_out(door: trio.socket.SocketType, place: Path) -> trio.SocketListener | None:
    sock, _ = await door.accept()
    with sock:
        door.close()
        place.unlink(missing_ok=True)  # noqa: ASYNC240 - of a folder in memory or a local disk, as all here
        await trio.lowlevel.wait_readable(sock)
        with socket.socket(fileno=os.dup(sock.fileno())) as plain:
            _, descriptors, _, _ = socket.recv_fds(plain, 1, 4)
        taken = [socket.socket(fileno=descriptor) for descriptor in descriptors]
        if len(taken) != 1 or not _is_port_of_loopback(taken[0]):
            for one in taken:
                one.close()
            log.warning("network_not_handed_out", why="the sandbox gave something else than its port")
            return None
        with contextlib.suppress(OSError):
            await sock.send(TAKEN)
        return trio.SocketListener(trio.socket.from_stdlib_socket(taken[0]))


def _is_port_of_loopback(sock: socket.socket) -> bool:
    try:
        return (
            sock.family == socket.AF_INET
            and sock.type == socket.SOCK_STREAM
            and bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
            and sock.getsockname()[0] == "127.0.0.1"
        )
    except OSError:
        return False
