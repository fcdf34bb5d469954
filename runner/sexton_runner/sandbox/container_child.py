"""The child of a sandbox that podman makes: a client, and the container whose first process it brought up.

The container is not below the runner: podman leaves it to a process of its own. So the runner holds it by a
socket to its first process, which ends with all that it started as soon as the runner lets go of the socket.
"""

import base64
import contextlib
import os
import signal
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Final

import orjson
import trio

from sexton_runner.errors import SandboxUnavailable
from sexton_runner.sandbox.cgroup import Group
from sexton_runner.sandbox.process import REAP_PATIENCE_S, Child, popen

BEGIN_S: Final = 20.0
CREDENTIALS: Final = struct.Struct("=iII")


class ContainerChild(Child):
    """A client of podman and its container. It must be told to ``begin``."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], guard: socket.socket, inner: int) -> None:
        super().__init__(popen(argv, env, (inner,)))
        self._guard = trio.socket.from_stdlib_socket(guard)
        self._first: tuple[int, int] | None = None
        """The container's first process: its number, and a descriptor of it."""

    def first_inside(self) -> int:
        """Give the first process of the container; raises ``OSError`` while there is none."""
        if self._first is None:
            raise ProcessLookupError
        return self._first[0]

    async def begin(self, order: bytes, group: Group | None) -> None:
        """Wait for the container, put it into its group, and tell it what to run.

        Where podman could not make it, its errors and its status are the child's, and this returns. Raises
        ``SandboxUnavailable``.
        """
        with trio.move_on_after(BEGIN_S):
            said, ancillary, _, _ = await self._guard.recvmsg(1, socket.CMSG_SPACE(CREDENTIALS.size))
            if not said or self._first is not None:
                return
            first = _sender(ancillary)
            self._first = (first, os.pidfd_open(first))
            try:
                for file in () if group is None else group.joins:
                    with open(file, "w", encoding="ascii") as members:  # noqa: ASYNC230, PTH123 - of the kernel
                        members.write(str(first))
            except OSError as fault:
                raise SandboxUnavailable(
                    f"podman's container cannot be put into its group: {fault}"
                ) from fault
            with contextlib.suppress(OSError):
                while order:
                    order = order[await self._guard.send(order) :]

    async def watch(self) -> None:
        """End the container when its client has ended, whoever ended that."""
        client = os.pidfd_open(self.pid)  # Its own: two cannot wait for one descriptor.
        try:
            await trio.lowlevel.wait_readable(client)
        finally:
            os.close(client)
        self.kill()

    def kill(self) -> None:
        """Let go of the container: it ends at once, and its client, having removed it, soon after."""
        self._guard.close()
        if self._first is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self._first[1], signal.SIGKILL)

    async def wait(self) -> int:
        """Wait for the end of the client and of all in its container, and give the program's status."""
        await self.ended()
        self.kill()
        if self._first is not None:
            # Readable when the last process of the container has been reaped.
            await trio.lowlevel.wait_readable(self._first[1])
        return await super().wait()

    async def finish(self) -> None:
        """End the container and its client; not cancellable, bounded."""
        self.kill()
        with trio.CancelScope(shield=True), trio.move_on_after(REAP_PATIENCE_S):
            await self.wait()
        super().kill()
        await super().finish()
        if self._first is not None:
            os.close(self._first[1])


def start_in_container(
    argv: Sequence[str], env: Mapping[str, str], ends: Sequence[socket.socket]
) -> ContainerChild:
    """Start the client; ``ends`` are the runner's and the container's of one connection."""
    ours, theirs = ends
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    with theirs:
        try:
            return ContainerChild(argv, env, ours, theirs.fileno())
        except BaseException:
            ours.close()
            raise


def order_of(argv: Sequence[str], env: Mapping[str, str], folder: str, seccomp: bytes | None) -> bytes:
    """Give the line that the container's first process waits for."""
    steps = None if seccomp is None else base64.b64encode(seccomp).decode()
    return orjson.dumps({"argv": [*argv], "env": {**env}, "folder": folder, "seccomp": steps}) + b"\n"


def _sender(ancillary: Sequence[tuple[int, int, bytes]]) -> int:
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
            return int(CREDENTIALS.unpack(data[: CREDENTIALS.size])[0])
    raise SandboxUnavailable("the container did not say which process it is")
