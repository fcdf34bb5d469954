"""Holds the grants of one agent: one for each service, however many ask at once."""

from typing import Any, assert_never
from uuid import UUID

from sexton_actors.addresses import uuid_key
from sexton_actors.grants import transitions
from sexton_actors.held.races import decide_until_kept
from sexton_actors.loans import token_refused
from sexton_actors.protocol import grants as m
from sexton_actors.refusal import Refusal
from sexton_actors.world import World
from sexton_engine import Actor, Context, MailboxSpec
from sexton_storage.attribution import attributed
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.grants import Grant, GrantStatus
from sexton_storage.records.leases import LeaseToken
from sexton_storage.records.zombies import ZombieStatus
from sexton_storage.refusals import FENCED, FULL, GONE, Lost
from sexton_storage.terms import GRANTS_LIMIT

Decision = transitions.Change | transitions.Unchanged | Refusal


class GrantsActor(Actor):
    """The grants of one agent. It serialises their changes on this node; the version tells of another node's.

    They change so seldom that none is kept in mind: each message reads what it is about.
    """

    kind = "grants"
    mailbox = MailboxSpec(capacity=64)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world

    async def on_receive(self, message: m.Request | m.Decide) -> Any:
        """Dispatch."""
        match message:
            case m.Request():
                with attributed(message.audit):
                    return await self._request(message)
            case m.Decide():
                with attributed(message.audit):
                    done = await self._decide(message)
                return done if isinstance(done, Refusal) else done.grant
            case _:
                assert_never(message)

    async def _request(self, message: m.Request) -> m.Requested | Refusal:
        agent_id, grants = uuid_key(self.context), self._world.storage.grants
        if message.held is None and (refusal := await self._killed(agent_id)):
            return refusal

        async def attempt() -> m.Requested | Refusal | Lost:
            found = await grants.find(agent_id, message.service)
            decision = transitions.request(found, agent_id, message, self._world.now_ms())
            return await self._settle(decision, message.held)

        return await decide_until_kept(attempt, "The grant", self._world)

    async def _killed(self, agent_id: UUID) -> Refusal | None:
        """For who asks from outside; a run that asks is told by its lease."""
        zombie = await self._world.storage.zombies.load(agent_id)
        if zombie is None or zombie.status is not ZombieStatus.KILLED:
            return None
        return Refusal("UZ-ZMB-010", "The agent is killed.", {"current_state": str(zombie.status)})

    async def _decide(self, message: m.Decide) -> m.Requested | Refusal:
        async def attempt() -> m.Requested | Refusal | Lost:
            grant = await self._world.storage.grants.load(message.grant_id)
            if grant is None or grant.zombie_id != uuid_key(self.context):
                return Refusal("UZ-APPROVAL-002", f"The agent has no grant {message.grant_id}.")
            if refusal := await self._kept_from(grant, message):
                return refusal
            return await self._settle(transitions.decide(grant, message, self._world.now_ms()), None)

        return await decide_until_kept(attempt, "The grant", self._world)

    async def _kept_from(self, grant: Grant, message: m.Decide) -> Refusal | None:
        """A user who installed an agent holds its token, and may not grant it the workspace's secrets."""
        if not message.by_token or message.status is not GrantStatus.APPROVED:
            return None
        agent = await self._world.storage.zombies.load(grant.zombie_id)
        return token_refused() if agent is not None and not agent.decides_by_token else None

    async def _settle(self, decision: Decision, held: LeaseToken | None) -> m.Requested | Refusal | Lost:
        """Save; ``Lost`` when somebody else was first, and it is to be decided again."""
        match decision:
            case Refusal():
                return decision
            case transitions.Unchanged(grant=grant):
                return m.Requested(grant, made=False)
            case transitions.Change(grant=grant, frames=frames):
                lost = await self._world.storage.grants.save(grant, frames, held)
                return m.Requested(grant, made=True) if lost is None else self._told(lost, held)
            case _:
                assert_never(decision)

    def _told(self, lost: Lost, held: LeaseToken | None) -> Refusal | Lost:
        if lost.reason == GONE:
            return Refusal("UZ-ZMB-009", f"There is no agent {self.context.key}.")
        if lost.reason == FENCED and held is not None:
            return Refusal("UZ-RUN-005", f"Lease {held.lease_id} is no longer held.")
        if lost.reason == FULL:
            detail = f"/service: an agent asks for {GRANTS_LIMIT} services at most."
            return Refusal("UZ-REQ-001", detail, {"pointer": "/service"})
        return lost
