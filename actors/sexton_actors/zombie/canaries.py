"""Tries out one of an agent's versions on a share of its events, and ends that."""

import logging
from typing import assert_never

from msgspec.structs import replace

from sexton_actors.canaries.guard import Promote, Verdict, judge
from sexton_actors.canaries.record import Canary, CanaryStatus, canary_of, canary_on_trial, kept_as
from sexton_actors.canaries.transitions import BY_GUARD, PERSON, Ending, begin, by_verdict, changed_frame
from sexton_actors.loans import Files, changed_frames, joined_files, without_candidate
from sexton_actors.manifest.model import from_json
from sexton_actors.manifest.problems import ManifestRejected
from sexton_actors.pins import may_become_active, pin_of
from sexton_actors.protocol import canary as m
from sexton_actors.protocol.zombie import Configured
from sexton_actors.refusal import Refusal
from sexton_actors.run_versions import CANNOT_RUN, fault_of
from sexton_actors.zombie import transitions, versions
from sexton_actors.zombie.canary_ends import Ended, ended
from sexton_actors.zombie.configuration import Activator, Configuration, Next
from sexton_actors.zombie.record import Decision, HeldZombie
from sexton_actors.zombie.transitions import Change, Unchanged
from sexton_storage.attribution import attributed
from sexton_storage.records.audit import AuditEntry
from sexton_storage.records.zombies import Zombie, ZombieStatus

log = logging.getLogger("sexton.canary")


class Canaries:
    """One trial at a time; the agent's record holds the newest, so it is decided once, on whichever node."""

    def __init__(self, held: HeldZombie, configuration: Configuration) -> None:
        self._held = held
        self._configuration = configuration

    def __repr__(self) -> str:
        return f"<Canaries of {self._held!r}>"

    async def receive(self, message: m.CanaryMessage) -> Zombie | Configured | Refusal | None:
        match message:
            case m.StartCanary():
                return await self._start(message)
            case m.PromoteCanary():
                return await self._promote(Ending(CanaryStatus.PROMOTED, message.by, PERSON), may_grant=True)
            case m.WithdrawCanary():
                ending = Ending(CanaryStatus.WITHDRAWN, message.by, PERSON, message.reason)
                return await self._end(ending)
            case m.JudgeCanary():
                await self._judge(message)
                return None
            case _:
                assert_never(message)

    async def _start(self, message: m.StartCanary) -> Zombie | Refusal:
        world = self._held.world

        async def consider(zombie: Zombie, now: int) -> Decision:
            version = await self._held.version(message.version)
            if refusal := transitions.may_be_configured(zombie):
                return refusal
            if isinstance(version, Refusal):
                return version
            if refusal := may_become_active(pin_of(zombie.pin), version.number):
                return refusal
            begun = begin(
                canary_of(zombie.canary),
                zombie,
                version,
                message.wish,
                canary_id=world.new_id(),
                by=message.by,
                now=now,
            )
            if isinstance(begun, Refusal):
                return begun
            files = Files(version.manifest, message.by, may_grant=True)
            lending = joined_files(zombie.lending, files, now)
            if detail := fault_of(replace(zombie, lending=lending), version):
                return Refusal(CANNOT_RUN, detail)
            if refusal := await world.entitlements.may_hold(
                zombie.tenant_id, version.manifest, from_json(zombie.compiled)
            ):
                return Refusal(CANNOT_RUN, refusal.detail)
            granted = changed_frames(zombie.id, zombie.lending, lending, message.by, now)
            changed = replace(
                zombie, canary=kept_as(begun), lending=lending, version=zombie.version + 1, updated_at=now
            )
            return Change(changed, (changed_frame(zombie.id, begun, now), *granted))

        return await self._held.change_after(consider)

    async def _end(self, ending: Ending, verdict_of: Canary | None = None) -> Zombie | Refusal:
        """Withdraw what is on trial; with ``verdict_of`` that trial and no other."""
        world = self._held.world

        async def consider(zombie: Zombie, now: int) -> Decision:
            canary = canary_of(zombie.canary)
            if verdict_of is not None and canary != verdict_of:
                return Unchanged()
            over = await ended(world, zombie, canary, ending, now)
            if isinstance(over, Refusal):
                return over
            return _withdrawn(zombie, over, now)

        return await self._held.change_after(consider)

    async def _promote(
        self, ending: Ending, *, may_grant: bool, verdict_of: Canary | None = None
    ) -> Configured | Refusal:
        zombies = self._held.world.storage.zombies

        async def choose(zombie: Zombie, _now: int) -> Next | Unchanged | Refusal:
            canary = canary_of(zombie.canary)
            if verdict_of is not None and canary != verdict_of:
                return Unchanged()
            if canary is None or canary.status is not CanaryStatus.ON_TRIAL:
                state = "none" if canary is None else str(canary.status)
                return Refusal("UZ-REQ-009", "No version is on trial.", {"current_state": state})
            config = await zombies.load_config(canary.config_version_id)
            if config is None:
                return Refusal("UZ-HARNESS-001", f"The agent has no version {canary.version} any more.")
            compiled = versions.compile_version(config)
            if isinstance(compiled, ManifestRejected):
                return versions.not_compiled(config, versions.findings(compiled))
            return Next(compiled, ending=ending)

        return await self._configuration.activate(choose, Activator(ending.by, may_grant=may_grant))

    async def _judge(self, message: m.JudgeCanary) -> None:
        # What is decided on is read now: it may have changed since the round looked.
        zombie = await self._held.load()
        canary = None if zombie is None else canary_on_trial(zombie.canary)
        if zombie is None or canary is None or canary.id != message.trial_id:
            return
        if zombie.status is ZombieStatus.KILLED:
            return
        tallies = await self._held.world.storage.zombies.tallies(zombie.id, canary.id)
        verdict = judge(canary.guard, canary.promote_after, tallies)
        if verdict is not None:
            await self._carry_out(zombie, canary, verdict)

    async def _carry_out(self, zombie: Zombie, canary: Canary, verdict: Verdict) -> None:
        ending = by_verdict(verdict)
        done: Configured | Zombie | Refusal
        with attributed(self._entry(zombie, canary, ending)):
            if isinstance(verdict, Promote):
                done = await self._promote(ending, may_grant=False, verdict_of=canary)
            else:
                done = await self._end(ending, verdict_of=canary)
        if isinstance(done, Refusal):
            log.warning("the trial of a version of agent %s goes on: %s", zombie.id, done.detail)
            return
        self._held.world.meters.canaries[str(ending.status)] += 1
        log.info("version %s of agent %s was %s: %s", canary.version, zombie.id, ending.status, ending.detail)

    def _entry(self, zombie: Zombie, canary: Canary, ending: Ending) -> AuditEntry:
        """The one thing that the platform does by itself and the audit log tells of."""
        verb = "promote" if ending.status is CanaryStatus.PROMOTED else "withdraw"
        return AuditEntry(
            id=self._held.world.new_id(),
            log_id=zombie.tenant_id,
            action=f"canary.{verb}",
            actor=BY_GUARD,
            name="the guard of the trial",
            address="",
            request_id="",
            workspace_id=zombie.workspace_id,
            target=str(zombie.id),
            facts={"agent_version": canary.version, "why": ending.why, "detail": ending.detail},
        )


def _withdrawn(zombie: Zombie, over: Ended, now: int) -> Change:
    lending = without_candidate(zombie.lending, from_json(zombie.compiled))
    changed = replace(zombie, canary=over.canary, lending=lending, version=zombie.version + 1, updated_at=now)
    return Change(changed, over.frames, notice=over.notice)
