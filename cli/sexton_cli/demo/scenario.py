"""The steps of the demo, in order; each says what it does and checks the outcome."""

import secrets
import time
import uuid
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import trio

from sexton_actors.manifest.model import Signature, WebhookTrigger
from sexton_cli import example_files
from sexton_cli.demo.client import Answer, Client, StreamFrame
from sexton_cli.demo.environment import DemoServer
from sexton_cli.demo.model import Model
from sexton_cli.demo.narration import Narrator
from sexton_cli.webhook_samples import Stamp, sample_of, signed

GITHUB = WebhookTrigger("github", signature=Signature("github"))
RUN_S = 45.0
THINK_S = 300.0
"""A model takes its time, and is asked again when its provider is busy."""
RECLAIM_S = 75.0
"""A lease's term of 30 s, the second that follows it, and the run itself."""


class Watcher:
    """Follows one agent's stream, tells each frame, and lets others wait for one."""

    def __init__(self, client: Client, path: str, narrator: Narrator) -> None:
        self._client = client
        self._path = path
        self._narrator = narrator
        self.frames: list[StreamFrame] = []
        self._news = trio.Event()

    async def follow(self) -> None:
        # From the agent's first frame on: what it does before the stream is open belongs to the tale.
        last_id = "0"
        while True:
            async for frame in self._client.stream(self._path, last_id):
                last_id = frame.id
                self._narrator.frame(frame.id, frame.kind, frame.data)
                self.frames.append(frame)
                self._news.set()
                self._news = trio.Event()

    async def until(
        self, what: Callable[[StreamFrame], bool], within_s: float, *, after: int = 0
    ) -> StreamFrame:
        """The first frame, from the ``after``-th on, that is so; raises trio.TooSlowError."""
        with trio.fail_after(within_s):
            while True:
                for frame in self.frames[after:]:
                    if what(frame):
                        return frame
                news = self._news
                await news.wait()


class Scenario:
    """One run of the demo against a server."""

    def __init__(
        self, server: DemoServer, client: Client, admin: Client, narrator: Narrator, model: Model | None
    ) -> None:
        self.model = model
        self.server = server
        self.client = client
        self.admin = admin
        self.tell = narrator
        self.workspace = f"/v1/workspaces/{server.ready['workspace_id']}"
        self.webhook_secret = secrets.token_hex(20)

    async def enrol(self, name: str) -> None:
        minted = await self.admin.post("/v1/fleet/enrolment-tokens")
        self.server.start_runner(name, minted.body["token"])
        self.tell.fact(f"runner {name!r} enrols itself with a one-time token")

    async def install(self, example: str, variant: str = "") -> tuple[str, dict[str, str]]:
        files = example_files.load(f"{example}/{variant}")
        made = await self.client.post(f"{self.workspace}/zombies", files._asdict())
        self.tell.check(f"agent {example} is installed", made.status == HTTPStatus.CREATED, made)
        self.tell.fact(f"zombie_id {made.body['zombie_id']}")
        return made.body["zombie_id"], made.body["webhook_urls"]

    async def deliver(
        self, url: str, event: str, body: bytes, delivery: str, *, secret: str | None = None
    ) -> Answer:
        path = "/" + url.split("/", 3)[3]
        stamp = Stamp(delivery, int(time.time()))
        made = sample_of(GITHUB, event, body, stamp)
        sent = signed(GITHUB, made, secret or self.webhook_secret, stamp)
        return await self.client.post_raw(path, sent.body, sent.headers)

    async def balance(self) -> int:
        return int((await self.client.get("/v1/tenants/me/billing")).body["balance_nanos"])

    async def run(self) -> None:
        self.tell.act("The server is up: an empty folder became a database, a tenant, a workspace and a key")
        for name in ("base_url", "tenant_id", "workspace_id"):
            self.tell.fact(f"{name:<13} {self.server.ready[name]}")
        await self.enrol("elm")
        kept = await self.client.post(
            f"{self.workspace}/credentials",
            {"name": "github", "data": {"webhook_secret": self.webhook_secret}},
        )
        self.tell.check(
            "the webhook's signing secret is sealed in the vault", kept.status == HTTPStatus.CREATED, kept
        )
        if self.model is not None:
            await self._lend(self.model)
        await self.woken_gated_billed()
        await self.reclaimed()

    async def _lend(self, model: Model) -> None:
        kept = await self.client.put(f"{self.workspace}/credentials/llm", model._asdict())
        self.tell.check(
            f"the workspace has a model of {model.provider}'s", kept.status == HTTPStatus.NO_CONTENT, kept
        )

    # --- one event, from the signed webhook to the bill ----------------------------------------------------

    async def woken_gated_billed(self) -> None:
        self.tell.act("A failed GitHub workflow_run wakes deploy-doctor")
        zombie_id, urls = await self.install("deploy-doctor", "with-model" if self.model else "")
        within_s = THINK_S if self.model else RUN_S
        before = await self.balance()
        watcher = Watcher(self.client, f"{self.workspace}/zombies/{zombie_id}/events/stream", self.tell)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watcher.follow)
            event_id = await self._knock(urls["github"])
            pending = await watcher.until(lambda f: f.kind == "gate_pending", within_s)
            await self._approve(pending.data["gate_id"])
            done = await watcher.until(lambda f: f.kind == "event_complete", within_s)
            self.tell.check(
                "the run went on and was processed", done.data["status"] == "processed", done.data
            )
            nursery.cancel_scope.cancel()
        await self._evidence(zombie_id, event_id)
        await self._bill(event_id, before)

    async def _knock(self, url: str) -> str:
        body = example_files.payload("deploy-doctor", "workflow_run.failed.json")
        delivery = str(uuid.uuid4())
        forged = await self.deliver(url, "workflow_run", body, str(uuid.uuid4()), secret="not the secret")  # noqa: S106
        code = forged.body.get("error_code")
        self.tell.check(
            "a forged signature is refused with UZ-WH-010",
            (forged.status, code) == (401, "UZ-WH-010"),
            forged,
        )
        accepted = await self.deliver(url, "workflow_run", body, delivery)
        self.tell.check(
            f"{len(body)} signed bytes are accepted with 202",
            accepted.status == HTTPStatus.ACCEPTED,
            accepted,
        )
        again = await self.deliver(url, "workflow_run", body, delivery)
        same = again.body.get("event_id") == accepted.body.get("event_id")
        repeated = (again.status, again.body.get("status")) == (200, "duplicate")
        self.tell.check("the same delivery again is a duplicate", repeated and same, again)
        return str(accepted.body["event_id"])

    async def _approve(self, gate_id: str) -> None:
        listed = await self.client.get(f"{self.workspace}/approvals?status=pending")
        gates = [gate for gate in listed.body["items"] if gate["gate_id"] == gate_id]
        self.tell.check("the gate waits in the inbox", len(gates) == 1, listed.body)
        for name in ("action_id", "tool_name", "action_name", "proposed_action", "blast_radius"):
            if gates and gates[0].get(name):
                self.tell.fact(f"{name:<16} {gates[0][name]}")
        approved = await self.client.post(
            f"{self.workspace}/approvals/{gate_id}:approve", {"reason": "Looks right."}
        )
        self.tell.check(
            "it is approved by a person with a key", approved.body.get("outcome") == "approved", approved
        )
        again = await self.client.post(f"{self.workspace}/approvals/{gate_id}:deny", {})
        told = (again.status, again.body.get("outcome")) == (404, "approved")
        self.tell.check("a second decision is refused and told the first", told, again)

    async def _evidence(self, zombie_id: str, event_id: str) -> None:
        history = await self.client.get(f"{self.workspace}/zombies/{zombie_id}/events?limit=10")
        events = [item for item in history.body["items"] if item["event_id"] == event_id]
        self.tell.check("the history holds the event exactly once", len(events) == 1, history.body)
        evidence = events[0]["evidence"] if events else None
        self.tell.check("it carries evidence", bool(evidence), events)
        if self.model is not None:
            provider = (evidence or {}).get("provider")
            self.tell.check("and says whose model carried it out", provider == self.model.provider, evidence)
            self.tell.fact(events[0]["response_text"] if events else "")
        self.tell.data(evidence)

    async def _bill(self, event_id: str, before: int) -> None:
        path = f"/v1/tenants/me/billing/charges/{event_id}/metering-periods"
        rows = (await self.client.get(path)).body["items"]
        columns = ["slice", "run_ms", "run_fee_nanos", "token_cost_nanos", "charged_nanos"]
        cells = [[str(row["slice_seq"]), *(str(row[name]) for name in columns[1:])] for row in rows]
        self.tell.table("Metering periods", columns, cells)
        charged, gone = sum(row["charged_nanos"] for row in rows), before - await self.balance()
        self.tell.check(
            f"the rows' sum is the money gone: {charged} nanos (${charged / 1e9:.6f})",
            charged == gone and charged > 0,
            f"rows {charged}, gone {gone}",
        )

    # --- a second event, whose runner is killed ------------------------------------------------------------

    async def reclaimed(self) -> None:
        self.tell.act("A second event; its runner is killed in the middle")
        zombie_id, _ = await self.install("night-watch")
        watcher = Watcher(self.client, f"{self.workspace}/zombies/{zombie_id}/events/stream", self.tell)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watcher.follow)
            sent = await self.client.post(
                f"{self.workspace}/zombies/{zombie_id}/messages", {"message": "watch"}
            )
            self.tell.check("a person's message wakes night-watch", sent.status == HTTPStatus.ACCEPTED, sent)
            first = await watcher.until(lambda f: f.kind == "event_leased", RUN_S)
            await watcher.until(lambda f: f.kind in {"chunk", "tool_call_started"}, RUN_S)
            token = self.server.runner_token("elm")
            self.server.kill_runner("elm")
            self.tell.fact("kill -9 of runner 'elm'; its lease runs out within 30 s")
            await self.enrol("oak")
            await watcher.until(lambda f: f.kind == "lease_reclaimed", RECLAIM_S)
            mark = len(watcher.frames)
            second = await watcher.until(lambda f: f.kind == "event_leased", RUN_S, after=mark - 1)
            done = await watcher.until(lambda f: f.kind == "event_complete", RECLAIM_S)
            nursery.cancel_scope.cancel()
        self._compare(first.data, second.data, done.data)
        await self._report_late(token, first.data)

    def _compare(self, first: dict[str, Any], second: dict[str, Any], done: dict[str, Any]) -> None:
        tokens = (first["fencing_token"], second["fencing_token"])
        self.tell.check(f"the fencing token grew, {tokens[0]} → {tokens[1]}", tokens[1] > tokens[0], tokens)
        self.tell.check("another runner took it over", first["runner_id"] != second["runner_id"], second)
        self.tell.check("and brought it to its end", done["status"] == "processed", done)

    async def _report_late(self, token: str, first: dict[str, Any]) -> None:
        dead = Client(self.client.http, token)
        report = {
            "lease_id": first["lease_id"],
            "event_id": first["event_id"],
            "fencing_token": first["fencing_token"],
            "outcome": "processed",
            "response_text": "Too late.",
            "input_tokens": 0,
            "cached_input_tokens": 0,
            "output_tokens": 0,
            "telemetry": {"time_to_first_token_ms": None, "wall_ms": 1},
        }
        late = await dead.post("/v1/runners/me/reports", report)
        refused = (late.status, late.body.get("error_code")) == (409, "UZ-RUN-005")
        self.tell.check("the dead runner's late report is refused with UZ-RUN-005", refused, late)
        self.tell.fact(str(late.body.get("detail")))
