"""Asks a server for much of what it can do, so that its answers can be recorded and compared."""

from typing import Any

from tests.http.agent_life import at
from tests.http.house import SKILL, TRIGGER, House


async def take(house: House) -> None:
    """One call after the other; what each is answered is looked at by the house itself."""
    zombie, token, lease = await house.working()
    agent, ws, admin = at(house, zombie), house.ws, house.admin_token()
    await _deliveries(house, zombie)
    await _events(house, agent, ws)
    await _runner(house, zombie, token, lease)
    await _people(house, admin)
    await _grants(house, agent, zombie)
    await _settings(house, zombie, admin)
    await _fleet(house, admin)
    for path in (f"{agent}/memories", f"{agent}/follow-ups", f"{agent}/integration-grants"):
        await house.get(path)
    for path in ("profile", "integration-grants", "events", "credentials", "billing", "scoring"):
        await house.get(f"{ws}/{path}")
    for path in ("healthz", "readyz", ".well-known/jwks.json", "v1/whoami"):
        await house.get(f"/{path}")


async def _events(house: House, agent: str, ws: str) -> None:
    sent = (await house.post(f"{agent}/messages", {"message": "Look at the disk."})).json()["event_id"]
    await house.post(f"{agent}/events/{sent}/cancel")
    await house.post(f"{agent}/events/{sent}/replay")
    again = (await house.post(f"{ws}/events/{sent}/replay")).json()["event_id"]
    await house.post(f"{ws}/events/{again}/cancel")
    sample = {"headers": {"x-github-event": "push"}, "body": "{}", "source": "github"}
    await house.post(f"{agent}/webhooks:verify", sample)
    await house.post(f"{agent}/approval-token", {})


async def _runner(house: House, zombie: dict[str, Any], token: str, lease: dict[str, Any]) -> None:
    held = f"/v1/runners/me/leases/{lease['lease_id']}"
    await house.get("/v1/runners/me", token)
    usage = {"input_tokens": 10, "cached_input_tokens": 0, "output_tokens": 5}
    item = {"lease_id": lease["lease_id"], "fencing_token": lease["fencing_token"], **usage}
    await house.post("/v1/runners/me/leases:renew", {"leases": [item]}, token)
    ask = {"service": "github", "reason": "To read the log."}
    await house.post(f"{held}/integration-requests", ask, token)
    note = {"call_id": "c1", "message": "Look again.", "delay_s": 3600}
    await house.post(f"{held}/follow-ups", note, token)
    entry = {
        "lease_id": lease["lease_id"],
        "key": "disk",
        "content": "It fills on Mondays.",
        "category": "core",
    }
    memory = f"/v1/runners/me/memory/{zombie['zombie_id']}"
    await house.post(memory, entry, token)
    await house.get(memory, token)
    gate = {"action_id": "a1", "tool_name": "http", "action_name": "POST", "proposed_action": "Deploy."}
    made = (await house.post(f"{held}/gates", gate, token)).json()
    await house.get(f"{house.ws}/approvals/{made['gate_id']}")
    await house.post(f"{house.ws}/approvals/{made['gate_id']}:deny", {"reason": "Not today."})
    second = (await house.post(f"{held}/gates", {**gate, "action_id": "a2"}, token)).json()
    word = {"approval_id": second["gate_id"], "decision": "approve"}
    approver = (await house.post(f"{at(house, zombie)}/approval-token", {})).json()["approval_token"]
    await house.post(f"/v1/webhooks/{zombie['zombie_id']}/approval", word, approver)
    await house.post(f"{held}/release", {"reason": "drain"}, token)


async def _people(house: House, admin: str) -> None:
    key = (await house.post("/v1/api-keys", {"key_name": "ci", "description": "For the pipeline."})).json()
    await house.get("/v1/api-keys")
    await house.call("PATCH", f"/v1/api-keys/{key['id']}", json={"active": False})
    made = (await house.post("/v1/workspaces", {"name": "payments"})).json()
    path = f"/v1/workspaces/{made['workspace_id']}"
    await house.get(path)
    await house.call("PATCH", path, json={"paused": True})
    await house.get("/v1/tenants/me/workspaces")
    session = (await house.post("/v1/auth/sessions", {"token_name": "laptop"}, None)).json()
    await house.get(f"/v1/auth/sessions/{session['session_id']}", None)
    done = {"status": "complete", "token": "a-token"}
    await house.call("PATCH", f"/v1/auth/sessions/{session['session_id']}", admin, json=done)
    await house.call("DELETE", "/v1/auth/sessions/all", admin)
    await house.get("/v1/auth/sign-ins", admin)


async def _grants(house: House, agent: str, zombie: dict[str, Any]) -> None:
    wish = {"service": "pagerduty", "reason": "To see who is on call."}
    made = (await house.post(f"{agent}/integration-requests", wish)).json()
    approver = (await house.post(f"{agent}/approval-token", {})).json()["approval_token"]
    word = {"grant_id": made["grant_id"], "decision": "approve"}
    await house.post(f"/v1/webhooks/{zombie['zombie_id']}/grant-approval", word, approver)
    grant = f"{agent}/integration-grants/{made['grant_id']}"
    await house.call("PATCH", grant, json={"status": "revoked"})


async def _settings(house: House, zombie: dict[str, Any], admin: str) -> None:
    ws, agent_id = house.ws, zombie["zombie_id"]
    await house.call("PUT", f"{ws}/scoring", json={"context_tokens": 1024})
    await house.call("PUT", f"{ws}/credentials/llm", json={"provider": "anthropic", "api_key": "sk-1"})
    await house.get(f"{ws}/credentials/llm")
    entry = {"provider": "anthropic", "source_workspace_id": str(house.installation.workspace_id)}
    await house.call("PUT", "/v1/admin/platform-keys", admin, json=entry)
    await house.call("PUT", "/v1/admin/platform-keys/anthropic", admin, json=entry)
    await house.get("/v1/admin/platform-keys", admin)
    await house.get("/v1/admin/platform-keys/anthropic", admin)
    await house.get("/v1/tenants/me/provider")
    await house.call("DELETE", "/v1/tenants/me/provider")
    await house.get("/v1/tenants/me/billing/charges")
    credit = {"amount_nanos": 1_000_000_000, "reason": "A gift."}
    await house.post(f"/v1/admin/tenants/{house.installation.tenant_id}/credit", credit, admin)
    await house.post(f"{ws}/billing/scale", {"subscription_id": "sub_1Nv0FG"}, admin)
    await house.post(f"{ws}/billing/events", {"event_type": "PAYMENT_FAILED", "reason": "card"}, admin)
    await house.get(f"/v1/agents/{agent_id}")
    await house.get(f"/v1/agents/{agent_id}/scores")
    files = {
        "source_markdown": SKILL.format(name="doctor", tags="a"),
        "trigger_markdown": TRIGGER.format(name="doctor", config=""),
    }
    idea = {"title": "Tag it", "rationale": "Only some runners can.", **files}
    made = await house.post(f"/v1/agents/{agent_id}/proposals", idea)
    await house.get(f"/v1/agents/{agent_id}/proposals")
    await house.get(f"/v1/agents/{agent_id}/proposals/{made.json()['proposal_id']}")
    drafted = (await house.call("PUT", f"{ws}/harness/source", json={"agent_id": agent_id, **files})).json()
    for step in ("compile", "activate"):
        body = {"config_version_id": drafted["config_version_id"]}
        await house.post(f"{ws}/harness/{step}", body)
    await house.get(f"{ws}/harness/versions", params={"agent_id": agent_id})


async def _deliveries(house: House, zombie: dict[str, Any]) -> None:
    await house.deliver(f"/v1/webhooks/{zombie['zombie_id']}")
    await house.get(f"{house.ws}/zombies")
    await house.get(f"{house.ws}/events", params={"limit": "1"})


async def _fleet(house: House, admin: str) -> None:
    listed = (await house.get("/v1/fleet/runners", admin)).json()["items"]
    path = f"/v1/fleet/runners/{listed[0]['id']}"
    await house.call("PATCH", path, admin, json={"admin_state": "cordoned"})
    await house.get(f"{path}/events", admin)
    for name in ("leases", "queue", "supervisor"):
        await house.get(f"/v1/fleet/{name}", admin)
