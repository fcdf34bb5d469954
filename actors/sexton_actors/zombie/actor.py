"""Holds one agent: verifies what would wake it, keeps it, and says so to the queue."""

from typing import Any, assert_never

from sexton_actors.manifest.model import Manifest, from_json
from sexton_actors.protocol import zombie as m
from sexton_actors.refusal import Refusal
from sexton_actors.world import World
from sexton_actors.zombie import transitions
from sexton_actors.zombie.configuration import Configuring
from sexton_actors.zombie.deliveries import Deliveries
from sexton_actors.zombie.firings import Firings
from sexton_actors.zombie.follow_ups import FollowUps
from sexton_actors.zombie.installation import install
from sexton_actors.zombie.proposals import Proposing
from sexton_actors.zombie.record import HeldZombie
from sexton_actors.zombie.rejections import Rejections
from sexton_actors.zombie.removal import remove
from sexton_actors.zombie.replays import replay
from sexton_actors.zombie.wakeups import Waker
from sexton_engine import Actor, Context, MailboxSpec
from sexton_storage.errors import NameTaken, StorageUnavailable
from sexton_storage.records.configs import ConfigVersion
from sexton_storage.records.improvement import Proposal
from sexton_storage.records.zombies import Zombie

Waking = m.Deliver | m.TurnedAway | m.Steer | m.Fire | m.FollowUpDue | m.CancelFollowUp | m.Replay
Changing = m.ChangeStatus | m.Pause | m.Remove | m.RotateToken
Configuration = m.Reconfigure | m.DraftVersion | m.CompileVersion | m.ActivateVersion
Proposals = m.Propose | m.ApproveProposal | m.RejectProposal
Message = m.Install | Waking | Changing | Configuration | Proposals


class ZombieActor(Actor):
    """One agent, and the only writer of its record on this node; its events are its queue's once kept."""

    kind = "zombie"
    mailbox = MailboxSpec(capacity=2048)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._held = HeldZombie(context, world)
        self._rejections = Rejections(self._held)
        self._waker = Waker(self._held, self._rejections)
        self._deliveries = Deliveries(self._held, self._waker, self._rejections)
        self._firings = Firings(self._held, self._waker)
        self._follow_ups = FollowUps(self._held, self._waker)
        self._configuring = Configuring(self._held)
        self._proposing = Proposing(self._held, self._configuring)

    async def on_receive(self, message: Message) -> Any:
        """Dispatch; the record is looked at again when it may be stale."""
        if isinstance(message, m.Install):
            return await self._install(message)
        zombie = await self._held.refresh()
        manifest = self._held.manifest
        match message:
            case m.Deliver():
                if zombie is None or manifest is None:
                    return Refusal("UZ-WH-001", f"There is no agent {self._held.id}.")
                return await self._deliveries.deliver(zombie, manifest, message)
            case m.TurnedAway():
                self._deliveries.turned_away(message)
            case m.Steer():
                if zombie is None or manifest is None:
                    return self._held.unknown()
                return await self._steer(zombie, manifest, message)
            case m.Replay():
                if zombie is None or manifest is None:
                    return self._held.unknown()
                return await replay(self._held, self._waker, zombie, manifest, message)
            case m.Fire():
                if zombie is not None and manifest is not None:
                    return await self._firings.fire(zombie, manifest, message)
            case m.FollowUpDue():
                return await self._follow_ups.due(message)
            case m.CancelFollowUp():
                return await self._follow_ups.cancel(message)
            case m.ChangeStatus() | m.Pause() | m.RotateToken() | m.Remove():
                return await self._change(message)
            case m.Reconfigure() | m.DraftVersion() | m.CompileVersion() | m.ActivateVersion():
                return await self._configure(message)
            case m.Propose() | m.ApproveProposal() | m.RejectProposal():
                return self._held.unknown() if zombie is None else await self._decide(zombie, message)
            case _:
                assert_never(message)
        return None

    async def _change(self, message: Changing) -> Any:
        match message:
            case m.ChangeStatus():
                return await self._change_status(message)
            case m.Pause():
                paused = await self._held.change(lambda z, now: transitions.pause(z, message.reason, now))
                return paused if isinstance(paused, Refusal) else None
            case m.RotateToken():
                rotated = await self._held.change(
                    lambda z, now: transitions.rotate_token(z, message.token_hash, now)
                )
                return rotated if isinstance(rotated, Refusal) else m.TokenRotated(rotated)
            case m.Remove():
                return await remove(self._held, message)
            case _:
                assert_never(message)

    async def _configure(self, message: Configuration) -> m.Configured | ConfigVersion | Refusal:
        match message:
            case m.Reconfigure():
                return await self._configuring.reconfigure(message)
            case m.DraftVersion():
                return await self._configuring.draft(message)
            case m.CompileVersion():
                return await self._configuring.compile(message)
            case m.ActivateVersion():
                return await self._configuring.activate_version(message)
            case _:
                assert_never(message)

    async def _decide(self, zombie: Zombie, message: Proposals) -> Proposal | m.Decided | Refusal:
        match message:
            case m.Propose():
                return await self._proposing.propose(zombie, message)
            case m.ApproveProposal():
                return await self._proposing.approve(message)
            case m.RejectProposal():
                return await self._proposing.reject(message)
            case _:
                assert_never(message)

    async def _install(self, message: m.Install) -> m.Installed | Refusal:
        world = self._held.world
        new = install(self._held.id, message, world.new_id, world.new_token, world.now_ms())
        if isinstance(new, Refusal):
            return new
        if refusal := await world.entitlements.may_hold(message.tenant_id, from_json(new.zombie.compiled)):
            return refusal
        try:
            await world.storage.zombies.create(new.zombie, new.config)
        except NameTaken:
            return self._held.name_taken(new.zombie.name)
        self._held.doubt()
        self._held.tell_scheduler(new.zombie)
        return m.Installed(new.zombie, new.webhook_paths, new.approval_token)

    async def _steer(self, zombie: Zombie, manifest: Manifest, message: m.Steer) -> Any:
        paused = self._held.workspace_paused
        if refusal := transitions.may_be_messaged(zombie, message.message, workspace_paused=paused):
            return await self._waker.kept_before(message.key) or refusal
        if refusal := await self._held.world.entitlements.may_ask_for_work(zombie.tenant_id):
            return await self._waker.kept_before(message.key) or refusal
        waking = transitions.Waking(
            actor=f"steer:{message.by}",
            event_type="message",
            request={"message": message.message},
            dedup_key=message.key,
            traceparent=message.traceparent,
        )
        return await self._waker.wake(zombie, manifest, waking, webhook=False)

    async def _change_status(self, message: m.ChangeStatus) -> m.StatusChanged | Refusal:
        changed = await self._held.change(
            lambda zombie, now: transitions.change_status(zombie, message.status, message.by, now)
        )
        return changed if isinstance(changed, Refusal) else m.StatusChanged(changed)
