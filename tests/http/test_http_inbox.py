"""The inbox of approvals: filters, order and pages, while gates come and go."""

from typing import Any

from tests.worlds.http import HttpWorld

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"


async def asked(world: HttpWorld, count: int) -> tuple[str, list[str]]:
    """An agent whose run asks that many questions, of two kinds by turns; their ids, oldest first."""
    zombie, token, lease = await world.working()
    ids = []
    for number in range(count):
        body = {
            "action_id": f"a{number}",
            "tool_name": "http",
            "action_name": "POST",
            "gate_kind": "deploy" if number % 2 else "",
        }
        answer = await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/gates", body, token)
        ids.append(answer.json()["gate_id"])
    return zombie["zombie_id"], ids


async def listed(world: HttpWorld, **query: Any) -> list[str]:
    """Over all pages of three."""
    ids: list[str] = []
    query["limit"] = 3
    while True:
        answer = await world.get(f"{world.ws}/approvals", params=query)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        ids += [item["gate_id"] for item in page["items"]]
        if page["next_cursor"] is None:
            return ids
        query["cursor"] = page["next_cursor"]


async def test_the_inbox_shows_the_oldest_first_by_status_agent_and_kind(world: HttpWorld) -> None:
    zombie_id, gates = await asked(world, 10)
    other = await world.install("other")
    assert await listed(world) == gates

    for gate_id in gates[:4]:
        await world.post(f"{world.ws}/approvals/{gate_id}:approve")
    assert await listed(world, status="pending") == gates[4:]
    assert await listed(world, status="approved") == gates[:4]
    assert await listed(world, status="denied") == []
    assert await listed(world, zombie_id=zombie_id, gate_kind="deploy", status="pending") == gates[5::2]
    assert await listed(world, zombie_id=other["zombie_id"]) == []
    assert await listed(world, order="newest") == gates[::-1]
    assert await listed(world, order="decided") == gates[3::-1]
    assert await listed(world, order="decided", status="denied") == []

    newest = await world.get(f"{world.ws}/approvals", params={"order": "newest", "limit": 3})
    other_order = {"order": "oldest", "limit": 3, "cursor": newest.json()["next_cursor"]}
    refused = await world.get(f"{world.ws}/approvals", params=other_order)
    assert (refused.status_code, refused.json()["error_code"]) == (400, "UZ-REQ-001")
    assert await listed(world, zombie_id=UNKNOWN) == []


async def test_a_page_goes_on_where_it_was_though_gates_are_decided_meanwhile(world: HttpWorld) -> None:
    _zombie_id, gates = await asked(world, 9)
    path, query = f"{world.ws}/approvals", {"status": "pending", "limit": 4}
    first = (await world.get(path, params=query)).json()
    for gate_id in (*gates[1:3], gates[5]):
        await world.post(f"{world.ws}/approvals/{gate_id}:deny")
    second = (await world.get(path, params={**query, "cursor": first["next_cursor"]})).json()
    shown = [item["gate_id"] for item in first["items"] + second["items"]]
    assert shown == [*gates[:5], *gates[6:]]

    others = await world.get(path, params={"limit": 4, "cursor": first["next_cursor"]})
    assert (others.status_code, others.json()["error_code"]) == (400, "UZ-REQ-001")


async def test_what_the_inbox_does_not_know_is_a_bad_request(world: HttpWorld) -> None:
    for query in (
        {"status": "open"},
        {"order": "random"},
        {"limit": 0},
        {"limit": 201},
        {"cursor": "x"},
        {"gate_kind": "k" * 129},
    ):
        answer = await world.get(f"{world.ws}/approvals", params=query)
        assert (answer.status_code, answer.json()["error_code"]) == (400, "UZ-REQ-001"), query
    answer = await world.get(f"{world.ws}/approvals", params={"zombie_id": "x"})

    assert answer.json()["error_code"] == "UZ-UUIDV7-009"
