"""Workspaces that stay, over HTTP: started, read in parts, left under the lease, shown and reset."""

import hashlib
from typing import Any

import httpx2

from sexton_storage.records.blobs import PART_BYTES
from sexton_storage.records.users import Role
from tests.worlds.http import HttpWorld

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"
RUN = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}
LARGE = bytes(range(256)) * (PART_BYTES // 256) + b"end"


def code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error_code", "")


def place(lease: dict[str, Any]) -> str:
    return f"/v1/runners/me/leases/{lease['lease_id']}"


async def sent(world: HttpWorld, token: str, lease: dict[str, Any], content: bytes) -> str:
    """Send a content whole; its upload."""
    body = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    made = (await world.post(f"{place(lease)}/uploads", body, token)).json()
    for start in range(0, len(content), PART_BYTES):
        path = f"{place(lease)}/uploads/{made['upload_id']}?offset={start}"
        part = content[start : start + PART_BYTES]
        made = (await world.call("PUT", path, token, content=part)).json()
    assert made["complete"]
    return str(made["upload_id"])


async def leave(
    world: HttpWorld, token: str, lease: dict[str, Any], content: bytes, **body: Any
) -> httpx2.Response:
    upload = {"upload_id": await sent(world, token, lease, content), **body}
    return await world.call("PUT", f"{place(lease)}/workspace", token, json=upload)


async def report(world: HttpWorld, token: str, lease: dict[str, Any]) -> None:
    body = {
        "lease_id": lease["lease_id"],
        "event_id": lease["event"]["event_id"],
        "fencing_token": lease["fencing_token"],
        "outcome": "processed",
        **RUN,
    }
    assert (await world.post("/v1/runners/me/reports", body, token)).status_code == 200


async def shown(world: HttpWorld, zombie: dict[str, Any]) -> Any:
    answer = await world.get(f"{world.ws}/zombies/{zombie['zombie_id']}/workspace-files")
    assert answer.status_code == 200, answer.text
    return answer.json()["snapshot"]


async def test_a_run_starts_from_what_the_one_before_left(world: HttpWorld) -> None:
    zombie, token, lease = await world.working("workspace: keep\n")
    assert lease["workspace"] == "keep"

    workspace = f"{place(lease)}/workspace"
    early = await world.call("PUT", workspace, token, json={"upload_id": UNKNOWN})
    assert code(early) == (409, "UZ-FILE-006"), "it has not asked what it starts from"

    first = await world.post(workspace, {"fencing_token": lease["fencing_token"]}, token)
    assert (first.status_code, first.json()["snapshot"]) == (200, None)
    assert code(await world.get(f"{workspace}/content", token)) == (416, "UZ-FILE-009")

    kept = await leave(world, token, lease, LARGE)
    assert (kept.status_code, kept.json()["size"]) == (200, len(LARGE))
    assert await shown(world, zombie) is None

    await report(world, token, lease)
    assert (await shown(world, zombie))["sha256"] == hashlib.sha256(LARGE).hexdigest()

    late = await world.call("PUT", workspace, token, json={"upload_id": UNKNOWN})
    assert code(late) == (409, "UZ-RUN-005")

    await world.deliver(zombie["webhook_urls"]["github"])
    second = await world.lease(token)
    snapshot = (await world.post(f"{place(second)}/workspace", {}, token)).json()["snapshot"]
    assert snapshot["event_id"] == lease["event"]["event_id"]

    parts = [
        await world.get(f"{place(second)}/workspace/content?offset={start}", token)
        for start in (0, PART_BYTES)
    ]
    assert b"".join(part.content for part in parts) == LARGE

    past = await world.get(f"{place(second)}/workspace/content?offset={len(LARGE)}", token)
    assert code(past) == (416, "UZ-FILE-009")


async def test_who_does_not_hold_the_lease_starts_and_leaves_nothing(world: HttpWorld) -> None:
    _, token, lease = await world.working("workspace: keep\n")
    other = await world.enrol("h2")
    workspace = f"{place(lease)}/workspace"
    stale = lease["fencing_token"] + 1

    answers = [
        await world.post(workspace, {}, other),
        await world.get(f"{workspace}/content", other),
        await world.call("PUT", workspace, other, json={"upload_id": UNKNOWN}),
    ]
    assert [code(answer) for answer in answers] == [(404, "UZ-RUN-006")] * 3

    answers = [
        await world.post(workspace, {"fencing_token": stale}, token),
        await world.get(f"{workspace}/content?fencing_token={stale}", token),
        await world.call("PUT", workspace, token, json={"upload_id": UNKNOWN, "fencing_token": stale}),
    ]
    assert [code(answer) for answer in answers] == [(409, "UZ-RUN-005")] * 3


async def test_a_reset_empties_the_folder_and_a_replay_of_before_is_refused(world: HttpWorld) -> None:
    zombie, token, lease = await world.working("workspace: keep\n")
    await world.post(f"{place(lease)}/workspace", {}, token)
    await leave(world, token, lease, b"one")
    await report(world, token, lease)
    await world.deliver(zombie["webhook_urls"]["github"])
    second = await world.lease(token)
    await world.post(f"{place(second)}/workspace", {}, token)
    await report(world, token, second)
    files = f"{world.ws}/zombies/{zombie['zombie_id']}/workspace-files"

    assert code(await world.call("DELETE", files, world.user_token(Role.USER))) == (403, "UZ-AUTH-009")
    assert (await world.call("DELETE", files)).json()["reset"] is True
    assert await shown(world, zombie) is None

    event = second["event"]["event_id"]
    replayed = await world.post(f"{world.ws}/events/{event}/replay")
    assert replayed.status_code in {201, 202}, replayed.text

    again = await world.lease(token)
    workspace = f"{place(again)}/workspace"
    assert code(await world.post(workspace, {}, token)) == (410, "UZ-FILE-011")
    assert code(await world.get(f"{workspace}/content", token)) == (410, "UZ-FILE-011")
