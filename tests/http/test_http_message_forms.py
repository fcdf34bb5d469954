"""Messages as forms with files, over HTTP: kept while they come, refused whole, and never half."""

import hashlib
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import httpx2
import pytest
import trio

from sexton_actors.file_bounds import FileBounds
from sexton_http.answers import Problem
from sexton_http.bodies.multipart import Form
from sexton_storage import decisions
from sexton_storage.postgres import PostgresStorage
from sexton_storage.records.blobs import PART_BYTES
from sexton_storage.records.event_files import FILES_OF_EVENT
from sexton_storage.records.users import Role
from tests.http.test_http_files import CONTENT, UNKNOWN, code
from tests.http.test_http_kept_workspaces import report
from tests.http.test_http_message_files import begin, read, used
from tests.patience import PATIENCE_S
from tests.worlds.http import HttpWorld, open_http_world_on

B = "a-boundary"
TYPE = {"content-type": f"multipart/form-data; boundary={B}"}
ROUNDS = 400
HARM = (b"", b"\r\n", b"--", b"\xff", b"\0", B.encode())
CRLF_END = b"ends with a line\r\n"


def field(value: bytes | str, name: str = "message") -> bytes:
    text = value.encode() if isinstance(value, str) else value
    return f'--{B}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n'.encode() + text + b"\r\n"


def file(name: str, content: bytes, kind: str = "text/plain") -> bytes:
    disposition = f'content-disposition: form-data; name="file"; filename="{name}"'
    return f"--{B}\r\n{disposition}\r\ncontent-type: {kind}\r\n\r\n".encode() + content + b"\r\n"


def form(*parts: bytes, end: bytes = f"--{B}--\r\n".encode()) -> bytes:
    return b"".join(parts) + end


async def send(
    world: HttpWorld, agent: str, body: Any, token: str = "", headers: dict[str, str] | None = None
) -> httpx2.Response:
    path = f"{world.ws}/zombies/{agent}/messages"
    return await world.call("POST", path, token, content=body, headers=TYPE | (headers or {}))


async def test_a_form_is_a_message_with_its_files_and_comes_once(postgres_storage: PostgresStorage) -> None:
    async with open_http_world_on(postgres_storage) as world:
        zombie, token, first = await world.working()
        await report(world, token, first)
        agent = zombie["zombie_id"]
        body = form(
            file("logs/build.log", CRLF_END, "text/x-log"),
            field("Why does it fail? ✓"),
            file("large.bin", CONTENT, "no type"),
            file("empty", b""),
        )

        key = {"idempotency-key": "once"}
        made = await send(world, agent, body, headers=key)
        assert made.status_code == 202, made.text
        assert (await send(world, agent, body, headers=key)).json() == made.json()

        other = await send(world, agent, form(field("Another.")), headers=key)
        assert code(other) == (422, "UZ-REQ-008")

        lease = await world.lease(token)
        contents = {"logs/build.log": CRLF_END, "large.bin": CONTENT, "empty": b""}
        kinds = ("text/x-log", "application/octet-stream", "text/plain")
        assert lease["event"]["request_json"] == {
            "message": "Why does it fail? ✓",
            "files": [
                {
                    "name": name,
                    "media_type": kind,
                    "size": len(content),
                    "sha256": hashlib.sha256(content).hexdigest(),
                }
                for (name, content), kind in zip(contents.items(), kinds, strict=True)
            ],
        }

        for number, content in enumerate(contents.values()):
            assert await read(world, token, lease, number) == content

        # What came as a form is what was sent in parts, and is kept once.
        declared = (await begin(world, CONTENT)).json()
        assert declared["complete"]

        await postgres_storage.blobs.sweep(limit=100)
        assert await used(world, made.json()["event_id"]) == sum(map(len, contents.values()))


async def until_kept(storage: PostgresStorage, count: int) -> None:
    """Wait until there are ``count`` contents; those that were given up are swept."""
    with trio.fail_after(PATIENCE_S):
        while (await storage.blobs.held())[0] != count:
            await storage.blobs.sweep(limit=100)
            await trio.sleep(0.01)


BAD: dict[str, tuple[bytes, tuple[int, str]]] = {
    "no message": (form(file("a", b"x")), (400, "UZ-REQ-001")),
    "two messages": (form(field("a"), field("b")), (400, "UZ-REQ-001")),
    "an unknown field": (form(field("a"), field("b", "urgency")), (400, "UZ-REQ-001")),
    "a message of other bytes": (form(field(b"\xff")), (400, "UZ-REQ-001")),
    "a message with a NUL": (form(field("a\0")), (400, "UZ-REQ-001")),
    "an empty message": (form(field("")), (400, "UZ-REQ-001")),
    "too long a message": (form(field("x" * 8_193)), (400, "UZ-REQ-001")),
    "a name that leads elsewhere": (form(field("a"), file("../a", b"x")), (400, "UZ-REQ-001")),
    "two of a name": (form(field("a"), file("a", b"x"), file("a", b"y")), (400, "UZ-REQ-001")),
    "too many files": (
        form(field("a"), *(file(f"f{n}", b"") for n in range(FILES_OF_EVENT + 1))),
        (400, "UZ-REQ-001"),
    ),
    "too many parts": (form(*[file("", b"")] * 500), (400, "UZ-REQ-001")),
    "too large": (form(field("a"), file("a", bytes(PART_BYTES + 1))), (413, "UZ-FILE-004")),
    "too large together": (
        form(field("a"), file("a", bytes(PART_BYTES)), file("b", b"x")),
        (413, "UZ-FILE-004"),
    ),
    "an endless head": (form(b"--" + B.encode() + b"\r\nx: " + bytes(300_000)), (400, "UZ-REQ-001")),
    "no end": (form(field("a"), file("a", b"x"), end=b""), (400, "UZ-REQ-001")),
    "no form": (b"hello", (400, "UZ-REQ-001")),
    "nothing": (b"", (400, "UZ-REQ-001")),
}


async def test_a_form_that_is_refused_leaves_no_event_and_no_half_of_a_file(
    postgres_storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds = FileBounds(file_bytes=PART_BYTES, quota_bytes=4 * PART_BYTES)
    async with open_http_world_on(postgres_storage, files=bounds) as world:
        zombie, _, lease = await world.working()
        agent = zombie["zombie_id"]
        for name, (body, wanted) in BAD.items():
            assert code(await send(world, agent, body)) == wanted, name
            await postgres_storage.blobs.sweep(limit=100)  # What was given up; files that were whole stay.
        good = form(field("a"), file("a", b"x"))
        for headers, wanted in (
            ({"content-type": "multipart/form-data"}, (400, "UZ-REQ-001")),
            ({"content-type": f"multipart/form-data; boundary={'x' * 71}"}, (400, "UZ-REQ-001")),
            ({"content-type": "multipart/mixed; boundary=a"}, (415, "UZ-REQ-005")),
            ({"content-encoding": "gzip"}, (415, "UZ-REQ-005")),
        ):
            assert code(await send(world, agent, good, headers=headers)) == wanted, headers
        with monkeypatch.context() as patch:
            patch.setattr(decisions.blobs, "BLOBS_OF_LEASE", 0)
            other = form(field("a"), file("a", b"other"))

            assert code(await send(world, agent, other)) == (409, "UZ-FILE-003")
        assert code(await send(world, agent, good, "nobody")) == (401, "UZ-AUTH-002")
        assert code(await send(world, UNKNOWN, good)) == (404, "UZ-ZMB-009")

        declared = {"content-length": str(3 * PART_BYTES)}
        assert code(await send(world, agent, bytes(3 * PART_BYTES), headers=declared)) == (413, "UZ-REQ-002")

        # Whoever leaves in the middle takes nothing either: half of a file is given up at once.
        body = form(field("a"), file("a", bytes(PART_BYTES - 9)))
        head = (
            f"POST {world.ws}/zombies/{agent}/messages HTTP/1.1\r\nhost: x\r\n"
            f"authorization: Bearer {world.installation.api_key}\r\ncontent-type: {TYPE['content-type']}\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        whole, _ = await postgres_storage.blobs.held()
        async with await trio.open_tcp_stream("127.0.0.1", httpx2.URL(world.base_url).port or 0) as stream:
            await stream.send_all(head.encode() + body[:-20])
            await until_kept(postgres_storage, whole + 1)
        await until_kept(postgres_storage, whole)

        listed = (await world.get(f"{world.ws}/zombies/{agent}/events")).json()["items"]
        assert [event["event_id"] for event in listed] == [lease["event"]["event_id"]]

        full = form(field("a"), file("a", bytes(PART_BYTES)))
        assert (await send(world, agent, full, world.user_token(Role.USER))).status_code == 202

        other = form(field("a"), file("a", bytes(PART_BYTES - 1) + b"x"))
        assert (await send(world, agent, other)).status_code == 202
        assert code(await send(world, agent, other.replace(b"x\r", b"y\r"))) == (409, "UZ-FILE-002")


async def parts_of(body: bytes, cuts: Sequence[int], boundary: bytes = B.encode()) -> list[tuple[Any, bytes]]:
    pieces = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    pieces = [piece for piece in pieces if piece]

    async def more() -> bytes:
        return pieces.pop(0) if pieces else b""

    reader, found = Form(boundary, more, max_parts=9), []
    while (part := await reader.part()) is not None:
        content = b""
        while piece := await reader.read():
            content += piece
        found.append((part.filename or part.name, content))
    return found


async def test_a_form_reads_the_same_wherever_it_is_cut_and_hostile_ones_are_refused() -> None:
    near = f"\r\n--{B[:-1]}\r\n--{B[:-1]}".encode()
    body = form(field("a\n"), file("b", near), file("c", b"\r\n"), file("d", b""))
    whole = [("message", b"a\n"), ("b", near), ("c", b"\r\n"), ("d", b"")]
    rng = random.Random(5)
    for cut in range(len(body)):
        assert await parts_of(body, [cut]) == whole, cut
    assert await parts_of(body, range(len(body))) == whole

    read_whole = 0
    for _ in range(ROUNDS):
        broken = bytearray(body)
        for _ in range(rng.randrange(1, 5)):
            place = rng.randrange(len(broken))
            broken[place : place + rng.randrange(4)] = rng.choice(
                [b"", b"\r\n", b"--", b"\xff", b"\0", B.encode()]
            )
        # Read or refused, and nothing else; what is refused has a problem of its own.
        with suppress(Problem):
            await parts_of(bytes(broken), sorted(rng.sample(range(len(broken)), 3)))
            read_whole += 1
    assert 0 < read_whole < ROUNDS


@pytest.mark.parametrize("before", [b"", b"\r\n", b"\n\r", b"\ra", b"\r\nhello\r\n", b"hello\r\n"])
async def test_what_stands_before_a_form_is_judged_the_same_wherever_it_is_cut(before: bytes) -> None:
    body = before + form(field("a"))

    async def reading(*cuts: int) -> list[tuple[Any, bytes]] | None:
        try:
            return await parts_of(body, cuts)
        except Problem:
            return None

    found = [await reading(cut) for cut in range(len(body))]

    assert found == [None if before.strip() else [("message", b"a")]] * len(body)
