"""Carries out a trial: installs the agent, wakes it once, follows it, and answers what it asks."""

import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import trio

from sexton_actors.manifest.model import Manifest
from sexton_cli.demo.client import StreamFrame
from sexton_cli.exits import FAILED, Fault
from sexton_cli.model_script import open_scripted_model
from sexton_cli.trial.answers import well
from sexton_cli.trial.kept_files import keep_files
from sexton_cli.trial.local_server import (
    RunnerOrder,
    TrialServer,
    open_runner,
    open_trial_server,
)
from sexton_cli.trial.order import Order
from sexton_cli.webhook_samples import Stamp, address_of, sample_of, signed

Decide = Callable[[Mapping[str, Any]], Awaitable[tuple[bool, str]]]
"""Whether a gate is approved, and why."""

FLEETS_MOST: Final = "cpu=64,memory=256GiB,pids=32768,disk=256GiB,wall=12h"
"""All that a manifest may ask for: whoever tries an agent on a machine allows it that much there."""


@dataclass(slots=True)
class Trial:
    """What came of it."""

    event: Mapping[str, Any] = field(default_factory=dict)
    bill: list[Mapping[str, Any]] = field(default_factory=list)
    frames: list[Mapping[str, Any]] = field(default_factory=list)
    files: list[Mapping[str, Any]] = field(default_factory=list)
    """Those that were kept, as the server lists them."""


async def hold_trial(
    order: Order,
    *,
    show: Callable[[StreamFrame], None],
    note: Callable[[str], None],
    decide: Decide,
) -> Trial:
    """Run to the event's end. ``show`` is given each frame of the agent's stream. Raises Fault."""
    with tempfile.TemporaryDirectory(prefix="sexton-trial-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        async with (
            open_trial_server(folder / "data") as server,
            open_scripted_model(order.script) as addresses,
        ):
            zombie, warnings = await _install(server, order)
            for warned in warnings:
                note(warned)
            runner = RunnerOrder(
                state=folder / "runner",
                log=order.runner_log or folder / "runner.log",
                options=(
                    *("--sandbox", order.sandbox.value),
                    *("--run-wall-s", str(order.wall_s), "--run-most", FLEETS_MOST),
                ),
                environment=addresses,
            )
            async with open_runner(server, runner, order.manifest.required_tags):
                event_id = await _wake(server, order, zombie)
                note(f"Event {event_id}.")
                session = _Session(server, str(zombie["zombie_id"]), event_id, show, decide)
                trial = await session.follow()
                if order.out is not None:
                    trial.files = await keep_files(server.client, server.workspace, event_id, order.out)
                return trial


async def _install(server: TrialServer, order: Order) -> tuple[Mapping[str, Any], list[str]]:
    for name, data in order.credentials.items():
        hosts = list(order.manifest.network_hosts)
        body = {"name": name, "data": data, "hosts": hosts}
        well(await server.client.post(f"{server.workspace}/credentials", body), f"credential {name}")
    if order.model is not None:
        path = f"{server.workspace}/credentials/llm"
        well(await server.client.put(path, order.model._asdict()), "the model's key")
    made = well(await server.client.post(f"{server.workspace}/zombies", order.files.body()), "the agent")
    await _grant(server, order.manifest, str(made["zombie_id"]), order.credentials)
    told = [f"{one['file']}:{one['line']}: {one['message']} (warning)" for one in made.get("warnings", ())]
    return made, told


async def _grant(
    server: TrialServer, manifest: Manifest, zombie_id: str, given: Mapping[str, Mapping[str, Any]]
) -> None:
    """Grant the services whose credentials were given: who gives one to a trial means it to be used."""
    agent = f"{server.workspace}/zombies/{zombie_id}"
    for service in manifest.integrations:
        if service in given:
            asked = {"service": service, "reason": "A trial was given its credential."}
            made = well(
                await server.client.post(f"{agent}/integration-requests", asked), f"service {service}"
            )
            place = f"{agent}/integration-grants/{made['grant_id']}"
            well(await server.client.patch(place, {"status": "approved"}), f"the grant of {service}")


async def _wake(server: TrialServer, order: Order, zombie: Mapping[str, Any]) -> str:
    trigger, event_type, content, files = order.wake
    zombie_id = str(zombie["zombie_id"])
    if trigger is None:
        path = f"{server.workspace}/zombies/{zombie_id}/messages"
        message = content.decode(errors="replace")
        if files:
            sent = await server.client.post_files(path, message, files)
        else:
            sent = await server.client.post(path, {"message": message})
        return str(well(sent, "the message")["event_id"])
    stamp = Stamp(str(uuid.uuid4()), int(time.time()))
    made = signed(trigger, sample_of(trigger, event_type, content, stamp), order.signing_secret, stamp)
    place = address_of(zombie_id, trigger)
    if trigger.signature is None:
        place = "/" + str(zombie["webhook_urls"][trigger.source]).split("/", 3)[3]
    answer = well(await server.client.post_raw(place, made.body, made.headers), "the event")
    if "event_id" not in answer:
        why = answer.get("reason") or answer.get("status")
        way_out = "The trigger's `events` say what it wakes for; --source SOURCE:TYPE names another type."
        raise Fault(f"{made.event_type} woke nobody: {why}", way_out, status=FAILED)
    return str(answer["event_id"])


class _Session:
    """One event from its acceptance to its end."""

    def __init__(
        self,
        server: TrialServer,
        zombie_id: str,
        event_id: str,
        show: Callable[[StreamFrame], None],
        decide: Decide,
    ) -> None:
        self._server, self._event_id = server, event_id
        self._agent = f"{server.workspace}/zombies/{zombie_id}"
        self._show, self._decide = show, decide
        self._trial = Trial()

    async def follow(self) -> Trial:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, nursery)
        client = self._server.client
        self._trial.event = well(await client.get(f"{self._agent}/events/{self._event_id}"), "the event")
        path = f"/v1/tenants/me/billing/charges/{self._event_id}/metering-periods"
        self._trial.bill = list(well(await client.get(path), "the bill")["items"])
        return self._trial

    async def _watch(self, nursery: trio.Nursery) -> None:
        # From the agent's first frame on: what it did before the stream was open belongs to it.
        last_id = "0"
        while True:
            async for frame in self._server.client.stream(f"{self._agent}/events/stream", last_id):
                last_id = frame.id or last_id
                self._trial.frames.append(frame.data)
                self._show(frame)
                if frame.kind == "gate_pending":
                    nursery.start_soon(self._answer, str(frame.data["gate_id"]))
                if frame.kind == "event_complete" and frame.data.get("event_id") == self._event_id:
                    # Where the stream is read, so that all that reads it is closed.
                    nursery.cancel_scope.cancel()

    async def _answer(self, gate_id: str) -> None:
        path = f"{self._server.workspace}/approvals/{gate_id}"
        gate = well(await self._server.client.get(path), "the approval")
        if gate.get("status") != "pending":
            return
        approved, reason = await self._decide(gate)
        # It may have been resolved meanwhile, by its time or by the end of the run.
        await self._server.client.post(f"{path}:{'approve' if approved else 'deny'}", {"reason": reason})
