"""Asks a server for much of what it can do, so that its answers can be recorded and compared."""

import hashlib
from typing import Any

from tests.worlds.http import HttpWorld
from tests.worlds.http_agents import at
from tests.worlds.samples import agent_files


async def take(world: HttpWorld) -> None:
    """One call after the other; the world itself checks each answer."""
    zombie, token, lease = await world.working()
    agent, ws, admin = at(world, zombie), world.ws, world.admin_token()
    await _deliveries(world, zombie)
    await _events(world, agent, ws)
    await _runner(world, zombie, token, lease)
    await _people(world, admin)
    await _grants(world, agent, zombie)
    await _settings(world, zombie, admin)
    await _fleet(world, admin)
    for path in (f"{agent}/memories", f"{agent}/follow-ups", f"{agent}/integration-grants"):
        await world.get(path)
    for path in (
        "profile",
        "integration-grants",
        "credential-grants",
        "events",
        "credentials",
        "mcp-servers",
        "billing",
        "scoring",
        "retention",
        "retention/preview",
    ):
        await world.get(f"{ws}/{path}")
    await world.call("DELETE", f"{agent}/memories", params={"key": "disk"})
    await world.get("/v1/tenants/me/billing/totals", params={"by": "agent"})
    await world.get("/v1/models")
    await world.get("/v1/admin/settings", admin)
    for path in ("/v1/audit", "/v1/admin/audit", f"{ws}/audit"):
        await world.get(path, admin, params={"limit": "1"})
    for path in ("healthz", "readyz", ".well-known/jwks.json", "v1/whoami"):
        await world.get(f"/{path}")


async def _events(world: HttpWorld, agent: str, ws: str) -> None:
    sent = (await world.post(f"{agent}/messages", {"message": "Look at the disk."})).json()["event_id"]
    await world.post(f"{agent}/events/{sent}/cancel")
    await world.get(f"{agent}/events/{sent}")
    await world.get(f"{ws}/events/{sent}")
    await world.post(f"{agent}/events/{sent}/replay")
    again = (await world.post(f"{ws}/events/{sent}/replay")).json()["event_id"]
    await world.post(f"{ws}/events/{again}/cancel")
    log = b"Disk 93 % full."
    upload = (
        await world.post(f"{ws}/uploads", {"sha256": hashlib.sha256(log).hexdigest(), "size": len(log)})
    ).json()["upload_id"]
    await world.call("PUT", f"{ws}/uploads/{upload}?offset=0", content=log)
    brought = {"message": "What is in this log?", "files": [{"name": "disk.log", "upload_id": upload}]}
    told = (await world.post(f"{agent}/messages", brought)).json()["event_id"]
    await world.post(f"{agent}/events/{told}/cancel")
    sample = {"headers": {"x-github-event": "push"}, "body": "{}", "source": "github"}
    await world.post(f"{agent}/webhooks:verify", sample)
    await world.post(f"{agent}/approval-token", {})


async def _runner(world: HttpWorld, zombie: dict[str, Any], token: str, lease: dict[str, Any]) -> None:
    held = f"/v1/runners/me/leases/{lease['lease_id']}"
    await world.get("/v1/runners/me", token)
    usage = {"input_tokens": 10, "cached_input_tokens": 0, "output_tokens": 5}
    item = {"lease_id": lease["lease_id"], "fencing_token": lease["fencing_token"], **usage}
    await world.post("/v1/runners/me/leases:renew", {"leases": [item]}, token)
    ask = {"service": "github", "reason": "To read the log."}
    await world.post(f"{held}/integration-requests", ask, token)
    note = {"call_id": "c1", "message": "Look again.", "delay_s": 3600}
    await world.post(f"{held}/follow-ups", note, token)
    entry = {
        "lease_id": lease["lease_id"],
        "key": "disk",
        "content": "It fills on Mondays.",
        "category": "core",
    }
    said = {"number": 1, "kind": "output", "data": {"stream": "stdout", "text": "Disk 93 % full.\n"}}
    told = {"fencing_token": lease["fencing_token"], "entries": [said]}
    await world.post(f"{held}/transcript", told, token)
    await world.get(f"{world.ws}/events/{lease['event']['event_id']}/trace")
    for path in (at(world, zombie), world.ws):
        await world.get(f"{path}/events/{lease['event']['event_id']}/transcript")
    await _workspace(world, token, held)
    await world.get(f"{at(world, zombie)}/workspace-files")
    await world.call("DELETE", f"{at(world, zombie)}/workspace-files")
    memory = f"/v1/runners/me/memory/{zombie['zombie_id']}"
    await world.post(memory, entry, token)
    await world.get(memory, token)
    gate = {"action_id": "a1", "tool_name": "http", "action_name": "POST", "proposed_action": "Deploy."}
    made = (await world.post(f"{held}/gates", gate, token)).json()
    await world.get(f"{world.ws}/approvals/{made['gate_id']}")
    await world.post(f"{world.ws}/approvals/{made['gate_id']}:deny", {"reason": "Not today."})
    second = (await world.post(f"{held}/gates", {**gate, "action_id": "a2"}, token)).json()
    word = {"approval_id": second["gate_id"], "decision": "approve"}
    approver = (await world.post(f"{at(world, zombie)}/approval-token", {})).json()["approval_token"]
    await world.post(f"/v1/webhooks/{zombie['zombie_id']}/approval", word, approver)
    await world.post(f"{held}/release", {"reason": "drain"}, token)
    again = await world.lease(token)
    done = {
        "lease_id": again["lease_id"],
        "event_id": again["event"]["event_id"],
        "fencing_token": again["fencing_token"],
        "outcome": "processed",
        **usage,
    }
    await world.post("/v1/runners/me/reports:batch", {"reports": [done, {**done, "fencing_token": 1}]}, token)


async def _workspace(world: HttpWorld, token: str, held: str) -> None:
    await world.post(f"{held}/workspace", {}, token)
    content = b"a snapshot"
    body = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    upload = (await world.post(f"{held}/uploads", body, token)).json()["upload_id"]
    await world.call("PUT", f"{held}/uploads/{upload}?offset=0", token, content=content)
    await world.call("PUT", f"{held}/workspace", token, json={"upload_id": upload})


async def _people(world: HttpWorld, admin: str) -> None:
    key = (await world.post("/v1/api-keys", {"key_name": "ci", "description": "For the pipeline."})).json()
    await world.get("/v1/api-keys")
    await world.call("PATCH", f"/v1/api-keys/{key['id']}", json={"active": False})
    made = (await world.post("/v1/workspaces", {"name": "payments"})).json()
    path = f"/v1/workspaces/{made['workspace_id']}"
    await world.get(path)
    await world.call("PATCH", path, json={"paused": True})
    await world.get("/v1/tenants/me/workspaces")
    session = (await world.post("/v1/auth/sessions", {"token_name": "laptop"}, None)).json()
    await world.get(f"/v1/auth/sessions/{session['session_id']}", None)
    done = {"status": "complete", "token": "a-token"}
    await world.call("PATCH", f"/v1/auth/sessions/{session['session_id']}", admin, json=done)
    await world.call("DELETE", "/v1/auth/sessions/all", admin)
    await world.get("/v1/auth/sign-ins", admin)
    await _members(world, admin)


async def _members(world: HttpWorld, admin: str) -> None:
    ann = (await world.post("/v1/members", {"name": "Ann", "role": "operator"})).json()["member"]["id"]
    await world.get("/v1/members", params={"page_size": "1"})
    await world.call("PATCH", f"/v1/members/{ann}", json={"role": "user"})
    await world.call("DELETE", f"/v1/members/{ann}", params={"keys": "hand_over"})
    await world.post(f"/v1/members/{ann}/invitation", {"role": "user"})
    await world.get("/v1/sessions", admin)
    await world.call("DELETE", "/v1/sessions", admin)


async def _grants(world: HttpWorld, agent: str, zombie: dict[str, Any]) -> None:
    wish = {"service": "pagerduty", "reason": "To see who is on call."}
    made = (await world.post(f"{agent}/integration-requests", wish)).json()
    approver = (await world.post(f"{agent}/approval-token", {})).json()["approval_token"]
    word = {"grant_id": made["grant_id"], "decision": "approve"}
    await world.post(f"/v1/webhooks/{zombie['zombie_id']}/grant-approval", word, approver)
    grant = f"{agent}/integration-grants/{made['grant_id']}"
    await world.call("PATCH", grant, json={"status": "revoked"})


async def _settings(world: HttpWorld, zombie: dict[str, Any], admin: str) -> None:
    ws, agent_id = world.ws, zombie["zombie_id"]
    await world.call("PUT", f"{ws}/scoring", json={"context_tokens": 1024})
    await world.call("PUT", f"{ws}/retention", admin, json={"event_days": 90, "file_days": 3})
    await world.call("PUT", f"{ws}/credentials/llm", json={"provider": "anthropic", "api_key": "sk-1"})
    await world.get(f"{ws}/credentials/llm")
    entry = {"provider": "anthropic", "source_workspace_id": str(world.installation.workspace_id)}
    await world.call("PUT", "/v1/admin/platform-keys", admin, json=entry)
    await world.call("PUT", "/v1/admin/platform-keys/anthropic", admin, json=entry)
    await world.get("/v1/admin/platform-keys", admin)
    await world.get("/v1/admin/platform-keys/anthropic", admin)
    await world.get("/v1/tenants/me/provider")
    await world.call("DELETE", "/v1/tenants/me/provider")
    await world.get("/v1/tenants/me/billing/charges")
    credit = {"amount_nanos": 1_000_000_000, "reason": "A gift."}
    await world.post(f"/v1/admin/tenants/{world.installation.tenant_id}/credit", credit, admin)
    await world.post(f"{ws}/billing/scale", {"subscription_id": "sub_1Nv0FG"}, admin)
    await world.post(f"{ws}/billing/events", {"event_type": "PAYMENT_FAILED", "reason": "card"}, admin)
    await world.get(f"/v1/agents/{agent_id}")
    await world.get(f"/v1/agents/{agent_id}/scores")
    files = agent_files(tags="a")
    idea = {"title": "Tag it", "rationale": "Only some runners can.", **files}
    made = await world.post(f"/v1/agents/{agent_id}/proposals", idea)
    await world.get(f"/v1/agents/{agent_id}/proposals")
    await world.get(f"/v1/agents/{agent_id}/proposals/{made.json()['proposal_id']}")
    drafted = (await world.call("PUT", f"{ws}/harness/source", json={"agent_id": agent_id, **files})).json()
    for step in ("compile", "activate"):
        body = {"config_version_id": drafted["config_version_id"]}
        await world.post(f"{ws}/harness/{step}", body)
    await world.get(f"{ws}/harness/versions", params={"agent_id": agent_id})
    await world.get(f"{ws}/harness/versions/{zombie['config_version_id']}")


async def _deliveries(world: HttpWorld, zombie: dict[str, Any]) -> None:
    await world.deliver(f"/v1/webhooks/{zombie['zombie_id']}")
    await world.get(f"{world.ws}/zombies")
    await world.get(f"{world.ws}/events", params={"limit": "1"})


async def _fleet(world: HttpWorld, admin: str) -> None:
    listed = (await world.get("/v1/fleet/runners", admin)).json()["items"]
    path = f"/v1/fleet/runners/{listed[0]['id']}"
    await world.call("PATCH", path, admin, json={"admin_state": "cordoned"})
    await world.get(f"{path}/events", admin)
    for name in ("leases", "queue", "supervisor"):
        await world.get(f"/v1/fleet/{name}", admin)
