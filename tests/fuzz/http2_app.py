"""An application that does with a request what its path says, and keeps what it was given."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import trio

from sexton_http.answers import Answer
from sexton_http.wire.asgi import WHOLE_ANSWER, WHOLE_BODY
from sexton_http.wire.hang_ups import unless_gone

SLOW_S, POLL_S = 3.0, 20.0
PIECE: Final = b"l" * 10_000
PIECES: Final = 3


class Seen(NamedTuple):
    """A request as the application was given it."""

    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes
    whole: bool


class App:
    """Does with a request what its path says; keeps what it was given."""

    def __init__(self) -> None:
        self.seen: dict[int, Seen] = {}
        self.running = 0
        self.most_body = len(PIECE)
        self.raised: list[BaseException] = []

    def refuse_early(self, scope: dict[str, Any]) -> Answer | None:
        return Answer(503, (), b"later") if scope["path"] == "/no" else None

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        stream = scope[WHOLE_BODY].__self__.id
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        assert stream not in self.seen, "a request comes twice"
        self.seen[stream] = Seen(scope["method"], target, scope["headers"], b"", whole=False)
        self.running += 1
        try:
            await self._do(scope, stream, receive, send)
        except _Planned:
            raise
        except Exception as fault:
            self.raised.append(fault)
            raise
        finally:
            self.running -= 1

    async def _do(self, scope: dict[str, Any], stream: int, receive: Any, send: Any) -> None:
        path = scope["path"]
        if path == "/deaf":
            await _answer(send, 401, b"no")
            return
        body = scope[WHOLE_BODY]() if path == "/whole" else None
        if body is None:
            body = await self._read(stream, receive)
        else:
            self._note(stream, body, whole=True)
        if body is None:
            return
        match path:
            case "/whole":
                await scope[WHOLE_ANSWER](Answer(200, (), body))
            case "/slow":
                await trio.sleep(SLOW_S)
                await _answer(send, 200, b"slow")
            case "/poll":
                await unless_gone(scope, receive, _poll)
                await _answer(send, 204, b"")
            case "/large":
                await _begin(send, 200, PIECES * len(PIECE))
                for number in range(PIECES):
                    await send(_part(PIECE, more=number < PIECES - 1))
            case "/fail":
                raise _Planned
            case "/half":
                await _begin(send, 200, 10)
                await send(_part(b"half", more=False))
            case _:
                await _answer(send, 200, body)

    async def _read(self, stream: int, receive: Any) -> bytes | None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body, more = body + message["body"], message["more_body"]
            self._note(stream, body, whole=not more)
        return body

    def _note(self, stream: int, body: bytes, *, whole: bool) -> None:
        self.seen[stream] = self.seen[stream]._replace(body=body, whole=whole)
        self.most_body = max(self.most_body, len(body))


class _Planned(Exception):
    """The application fails."""


async def _poll() -> bool:
    await trio.sleep(POLL_S)
    return True


async def _answer(send: Any, status: int, body: bytes) -> None:
    await _begin(send, status, len(body))
    await send(_part(body, more=False))


async def _begin(send: Any, status: int, length: int) -> None:
    head = [(b"content-length", b"%d" % length)] if status != 204 else []
    await send({"type": "http.response.start", "status": status, "headers": head})


def _part(body: bytes, *, more: bool) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}
