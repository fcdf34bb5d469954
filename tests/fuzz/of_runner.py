"""What a runner reads of its runs, of models and of servers; and what clients read of a stream."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

import h11
import httpx2
import msgspec

from sexton_client.errors import NotUnderstood
from sexton_client.frames import Place
from sexton_client.retries import Patience
from sexton_http.wire.http1_parser import Parser
from sexton_runner.command_protocol import MAX_NAME_CHARS, Ask, Garbage, Part, Step, parse
from sexton_runner.egress.client_hello import Malformed, read_hello
from sexton_runner.egress.heads import BadTarget, Origin, is_host, judge_head, read_target
from sexton_runner.egress.hosts import read_authority, read_host, write_authority
from sexton_runner.egress.paths import ambiguity, lies_under, without_dots
from sexton_runner.providers.sse import EventData

ORIGIN = Origin(scheme="https", host="a.example", port=443)


def egress_heads(data: bytes) -> None:
    """A head that is let through is one request to two readers, and the same."""
    head = data.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    if judge_head(head) is not None:
        return
    reader = h11.Connection(h11.SERVER)
    reader.receive_data(head)
    try:
        request = reader.next_event()
    except h11.RemoteProtocolError:
        return
    assert isinstance(request, h11.Request), "it was let through, and is no whole head"
    parser = Parser()
    parser.feed(head)
    if parser.requests:
        other = parser.requests[0]
        target = other.raw_path + (b"?" + other.query if b"?" in request.target else b"")
        assert (request.method.decode(), request.target) == (other.method, target)
        assert [(n, v) for n, v in request.headers] == [(n, v.strip(b" \t")) for n, v in other.headers]
    hosts = [value for name, value in request.headers if name == b"host"]
    assert len(hosts) <= 1


def targets(data: bytes) -> None:
    """A target has one spelling that is read again as the same; its path leads nowhere else."""
    text = data.decode("latin-1")
    for within in (None, ORIGIN):
        try:
            target = read_target(text, within)
        except BadTarget:
            continue
        origin = target.origin
        assert within in (None, origin)
        spelled = write_authority(origin.host, origin.port, origin.scheme)
        assert is_host(spelled.encode(), origin)
        rest = target.path + ("" if target.query is None else f"?{target.query}")
        again = read_target(rest if within else f"{origin.scheme}://{spelled}{rest}", within)
        assert (again.origin, again.path, again.query) == (origin, target.path, target.query)
        if target.path != "*":
            _check_path(target.path)
    for read in (read_host, read_authority):
        try:
            found = read(text)
        except ValueError:
            continue
        host = found if isinstance(found, str) else found[0]
        assert read_host(f"[{host}]" if ":" in host else host) == host


def _check_path(path: str) -> None:
    assert without_dots(path) == path
    if ambiguity(path) is not None or not lies_under(path, ["/docs"]):
        return
    for decoded in (path, _decoded(path), _decoded(_decoded(path))):
        for one in (decoded, decoded.replace("\\", "/")):
            plain = "/".join(segment.partition(";")[0] for segment in one.split("/"))
            assert lies_under(without_dots(plain), ["/docs"]), path


def _decoded(path: str) -> str:
    for code, char in (("%2e", "."), ("%2E", "."), ("%2f", "/"), ("%2F", "/"), ("%5c", "\\"), ("%25", "%")):
        path = path.replace(code, char)
    return path


def hellos(data: bytes) -> None:
    """A hello is read once it is whole: no beginning of it says anything else."""
    data = b"\x16\x03\x01" + data
    try:
        hello = read_hello(data)
    except Malformed:
        return
    if hello is None:
        return
    assert hello.server_name is None or (hello.server_name and hello.server_name.isascii())
    for count in range(len(data)):
        assert read_hello(data[:count]) in (None, hello)


def command_lines(data: bytes) -> None:
    """A line of a command is what another reader makes of it, or nothing."""
    found = parse(data)
    match found:
        case Step(name):
            words = data.split()
            said = base64.b64decode(words[1]).decode("utf-8", "replace")
            assert (words[0], name) == (b"step", said[:MAX_NAME_CHARS])
        case Part(ask_id, content):
            assert data.split() == [b"part", ask_id.encode(), base64.b64encode(content)] or b"=" in data
        case Ask(ask_id=ask_id):
            assert ask_id.encode() == data.split()[1]
        case _:
            assert isinstance(found, Garbage) or data.split()[0] in {b"started", b"progress", b"fail"}
    name = data.decode("utf-8", "replace")
    if name:
        assert parse(b"step " + base64.b64encode(name.encode())) == Step(name[:MAX_NAME_CHARS])
    assert parse(b"part 7 " + base64.b64encode(data)) == (Part("7", data) if data else Garbage())


def streams(data: bytes) -> None:
    """Events of a stream are the same wherever they are cut, and as the standard says; none comes twice."""
    at, data = data[:1], data[1:]
    expected = [one.data.encode("utf-8", "surrogateescape") for one in _events(data) if one.data]
    place = len(data) * int.from_bytes(at) // 256
    # The last line may be one that CR ends: only what follows says so.
    for parts in ((data,), (data[:place], data[place:]), tuple(data[i : i + 1] for i in range(len(data)))):
        reader = EventData()
        found = [one for part in (*parts, b":\n") for one in reader.feed(part)]
        assert [one for one in found if one] == expected
    where, ids = Place(None, Patience()), []
    for event in _events(data.decode("utf-8", "replace").encode()):
        try:
            frame = where.take(event)
        except NotUnderstood:
            continue
        if frame is not None:
            ids.append(frame.id)
            assert msgspec.json.decode(event.data).items() >= frame.data.items()
    numbers = [int(one) for one in ids if re.fullmatch("[0-9]{1,18}", one)]
    if len(numbers) == len(ids):
        assert numbers == sorted(set(numbers))


def _events(data: bytes) -> Iterator[httpx2.ServerSentEvent]:
    """The events, by the words of the standard, from all bytes at once."""
    lines: list[str] = []
    event, last_id = "", ""
    for line in re.split(rb"\r\n|\r|\n", data)[:-1]:
        text = line.decode("utf-8", "surrogateescape")
        name, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if not text:
            if lines:
                yield httpx2.ServerSentEvent(event or "message", "\n".join(lines), last_id)
            event, lines = "", []
        elif name == "data":
            lines.append(value)
        elif name == "event":
            event = value
        elif name == "id" and "\0" not in value:
            last_id = value
