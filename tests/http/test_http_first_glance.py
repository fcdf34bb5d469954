"""Many connections come at once: urgent requests are served before others that came earlier."""

from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import replace
from socket import create_connection, socket
from typing import Any

import orjson
import pytest
import trio
from prometheus_client import CollectorRegistry

from sexton_http.answers import Answer
from sexton_http.app import create_app
from sexton_http.wire.asgi import WHOLE_ANSWER
from sexton_http.wire.first_glance import Urgency
from sexton_http.wire.newcomers import AT_ONCE
from sexton_http.wire.server import Doors
from sexton_http.wire.tls import Tls
from tests.worlds.asgi_server import Reader, answer, dial, serving
from tests.worlds.http import HttpWorld

CROWD = 3 * AT_ONCE
URGENCIES = {"/now": Urgency.NOW, "/waits": Urgency.NOW, "/fails": Urgency.NOW, "/first": Urgency.FIRST}
TOLD = Answer(200, (), b"told")


class Reception:
    """An app that notes in which order it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def urgency(self, _method: str, path: str) -> Urgency:
        return URGENCIES.get(path, Urgency.NONE)

    async def __call__(self, scope: dict[str, Any], _receive: Any, send: Any) -> None:
        path = scope["path"]
        if path == "/waits":
            await trio.lowlevel.checkpoint()
        self.asked.append(path)
        if path == "/fails" and self.asked.count(path) == 1:
            raise ValueError("it fails the first time")
        await scope[WHOLE_ANSWER](TOLD) if WHOLE_ANSWER in scope else await answer(send, 200, b"told")


def ask(doors: Doors, path: str, rest: bytes = b"Connection: close\r\n\r\n") -> socket:
    """Connect and ask, while the server has no turn: all of it waits in the kernel."""
    line = create_connection((doors.host, doors.port))
    line.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n".encode() + rest)
    return line


def app_of(world: HttpWorld) -> Any:
    """One more of the same world, which has its own."""
    return create_app(replace(world.ctx, registry=CollectorRegistry()))


def names_in(head: bytes) -> set[bytes]:
    return {line.partition(b":")[0] for line in head.lower().split(b"\r\n")[1:]}


def without_id(body: bytes) -> dict[str, Any]:
    return {name: value for name, value in orjson.loads(body).items() if name != "request_id"}


async def told(line: socket) -> bytes:
    """All that the server says until it closes the connection."""
    line.settimeout(0)
    had = b""
    async with trio.SocketStream(trio.socket.from_stdlib_socket(line)) as stream:
        async for data in stream:
            had += data
    return had


@pytest.mark.parametrize(("path", "before"), [("/now", 0), ("/first", AT_ONCE), ("/waits", 2 * AT_ONCE)])
async def test_whoever_is_urgent_is_served_before_a_crowd_that_came_earlier(path: str, before: int) -> None:
    app = Reception()
    async with serving(app) as doors:
        with ExitStack() as stack:
            crowd = [stack.enter_context(ask(doors, "/crowd")) for _ in range(CROWD)]
            urgent = stack.enter_context(ask(doors, path))
            said = [await told(line) for line in (urgent, *crowd)]

    assert app.asked.index(path) <= before
    assert app.asked.count(path) == 1
    assert all(one.startswith(b"HTTP/1.1 200 OK\r\n") and one.endswith(b"\r\n\r\ntold") for one in said)


async def test_a_crowd_is_served_while_urgent_ones_keep_coming() -> None:
    app = Reception()
    async with serving(app) as doors:
        with ExitStack() as stack:
            lines = [stack.enter_context(ask(doors, "/crowd"))]
            lines += [stack.enter_context(ask(doors, "/first")) for _ in range(CROWD)]
            for line in lines:
                await told(line)

    assert app.asked.index("/crowd") < 2 * AT_ONCE
    assert len(app.asked) == CROWD + 1


async def test_more_urgent_ones_than_a_turn_may_answer_are_all_answered() -> None:
    app = Reception()
    async with serving(app) as doors:
        with ExitStack() as stack:
            lines = [stack.enter_context(ask(doors, "/now")) for _ in range(CROWD)]
            said = [await told(line) for line in lines]

    assert [one.split(b" ")[1] for one in said] == [b"200"] * CROWD
    assert app.asked == ["/now"] * CROWD


async def test_what_fails_before_it_has_a_task_is_asked_again_in_one() -> None:
    app = Reception()
    async with serving(app) as doors:
        with ask(doors, "/fails") as line:
            said = await told(line)

    assert said.startswith(b"HTTP/1.1 200 OK\r\n")
    assert app.asked == ["/fails"] * 2


async def test_what_an_answer_at_first_glance_notes_of_its_request_stays_with_no_other() -> None:
    noted = ContextVar("noted", default="nothing")
    before = dict[str, str]()

    class Noting(Reception):
        async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
            before[scope["path"]] = noted.get()
            noted.set(scope["path"])
            await super().__call__(scope, receive, send)

    async with serving(Noting()) as doors:
        for path in ("/now", "/waits", "/crowd"):
            with ask(doors, path) as line:
                await told(line)

    assert before == {"/now": "nothing", "/waits": "nothing", "/crowd": "nothing"}


async def test_a_connection_that_was_answered_at_first_glance_may_ask_again(tls: Tls | None) -> None:
    app = Reception()
    async with serving(app, tls=tls) as doors, await dial(doors) as stream:
        reader, seen = Reader(stream), []
        for path in ("/now", "/later", "/now"):
            await stream.send_all(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            seen.append((await reader.answer())[0])

    assert (seen, app.asked) == ([200] * 3, ["/now", "/later", "/now"])


@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: 3\r\n\r\nabc",
        b"Content-Length: 2\r\n\r\nabc",
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        b"Expect: 100-continue\r\n\r\n",
        b"Connection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n",
        b"\r\nGET /now HTTP/1.1\r\nHost: x\r\n\r\n",
        b" folded: x\r\n\r\n",
        b"",
    ],
)
async def test_whatever_can_be_read_in_two_ways_is_left_to_the_parser(rest: bytes) -> None:
    class Looked(Reception):
        async def __call__(self, scope: dict[str, Any], _receive: Any, send: Any) -> None:
            self.asked.append("at once" if "extensions" in scope and not scope["extensions"] else "by a task")
            await answer(send, 200, b"told")

    app = Looked()
    async with serving(app) as doors:
        with ask(doors, "/now", rest) as line:
            line.shutdown(1)
            await told(line)

    assert "at once" not in app.asked


async def test_health_says_the_same_at_first_glance_as_in_its_turn(world: HttpWorld) -> None:
    async with serving(app_of(world)) as doors:
        with ask(doors, "/healthz") as line:
            at_once = await told(line)
        async with await dial(doors) as stream:
            reader = Reader(stream)
            await stream.send_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.answer()
            await stream.send_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            status, head, body = await reader.answer()
    said_head, _, said_body = at_once.partition(b"\r\n\r\n")

    assert said_head.split(b" ")[1] == b"%d" % status
    assert names_in(said_head) == names_in(head) | {b"connection"}
    assert without_id(said_body) == without_id(body)


async def test_what_is_held_back_is_not_urgent_and_what_runners_ask_for_is(world: HttpWorld) -> None:
    app = app_of(world)

    urgencies = {
        path: app.urgency(method, path).name
        for method, path in (
            ("GET", "/healthz"),
            ("GET", "/readyz"),
            ("GET", "/metrics"),
            ("POST", "/v1/runners/me/leases"),
            ("GET", "/v1/whoami"),
            ("GET", "/nowhere"),
        )
    }

    assert urgencies == {
        "/healthz": "NOW",
        "/readyz": "FIRST",
        "/metrics": "FIRST",
        "/v1/runners/me/leases": "FIRST",
        "/v1/whoami": "NONE",
        "/nowhere": "NONE",
    }
