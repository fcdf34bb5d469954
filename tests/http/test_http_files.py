"""Files of runs over HTTP: sent in parts, listed, read in ranges, and out of the reach of others."""

import hashlib
from typing import Any

import httpx2
import pytest

from sexton_actors.file_bounds import FileBounds
from sexton_storage import decisions
from sexton_storage.postgres import PostgresStorage
from sexton_storage.records.blobs import CHUNK_BYTES, PART_BYTES
from sexton_storage.records.users import Role
from tests.worlds.bearer_tokens import TENANT_B, WORKSPACE_B, settle_tenant_b
from tests.worlds.http import HttpWorld, open_http_world_on

CONTENT = bytes(range(256)) * (PART_BYTES // 256) + b"and a little more"
UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"
Lease = dict[str, Any]


def code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error_code", "")


def plane(lease: Lease) -> str:
    return f"/v1/runners/me/leases/{lease['lease_id']}"


async def begin(world: HttpWorld, token: str, lease: Lease, content: bytes, **more: Any) -> httpx2.Response:
    body = {
        "sha256": hashlib.sha256(content).hexdigest(),
        "size": len(content),
        "fencing_token": lease["fencing_token"],
        **more,
    }
    return await world.post(f"{plane(lease)}/uploads", body, token)


async def part(
    world: HttpWorld, token: str, lease: Lease, upload: str, *, offset: int, data: bytes
) -> httpx2.Response:
    path = f"{plane(lease)}/uploads/{upload}?offset={offset}&fencing_token={lease['fencing_token']}"
    return await world.call("PUT", path, token, content=data)


async def send(world: HttpWorld, token: str, lease: Lease, content: bytes = CONTENT) -> str:
    begun = await begin(world, token, lease, content)
    assert begun.status_code == 200, begun.text
    upload: str = begun.json()["upload_id"]
    for start in range(0, len(content), PART_BYTES):
        sent = await part(world, token, lease, upload, offset=start, data=content[start : start + PART_BYTES])
        assert sent.status_code == 200, sent.text
        assert sent.json()["complete"] or start + PART_BYTES < len(content)
    return upload


async def name(
    world: HttpWorld, token: str, lease: Lease, upload: str, path: str = "out/report.html", **more: Any
) -> httpx2.Response:
    body = {"upload_id": upload, "name": path, "fencing_token": lease["fencing_token"], **more}
    return await world.post(f"{plane(lease)}/artefacts", body, token)


async def keep(world: HttpWorld, token: str, lease: Lease, content: bytes = CONTENT) -> dict[str, Any]:
    kept = await name(world, token, lease, await send(world, token, lease, content), media_type="text/html")
    assert kept.status_code == 200, kept.text
    item: dict[str, Any] = kept.json()
    return item


def listing(world: HttpWorld, lease: Lease) -> str:
    return f"{world.ws}/events/{lease['event']['event_id']}/artefacts"


async def test_a_file_is_sent_in_parts_listed_read_and_deleted(postgres_storage: PostgresStorage) -> None:
    async with open_http_world_on(postgres_storage) as world:
        _, token, lease = await world.working()
        item = await keep(world, token, lease)
        path = f"{world.ws}/artefacts/{item['artefact_id']}"

        assert (item["name"], item["attempt"], item["size"]) == ("out/report.html", 1, len(CONTENT))
        assert (await name(world, token, lease, await send(world, token, lease), media_type="a/b")).json()[
            "artefact_id"
        ] == item["artefact_id"]

        listed = (await world.get(listing(world, lease))).json()
        assert [one["artefact_id"] for one in listed["items"]] == [item["artefact_id"]]
        assert (listed["used_bytes"], listed["next_cursor"]) == (len(CONTENT), None)
        assert (await world.get(path)).json()["sha256"] == hashlib.sha256(CONTENT).hexdigest()

        whole = await world.get(f"{path}/content")
        assert (whole.status_code, whole.content == CONTENT) == (200, True)
        assert whole.headers["content-length"] == str(len(CONTENT))
        assert whole.headers["content-type"] == "text/html"
        assert whole.headers["content-disposition"].startswith('attachment; filename="report.html"')
        assert whole.headers["content-security-policy"].startswith("sandbox")

        tag = whole.headers["etag"]

        size = len(CONTENT)
        for asked, status, start, end in (
            ("bytes=0-0", 206, 0, 1),
            (f"bytes={CHUNK_BYTES - 2}-{CHUNK_BYTES + 2}", 206, CHUNK_BYTES - 2, CHUNK_BYTES + 3),
            ("bytes=-9", 206, size - 9, size),
            (f"bytes={size - 1}-99999999999999999999999", 206, size - 1, size),
            ("bytes=0-1,5-6", 200, 0, size),
        ):
            answer = await world.get(f"{path}/content", headers={"range": asked})
            assert (answer.status_code, answer.content == CONTENT[start:end]) == (status, True), asked
            if status == 206:
                assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/{size}"

        beyond = await world.get(f"{path}/content", headers={"range": f"bytes={size}-"})
        assert (*code(beyond), beyond.headers["content-range"]) == (416, "UZ-FILE-009", f"bytes */{size}")

        for headers, status in (
            ({"range": "bytes=0-0", "if-range": tag}, 206),
            ({"range": "bytes=0-0", "if-range": '"other"'}, 200),
            ({"if-none-match": f'"x", {tag}'}, 304),
        ):
            assert (await world.get(f"{path}/content", headers=headers)).status_code == status, headers
        head = await world.call("HEAD", f"{path}/content")
        assert (head.status_code, head.headers["content-length"], head.content) == (200, str(size), b"")

        user = world.user_token(Role.USER)
        assert code(await world.call("DELETE", path, user)) == (403, "UZ-AUTH-009")
        assert (await world.call("DELETE", path)).status_code == 204

        for gone in (path, f"{path}/content"):
            assert code(await world.get(gone)) == (404, "UZ-FILE-001")


async def test_a_late_runner_and_a_stranger_reach_nothing(postgres_storage: PostgresStorage) -> None:
    async with open_http_world_on(postgres_storage) as world:
        _, token, lease = await world.working()
        upload = await send(world, token, lease)
        item = (await name(world, token, lease, upload)).json()
        stale = {**lease, "fencing_token": lease["fencing_token"] - 1}
        other = await world.enrol("h2")

        assert code(await begin(world, token, stale, b"x")) == (409, "UZ-RUN-005")
        assert code(await part(world, token, stale, upload, offset=0, data=b"x")) == (409, "UZ-RUN-005")
        assert code(await name(world, token, stale, upload, "late")) == (409, "UZ-RUN-005")
        assert code(await begin(world, other, lease, b"x")) == (404, "UZ-RUN-006")
        assert code(await part(world, other, lease, upload, offset=0, data=b"x")) == (404, "UZ-RUN-006")
        assert code(await name(world, other, lease, upload, "theirs")) == (404, "UZ-RUN-006")

        released = await world.post(
            f"{plane(lease)}/release", {"fencing_token": lease["fencing_token"]}, token
        )
        assert released.status_code == 204

        again = await world.lease(token)
        assert code(await name(world, token, lease, upload, "late")) == (409, "UZ-RUN-005")
        assert code(await name(world, token, again, upload, "late")) == (409, "UZ-FILE-006")
        assert code(await part(world, token, again, upload, offset=0, data=b"x")) == (404, "UZ-FILE-008")

        mine = await keep(world, token, again, b"of the second attempt")

        listed = (await world.get(listing(world, lease), params={"limit": "1"})).json()
        rest = (await world.get(listing(world, lease), params={"cursor": listed["next_cursor"]})).json()
        assert [one["artefact_id"] for one in listed["items"] + rest["items"]] == [
            item["artefact_id"],
            mine["artefact_id"],
        ]
        assert (mine["name"], mine["attempt"]) == (item["name"], 2)

        await settle_tenant_b(world)
        theirs = world.user_token(Role.ADMIN, tenant_id=TENANT_B)
        for method, path in (("GET", ""), ("GET", "/content"), ("DELETE", "")):
            address = f"/v1/workspaces/{WORKSPACE_B}/artefacts/{item['artefact_id']}{path}"
            assert code(await world.call(method, address, theirs)) == (404, "UZ-FILE-001")
        address = f"/v1/workspaces/{WORKSPACE_B}/events/{lease['event']['event_id']}/artefacts"
        assert code(await world.get(address, theirs)) == (404, "UZ-EVENT-001")


async def test_what_is_malformed_too_large_or_not_as_declared_is_refused(
    postgres_storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds = FileBounds(file_bytes=2 * len(CONTENT), quota_bytes=3 * len(CONTENT))
    async with open_http_world_on(postgres_storage, files=bounds) as world:
        _, token, lease = await world.working()
        assert code(await begin(world, token, lease, b"", size=2 * len(CONTENT) + 1)) == (413, "UZ-FILE-004")

        for wrong in ({"sha256": "A" * 64}, {"sha256": "ab"}, {"size": -1}, {"size": 2**60}):
            assert code(await begin(world, token, lease, b"", **wrong)) == (400, "UZ-REQ-001")
        upload = (await begin(world, token, lease, CONTENT)).json()["upload_id"]

        for sent, offset, wanted in (
            (b"odd", 0, (409, "UZ-FILE-005")),
            (CONTENT[:CHUNK_BYTES], CHUNK_BYTES, (409, "UZ-FILE-005")),
            (CONTENT[:CHUNK_BYTES], len(CONTENT), (409, "UZ-FILE-005")),
            (b"", 0, (400, "UZ-REQ-001")),
            (bytes(PART_BYTES + 1), 0, (413, "UZ-REQ-002")),
        ):
            assert code(await part(world, token, lease, upload, offset=offset, data=sent)) == wanted
        assert code(await part(world, token, lease, UNKNOWN, offset=0, data=b"x")) == (404, "UZ-FILE-008")
        assert code(await name(world, token, lease, upload)) == (409, "UZ-FILE-006")
        assert code(await name(world, token, lease, UNKNOWN)) == (409, "UZ-FILE-006")

        wrong = (await begin(world, token, lease, b"declared")).json()["upload_id"]
        assert code(await part(world, token, lease, wrong, offset=0, data=b"has come")) == (
            409,
            "UZ-FILE-006",
        )
        assert code(await part(world, token, lease, wrong, offset=0, data=b"declared")) == (
            404,
            "UZ-FILE-008",
        )

        assert code(await begin(world, token, lease, b"", sha256="ab" * 32)) == (409, "UZ-FILE-006")

        empty = (await begin(world, token, lease, b"")).json()
        assert empty["complete"]

        for path in ("/etc/passwd", "../x", "a//b", "a\u202eb", "a\nb", "x" * 300, "\u00e9" * 600):
            assert code(await name(world, token, lease, empty["upload_id"], path)) == (400, "UZ-REQ-001")
        bad = await name(world, token, lease, empty["upload_id"], "a", media_type="text/html\r\nx: y")
        assert code(bad) == (400, "UZ-REQ-001")

        kept = (await name(world, token, lease, empty["upload_id"], "empty")).json()
        content = f"{world.ws}/artefacts/{kept['artefact_id']}/content"
        assert (await world.get(content)).content == b""
        assert code(await world.get(content, headers={"range": "bytes=0-"})) == (416, "UZ-FILE-009")

        other = await send(world, token, lease, b"another")
        assert code(await name(world, token, lease, other, "empty")) == (409, "UZ-FILE-007")
        assert (await begin(world, token, lease, b"", size=2 * len(CONTENT) - 99, sha256="0" * 64)).json()[
            "received"
        ] == 0
        assert code(await begin(world, token, lease, bytes(100))) == (409, "UZ-FILE-002")

        monkeypatch.setattr(decisions.artefacts, "ARTEFACTS_OF_ATTEMPT", 1)
        assert code(await name(world, token, lease, other, "a second")) == (409, "UZ-FILE-003")

        monkeypatch.setattr(decisions.blobs, "BLOBS_OF_LEASE", 1)
        assert code(await begin(world, token, lease, b"x")) == (409, "UZ-FILE-003")
