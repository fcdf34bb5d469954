"""One sandbox in which several commands run, one after another, in a folder that lives as long as it does."""

import base64
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import orjson
import trio

from sexton_runner.background_tasks import run_in_background
from sexton_runner.network import Network
from sexton_runner.sandbox.command_bundle import SERVER, bundled
from sexton_runner.sandbox.jobs import INSIDE_PATH, Running, Sandbox
from sexton_runner.sandbox.tiers import Inside

HEAD_BYTES = 5
MAX_FRAME_BYTES = 65536
START_S = 20.0
END_S = 1.0
NOT_STARTED = 127
MAX_STATUS_CHARS = 8
PIECES = 8  # Of each stream on their way; a command that writes faster than it is read has to wait.


class WorkspaceGone(Exception):
    """The sandbox has ended under its commands: killed, out of memory, or it never stood."""


class Pieces:
    """One stream of a command, as ``receive_some`` of a pipe gives it; empty at its end."""

    def __init__(self) -> None:
        self._in, self._out = trio.open_memory_channel[bytes](PIECES)
        self._heard = True

    async def put(self, piece: bytes) -> None:
        """Pass a piece on; dropped when nobody listens any more."""
        if self._heard:
            try:
                await self._in.send(piece)
            except trio.BrokenResourceError:
                self._heard = False

    def end(self) -> None:
        """Tell the reader that no more will come."""
        self._in.close()

    def ignore(self) -> None:
        """Drop what comes from now on."""
        self._heard = False
        self._out.close()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Give the next piece."""
        del max_bytes
        try:
            return await self._out.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError):
            return b""


class LeftRunning(msgspec.Struct, frozen=True):
    """A process that a command has left running; ``log`` is the file with what it still prints."""

    pid: int
    command: str
    log: str = ""


class Work:
    """One command. Its two streams must be read, or ``ignore``d, until ``wait`` has answered."""

    def __init__(self) -> None:
        self.stdout, self.stderr = Pieces(), Pieces()
        self._ended = trio.Event()
        self._status: int | None = None
        self.left: tuple[LeftRunning, ...] = ()
        """What goes on after it, until the sandbox ends."""
        self._why = ""

    @property
    def over(self) -> bool:
        """Tell whether it has ended."""
        return self._ended.is_set()

    async def ended(self) -> None:
        """Wait for the end, whatever it is."""
        await self._ended.wait()

    async def wait(self) -> int:
        """Give the exit status, negative for a signal; raises ``WorkspaceGone``."""
        await self._ended.wait()
        if self._status is None:
            raise WorkspaceGone(self._why)
        return self._status

    def end(self, status: int | None, why: str = "") -> None:
        """Take note of the end."""
        self._status, self._why = status, why
        self.stdout.end()
        self.stderr.end()
        self._ended.set()


class Workspace:
    """The runner's side of a command server. Its frames are bounded and trusted as little as a command."""

    def __init__(
        self, sandbox: Sandbox, running: Running, inside: Inside, cwd: str, *, run_dir: Path
    ) -> None:
        self._sandbox = sandbox
        self._running = running
        self.inside = inside
        self.run_dir = run_dir
        """What is seen inside as ``inside.run_dir``, read-only."""
        self._cwd = cwd
        self._work: Work | None = None
        self._turn = trio.Lock()
        self._ready = trio.Event()
        self.gone: str | None = None
        self.lost = trio.Event()
        self._errors = b""

    @asynccontextmanager
    async def work(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: bytes = b""
    ) -> AsyncIterator[Work]:
        """Begin a command when the one before has ended.

        On the way out it is dead, and so is all that it started, unless the workspace is a lasting one and
        the command ended by itself.
        """
        async with self._turn:
            if self.gone is not None:
                raise WorkspaceGone(self.gone)
            self._work = work = Work()
            await self._order(
                {
                    "argv": list(argv),
                    "env": {**self.environment(), **(env or {})},
                    "cwd": self._cwd,
                    "stdin": base64.b64encode(stdin).decode(),
                }
            )
            try:
                yield work
            finally:
                with trio.CancelScope(shield=True):
                    await self._end(work)

    @property
    def folder(self) -> str:
        """Give the folder in which commands begin, as it is seen inside."""
        return self._cwd

    @property
    def keeper(self) -> int:
        """Give the process that everything inside lives and dies with."""
        return self._running.child.pid

    def environment(self) -> dict[str, str]:
        """Give what every command inside finds in its environment."""
        return self._sandbox.environment(
            {
                **self._running.variables,
                "PATH": f"{self.inside.run_dir}/bin:{INSIDE_PATH}",
                "HOME": self.inside.home,
                "TMPDIR": self.inside.home,
                "LANG": "C.UTF-8",
                "SEXTON_RUN": self.inside.run_dir,
            }
        )

    def out_of_memory(self) -> bool:
        """Tell whether the kernel killed something inside because memory ran out."""
        return self._running.out_of_memory()

    def out_of_disk(self) -> bool:
        """Tell whether it was ended because its files took more of the host's disk than they may."""
        return self._running.out_of_disk()

    async def ready(self) -> None:
        """Wait until the command server answers; raises ``WorkspaceGone``."""
        with trio.move_on_after(START_S):
            await self._ready.wait()
        if self.gone is not None or not self._ready.is_set():
            raise WorkspaceGone(self.gone or "the sandbox did not answer")

    async def listen(self) -> None:
        """Take the command server's frames until it ends."""
        stream = self._running.child.stdout
        held = bytearray()
        try:
            while piece := await stream.receive_some(MAX_FRAME_BYTES):
                held += piece
                while len(held) >= HEAD_BYTES:
                    length = int.from_bytes(held[1:HEAD_BYTES], "big")
                    if length > MAX_FRAME_BYTES:
                        self._lose("the sandbox spoke nonsense")
                        return
                    if len(held) < HEAD_BYTES + length:
                        break
                    await self._take(bytes(held[:1]), bytes(held[HEAD_BYTES : HEAD_BYTES + length]))
                    del held[: HEAD_BYTES + length]
        finally:
            why = self._errors.decode("utf-8", "replace").strip()
            if self.out_of_disk():
                why = "its files took more disk than they may"
            self._lose("memory ran out" if self.out_of_memory() else why or "the sandbox has ended")

    async def listen_to_errors(self) -> None:
        """Keep the beginning of what the sandbox itself complains of."""
        while piece := await self._running.child.stderr.receive_some(MAX_FRAME_BYTES):
            self._errors = (self._errors + piece)[:2048]

    async def _take(self, kind: bytes, content: bytes) -> None:
        work = self._work
        match kind:
            case b"r":
                self._ready.set()
            case b"o" if work is not None:
                await work.stdout.put(content)
            case b"e" if work is not None:
                await work.stderr.put(content)
            case b"x" if work is not None:
                text = content.decode("ascii", "replace")
                work.end(int(text) if text.lstrip("-").isdigit() and len(text) < MAX_STATUS_CHARS else 1)
            case b"l" if work is not None:
                with contextlib.suppress(msgspec.MsgspecError):
                    work.left = msgspec.json.decode(content, type=tuple[LeftRunning, ...])
            case b"f" if work is not None:
                await work.stderr.put(content + b"\n")
                work.end(NOT_STARTED)
            case _:
                pass  # Of a command that is over.

    async def _end(self, work: Work) -> None:
        work.stdout.ignore()
        work.stderr.ignore()
        if not work.over:
            with trio.move_on_after(END_S), contextlib.suppress(WorkspaceGone):
                await self._order({"kill": True})
                await work.ended()
        if not work.over:
            # A command server that cannot end a command is ended itself, and all with it.
            self._running.child.kill()
            self._lose("the sandbox did not end its command")
        self._work = None

    def _lose(self, why: str) -> None:
        if self.gone is None:
            self.gone = why
            self._ready.set()
            self.lost.set()
            if self._work is not None:
                self._work.end(None, why)

    async def _order(self, order: Mapping[str, object]) -> None:
        try:
            await self._running.child.stdin.send_all(orjson.dumps(order) + b"\n")
        except (trio.BrokenResourceError, trio.ClosedResourceError) as fault:
            self._lose("the sandbox has ended")
            raise WorkspaceGone(self.gone or "") from fault


def _furnish(run_dir: Path, folder: Path) -> None:
    (run_dir / "bin").mkdir(parents=True, exist_ok=True)
    (run_dir / "bin" / SERVER).write_bytes(bundled())
    folder.mkdir(exist_ok=True)


@asynccontextmanager
async def open_workspace(
    sandbox: Sandbox,
    *,
    run_dir: Path,
    folder: Path,
    serial: str,
    network: Network | None = None,
    brought: Path | None = None,
    lasting: bool = False,
) -> AsyncIterator[Workspace]:
    """Stand a sandbox up; on the way out everything in it is dead. Raises ``WorkspaceGone``.

    ``run_dir`` is seen inside, read-only; ``folder`` is the workspace itself where the tier has no walls.
    ``brought`` is as in ``Sandbox.open``. ``lasting``: what a command leaves running goes on until the
    workspace ends, where the tier has a process namespace that ends it then.
    """
    _furnish(run_dir, folder)
    inside = sandbox.tier.inside(run_dir, folder)
    walls = sandbox.tier.walls
    argv = sandbox.interpreter("python", f"{inside.run_dir}/bin/{SERVER}", isolated=True)
    argv += ["--alone"] * walls.shuts_in
    argv += ["--lasting"] * (lasting and walls.own_processes)
    env = {"PATH": INSIDE_PATH, "LANG": "C.UTF-8"}
    async with sandbox.open(
        argv,
        run_dir=run_dir,
        workspace=folder,
        env=env,
        serial=serial,
        network=network,
        brought=brought,
    ) as running:
        cwd = "/workspace" if walls.own_root else str(folder)
        workspace = Workspace(sandbox, running, inside, cwd, run_dir=run_dir)
        async with run_in_background(workspace.listen, workspace.listen_to_errors):
            await workspace.ready()
            yield workspace
