"""Holds one agent: verifies what would wake it, keeps it, and says so to the queue."""

from typing import Any, assert_never

from sexton_actors.manifest.model import Manifest
from sexton_actors.protocol import zombie as m
from sexton_actors.protocol.attributed import Attributed
from sexton_actors.protocol.canary import (
    CanaryMessage,
    JudgeCanary,
    PromoteCanary,
    StartCanary,
    WithdrawCanary,
)
from sexton_actors.protocol.pins import PinAgent, PinMessage, UnpinAgent
from sexton_actors.refusal import Refusal
from sexton_actors.world import World
from sexton_actors.zombie import status
from sexton_actors.zombie.canaries import Canaries
from sexton_actors.zombie.configuration import Configuration
from sexton_actors.zombie.credential_grants import decide_credential
from sexton_actors.zombie.deliveries import Deliveries
from sexton_actors.zombie.firings import Firings
from sexton_actors.zombie.follow_ups import FollowUps
from sexton_actors.zombie.installation import install
from sexton_actors.zombie.pins import change_pin
from sexton_actors.zombie.proposals import Proposals
from sexton_actors.zombie.record import HeldZombie
from sexton_actors.zombie.rejections import Rejections
from sexton_actors.zombie.removal import remove
from sexton_actors.zombie.replays import replay, replay_many
from sexton_actors.zombie.steers import steer
from sexton_actors.zombie.wakeups import Waker
from sexton_engine import Actor, Context, MailboxSpec
from sexton_storage.attribution import attributed
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.configs import ConfigVersion
from sexton_storage.records.improvement import Proposal
from sexton_storage.records.zombies import Zombie

Replays = m.Replay | m.ReplayMany
WakingMessage = (
    m.Deliver
    | m.Redeliver
    | m.TurnedAway
    | m.Steer
    | m.Fire
    | m.FiringMissed
    | m.RunSchedule
    | m.FollowUpDue
    | m.CancelFollowUp
    | Replays
)
StatusMessage = m.ChangeStatus | m.Pause | m.Remove | m.RotateToken | m.DecideCredential
ConfigurationMessage = m.Reconfigure | m.DraftVersion | m.CompileVersion | m.ActivateVersion
ProposalMessage = m.Propose | m.ApproveProposal | m.RejectProposal
Asking = StatusMessage | ConfigurationMessage | ProposalMessage | CanaryMessage | PinMessage
Message = m.Install | WakingMessage | Asking


class ZombieActor(Actor):
    """One agent. It serialises the changes of its record on this node; its queue has its events."""

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
        self._configuration = Configuration(self._held)
        self._proposals = Proposals(self._held, self._configuration)
        self._canaries = Canaries(self._held, self._configuration)

    async def on_receive(self, message: Message) -> Any:
        """Dispatch; the record is looked at again when it may be stale."""
        if isinstance(message, m.Install):
            with attributed(message.audit):
                return await install(self._held, message)
        if isinstance(message, m.ReplayMany) and message.seen is not None:
            self._held.confirm_seen(message.seen, message.seen_at)
        zombie = await self._held.refresh()
        manifest = self._held.manifest
        match message:
            case m.Deliver():
                if zombie is None or manifest is None:
                    return Refusal("UZ-WH-001", f"There is no agent {self._held.id}.")
                return await self._deliveries.deliver(zombie, manifest, message)
            case m.Redeliver() | m.RunSchedule():
                return await self._asked_to_wake(zombie, manifest, message)
            case m.TurnedAway():
                self._deliveries.turned_away(message)
            case m.Steer():
                if zombie is None or manifest is None:
                    return self._held.unknown()
                return await steer(self._held, self._waker, zombie, manifest, message)
            case m.Replay() | m.ReplayMany():
                return await self._replay(zombie, manifest, message)
            case m.Fire() | m.FiringMissed():
                if zombie is not None and manifest is not None:
                    return await self._firings.due(zombie, manifest, message)
            case m.FollowUpDue():
                return await self._follow_ups.due(message)
            case m.CancelFollowUp():
                with attributed(message.audit):
                    return await self._follow_ups.cancel(message)
            case _:
                with attributed(message.audit if isinstance(message, Attributed) else None):
                    return await self._asked(zombie, message)
        return None

    async def _asked_to_wake(
        self, zombie: Zombie | None, manifest: Manifest | None, message: m.Redeliver | m.RunSchedule
    ) -> Any:
        if zombie is None or manifest is None:
            return self._held.unknown()
        if isinstance(message, m.Redeliver):
            return await self._deliveries.deliver_again(zombie, manifest, message)
        return await self._firings.run_now(zombie, manifest, message)

    async def _asked(self, zombie: Zombie | None, message: Asking) -> Any:
        match message:
            case m.ChangeStatus() | m.Pause() | m.RotateToken() | m.Remove() | m.DecideCredential():
                return await self._change(message)
            case m.Reconfigure() | m.DraftVersion() | m.CompileVersion() | m.ActivateVersion():
                return await self._configure(message)
            case m.Propose() | m.ApproveProposal() | m.RejectProposal():
                return self._held.unknown() if zombie is None else await self._decide(zombie, message)
            case StartCanary() | PromoteCanary() | WithdrawCanary() | JudgeCanary():
                return await self._canaries.receive(message)
            case PinAgent() | UnpinAgent():
                return await change_pin(self._held, message)
            case _:
                assert_never(message)

    async def _replay(self, zombie: Zombie | None, manifest: Manifest | None, message: Replays) -> Any:
        if isinstance(message, m.ReplayMany):
            return await replay_many(self._held, self._waker, zombie, manifest, message)
        if zombie is None or manifest is None:
            return self._held.unknown()
        return await replay(self._held, self._waker, zombie, manifest, message)

    async def _change(self, message: StatusMessage) -> Any:
        match message:
            case m.ChangeStatus():
                return await status.change_status(self._held, message)
            case m.Pause():
                return await status.pause(self._held, message)
            case m.RotateToken():
                return await status.rotate_token(self._held, message)
            case m.Remove():
                return await remove(self._held, message)
            case m.DecideCredential():
                return await decide_credential(self._held, message)
            case _:
                assert_never(message)

    async def _configure(self, message: ConfigurationMessage) -> m.Configured | ConfigVersion | Refusal:
        match message:
            case m.Reconfigure():
                return await self._configuration.reconfigure(message)
            case m.DraftVersion():
                return await self._configuration.draft(message)
            case m.CompileVersion():
                return await self._configuration.compile(message)
            case m.ActivateVersion():
                return await self._configuration.activate_version(message)
            case _:
                assert_never(message)

    async def _decide(self, zombie: Zombie, message: ProposalMessage) -> Proposal | m.Decided | Refusal:
        match message:
            case m.Propose():
                return await self._proposals.propose(zombie, message)
            case m.ApproveProposal():
                return await self._proposals.approve(message)
            case m.RejectProposal():
                return await self._proposals.reject(message)
            case _:
                assert_never(message)
