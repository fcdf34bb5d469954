"""The calls of the product that benchmarks make, and the conversations of runners and senders."""

import hashlib
import hmac
import uuid
from collections.abc import Sequence
from itertools import cycle
from typing import Any, NamedTuple

import orjson

from bench.load import Conversation, Place, Send
from bench.wire import post_json, request

SECRET = "a secret that signs"
SKILL = """---
name: {name}
description: Does nothing, for a benchmark.
version: 1.0.0
---
```sh
cat >/dev/null
echo '{{}}'
```
"""
TRIGGER = """---
name: {name}
runtime: command
triggers:
  - type: webhook
    source: github
    signature:
      secret_ref: github
---
"""


class Site(NamedTuple):
    """A running server, its first tenant's key and its admin's token; it can be pickled."""

    address: tuple[str, int]
    tenant_id: str
    workspace_id: str
    api_key: str
    admin_token: str

    @property
    def host(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"

    @property
    def workspace(self) -> str:
        return f"/v1/workspaces/{self.workspace_id}"

    def get(self, path: str) -> bytes:
        return request("GET", path, host=self.host, token=self.api_key)

    def admin(self, path: str) -> bytes:
        """Ask what only the platform's admin may see."""
        return request("GET", path, host=self.host, token=self.admin_token)

    def post(self, path: str, value: dict[str, Any], token: str | None = None) -> bytes:
        return post_json(path, value, host=self.host, token=token or self.api_key)


# --- setting up ---------------------------------------------------------------------------------------------


def keep_secret(site: Site) -> bytes:
    """The secret that all senders sign with."""
    return site.post(f"{site.workspace}/credentials", {"name": "github", "data": {"webhook_secret": SECRET}})


def create_agent(site: Site, name: str) -> bytes:
    files = {"source_markdown": SKILL.format(name=name), "trigger_markdown": TRIGGER.format(name=name)}
    return site.post(f"{site.workspace}/zombies", files)


def credit(site: Site, nanos: int) -> bytes:
    path = f"/v1/admin/tenants/{site.tenant_id}/credit"
    return site.post(path, {"amount_nanos": nanos, "reason": "benchmark"}, token=site.admin_token)


def mint_enrolment(site: Site) -> bytes:
    return site.post("/v1/fleet/enrolment-tokens", {}, token=site.admin_token)


def enrol(site: Site, enrolment_token: str, host_id: str, slots: int) -> bytes:
    body = {"host_id": host_id, "sandbox_tier": "bubblewrap", "labels": [], "slots": slots}
    return site.post("/v1/runners", body, token=enrolment_token)


# --- webhooks -----------------------------------------------------------------------------------------------


class Delivery(NamedTuple):
    """A signed webhook of source github for one agent, complete but for its delivery id."""

    before: bytes
    after: bytes

    def with_id(self, delivery_id: str) -> bytes:
        return self.before + delivery_id.encode() + self.after


def delivery(site: Site, zombie_id: str, payload: dict[str, Any], secret: str = SECRET) -> Delivery:
    """Sign once: the id stands in a header, which the signature does not cover."""
    body = orjson.dumps(payload)
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    whole = request(
        "POST",
        f"/v1/webhooks/{zombie_id}/github",
        host=site.host,
        body=body,
        user_agent="GitHub-Hookshot/044aadd",
        x_github_event="workflow_run",
        x_github_delivery="{delivery}",
        x_hub_signature_256=f"sha256={signature}",
    )
    before, _, after = whole.partition(b"{delivery}")
    return Delivery(before, after)


def payload(number: int = 0) -> dict[str, Any]:
    """A failed workflow run in some 1.3 KB; GitHub's own go up to 25."""
    person = {"login": "octocat", "id": 583231, "type": "User", "site_admin": False}
    repository = {
        "id": 1296269,
        "name": "hello",
        "full_name": "octocat/hello",
        "private": False,
        "owner": person,
        "html_url": "https://github.example/octocat/hello",
        "default_branch": "main",
    }
    run = {
        "id": 30433642 + number,
        "name": "Build",
        "head_branch": "main",
        "head_sha": "acb5820ced9479c074f688cc328bf03f341a511d",
        "run_number": number,
        "event": "push",
        "status": "completed",
        "conclusion": "failure",
        "workflow_id": 159038,
        "html_url": "https://github.example/octocat/hello/actions/runs/30433642",
        "created_at": "2026-01-22T19:33:08Z",
        "updated_at": "2026-01-22T19:33:08Z",
        "actor": person,
        "run_attempt": 1,
        "logs_url": "https://api.github.example/repos/octocat/hello/actions/runs/30433642/logs",
        "head_commit": {"id": "acb5820ced9479c074f688cc328bf03f341a511d", "message": "Create linter.yaml"},
    }
    return {"action": "completed", "workflow_run": run, "repository": repository, "sender": person}


def send_webhooks(place: Place, deliveries: Sequence[Delivery], per_second: float = 0) -> Conversation:
    """Accepted events, in a closed loop or at a rate; notes the event ids.

    Anything but 202 ends the benchmark.
    """
    mine = deliveries[place.number % len(deliveries) :: place.connections] or deliveries
    accepted: list[str] = []
    place.notes.append(accepted)
    for turn, signed in enumerate(cycle(mine)):
        answer = yield Send(signed.with_id(str(uuid.uuid4())), place.due_ns(turn, per_second))
        assert answer.status == 202, (answer.status, answer.body)
        accepted.append(answer.json()["event_id"])


# --- the runner plane ---------------------------------------------------------------------------------------


class Held(NamedTuple):
    """A lease as its runner knows it."""

    token: str
    """The runner's."""
    lease_id: str
    event_id: str
    fencing_token: int
    expires_at: int


def poll(site: Site, token: str, *, most: int = 1, wait_ms: int = 0) -> bytes:
    return site.post("/v1/runners/me/leases", {"max": most, "wait_ms": wait_ms}, token=token)


def held(token: str, answer: dict[str, Any]) -> list[Held]:
    """The leases of an answered poll."""
    return [
        Held(
            token,
            lease["lease_id"],
            lease["event"]["event_id"],
            lease["fencing_token"],
            lease["lease_expires_at"],
        )
        for lease in answer["leases"]
    ]


USAGE = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}


def renew(site: Site, lease: Held) -> bytes:
    return site.post(f"/v1/runners/me/leases/{lease.lease_id}/renew", USAGE, token=lease.token)


def renew_many(site: Site, leases: Sequence[Held]) -> bytes:
    """All of one runner."""
    entries = [{"lease_id": one.lease_id, "fencing_token": one.fencing_token, **USAGE} for one in leases]
    return site.post("/v1/runners/me/leases:renew", {"leases": entries}, token=leases[0].token)


def report(site: Site, lease: Held) -> bytes:
    return site.post("/v1/runners/me/reports", report_body(lease), token=lease.token)


def report_many(site: Site, leases: Sequence[Held]) -> bytes:
    """All of one runner."""
    reports = [report_body(lease) for lease in leases]
    return site.post("/v1/runners/me/reports:batch", {"reports": reports}, token=leases[0].token)


def report_body(lease: Held) -> dict[str, Any]:
    return {
        "lease_id": lease.lease_id,
        "event_id": lease.event_id,
        "fencing_token": lease.fencing_token,
        "outcome": "processed",
        "response_text": "Done.",
        "evidence": {"checked": 1},
        **USAGE,
        "telemetry": {"time_to_first_token_ms": None, "wall_ms": 1},
    }


def send_renewals(place: Place, requests: Sequence[bytes], per_second: float = 0) -> Conversation:
    """Renewals, one a request or many, in a closed loop or at a rate of requests; notes the granted."""
    granted = [0]
    place.notes.append(granted)
    mine = requests[place.number :: place.connections]
    for turn, data in enumerate(cycle(mine)):
        answer = yield Send(data, place.due_ns(turn, per_second))
        assert answer.status == 200, (answer.status, answer.body)
        results = answer.json().get("results")
        if results is None:
            granted[0] += 1
        else:
            assert all(result["ok"] for result in results), results
            granted[0] += len(results)


def run_cycles(place: Place, site: Site, tokens: Sequence[str], wait_ms: int) -> Conversation:
    """A slot of a runner: lease one, report it at once; notes ``(event id, whether it counts)`` of each."""
    token = tokens[place.number % len(tokens)]
    asked = poll(site, token, wait_ms=wait_ms)
    while True:
        answer = yield Send(asked, timed=False)
        assert answer.status == 200, (answer.status, answer.body)
        for lease in held(token, answer.json()):
            answer = yield Send(report(site, lease), must=True)
            assert answer.status == 200, (answer.status, answer.body)
            place.notes.append((lease.event_id, place.counts(answer.received_ns)))


def run_batches(place: Place, site: Site, tokens: Sequence[str], most: int, wait_ms: int) -> Conversation:
    """A runner with many slots: lease as many as there are, report them together; notes as ``run_cycles``."""
    token = tokens[place.number % len(tokens)]
    asked = poll(site, token, most=most, wait_ms=wait_ms)
    while True:
        answer = yield Send(asked, timed=False)
        assert answer.status == 200, (answer.status, answer.body)
        leases = held(token, answer.json())
        if not leases:
            continue
        answer = yield Send(report_many(site, leases), must=True)
        assert answer.status == 200, (answer.status, answer.body)
        assert all(result["ok"] for result in answer.json()["results"]), answer.body
        counts = place.counts(answer.received_ns)
        place.notes.extend((lease.event_id, counts) for lease in leases)
