"""An S3 server in memory that verifies signatures by itself, and misbehaves on demand."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import sys
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, auto
from functools import reduce
from urllib.parse import parse_qsl, quote, urlsplit
from xml.sax.saxutils import escape

import h11
import trio

KEY_ID, SECRET, REGION, BUCKET = "AKIDEXAMPLE", "a secret/with+signs", "eu-test-1", "files"
LEAST_PART = 5 << 20
NOW = "2026-01-02T03:04:05.000Z"


class Mood(Enum):
    """What it does with the next calls."""

    WELL = auto()
    REFUSES = auto()
    BREAKS = auto()
    """Hangs up once it has the request."""
    STANDS_STILL = auto()
    """Answers nothing, and hangs up once ``gives_up`` is set."""
    LIES = auto()
    """Says that it keeps an object, and keeps another of the same length."""
    SHORTENS = auto()
    """Gives less of an object than was asked for, and says so."""
    CHANGES = auto()
    """Gives other bytes of the same length."""
    CUTS = auto()
    """Hangs up in the middle of an object."""
    FAILS_LATE = auto()
    """Says 200 to the end of an upload, and then that it failed."""
    TRICKS = auto()
    """Answers with a document that declares entities."""


@dataclass
class Stored:
    content: bytes
    changed: str = NOW


@dataclass
class FakeS3:
    """``calls`` are method and target, in their order; ``objects`` what it keeps, by key."""

    mood: Mood = Mood.WELL
    spares: int = 0
    """This many calls still go well before the mood begins."""
    objects: dict[str, Stored] = field(default_factory=dict)
    uploads: dict[str, tuple[str, dict[int, bytes]]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    most_body: int = 0
    page: int = 1_000
    endpoint: str = ""
    gives_up: trio.Event = field(default_factory=trio.Event)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    async def serve(self, stream: trio.SocketStream) -> None:
        with suppress(h11.RemoteProtocolError, trio.BrokenResourceError):
            await self._serve(stream)

    async def _serve(self, stream: trio.SocketStream) -> None:
        conn = h11.Connection(h11.SERVER)
        async with stream:
            while True:
                request, body = await self._request(conn, stream)
                if request is None:
                    return
                self.calls.append(f"{request.method.decode()} {request.target.decode()}")
                self.most_body = max(self.most_body, len(body))
                mood, self.spares = (Mood.WELL, self.spares - 1) if self.spares else (self.mood, 0)
                if mood is Mood.STANDS_STILL:
                    await self.gives_up.wait()
                    return
                if mood is Mood.BREAKS:
                    return
                status, headers, answer = self._answer(request, body, mood)
                head = [*headers.items()] + (
                    [] if "content-length" in headers else [("content-length", str(len(answer)))]
                )
                await stream.send_all(conn.send(h11.Response(status_code=status, headers=head)) or b"")
                if request.method != b"HEAD":
                    if mood is Mood.CUTS:
                        await stream.send_all(answer[: len(answer) // 2])
                        return
                    await stream.send_all(conn.send(h11.Data(data=answer)) or b"")
                conn.send(h11.EndOfMessage())
                conn.start_next_cycle()

    async def _request(
        self, conn: h11.Connection, stream: trio.SocketStream
    ) -> tuple[h11.Request | None, bytes]:
        request, body = None, bytearray()
        while True:
            event = conn.next_event()
            if event is h11.NEED_DATA:
                conn.receive_data(await stream.receive_some(1 << 18))
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                return request, bytes(body)
            else:
                return None, b""

    def _answer(self, request: h11.Request, body: bytes, mood: Mood) -> tuple[int, dict[str, str], bytes]:
        parts = urlsplit(request.target.decode())
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        headers = {name.decode(): value.decode() for name, value in request.headers}
        wrong = fault_of(request.method.decode(), parts.path, parts.query, headers, body)
        if wrong or mood is Mood.REFUSES:
            return error(403, wrong or "AccessDenied", f"not {KEY_ID}")
        if mood is Mood.TRICKS:
            return 200, {}, b'<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'
        _, bucket, key = parts.path.split("/", 2)
        if bucket != BUCKET:
            return error(404, "NoSuchBucket", bucket)
        return self._do(request.method.decode(), key, query, headers, body, mood=mood)

    def _do(
        self,
        method: str,
        key: str,
        query: dict[str, str],
        headers: dict[str, str],
        body: bytes,
        *,
        mood: Mood,
    ) -> tuple[int, dict[str, str], bytes]:
        match method:
            case "PUT" if "uploadId" in query:
                if query["uploadId"] not in self.uploads:
                    return error(404, "NoSuchUpload", key)
                self.uploads[query["uploadId"]][1][int(query["partNumber"])] = body
                return 200, {"etag": f'"{hashlib.md5(body).hexdigest()}"'}, b""
            case "PUT":
                self.objects[key] = Stored(body[::-1] if mood is Mood.LIES else body)
                return 200, {"etag": f'"{hashlib.md5(body).hexdigest()}"'}, b""
            case "POST" if "uploads" in query:
                upload = f"up+load/{next(self._numbers)}="
                self.uploads[upload] = key, {}
                return document("InitiateMultipartUploadResult", f"<UploadId>{upload}</UploadId>")
            case "POST":
                return self._complete(key, query["uploadId"], body, mood)
            case "DELETE" if "uploadId" in query:
                return (204, {}, b"") if self.uploads.pop(query["uploadId"], None) else error(404, "", key)
            case "DELETE":
                self.objects.pop(key, None)
                return 204, {}, b""
            case _ if "list-type" in query:
                return self._list(query)
            case _ if "uploads" in query:
                found = [
                    f"<Upload><Key>{escape(of)}</Key><UploadId>{upload}</UploadId><Initiated>{NOW}</Initiated></Upload>"
                    for upload, (of, _) in self.uploads.items()
                    if of.startswith(query["prefix"])
                ]
                return document("ListMultipartUploadsResult", "".join(found))
            case _:
                return self._get(key, headers, mood)

    def _get(self, key: str, headers: dict[str, str], mood: Mood) -> tuple[int, dict[str, str], bytes]:
        stored = self.objects.get(key)
        if stored is None:
            return error(404, "NoSuchKey", key)
        content = stored.content
        if "range" not in headers:
            return 200, {"content-length": str(len(content))}, content
        start, end = (int(word) for word in headers["range"].removeprefix("bytes=").split("-"))
        found = content[start : end + (0 if mood is Mood.SHORTENS else 1)]
        place = f"bytes {start}-{start + len(found) - 1}/{len(content)}"
        return 206, {"content-range": place}, found[::-1] if mood is Mood.CHANGES else found

    def _complete(self, key: str, upload: str, body: bytes, mood: Mood) -> tuple[int, dict[str, str], bytes]:
        if upload not in self.uploads:
            return error(404, "NoSuchUpload", key)
        if mood is Mood.FAILS_LATE:
            return 200, *error(500, "InternalError", key)[1:]
        parts = self.uploads[upload][1]
        wanted = [
            (int(one.findtext("PartNumber") or 0), one.findtext("ETag"))
            for one in ET.fromstring(body).iter("Part")
        ]
        if wanted != [(n, f'"{hashlib.md5(parts[n]).hexdigest()}"') for n in sorted(parts)]:
            return error(400, "InvalidPart", key)
        if any(len(parts[number]) < LEAST_PART for number, _ in wanted[:-1]):
            return error(400, "EntityTooSmall", key)
        content = b"".join(parts[number] for number, _ in wanted)
        self.objects[key] = Stored(content[::-1] if mood is Mood.LIES else content)
        del self.uploads[upload]
        return document("CompleteMultipartUploadResult", "")

    def _list(self, query: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        after = query.get("start-after", "")
        keys = sorted(key for key in self.objects if key.startswith(query["prefix"]) and key > after)
        found = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{self.objects[key].changed}</LastModified></Contents>"
            for key in keys[: self.page]
        )
        more = str(len(keys) > self.page).lower()
        return document("ListBucketResult", f"<IsTruncated>{more}</IsTruncated>{found}")


def fault_of(method: str, path: str, query: str, headers: dict[str, str], body: bytes) -> str:
    """Verify a request as the documentation of Signature Version 4 says; "" when all is right."""
    if headers.get("x-amz-content-sha256") != hashlib.sha256(body).hexdigest():
        return "XAmzContentSHA256Mismatch"
    try:
        words = headers["authorization"].removeprefix("AWS4-HMAC-SHA256 ").split(",")
        said = dict(word.strip().split("=", 1) for word in words)
        key_id, day, region, service, last = said["Credential"].split("/")
        at = datetime.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except (KeyError, ValueError):
        return "AccessDenied"
    if (key_id, region, service, last) != (KEY_ID, REGION, "s3", "aws4_request"):
        return "InvalidAccessKeyId"
    if abs((datetime.now(UTC) - at).total_seconds()) > 900:
        return "RequestTimeTooSkewed"
    signed = said["SignedHeaders"].split(";")
    if not {"host", "x-amz-content-sha256", "x-amz-date"} <= {*signed}:
        return "AccessDenied"
    pairs = sorted(
        (quote(name, safe="-_.~"), quote(value, safe="-_.~"))
        for name, value in parse_qsl(query, keep_blank_values=True)
    )
    canonical = "\n".join(
        [
            method,
            quote(path, safe="/-_.~"),
            "&".join(f"{name}={value}" for name, value in pairs),
            *(f"{name}:{' '.join(headers[name].split())}" for name in signed),
            "",
            said["SignedHeaders"],
            headers["x-amz-content-sha256"],
        ]
    )
    scope = f"{day}/{region}/{service}/{last}"
    text = "\n".join(
        [
            "AWS4-HMAC-SHA256",
            headers["x-amz-date"],
            scope,
            hashlib.sha256(canonical.encode()).hexdigest(),
        ]
    )
    key = reduce(
        lambda secret, word: hmac.digest(secret, word.encode(), "sha256"),
        scope.split("/"),
        f"AWS4{SECRET}".encode(),
    )
    right = hmac.new(key, text.encode(), "sha256").hexdigest()
    return "" if hmac.compare_digest(right, said["Signature"]) else "SignatureDoesNotMatch"


def document(name: str, inside: str) -> tuple[int, dict[str, str], bytes]:
    text = f'<?xml version="1.0"?><{name} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{inside}</{name}>'
    return 200, {"content-type": "application/xml"}, text.encode()


def error(status: int, code: str, words: str) -> tuple[int, dict[str, str], bytes]:
    text = f"<Error><Code>{code}</Code><Message>{escape(words)}</Message></Error>"
    return status, {"content-type": "application/xml"}, text.encode()


@asynccontextmanager
async def open_fake_s3() -> AsyncIterator[FakeS3]:
    fake = FakeS3()
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        fake.endpoint = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.start_soon(trio.serve_listeners, fake.serve, [listener])
        yield fake
        nursery.cancel_scope.cancel()


async def serve_alone() -> None:
    """Serve as a process of its own, and say where."""
    async with open_fake_s3() as fake:
        sys.stdout.write(f"{fake.endpoint}\n")
        sys.stdout.flush()
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(serve_alone)
