"""Processes of clients are started, killed and stopped, and each of their lives leaves a history."""

import io
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.fakes.tcp_link import LOOPBACK
from tests.nemesis.checker.history import INVOKE, OK, UNKNOWN, Entry
from tests.nemesis.clients.tap import Tap
from tests.nemesis.clients.task import OPS_OF_A_LIFE, Role, Site, Task
from tests.nemesis.crew import Client, Crew, open_crew
from tests.nemesis.merge import CUT_SHORT, Tally, merge_histories
from tests.patience import PATIENCE_S

LOOK_S = 0.02
SITE = Site("tenant", "/v1/workspaces/w", "key", ("agent",))


class Server:
    """Accepts each event, while it answers; reads no more of HTTP than it must."""

    def __init__(self) -> None:
        self.answers = True
        self.asked = 0
        self.base_url = ""

    async def until_asked(self, times: int) -> None:
        """Wait until it was asked that often from now on."""
        wanted = self.asked + times
        with trio.fail_after(PATIENCE_S):
            while self.asked < wanted:
                await trio.sleep(LOOK_S)

    async def serve(self, stream: trio.SocketStream) -> None:
        # A client that is killed may break its connection in the middle of anything.
        with suppress(trio.BrokenResourceError):
            async with stream:
                await self._serve(stream)

    async def _serve(self, stream: trio.SocketStream) -> None:
        said = b""
        async for piece in stream:
            said += piece
            head, end, body = said.partition(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            if not end or len(body) < int(length):
                continue
            said = b""
            self.asked += 1
            if self.answers:
                told = json.dumps({"event_id": f"event-{self.asked}"})
                head = b"HTTP/1.1 202 Accepted\r\ncontent-length: %d\r\n\r\n" % len(told)
                await stream.send_all(head + told.encode())


@pytest.fixture
async def server(nursery: trio.Nursery) -> Server:
    server = Server()
    listeners = await nursery.start(partial(trio.serve_tcp, server.serve, 0, host=LOOPBACK))
    server.base_url = f"http://{LOOPBACK}:{listeners[0].socket.getsockname()[1]}"
    return server


async def start_sender(crew: Crew, server: Server) -> Client:
    task = Task(
        Role.SENDERS,
        life=0,
        seed=1,
        bases=(server.base_url,),
        sites=(SITE,),
        history="",
        count=1,
        every_s=0.01,
    )
    [client] = await crew.start([task])
    return client


@asynccontextmanager
async def open_waiting_sender(folder: Path, server: Server) -> AsyncIterator[tuple[Crew, Client]]:
    """A sender that has had three answers or more, and waits for one that the server does not give."""
    async with open_crew(folder) as crew:
        client = await start_sender(crew, server)
        await server.until_asked(3)
        server.answers = False
        await server.until_asked(1)
        yield crew, client


def kept(crew: Crew) -> list[Entry]:
    """One history of all lives."""
    into = io.BytesIO()
    merge_histories(crew.histories, into, Tally(0, 0))
    return [Entry(**json.loads(line)) for line in into.getvalue().splitlines()]


def ends(entries: Sequence[Entry]) -> dict[int, list[str]]:
    """Of each operation, in which ways it ended."""
    found: dict[int, list[str]] = {entry.op: [] for entry in entries if entry.kind == INVOKE}
    for entry in entries:
        if entry.kind != INVOKE:
            found[entry.op].append(entry.kind)
    return found


def is_of(entry: Entry, life: int) -> bool:
    return entry.kind == INVOKE and entry.op // OPS_OF_A_LIFE == life


async def test_what_has_no_answer_when_a_process_is_stopped_is_unknown(
    tmp_path: Path, server: Server
) -> None:
    async with open_waiting_sender(tmp_path / "clients", server) as (crew, client):
        await client.stop()

    *before, last = ends(kept(crew)).values()

    assert len(before) >= 3
    assert before == [[OK]] * len(before)
    assert last == [UNKNOWN]


async def test_a_killed_process_leaves_what_it_did_and_the_next_life_goes_on_with_other_numbers(
    tmp_path: Path, server: Server
) -> None:
    async with open_waiting_sender(tmp_path / "clients", server) as (crew, client):
        await client.kill()
        server.answers = True
        await client.start()
        await server.until_asked(3)
        await client.stop()

    entries = kept(crew)
    killed = [entry for entry in entries if entry.value.get("why") == CUT_SHORT]
    first, second = ({one.value["delivery"] for one in entries if is_of(one, life)} for life in (1, 2))

    assert len(crew.histories) == 2
    assert {entry.op // OPS_OF_A_LIFE for entry in entries} == {1, 2}
    assert [entry.op // OPS_OF_A_LIFE for entry in killed] == [1]
    assert set(map(len, ends(entries).values())) == {1}
    assert not first & second


async def test_a_sender_waits_while_the_tap_is_closed(nursery: trio.Nursery) -> None:
    tap = Tap()
    begun = trio.Event()

    async def begin() -> None:
        await tap.until_open()
        begun.set()

    tap.close()
    nursery.start_soon(begin)
    await wait_all_tasks_blocked()
    waited = not begun.is_set()
    tap.open()
    await begun.wait()

    assert waited
