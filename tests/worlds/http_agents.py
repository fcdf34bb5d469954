"""Short ways to change an agent and to live through runs of it, over HTTP."""

from typing import Any

import httpx2

from tests.worlds.http import HttpWorld
from tests.worlds.samples import skill_md, trigger_md

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"
USAGE = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}


def skill(name: str = "doctor", tags: str = "", body: str = "") -> str:
    return skill_md(name, tags=tags) + body


def trigger(name: str = "doctor", config: str = "") -> str:
    return trigger_md(name, config)


def open_trigger(*sources: str, name: str = "doctor") -> str:
    """Triggers whose senders do not sign."""
    first, *others = sources
    more = "\n".join(f"  - type: webhook\n    source: {source}" for source in others)
    return trigger_md(name, more, trigger=f"type: webhook\n    source: {first}")


def at(world: HttpWorld, zombie: dict[str, Any]) -> str:
    return f"{world.ws}/zombies/{zombie['zombie_id']}"


async def patch(world: HttpWorld, zombie: dict[str, Any], **body: Any) -> dict[str, Any]:
    answer = await world.call("PATCH", at(world, zombie), json=body)
    assert answer.status_code == 200, answer.text
    changed: dict[str, Any] = answer.json()
    return changed


def report_of(lease: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "lease_id": lease["lease_id"],
        "event_id": lease["event"]["event_id"],
        "fencing_token": lease["fencing_token"],
        "outcome": "processed",
        "response_text": "",
        **USAGE,
        **changes,
    }


async def report(world: HttpWorld, token: str, lease: dict[str, Any], **changes: Any) -> dict[str, Any]:
    answer = await world.post("/v1/runners/me/reports", report_of(lease, **changes), token)
    assert answer.status_code == 200, answer.text
    reported: dict[str, Any] = answer.json()
    return reported


async def steer(world: HttpWorld, zombie: dict[str, Any], message: str = "hello") -> str:
    answer = await world.post(f"{at(world, zombie)}/messages", {"message": message})
    assert answer.status_code == 202, answer.text
    event_id: str = answer.json()["event_id"]
    return event_id


async def run(world: HttpWorld, zombie: dict[str, Any], token: str, **changes: Any) -> dict[str, Any]:
    """One event from message to report; the lease that it had."""
    await steer(world, zombie)
    lease = await world.lease(token)
    await report(world, token, lease, **changes)
    return lease


async def propose(world: HttpWorld, agent_id: str, **changes: Any) -> dict[str, Any]:
    body = {
        "title": "Look twice",
        "rationale": "Once is not enough.",
        "source_markdown": skill(body="Twice.\n"),
    }
    answer = await world.post(f"/v1/agents/{agent_id}/proposals", {**body, **changes})
    assert answer.status_code == 201, answer.text
    proposal: dict[str, Any] = answer.json()
    return proposal


async def code(world: HttpWorld, method: str, path: str, **rest: Any) -> tuple[int, str]:
    answer = await world.call(method, path, rest.pop("token", ""), **rest)
    return answer.status_code, answer.json().get("error_code", "") if answer.content else ""


async def source(
    world: HttpWorld, zombie: dict[str, Any], text: str, beside: str | None = None
) -> dict[str, Any]:
    files = {"source_markdown": text, "trigger_markdown": beside or trigger()}
    body = {"agent_id": zombie["zombie_id"], **files}
    answer = await world.call("PUT", f"{world.ws}/harness/source", json=body)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def compiled(world: HttpWorld, zombie: dict[str, Any], text: str, beside: str | None = None) -> str:
    made = await source(world, zombie, text, beside)
    body = {"config_version_id": made["config_version_id"]}
    answer = await world.post(f"{world.ws}/harness/compile", body)
    assert answer.status_code == 200, answer.text
    version: str = made["config_version_id"]
    return version


async def versions(world: HttpWorld, zombie: dict[str, Any], **params: Any) -> httpx2.Response:
    return await world.get(f"{world.ws}/harness/versions", params={"agent_id": zombie["zombie_id"], **params})


async def activate(world: HttpWorld, version: str) -> httpx2.Response:
    return await world.post(f"{world.ws}/harness/activate", {"config_version_id": version})


async def decide(world: HttpWorld, proposal: dict[str, Any], how: str, **body: Any) -> httpx2.Response:
    path = f"/v1/agents/{proposal['agent_id']}/proposals/{proposal['proposal_id']}:{how}"
    return await (world.call("POST", path, json=body) if body else world.call("POST", path))


async def profile(world: HttpWorld, agent_id: str) -> dict[str, Any]:
    answer = await world.get(f"/v1/agents/{agent_id}")
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown
