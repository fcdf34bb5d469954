"""Parcels between the processes of one server: some bytes, and open files with them."""

import array
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import trio

MAX_BYTES: Final = 160 * 1024
"""A parcel's bytes; the kernel holds some 200 KiB of them by default."""
MAX_FILES: Final = 4
_BUFFER_BYTES: Final = 1024 * 1024


class Parcel(NamedTuple):
    """What is sent at once. The kind is one letter."""

    kind: bytes
    body: bytes
    files: tuple[int, ...] = ()
    """Open files. The sender keeps its own; the receiver's are the receiver's to close."""


class Inbox(NamedTuple):
    """One worker's inbox: an end to read from, which is that worker's, and one to put parcels in, for all.

    The parent keeps both ends open. What a worker that died had not taken is there for the next one.
    """

    reading: socket.socket
    putting: socket.socket


def make_inbox() -> Inbox:
    """A pair whose parcels stay whole and in order; both ends are ready for any number of processes."""
    reading, putting = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (reading, putting):
        end.setblocking(False)  # noqa: FBT003 - the library's own signature
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
    return Inbox(reading, putting)


def put(inbox: socket.socket, parcel: Parcel) -> bool:
    """Put it in without waiting; False when it cannot be now, and then nothing of it is there."""
    if len(parcel.body) > MAX_BYTES:
        return False
    ancillary: Sequence[tuple[int, int, array.array[int]]] = ()
    if parcel.files:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", parcel.files))]
    try:
        inbox.sendmsg([parcel.kind, parcel.body], ancillary)
    except OSError:
        return False  # It is full, since its worker is frozen or behind; or too many files are on their way.
    return True


async def take(inbox: trio.socket.SocketType) -> Parcel:
    """Wait for the next one. Raises OSError when there can be none any more."""
    room = socket.CMSG_SPACE(MAX_FILES * array.array("i").itemsize)
    data, ancillary, _, _ = await inbox.recvmsg(MAX_BYTES + 1, room, socket.MSG_CMSG_CLOEXEC)
    if not data:
        raise OSError("the inbox is closed")
    files = array.array("i")
    for level, kind, value in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            files.frombytes(value[: len(value) - len(value) % files.itemsize])
    return Parcel(data[:1], data[1:], tuple(files))


def drop(parcel: Parcel) -> None:
    """Close the files of a parcel that nobody wants."""
    for file in parcel.files:
        with suppress(OSError):
            os.close(file)
