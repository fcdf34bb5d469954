"""What reads HTTP/1.1 and its bodies: several readers must agree, and bytes may be cut anywhere."""

from __future__ import annotations

import base64
import json
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar
from uuid import UUID

import h11
import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies import cursors
from sexton_http.bodies.byte_ranges import Unsatisfiable, range_of
from sexton_http.bodies.decoding import BodyDecoder
from sexton_http.bodies.ids import as_id, check_ids, may_lack_dashes, parse_id
from sexton_http.bodies.json_faults import surely_once
from sexton_http.bodies.lenient import decoder_of
from sexton_http.bodies.multipart import Form, boundary_of
from sexton_http.routes.renewals import Renewals
from sexton_http.routes.reports import ReportBody
from sexton_http.wire.first_request import token_of
from sexton_http.wire.forwarded import client_of, forwarded_for, read_networks
from sexton_http.wire.http1_parser import Parser
from sexton_http.wire.whole_request import whole_request

T = TypeVar("T")
CODES = {"UZ-REQ-001", "UZ-UUIDV7-009"}
MAX_DEPTH = 64
LARGEST = 10_000
Told = list[tuple[str, bytes, bytes, list[tuple[bytes, bytes]], bytes, bool]]


def http1(data: bytes) -> None:
    """Requests are the same however their bytes are cut, and each reader of them says the same."""
    at, data = data[:1], data[1:]
    whole = _parsed(data)
    place = len(data) * int.from_bytes(at) // 256
    for parts in ((data[:place], data[place:]), tuple(data[i : i + 1] for i in range(len(data)))):
        cut = _parsed(*parts)
        assert (_told(cut), cut.broken) == (_told(whole), whole.broken), "another reading when cut"
    _agree_on_short_way(data, whole)
    _agree_with_h11(data, whole)
    _agree_on_token(data, whole)


def _parsed(*parts: bytes) -> Parser:
    parser = Parser()
    for part in parts:
        parser.feed(part)
    return parser


def _told(parser: Parser) -> Told:
    return [
        (one.method, one.raw_path, one.query, one.headers, b"".join(one.body), one.complete)
        for one in parser.requests
    ]


def _agree_on_short_way(data: bytes, parser: Parser) -> None:
    head = whole_request(data, "client")
    if head is None:
        return
    [request] = parser.requests
    assert request.complete
    assert request.keep_alive
    assert parser.is_between
    assert not parser.broken
    assert (head.method, head.path.encode(), head.query) == (request.method, request.raw_path, request.query)
    assert list(head.headers.items()) == request.headers


def _agree_with_h11(data: bytes, parser: Parser) -> None:
    if not parser.requests or not parser.requests[0].complete:
        return
    first = parser.requests[0]
    reader = h11.Connection(h11.SERVER)
    reader.receive_data(data)
    body = b""
    try:
        request = reader.next_event()
        while isinstance(event := reader.next_event(), h11.Data):
            body += event.data
    except h11.RemoteProtocolError:
        return
    if isinstance(request, h11.Request) and isinstance(event, h11.EndOfMessage):
        target = first.raw_path + (b"?" + first.query if b"?" in request.target else b"")
        assert (request.method.decode(), request.target) == (first.method, target)
        assert body == b"".join(first.body), "two readers, two bodies"
        assert [(n, v) for n, v in request.headers] == first.headers


def _agree_on_token(data: bytes, parser: Parser) -> None:
    token = token_of(data)
    if token and parser.requests:
        said = [value for name, value in parser.requests[0].headers if name == b"authorization"]
        assert any(value.lower().startswith(b"bearer") and token in value for value in said)


def headers(data: bytes) -> None:
    """Headers that a stranger writes: ranges lie within the file, and a client is an address."""
    text = data.decode("latin-1")
    size = len(data) * 7
    match range_of(text, size):
        case (start, end):
            assert 0 <= start < end <= size
        case other:
            assert other is None or other is Unsatisfiable.RANGE
    ours = read_networks(["10.0.0.0/8", "::1/128"])
    client = client_of("10.0.0.1", text, ours)
    # What is told is spelled in one way, or nothing was believed.
    assert client == "10.0.0.1" or client_of("10.0.0.1", client, ours) == client
    assert client_of("203.0.113.9", text, ours) == "203.0.113.9", "a stranger was believed"
    assert all("," not in one or '"' in text for one in forwarded_for(text))
    boundary = boundary_of(text)
    assert boundary is None or len(boundary) <= 70


def json_bodies(data: bytes) -> None:
    """A body that is taken is JSON to another reader, has no key twice, no NUL, and comes back the same."""
    if surely_once(data):
        _check_plain(data)
    for shape in (ReportBody, Renewals, dict[str, Any]):
        decoder: BodyDecoder[Any] = decoder_of(shape)
        try:
            value = decoder.decode(data)
        except Problem as problem:
            _expect(problem.code, CODES)
            continue
        if shape is dict[str, Any]:
            _check_plain(data)
        if shape is Renewals:
            continue  # It says of each of its items whether it could be read.
        again = msgspec.json.encode(value)
        assert decoder.decode(again) == value, "it does not come back as it went"


def _check_plain(body: bytes) -> None:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), "a key stands twice"
        assert not any("\0" in name for name, _ in pairs)
        return dict(pairs)

    plain = json.loads(body, object_pairs_hook=once, parse_int=float)
    assert not any("\0" in text for text in _texts(plain, 0))


def _texts(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner, depth + 1)


def forms(data: bytes) -> None:
    """A form is the same however it is cut; what was put into one comes out of it."""
    at, data = data[:1], data[1:]
    place = len(data) * int.from_bytes(at) // 256
    whole = _parts([data])
    assert _parts([data[:place], data[place:]]) == whole
    assert _parts([data[i : i + 1] for i in range(len(data))]) == whole
    if b"\r\n--x" not in data:
        head = b'--x\r\nContent-Disposition: form-data; name="a"; filename="b"\r\nContent-Type: c/d\r\n\r\n'
        assert _parts([head + data + b"\r\n--x--\r\n"]) == [("a", "b", "c/d", data)]


def _parts(pieces: list[bytes]) -> list[tuple[str, str | None, str, bytes]] | str:
    left = iter([*(piece for piece in pieces if piece), b"", b"", b""])

    async def more() -> bytes:
        return next(left, b"")

    async def read() -> list[tuple[str, str | None, str, bytes]]:
        form, found = Form(b"x", more, max_parts=8), []
        while (part := await form.part()) is not None:
            content = b""
            while piece := await form.read():
                content += piece
            found.append((part.name, part.filename, part.media_type, content))
        return found

    try:
        return _result(read())
    except Problem as problem:
        _expect(problem.code, {"UZ-REQ-001"})
        return problem.code


def _result(job: Coroutine[Any, Any, T]) -> T:
    """What it gives, if it never waits."""
    try:
        job.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    raise AssertionError("it waits for something")


SHAPES = (
    (cursors.decode, cursors.Place),
    (cursors.decode_search, cursors.SearchPlace),
    (cursors.decode_name, cursors.NamedPlace),
    (cursors.decode_entry, cursors.EntryCursor),
    (cursors.decode_numbered, cursors.Numbered),
)


def cursor(data: bytes) -> None:
    """A cursor has one spelling; what is read of it another reader reads alike."""
    text = data.decode("latin-1")
    number = int.from_bytes(data[:7])
    made = cursors.Place(number, UUID(bytes=data[:16].ljust(16, b"\0")), "f", len(data) or None)
    assert cursors.decode(cursors.encode(made), "f") == made
    spelled = base64.urlsafe_b64encode(data).rstrip(b"=").decode()
    for decode, shape in SHAPES:
        for one in (text, spelled):
            try:
                place = decode(one, "f")
            except Problem as problem:
                _expect(problem.code, {"UZ-REQ-001"})
                continue
            assert type(place) is shape
            fields = json.loads(base64.urlsafe_b64decode(one + "=" * (-len(one) % 4)))
            assert fields == msgspec.to_builtins(place)
            assert cursors.encode(place) == one


class _Named(msgspec.Struct):
    lease_id: UUID
    others: list[UUID] = []


def ids(data: bytes) -> None:
    """An id is taken in its canonical form alone, and as the standard library reads it."""
    text = data.decode("latin-1")
    found = as_id(text)
    if found is None:
        try:
            parse_id(text, "it")
        except Problem as problem:
            _expect(problem.code, {"UZ-UUIDV7-009"})
        else:
            raise AssertionError("one reader takes what the other refuses")
    else:
        assert str(found) == text.lower()
        assert parse_id(text, "it") == found == UUID(text)
    body = msgspec.json.encode({"lease_id": text, "others": [text[:36], text]})
    try:
        BodyDecoder(_Named).decode(body)
    except Problem as problem:
        _expect(problem.code, CODES)
    else:
        assert as_id(text) is not None
        assert not may_lack_dashes(body)
        check_ids(_Named, json.loads(body))


def _expect(value: object, among: Any) -> None:
    assert value in among
