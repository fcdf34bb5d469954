"""The steps of the demo, in order; each says what it does and checks the outcome."""

import re
import uuid
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec
import trio

from sexton_cli import example_files
from sexton_cli.demo.client import Client, StreamFrame
from sexton_cli.demo.git_server import GitServer, make_repository
from sexton_cli.demo.issue_triage import triage
from sexton_cli.demo.model import Model
from sexton_cli.demo.stage import RUN_S, Stage
from sexton_cli.example_files import Example

THINK_S = 300.0
"""A model takes its time, and is asked again when its provider is busy."""
RECLAIM_S = 75.0
"""A lease's term of 30 s, the second that follows it, and the run itself."""
PAYLOAD: Final = ("deploy-doctor", "workflow_run.failed.json")
REPOSITORY: Final = "octo-org/parcel-service"
NETWORK: Final = re.compile(r"^credentials:.*?(?=^budget:)", re.MULTILINE | re.DOTALL)
"""The part of its files by which deploy-doctor reaches a git server."""


def _broken_by(commit: str, git: GitServer, body: bytes) -> bytes:
    """The event of the example, about a commit that is really there."""
    payload: dict[str, Any] = msgspec.json.decode(body)
    payload["repository"]["clone_url"] = f"{git.base_url}/{REPOSITORY}.git"
    payload["workflow_run"]["head_sha"] = payload["workflow_run"]["head_commit"]["id"] = commit
    return msgspec.json.encode(payload)


class Scenario(Stage):
    """One run of the demo against a server."""

    async def run(self) -> None:
        """Play all acts."""
        await self.set_up()
        await self.woken_gated_billed()
        if self.model is None:
            await triage(self)
        await self.reclaimed()

    async def set_up(self) -> None:
        """Enrol a runner, and keep what the acts need."""
        self.tell.act("The server is up: an empty folder became a database, a tenant, a workspace and a key")
        for name in ("base_url", "tenant_id", "workspace_id"):
            self.tell.fact(f"{name:<13} {self.server.ready[name]}")
        await self.enrol("elm")
        secret = {"webhook_secret": self.webhook_secret}
        await self.keep("the webhook's signing secret is sealed in the vault", "github", secret)
        if self.model is not None:
            await self._lend(self.model)

    async def _lend(self, model: Model) -> None:
        kept = await self.client.put(f"{self.workspace}/credentials/llm", model._asdict())
        self.tell.check(
            f"the workspace has a model of {model.provider}'s", kept.status == HTTPStatus.NO_CONTENT, kept
        )

    # --- one event, from the signed webhook to the bill ----------------------------------------------------

    async def woken_gated_billed(self) -> None:
        self.tell.act("A failed GitHub workflow_run wakes deploy-doctor")
        git = None if self.model else self.outside.git
        body, files = await self._prepared(git)
        zombie_id, urls = await self.install("deploy-doctor", files)
        within_s = THINK_S if self.model else RUN_S
        before = await self.balance()
        watcher = self.watcher(zombie_id)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watcher.follow)
            event_id = await self._knock(urls["github"], body)
            pending = await watcher.until(lambda f: f.kind == "gate_pending", within_s)
            await self._approve(pending.data["gate_id"])
            done = await watcher.until(lambda f: f.kind == "event_complete", within_s)
            self.tell.check(
                "the run went on and was processed", done.data["status"] == "processed", done.data
            )
            nursery.cancel_scope.cancel()
        if git is not None:
            self._reverted(git, watcher.frames)
        await self._evidence(zombie_id, event_id)
        await self._bill(event_id, before)

    async def _prepared(self, git: GitServer | None) -> tuple[bytes, Example]:
        """The event and the agent's files: those of a repository here, where git can serve one."""
        body = example_files.payload(*PAYLOAD)
        if self.model is not None:
            return body, example_files.load("deploy-doctor/with-model")
        files = example_files.load("deploy-doctor")
        if git is None:
            self.tell.fact("no git http-backend on this machine: it plans, and there is nothing to revert on")
            return body, files._replace(trigger_markdown=NETWORK.sub("", files.trigger_markdown))
        await self.keep(
            "its token for the git server is sealed, too", "git-push", {"token": self.outside.git_token}
        )
        port = git.base_url.rpartition(":")[2]
        allowed = files.trigger_markdown.replace("host: github.com", f"host: localhost, ports: [{port}]")
        return _broken_by(make_repository(git, REPOSITORY), git, body), files._replace(
            trigger_markdown=allowed
        )

    def _reverted(self, git: GitServer, frames: Sequence[StreamFrame]) -> None:
        """Look at the server itself, not at what the agent says of it."""
        last = git.git(REPOSITORY, "log", "-1", "--format=%an: %s", "main")
        self.tell.fact(f"main is at      {last}")
        content = git.git(REPOSITORY, "show", "main:labels.toml")
        self.tell.check(
            "the commit to blame is reverted on the git server", content == "batch_size = 1", last
        )
        seen = [frame.data for frame in frames if frame.kind == "connection"]
        passed = sum(one["count"] for one in seen if one["verdict"] == "allowed")
        refused = [
            f"{one['method']} {one['host']}:{one['port']}" for one in seen if one["verdict"] != "allowed"
        ]
        self.tell.fact(f"it reached      {git.base_url}, by {passed} requests")
        self.tell.fact(f"it was refused  {', '.join(refused) or 'nothing'}")
        asked = len(git.asked)
        self.tell.check(
            "all that reached the git server came through the run's proxy", passed == asked, (passed, asked)
        )

    async def _knock(self, url: str, body: bytes) -> str:
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
        watcher = self.watcher(zombie_id)
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
