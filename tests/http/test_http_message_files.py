"""Files of messages over HTTP: sent by people, brought by messages and replays, read under the lease."""

import hashlib
from typing import Any
from uuid import UUID

import httpx2
import pytest

from sexton_actors.file_bounds import FileBounds
from sexton_storage import decisions
from sexton_storage.postgres import PostgresStorage
from sexton_storage.records.blobs import PART_BYTES
from sexton_storage.records.event_files import FILES_OF_EVENT
from sexton_storage.records.users import Role
from tests.http.test_http_files import CONTENT, UNKNOWN, code, keep, plane
from tests.http.test_http_kept_workspaces import report
from tests.worlds.bearer_tokens import TENANT_B, WORKSPACE_B, settle_tenant_b
from tests.worlds.http import HttpWorld, open_http_world_on

Lease = dict[str, Any]


async def begin(
    world: HttpWorld, content: bytes, token: str = "", ws: str = "", **more: Any
) -> httpx2.Response:
    body = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), **more}
    return await world.post(f"{ws or world.ws}/uploads", body, token)


async def part(
    world: HttpWorld, upload: str, offset: int, data: bytes, *, token: str = "", ws: str = ""
) -> httpx2.Response:
    path = f"{ws or world.ws}/uploads/{upload}?offset={offset}"
    return await world.call("PUT", path, token, content=data)


async def send(world: HttpWorld, content: bytes, token: str = "") -> str:
    upload: dict[str, Any] = (await begin(world, content, token)).json()
    for start in range(upload["received"], len(content), PART_BYTES):
        data = content[start : start + PART_BYTES]
        upload = (await part(world, upload["upload_id"], start, data, token=token)).json()
    assert upload["complete"], upload
    return str(upload["upload_id"])


async def message(
    world: HttpWorld, agent: str, *files: dict[str, Any], token: str = "", **more: Any
) -> httpx2.Response:
    body = {"message": "Look at these.", "files": list(files)}
    return await world.post(f"{world.ws}/zombies/{agent}/messages", body, token, **more)


async def read(world: HttpWorld, token: str, lease: Lease, number: int) -> bytes:
    """A file of the lease's event, part by part."""
    size, found = lease["event"]["files"][number]["size"], b""
    while len(found) < size:
        path = f"{plane(lease)}/files/content?number={number}&offset={len(found)}"
        answer = await world.get(f"{path}&fencing_token={lease['fencing_token']}", token)
        assert answer.status_code == 200, answer.text
        found += answer.content
    return found


async def used(world: HttpWorld, event_id: str) -> int:
    listed = await world.get(f"{world.ws}/events/{event_id}/artefacts")
    return int(listed.json()["used_bytes"])


async def owners(storage: PostgresStorage, upload: str) -> int:
    blob = await storage.blobs.load(UUID(upload))
    assert blob is not None
    return blob.owners


async def test_a_message_brings_what_was_sent_and_what_another_run_left_and_so_does_its_replay(
    postgres_storage: PostgresStorage,
) -> None:
    async with open_http_world_on(postgres_storage) as world:
        zombie, token, first = await world.working()
        agent = zombie["zombie_id"]
        await keep(world, token, first, b"<html>")
        await report(world, token, first)
        upload = await send(world, CONTENT)
        wanted = (
            {"name": "data/large.bin", "upload_id": upload},
            {"name": "out/report.html", "event_id": first["event"]["event_id"]},
        )

        headers = {"idempotency-key": "once"}
        made = await message(world, agent, *wanted, headers=headers)
        assert made.status_code == 202, made.text

        event_id = made.json()["event_id"]
        assert (await message(world, agent, *wanted, headers=headers)).json()["event_id"] == event_id

        told = [
            {
                "name": name,
                "media_type": kind,
                "size": len(content),
                "sha256": hashlib.sha256(content).hexdigest(),
            }
            for name, kind, content in (
                ("data/large.bin", "application/octet-stream", CONTENT),
                ("out/report.html", "text/html", b"<html>"),
            )
        ]
        event = (await world.get(f"{world.ws}/events/{event_id}")).json()
        assert event["request_json"] == {"message": "Look at these.", "files": told}

        lease = await world.lease(token)
        assert lease["event"]["files"] == told
        assert await read(world, token, lease, 0) == CONTENT
        assert await read(world, token, lease, 1) == b"<html>"

        path = f"{plane(lease)}/files/content"
        other = await world.enrol("h2")
        for asked, bearer, wanted_code in (
            ("number=2", token, (410, "UZ-FILE-014")),
            (f"offset={len(CONTENT)}", token, (416, "UZ-FILE-009")),
            (f"fencing_token={lease['fencing_token'] + 1}", token, (409, "UZ-RUN-005")),
            ("number=0", other, (404, "UZ-RUN-006")),
        ):
            assert code(await world.get(f"{path}?{asked}", bearer)) == wanted_code, asked
        await report(world, token, lease)
        assert code(await world.get(path, token)) == (409, "UZ-RUN-005")

        replay = await world.post(f"{world.ws}/events/{event_id}/replay")
        assert replay.status_code == 202, replay.text

        again = await world.lease(token)
        assert (again["event"]["event_id"], again["event"]["files"]) == (replay.json()["event_id"], told)
        assert await read(world, token, again, 0) == CONTENT

        await report(world, token, again)

        plain = (await world.post(f"{world.ws}/zombies/{agent}/messages", {"message": "Hello."})).json()
        assert "files" not in (await world.lease(token))["event"], plain
        assert await used(world, event_id) == len(CONTENT) + len(b"<html>"), "once, however many bring it"

        await postgres_storage.event_files.prune(keep_ms=0, limit=100)
        for place in (world.ws, f"{world.ws}/zombies/{agent}"):
            late = await world.post(f"{place}/events/{event_id}/replay")
            assert code(late) == (410, "UZ-FILE-014")


async def test_nothing_of_others_and_nothing_half_sent_is_brought(
    postgres_storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds = FileBounds(file_bytes=len(CONTENT), quota_bytes=2 * len(CONTENT))
    async with open_http_world_on(postgres_storage, files=bounds) as world:
        zombie, _, lease = await world.working()
        agent, user = zombie["zombie_id"], world.user_token(Role.USER)
        upload = await send(world, CONTENT)
        half = (await begin(world, CONTENT[:-1])).json()["upload_id"]
        assert (await part(world, half, 0, CONTENT[:PART_BYTES])).json()["received"] == PART_BYTES

        await settle_tenant_b(world)
        theirs, ws_b = world.user_token(Role.ADMIN, tenant_id=TENANT_B), f"/v1/workspaces/{WORKSPACE_B}"
        assert code(await part(world, upload, 0, CONTENT[:PART_BYTES], token=user)) == (404, "UZ-FILE-008")
        assert code(await part(world, upload, 0, b"x", token=theirs, ws=ws_b)) == (404, "UZ-FILE-008")
        assert code(await part(world, upload, 0, b"x", token=theirs)) == (404, "UZ-WORKSPACE-001")
        assert code(await part(world, half, 0, b"")) == (400, "UZ-REQ-001")
        assert code(await begin(world, b"", size=len(CONTENT) + 1)) == (413, "UZ-FILE-004")
        assert code(await begin(world, b"one more", size=2)) == (409, "UZ-FILE-002")

        assert code(await begin(world, b"", sha256="ab" * 32)) == (409, "UZ-FILE-006")
        assert code(await part(world, half, 2 * PART_BYTES, b"x")) == (409, "UZ-FILE-005")

        wrong = (await begin(world, b"", size=1)).json()["upload_id"]
        assert code(await part(world, wrong, 0, b"x")) == (409, "UZ-FILE-006"), "the bytes of another hash"

        mine, event_id = {"name": "a", "upload_id": upload}, lease["event"]["event_id"]
        for files, bearer, wanted in (
            ([{"name": "a", "upload_id": half}], "", (409, "UZ-FILE-006")),
            ([mine], user, (409, "UZ-FILE-006")),
            ([{"name": "a", "upload_id": UNKNOWN}], "", (409, "UZ-FILE-006")),
            ([{"name": "a", "event_id": event_id}], "", (404, "UZ-FILE-001")),
            ([mine, {"name": "b", "upload_id": upload}], "", (413, "UZ-FILE-004")),
            ([mine, mine], "", (400, "UZ-REQ-001")),
            ([mine, {"name": "a/b", "upload_id": upload}], "", (400, "UZ-REQ-001")),
            ([{"name": "../a", "upload_id": upload}], "", (400, "UZ-REQ-001")),
            ([{"name": "a"}], "", (400, "UZ-REQ-001")),
            ([{**mine, "event_id": event_id}], "", (400, "UZ-REQ-001")),
            ([{**mine, "media_type": "text/html\r\nx: y"}], "", (400, "UZ-REQ-001")),
            ([mine] * (FILES_OF_EVENT + 1), "", (400, "UZ-REQ-001")),
        ):
            assert code(await message(world, agent, *files, token=bearer)) == wanted, files
        assert await owners(postgres_storage, upload) == 0

        monkeypatch.setattr(decisions.blobs, "BLOBS_OF_LEASE", 1)
        assert code(await begin(world, b"x")) == (409, "UZ-FILE-003")

        stopped = await world.call("PATCH", f"{world.ws}/zombies/{agent}", json={"status": "stopped"})
        assert stopped.status_code == 200
        assert code(await message(world, agent, mine)) == (409, "UZ-ZMB-012")
        assert await owners(postgres_storage, upload) == 0
