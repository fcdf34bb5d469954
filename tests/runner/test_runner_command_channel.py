"""What a command says through its FIFO is taken in small helpings."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from sexton_runner.command_channel import (
    MAX_CHANNEL_BYTES,
    MAX_LINES_AT_ONCE,
    Channel,
    ChannelFlooded,
    open_channel,
)
from sexton_runner.command_protocol import Garbage, Progress
from tests.patience import PATIENCE_S


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[Channel, int]]:
    with open_channel(folder) as channel:
        command = os.open(folder / "requests", os.O_WRONLY | os.O_NONBLOCK)
        try:
            with trio.fail_after(PATIENCE_S):
                yield channel, command
        finally:
            os.close(command)


async def test_a_pipe_full_of_lines_is_handled_a_few_at_a_time(tmp_path: Path) -> None:
    async with opened(tmp_path) as (channel, command):
        os.write(command, b"progress\n" * 5000)
        counts: list[int] = []
        while sum(counts) < 5000:
            counts.append(len(await channel.read()))

    assert max(counts) <= MAX_LINES_AT_ONCE
    assert sum(counts) == 5000


async def test_others_have_their_turn_between_the_helpings(tmp_path: Path) -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with opened(tmp_path) as (channel, command), trio.open_nursery() as nursery:
        nursery.start_soon(other)
        os.write(command, b"progress\n" * 5000)
        heard = 0
        while heard < 5000:
            heard += len(await channel.read())
        nursery.cancel_scope.cancel()

    assert turns >= 5000 // MAX_LINES_AT_ONCE


async def test_empty_lines_are_no_lines(tmp_path: Path) -> None:
    async with opened(tmp_path) as (channel, command):
        os.write(command, b"\n" * 60_000 + b"progress\n")
        assert await channel.read() == [Progress()]


async def test_an_endless_line_is_one_piece_of_garbage(tmp_path: Path) -> None:
    async with opened(tmp_path) as (channel, command), trio.open_nursery() as nursery:
        nursery.start_soon(_write, command, b"step " + b"QQ" * 100_000 + b"\nprogress\n")
        lines = []
        while Progress() not in lines:
            lines += await channel.read()
    assert lines == [Garbage(), Progress()]


async def test_who_says_too_much_is_stopped(tmp_path: Path) -> None:
    async with opened(tmp_path) as (channel, command), trio.open_nursery() as nursery:
        nursery.start_soon(_write, command, b"\n" * (MAX_CHANNEL_BYTES + 2))
        with pytest.raises(ChannelFlooded, match="4 MiB"):
            await _read_on(channel)
        nursery.cancel_scope.cancel()


async def test_what_was_left_at_the_end_comes_in_helpings_too(tmp_path: Path) -> None:
    async with opened(tmp_path) as (channel, command):
        os.write(command, b"progress\n" * 1000)
        counts = []
        while lines := await channel.rest():
            counts.append(len(lines))
    assert (max(counts), sum(counts)) == (MAX_LINES_AT_ONCE, 1000)


async def _read_on(channel: Channel) -> None:
    while True:
        await channel.read()


async def _write(command: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        await trio.lowlevel.wait_writable(command)
        view = view[os.write(command, view[:65536]) :]
