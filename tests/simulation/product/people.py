"""Those who send events, decide at gates and look: each over HTTP, each patient."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, NamedTuple
from uuid import UUID

import httpx2
import trio

from tests.simulation.product import busy_agents
from tests.simulation.product.busy_agents import BusyAgent
from tests.simulation.product.deliveries import ID_HEADER, body_of, comes_again, headers_of
from tests.simulation.product.node import NAME, PORT
from tests.simulation.product.pace import DENSE, Pace
from tests.simulation.product.requests import tell_of
from tests.simulation.product.slow_agents import SlowAgent
from tests.simulation.world.tale import Tale
from tests.worlds.samples import SECRET, agent_files
from tests.worlds.trust import TRUST

PATIENCE_S: Final = 20.0
QUICK_SHARE: Final = 0.5
"""The part of the gates that is answered in the moment in which the run gives up waiting."""
QUICK_S: Final = (0.0, 0.008)
"""So that now the answer is kept first, and now the parking."""
AGAIN_S: Final = 0.3
"""After its answer a delivery that comes again is sent without its id."""


class Presented(NamedTuple):
    """Something that expires was shown at the door; times by the database's clock, in ms."""

    what: str
    asked_ms: int
    answered_ms: int
    expires_ms: int
    status: int


class AskedJob(NamedTuple):
    """What a bulk job was asked to do; times by the database's clock, in ms."""

    mark: str
    """What the events have that a replay makes: their requests say ``"job"`` and this."""
    agent: UUID
    after_ms: int
    before_ms: int
    asked_ms: int
    replays: bool
    """It replays what is over; else it cancels what is not."""

    @property
    def filter(self) -> str:
        return f"agent:{self.agent} after:{self.after_ms} before:{self.before_ms}"


class ToldOfProposal(NamedTuple):
    """What a person was told who decided on a proposal, be it by this or by an earlier decision."""

    proposal_id: UUID
    status: str
    reason: str | None = None
    config_version_id: str | None = None


@dataclass
class Promises:
    """What people were told, which the judges hold the rows to."""

    agents: list[UUID] = field(default_factory=list)
    priced: set[UUID] = field(default_factory=set)
    """Agents whose model has a price."""
    accepted: dict[UUID, str] = field(default_factory=dict)
    """Event to the delivery that it was accepted for."""
    decided: dict[UUID, str] = field(default_factory=dict)
    """Gate to the outcome that the one who decided was told."""
    asked: dict[UUID, str] = field(default_factory=dict)
    """Gate to the outcome that its first answer asked for."""
    followed: list[int] = field(default_factory=list)
    """Numbers of frames of the first agent's stream, as one who follows it was sent them."""
    strangers_saw: list[str] = field(default_factory=list)
    """What another tenant was shown of this one."""
    presented: list[Presented] = field(default_factory=list)
    """Keys and tokens that expire, as they were answered since the judges looked."""
    jobs: dict[str, AskedJob] = field(default_factory=dict)
    """Filter to the bulk job that was asked for with it; no two are alike."""
    granted: dict[str, int] = field(default_factory=dict)
    """Reason to the credit that was asked for, in nanos; no two are alike."""
    credited: set[str] = field(default_factory=set)
    """Reasons of those that were told to be there."""
    taken_back: set[UUID] = field(default_factory=set)
    """Follow-ups that are not to come, as the person was told who took them back."""
    proposals: list[ToldOfProposal] = field(default_factory=list)
    """What those were told who decided on proposals, since the judges looked."""
    is_calm: bool = False
    """No faults any more, and no new deliveries."""
    tries: int = 0
    failures: int = 0


class Caller:
    """Asks any of the nodes, and again until there is an answer that means something."""

    def __init__(
        self,
        api_key: str,
        workspace_id: UUID,
        promises: Promises,
        rng: Random,
        *,
        tale: Tale | None = None,
        pace: Pace = DENSE,
        bulk_work: bool = False,
    ) -> None:
        self._tale = tale
        self.habits = pace.habits
        self._varied = bulk_work and pace.habits.varied_deliveries
        dense = busy_agents.AGENTS if bulk_work else busy_agents.PLAIN
        self._agents: Sequence[SlowAgent | BusyAgent] = pace.agents or dense
        self.workspace = f"/v1/workspaces/{workspace_id}"
        self._api_key = api_key
        self.promises = promises
        self.rng = rng

    def open(self) -> httpx2.AsyncClient:
        """Connections of one program."""
        http = httpx2.AsyncClient(base_url=f"http://{NAME}:{PORT}", timeout=PATIENCE_S, verify=TRUST)
        tell_of(http, self._tale, "people")
        return http

    async def ask(self, http: httpx2.AsyncClient, method: str, path: str, **rest: Any) -> httpx2.Response:
        """The first answer that is not about the server's own state."""
        headers = {"authorization": f"Bearer {self._api_key}", **rest.pop("headers", {})}
        while True:
            self.promises.tries += 1
            try:
                answer = await http.request(method, path, headers=headers, **rest)
                if answer.status_code < 500 and answer.status_code not in (408, 425, 429):
                    return answer
            except httpx2.TransportError:
                pass
            self.promises.failures += 1
            await trio.sleep(self.rng.uniform(*self.habits.again))

    async def set_up(self, http: httpx2.AsyncClient, agents: int, runners: int, admin: str) -> list[str]:
        """Install agents and enrol runners; give the runners' tokens."""
        secret = {"name": "github-hook", "data": {"webhook_secret": SECRET}}
        await self.ask(http, "POST", f"{self.workspace}/credentials", json=secret)
        for number in range(agents):
            name, agent = f"doctor-{number}", self._agents[number]
            body = f"You are {name}: look at the failed run.\n"
            files = agent_files(name, agent.config(), body=body, model=agent.model)
            made = await self.ask(http, "POST", f"{self.workspace}/zombies", json=files)
            assert made.status_code == 201, made.text
            agent_id = UUID(made.json()["zombie_id"])
            self.promises.agents.append(agent_id)
            if agent.model:
                self.promises.priced.add(agent_id)
        return [await self._enrol(http, f"runner-{number + 1}", admin) for number in range(runners)]

    async def _enrol(self, http: httpx2.AsyncClient, host: str, admin: str) -> str:
        bearer = {"authorization": f"Bearer {admin}"}
        minted = await self.ask(http, "POST", "/v1/fleet/enrolment-tokens", json={}, headers=bearer)
        bearer = {"authorization": f"Bearer {minted.json()['token']}"}
        body = {"host_id": host, "sandbox_tier": "bubblewrap", "labels": [], "slots": 2}
        enrolled = await self.ask(http, "POST", "/v1/runners", json=body, headers=bearer)
        assert enrolled.status_code == 201, enrolled.text
        return str(enrolled.json()["runner_token"])

    async def keep_days(self, http: httpx2.AsyncClient, days: int) -> None:
        """Have everything deleted that is older."""
        kept = {f"{what}_days": days for what in ("event", "transcript", "file", "delivery")}
        answer = await self.ask(http, "PUT", f"{self.workspace}/retention", json=kept)
        assert answer.status_code == 200, answer.text

    async def send(self, name: str) -> None:
        """Send deliveries of webhooks, each until it is taken."""
        number, mean_s = 0, self.habits.delivery_s
        agents = [
            agent for place, agent in enumerate(self.promises.agents) if self._agents[place].is_written_to
        ]
        async with self.open() as http:
            while not self.promises.is_calm:
                await trio.sleep(self.rng.uniform(0, 2 * mean_s))
                number += 1
                await self._deliver(http, self.rng.choice(agents), f"{name}-{number}")

    async def _deliver(self, http: httpx2.AsyncClient, agent: UUID, delivery: str) -> None:
        body = body_of(delivery, varied=self._varied)
        headers = headers_of(delivery, body)
        await self._accept(http, agent, delivery, body, headers)
        if self._varied and comes_again(delivery):
            await trio.sleep(AGAIN_S)
            del headers[ID_HEADER]
            await self._accept(http, agent, delivery, body, headers)

    async def _accept(
        self, http: httpx2.AsyncClient, agent: UUID, delivery: str, body: bytes, headers: dict[str, str]
    ) -> None:
        path = f"/v1/webhooks/{agent}/github"
        answer = await self.ask(http, "POST", path, content=body, headers=headers)
        assert answer.status_code in (200, 202), answer.text
        known = self.promises.accepted.setdefault(UUID(answer.json()["event_id"]), delivery)
        assert known == delivery, "two deliveries were told the same event"

    async def decide(self) -> None:
        """Approve or deny what waits at gates, now and then."""
        async with self.open() as http:
            while True:
                # Now and then nobody is there for so long that runs park, and gates time out.
                away = self.rng.random() < 0.15
                habits = self.habits
                await trio.sleep(self.rng.uniform(*(habits.away_from_gates if away else habits.at_gates)))
                page = await self.ask(http, "GET", f"{self.workspace}/approvals?status=pending")
                for gate in page.json()["items"]:
                    if self.rng.random() < 0.7:
                        await self._resolve(http, UUID(gate["gate_id"]))

    async def decide_at_parking(self, parkings: trio.MemoryReceiveChannel[UUID]) -> None:
        """Answer some gates in the very moment in which a run gives up waiting for the answer and parks."""
        async with self.open() as http, trio.open_nursery() as nursery:
            async for gate_id in parkings:
                after_s = self.rng.uniform(*QUICK_S)
                if self.rng.random() < QUICK_SHARE:
                    nursery.start_soon(self._resolve_after, http, gate_id, after_s)

    async def _resolve_after(self, http: httpx2.AsyncClient, gate_id: UUID, after_s: float) -> None:
        await trio.sleep(after_s)
        await self._resolve(http, gate_id)

    async def _resolve(self, http: httpx2.AsyncClient, gate_id: UUID) -> None:
        word = "approve" if self.rng.random() < 0.7 else "deny"
        path = f"{self.workspace}/approvals/{gate_id}:{word}"
        answer = await self.ask(http, "POST", path, json={})
        if answer.status_code == 200:
            outcome = answer.json()["outcome"]
            self.promises.asked.setdefault(gate_id, "approved" if word == "approve" else "denied")
            known = self.promises.decided.setdefault(gate_id, outcome)
            assert known == outcome, "a gate was resolved twice, and not alike"

    async def follow(self) -> None:
        """Follow the first agent's stream, and come back by the last number whenever it breaks off."""
        heard, habits = self.promises.followed, self.habits
        path = f"{self.workspace}/zombies/{self.promises.agents[0]}/events/stream"
        async with self.open() as http:
            while True:
                last = str(heard[-1]) if heard else "0"
                headers = {"authorization": f"Bearer {self._api_key}", "last-event-id": last}
                try:
                    for_s = (
                        float("inf") if habits.follow_for is None else self.rng.uniform(*habits.follow_for)
                    )
                    with trio.move_on_after(for_s):
                        async with http.stream("GET", path, headers=headers) as answer:
                            number = 0
                            async for line in answer.aiter_lines():
                                # An id without an event says where the stream begins.
                                if line.startswith("id:"):
                                    number = int(line[3:])
                                elif line.startswith("event:"):
                                    heard.append(number)
                except httpx2.TransportError:
                    pass
                await trio.sleep(self.rng.uniform(*habits.follow_again))

    async def pry(self) -> None:
        """Ask for what is another tenant's, and note what is shown."""
        async with self.open() as http:
            while True:
                await trio.sleep(self.rng.uniform(*self.habits.pry))
                agent = self.rng.choice(self.promises.agents)
                own = f"{self.workspace}/zombies/{agent}"
                path = self.rng.choice(
                    (own, f"{own}/events", f"{self.workspace}/approvals", f"{self.workspace}/zombies")
                )
                answer = await self.ask(http, "GET", path)
                if answer.status_code not in (401, 403, 404):
                    self.promises.strangers_saw.append(f"GET {path}: {answer.status_code}")
