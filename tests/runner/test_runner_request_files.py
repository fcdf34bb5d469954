"""Files that requests send out of a sandbox and save in it, over real HTTP and in the real sandbox."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from sexton_http.bodies import file_names as server_names
from sexton_runner.run_files import file_names
from sexton_runner.sandbox import file_receiver
from sexton_runner.tools import request_files
from sexton_runner.tools.base import ToolResult
from tests.worlds.toolbox import Bench, Seen, Web, open_bench, open_web

MIB = 1 << 20
STREAMED_MIB = int(os.environ.get("SEXTON_REQUEST_FILE_MIB", "12"))
TOKEN = "request-canary-5f2d0c77"
POLICY = {
    "network_policy": {"allow": ["localhost"]},
    "secrets_map": {"hub": {"token": TOKEN}},
    "secret_hosts": {"hub": ["localhost"]},
}
CONTENT = bytes(range(256)) * 12_000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
PAGES: dict[str, tuple[int, dict[str, str], bytes]] = {
    "/build.zip": (200, {"content-type": "application/zip; a=b"}, CONTENT),
    "/none": (404, {"content-type": "text/plain"}, b"there is no such build"),
    "/secret": (200, {}, f"one {TOKEN} two {TOKEN.encode().hex()} three".encode()),
    "/packed": (200, {"content-encoding": "gzip"}, gzip.compress(f"packed {TOKEN}".encode())),
    "/bomb": (200, {"content-encoding": "gzip"}, gzip.compress(bytes(3 * MIB))),
    "/broken": (200, {"content-encoding": "gzip"}, gzip.compress(CONTENT)[:-20]),
    "/coded": (200, {"content-encoding": "br"}, b"x"),
    "/upload": (307, {"location": "/taken"}, b""),
    "/taken": (201, {}, b"taken"),
}


def respond(seen: Seen) -> tuple[int, dict[str, str], bytes]:
    return PAGES[seen.target]


async def ask(bench: Bench, **arguments: Any) -> ToolResult:
    return await bench.box.call("http_request", arguments, "c1")


async def sha256_of(bench: Bench, name: str) -> str:
    return (await bench.call("shell", command=f"sha256sum {name}")).split()[3]


@asynccontextmanager
async def at_work(folder: Path) -> AsyncIterator[tuple[Web, Bench]]:
    """Open a toolbox and a server with ``PAGES``; nothing is left of any file outside the sandbox."""
    async with open_web(respond) as web, open_bench(folder, policy=POLICY) as bench:
        yield web, bench
        run_folders = [*(folder / "run").glob("run-*")]
        assert len(run_folders) == 1
        assert [
            path for path in (folder / "run").rglob("*") if path.name.startswith(("answer-", "tmp"))
        ] == []


async def test_an_answer_goes_to_a_file_and_a_file_goes_out(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (web, bench):
        saved = await ask(bench, url=f"{web.url}/build.zip", save_to="in/deep/build.zip")
        told = f"[saved to in/deep/build.zip: {len(CONTENT)} bytes, application/zip, sha256 {SHA256}]"
        assert saved.content == f"HTTP 200\ncontent-type: application/zip; a=b\n\n{told}"
        assert {
            name: saved.facts[name] for name in ("status", "saved_to", "bytes", "sha256", "media_type")
        } == {
            "status": 200,
            "saved_to": "in/deep/build.zip",
            "bytes": len(CONTENT),
            "sha256": SHA256,
            "media_type": "application/zip",
        }
        assert await sha256_of(bench, "in/deep/build.zip") == SHA256

        # The redirect has it sent twice, each time from its beginning.
        sent = await ask(bench, url=f"{web.url}/upload", method="PUT", body_from="in/deep/build.zip")
        assert (sent.ok, sent.facts["body_bytes"], sent.facts["body_sha256"]) == (True, len(CONTENT), SHA256)
        assert [(seen.target, seen.body == CONTENT) for seen in web.seen[1:]] == [
            ("/upload", True),
            ("/taken", True),
        ]
        assert web.seen[1].headers["content-length"] == str(len(CONTENT))
        assert web.seen[1].headers["content-type"] == "application/zip"
        assert "transfer-encoding" not in web.seen[1].headers

        # What is an error is told, and what was there stays.
        kept = await ask(bench, url=f"{web.url}/none", save_to="in/deep/build.zip")
        assert (kept.ok, "there is no such build" in kept.content) == (False, True)
        assert await sha256_of(bench, "in/deep/build.zip") == SHA256

        # A file is replaced, and one that is empty is a file as well; both go on their way in one request.
        await bench.call("shell", command=": >none")
        both = await ask(
            bench, url=f"{web.url}/taken", method="POST", body_from="none", save_to="in/deep/build.zip"
        )
        assert (both.ok, web.seen[-1].body, web.seen[-1].headers["content-length"]) == (True, b"", "0")
        assert await bench.call("shell", command="cat in/deep/build.zip") == "[exit status 0]\ntaken"
        assert await bench.call("shell", command="ls -A in/deep") == "[exit status 0]\nbuild.zip"


async def test_a_secret_is_neither_saved_nor_sent_in_a_file(tmp_path: Path) -> None:
    masked = {
        "/secret": b"one %b two %b three" % (cover(len(TOKEN)), cover(2 * len(TOKEN))),
        "/packed": b"packed " + cover(len(TOKEN)),
    }
    async with at_work(tmp_path) as (web, bench):
        for page, content in masked.items():
            result = await ask(
                bench,
                url=f"{web.url}{page}",
                headers={"authorization": "Bearer ${secrets.hub.token}"},
                save_to="saved",
            )
            assert "a secret of this run stood in it and is masked" in result.content
            assert ("unpacked as it came" in result.content) == (page == "/packed")
            # By its hash: what a program prints would be masked on the way to the model as well.
            assert await sha256_of(bench, "saved") == hashlib.sha256(content).hexdigest()
        assert web.seen[0].headers["authorization"] == f"Bearer {TOKEN}"

        halves = f"import sys; open('leak', 'w').write('x' * {MIB} + '{TOKEN[:9]}' + '{TOKEN[9:]}')"
        await bench.call("python", code=halves)
        before = len(web.seen)
        refused = await ask(bench, url=f"{web.url}/taken", method="POST", body_from="leak")
        assert (refused.ok, "holds a secret that this run was lent" in refused.content) == (False, True)
        assert len(web.seen) == before


def cover(length: int) -> bytes:
    return b"[redacted]"[:length].ljust(length, b"*")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "elsewhere": ({"save_to": "../a"}, "save_to: the name is a relative path"),
    "absolute": ({"body_from": "/etc/passwd"}, "body_from: the name is a relative path"),
    "hidden": ({"save_to": "a\x1bb"}, "save_to: the name has characters that cannot be seen"),
    "two-bodies": ({"body": "x", "body_from": "good"}, "give one of body, json and body_from"),
    "head": ({"method": "HEAD", "save_to": "a"}, "an answer to HEAD has no body to save"),
    "late": ({"timeout_s": 121}, "timeout_s is 120 at most"),
    "missing": ({"body_from": "no/such"}, "body_from: no/such: No such file or directory"),
    "a folder": ({"body_from": "folder"}, "body_from: folder: it is no file of its own"),
    "a pipe": ({"body_from": "pipe"}, "body_from: pipe: it is no file of its own"),
    "a link": ({"body_from": "link"}, "body_from: link: Too many levels of symbolic links"),
    "behind a link": ({"body_from": "links/passwd"}, "body_from: links/passwd: Not a directory"),
    "sparse": ({"body_from": "sparse"}, "body_from: sparse is larger than 2 MiB"),
    "to a folder": ({"path": "/taken", "save_to": "folder"}, "nothing was saved to folder: Is a directory"),
    "through a link": ({"path": "/taken", "save_to": "links/x"}, "saved to links/x: Not a directory"),
    "declared": (
        {"path": "/build.zip", "save_to": "a"},
        "it is larger than a file may be (2 MiB); ask for a part",
    ),
    "bomb": ({"path": "/bomb", "save_to": "a"}, "it is larger than a file may be (2 MiB); ask for a part"),
    "broken": ({"path": "/broken", "save_to": "a"}, "nothing was saved: "),
    "coded": ({"path": "/coded", "save_to": "a"}, "nothing was saved: the answer is in the coding br"),
}
HOSTILE = (
    "mkdir folder; mkfifo pipe; ln -s /etc/passwd link; ln -s /etc links; truncate -s 3M sparse; : >good"
)


async def test_what_cannot_be_saved_or_sent_says_why_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_files, "MAX_FILE_BYTES", 2 * MIB)
    async with at_work(tmp_path) as (web, bench):
        await bench.call("shell", command=HOSTILE)
        for name, (given, why) in REFUSED.items():
            before = len(web.seen)
            more = {word: value for word, value in given.items() if word != "path"}
            result = await ask(bench, **{"url": f"{web.url}{given.get('path', '/taken')}", **more})
            assert (result.ok, why in result.content) == (False, True), (name, result.content)
            assert "saved_to" not in result.facts, name
            # What can be known before is refused before anything goes out.
            assert (len(web.seen) > before) == ("path" in given), name
        left = await bench.call("shell", command="ls -A")

        assert left.split()[3:] == ["folder", "good", "link", "links", "pipe", "sparse"]


@asynccontextmanager
async def raw_server(answer: Callable[[trio.SocketStream, bytes], Any]) -> AsyncIterator[str]:
    """Give each connection, when its head has come, to ``answer`` with what came after the head."""

    async def serve(stream: trio.SocketStream) -> None:
        held = b""
        while b"\r\n\r\n" not in held:
            held += await stream.receive_some(65_536)
        try:
            await answer(stream, held)
        except trio.BrokenResourceError:
            pass
        finally:
            await trio.aclose_forcefully(stream)

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        yield f"http://localhost:{listeners[0].socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


async def test_answers_that_never_end_or_end_too_early_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_files, "MAX_FILE_BYTES", 2 * MIB)

    gone = trio.Event()
    results: list[ToolResult] = []

    async def misbehave(stream: trio.SocketStream, request: bytes) -> None:
        if b"GET /short" in request:
            await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort")
            return
        if b"GET /late" in request:
            await gone.wait()
            await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlate")
            return
        await stream.send_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        while b"GET /endless" in request:
            await stream.send_all(b"10000\r\n" + bytes(65_536) + b"\r\n")
        await stream.send_all(b"5\r\nbegun\r\n")
        await trio.sleep_forever()

    async with raw_server(misbehave) as url, open_bench(tmp_path, policy=POLICY) as bench:
        for page, why in {
            "short": "the request failed: RemoteProtocolError",
            "endless": "nothing was saved: it is larger than a file may be (2 MiB)",
            "frozen": "no whole answer within 1 s; nothing was saved: give it more time",
        }.items():
            result = await ask(bench, url=f"{url}/{page}", save_to="saved", timeout_s=1)
            assert (result.ok, why in result.content) == (False, True), result.content
        assert await bench.call("shell", command="ls -A") == "[exit status 0]"

        async def ask_late() -> None:
            results.append(await ask(bench, url=f"{url}/late", save_to="saved"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask_late)
            await trio.testing.wait_all_tasks_blocked(0.05)
            await bench.box.call("shell", {"command": "kill -9 $PPID; sleep 9"}, "c2")
            gone.set()
        assert "nothing was saved to saved: the sandbox was ended" in results[0].content
        assert await bench.call("shell", command="ls -A") == "[exit status 0]"

    assert [*(tmp_path / "run").rglob("answer-*")] == []


async def test_a_file_is_never_whole_in_the_runners_memory(tmp_path: Path) -> None:
    block = bytes(range(256)) * 256
    count = STREAMED_MIB * MIB // len(block)
    taken = hashlib.sha256()

    async def stream_both_ways(stream: trio.SocketStream, request: bytes) -> None:
        head, _, body = request.partition(b"\r\n\r\n")
        declared = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        left = int(declared[1]) - len(body) if declared else 0
        taken.update(body)
        while left:
            piece = await stream.receive_some(65_536)
            left -= len(piece)
            taken.update(piece)
        await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (count * len(block)))
        for _ in range(count):
            await stream.send_all(block)

    expected = hashlib.sha256(block * count).hexdigest()
    async with raw_server(stream_both_ways) as url, open_bench(tmp_path, policy=POLICY) as bench:
        tracemalloc.start()
        try:
            saved = await ask(bench, url=url, save_to="big", timeout_s=300)
            sent = await ask(bench, url=url, method="PUT", body_from="big", save_to="big", timeout_s=300)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert (saved.facts.get("sha256"), sent.facts.get("body_sha256")) == (expected, expected), saved.content
    assert taken.hexdigest() == expected
    assert peak < min(STREAMED_MIB * MIB // 3, 16 * MIB), f"{peak >> 20} MiB at once"


def receive(folder: Path, source: Path, path: str, *, blocks: int = 0) -> tuple[int, str]:
    """Run the program that writes inside a sandbox; ``blocks`` of 512 bytes are the most a file may have."""
    bound = f"ulimit -f {blocks};" * bool(blocks)
    words = ["/bin/sh", "-c", f'{bound} exec "$@"', "sh", sys.executable, "-I", file_receiver.__file__]
    done = subprocess.run([*words, source, path], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.strip()


def test_a_receiver_writes_a_file_whole_or_not_at_all_and_follows_no_link(tmp_path: Path) -> None:
    source, outside, inside = tmp_path / "source", tmp_path / "outside", tmp_path / "inside"
    source.write_bytes(CONTENT)
    outside.mkdir()
    inside.mkdir()
    (outside / "kept").write_bytes(b"kept")
    (inside / "links").symlink_to(outside)
    (inside / "link").symlink_to(outside / "kept")
    (inside / ".sexton.part").symlink_to(outside / "kept")
    (inside / "old").write_bytes(b"old")

    assert receive(inside, source, "old", blocks=100) == (3, "File too large")
    assert (inside / "old").read_bytes() == b"old"
    assert receive(inside, source, "links/x") == (3, "Not a directory")
    assert receive(inside, source, "old/x") == (3, "Not a directory")
    assert receive(inside, source, "link") == (0, "")
    assert (inside / "link").read_bytes() == CONTENT
    assert not (inside / "link").is_symlink()
    assert [path.name for path in outside.iterdir()] == ["kept"]
    assert (outside / "kept").read_bytes() == b"kept"
    assert sorted(path.name for path in inside.iterdir()) == ["link", "links", "old"]


@pytest.mark.parametrize(
    "name",
    [
        "a", "a/b c", "\u00e9t\u00e9", "", "/a", "a/", "a//b", ".", "..", "a/../b", "a\\b", "a\0", "a\nb",
        "a\u202eb", "\u2028", "\ud800", "x" * 255, "x" * 256, "\u00e9" * 128, "x/" * 511 + "xx",
        "x/" * 512 + "x",
    ],
)  # fmt: skip
def test_runner_and_server_judge_names_alike(name: str) -> None:
    assert file_names.fault_of_name(name) == server_names.fault_of_name(name)
