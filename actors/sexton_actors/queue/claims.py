"""Claims the oldest event for a runner, and settles a claim of which nobody knows whether it was kept."""

from typing import Final, NamedTuple

from sexton_actors.canaries.record import canary_on_trial
from sexton_actors.loans import unlent
from sexton_actors.manifest.model import Manifest, Runtime
from sexton_actors.protocol import queue as m
from sexton_actors.protocol.dispatcher import ClaimSettled
from sexton_actors.protocol.lease import Abort, Granted, Undelivered
from sexton_actors.protocol.runner import LeaseTaken
from sexton_actors.providers import NONE_CONFIGURED, ModelChain, ProviderChoice
from sexton_actors.queue.readiness import announce
from sexton_actors.queue.state import QueueState
from sexton_actors.refusal import Refusal
from sexton_actors.run_versions import RunVersion, active_version, fault_of
from sexton_actors.terms import EVENT_CEILING_MS, LEASE_TERM_MS
from sexton_actors.traces.context import context_of
from sexton_actors.world import World
from sexton_storage.errors import StorageUnavailable
from sexton_storage.periods import DAY_MS, day_of
from sexton_storage.records.events import Asked, Event
from sexton_storage.records.zombies import Zombie
from sexton_storage.refusals import CHANGED, NOT_FOR_RUNNER, NOT_GRANTED, OTHER_VERSION, OVER_BUDGET
from sexton_storage.rules import LIVE_LEASE
from sexton_storage.spread import Example
from sexton_storage.writes import Claimed, ClaimEvent, Exhausted, NothingToClaim

SETTLE_AFTER_S: Final = 1.0
"""How often a claim of unknown outcome is asked about until the database answers."""
LOOKS_AGAIN: Final = 3
"""How often a claim is made again because the next event asks for another version of the agent."""
VERSION_LOST: Final = "version_lost"
"""The label of an event that asked for a version which cannot be run any more."""
BUDGET_LOOK_MS: Final = 60_000
"""How soon an agent over its budget is looked at again: another node may have raised it."""


class _Fault(NamedTuple):
    """Why a run must not start."""

    label: str
    detail: str


class _Run(NamedTuple):
    """What a claim is made with."""

    version: RunVersion
    asked: Asked | None
    """What the next event is taken to ask for."""
    models: ModelChain
    unlent: tuple[str, ...]
    active: Manifest
    fault: _Fault | None

    @property
    def choice(self) -> ProviderChoice | None:
        first = self.models.first
        return first if isinstance(first, ProviderChoice) else None


async def claim(queue: QueueState, message: m.Claim) -> None:
    """Claim for one offer, and tell the dispatcher what came of it. Raises StorageUnavailable."""
    queue.announced = False
    outcome: m.ClaimOutcome = NothingToClaim("unavailable")
    try:
        outcome = await _take(queue, message)
    finally:
        if message.part is not None:
            message.part.drop()
        # Told even when storage failed: an offer must never wait for an answer that will not come.
        queue.context.tell("dispatcher", "", ClaimSettled(message.offer_id, queue.id, outcome))
    if isinstance(outcome, NothingToClaim) and outcome.reason in {CHANGED, OTHER_VERSION}:
        # It may need another runner now.
        queue.doubt()
        await announce(queue)
    if isinstance(outcome, NothingToClaim) and outcome.reason in NOT_FOR_RUNNER:
        # Nothing is wrong with the agent: another runner may have it.
        await announce(queue)
    if isinstance(outcome, Exhausted):
        # That event is set aside; those behind it are set aside in their turn, or a credit frees them
        # all.
        await announce(queue)


async def _take(queue: QueueState, message: m.Claim) -> m.ClaimOutcome:
    runner_id = message.runner_id
    zombie, manifest = await queue.at_hand(), queue.manifest
    if zombie is not None and manifest is not None and queue.lending_of(zombie, manifest).withheld:
        # A claim names the version that it was made from, a refusal does not.
        zombie, manifest = await queue.refresh(), queue.manifest
    if zombie is None or manifest is None:
        return NothingToClaim("gone")
    now = queue.world.now_ms()
    if now < queue.over_until:
        return NothingToClaim(OVER_BUDGET)
    if queue.lending_of(zombie, manifest).withheld:
        return NothingToClaim(NOT_GRANTED)
    run = await _prepared(queue, zombie, manifest, None)
    taken = await _write(queue, message, zombie, run)
    for _ in range(LOOKS_AGAIN):
        if not isinstance(taken, NothingToClaim) or taken.reason != OTHER_VERSION:
            break
        run = await _prepared(queue, zombie, manifest, taken.asked)
        taken = await _write(queue, message, zombie, run)
    if not isinstance(taken, Claimed):
        if isinstance(taken, NothingToClaim) and taken.reason == OVER_BUDGET:
            queue.over_until = min(now + BUDGET_LOOK_MS, (day_of(now) + 1) * DAY_MS)
        return taken
    queue.confirm(zombie.version, now)
    queue.leased = queue.looked = True
    queue.last_runner_id = runner_id
    queue.world.backlog.take(queue.id, zombie.workspace_id)
    if taken.lease.attempt == 1:
        waited_ms = taken.lease.granted_at - taken.event.created_at
        note_wait(queue.world, taken.event, waited_ms / 1000)
    queue.context.tell("lease", taken.lease.id, Granted(taken.lease))
    if (fault := run.fault) is not None:
        # It is claimed all the same: only under a lease can an event end.
        queue.context.tell("lease", taken.lease.id, Abort(*fault))
        return NothingToClaim(fault.label)
    queue.context.tell("runner", runner_id, LeaseTaken(taken.lease.id))
    return m.Grant(
        taken.event,
        taken.lease,
        run.version.manifest,
        run.choice,
        taken.endowed,
        run.unlent,
        run.models.fallbacks,
    )


async def _prepared(queue: QueueState, zombie: Zombie, manifest: Manifest, asked: Asked | None) -> _Run:
    """All that a claim of an event needs which asks for this. Raises StorageUnavailable."""
    version, fault = await _version(queue, zombie, manifest, asked)
    missing = await queue.world.secrets.missing(zombie.workspace_id, version.manifest.ungated_credentials)
    models = await _models(queue, zombie, version.manifest)
    if fault is None and missing:
        fault = _Fault("secret_missing", f"The vault has no credential named {', '.join(missing)}.")
    elif fault is None and isinstance(models.first, Refusal) and models.first.code != NONE_CONFIGURED:
        fault = _Fault("secret_missing", models.first.detail)
    if asked is None:
        lacking = queue.lending_of(zombie, manifest).unlent
    else:
        lacking = unlent(zombie.lending, version.manifest)
    return _Run(version, asked, models, lacking, manifest, fault)


async def _version(
    queue: QueueState, zombie: Zombie, manifest: Manifest, asked: Asked | None
) -> tuple[RunVersion, _Fault | None]:
    """The version to run an event under, and why it cannot be run under the one that it asks for."""
    active = active_version(zombie, manifest)
    if asked is None:
        return active, None
    if asked.trial_id is not None:
        return await _candidate(queue, zombie, active, asked), None
    version = await queue.version(asked.version)
    fault = version.detail if isinstance(version, Refusal) else fault_of(zombie, version)
    if isinstance(version, Refusal) or fault is not None:
        return active, _Fault(VERSION_LOST, fault or "")
    return version, None


async def _candidate(queue: QueueState, zombie: Zombie, active: RunVersion, asked: Asked) -> RunVersion:
    """The candidate while its trial goes on and it can be run, else the active version: the event is run."""
    canary = canary_on_trial(zombie.canary)
    if canary is None or canary.id != asked.trial_id:
        return active
    version = await queue.version(asked.version)
    return active if isinstance(version, Refusal) or fault_of(zombie, version) else version


async def _models(queue: QueueState, zombie: Zombie, manifest: Manifest) -> ModelChain:
    """Where nothing at all is set up, the run is given out all the same: its runner may have a model."""
    if manifest.runtime is not Runtime.AGENT:
        return ModelChain(None)
    return await queue.world.providers.resolve_chain(
        tenant_id=zombie.tenant_id,
        workspace_id=zombie.workspace_id,
        wishes=((manifest.provider, manifest.model), *((w.provider, w.model) for w in manifest.fallbacks)),
    )


async def _write(
    queue: QueueState, message: m.Claim, zombie: Zombie, run: _Run
) -> Claimed | NothingToClaim | Exhausted:
    world, lease_id, choice = queue.world, queue.world.new_id(), run.choice
    model = run.version.manifest.model if choice is None else choice.model
    own_key = choice is not None and choice.own_key
    write = ClaimEvent(
        zombie_id=queue.id,
        lease_id=lease_id,
        runner_id=message.runner_id,
        now=world.now_ms(),
        term_ms=LEASE_TERM_MS,
        ceiling_ms=EVENT_CEILING_MS,
        rates=world.catalogue.rates(
            model, own_key=own_key, run_nanos_per_sec=world.terms.run_rate(world.now_ms())
        ),
        # The money is the agent's, so what it may spend is said by the active version alone.
        budget_daily_nanos=run.active.budget_daily_nanos,
        budget_monthly_nanos=run.active.budget_monthly_nanos,
        config_version_id=run.version.config_version_id,
        model=model,
        own_key=own_key,
        shares=run.models.shares(world.catalogue),
        agent_version=zombie.version,
        asked=run.asked,
        ran_version=run.version.number,
    )
    try:
        together = None if message.part is None else await message.part.write(write)
        return await queue.world.storage.journal.write(write) if together is None else together
    except StorageUnavailable:
        queue.context.set_timer(lease_id, SETTLE_AFTER_S, m.SettleClaim(lease_id))
        raise
    except BaseException:
        # Killed or crashed while it was being committed: if it was, nobody has it.
        queue.context.tell("lease", lease_id, Undelivered())
        raise


async def settle(queue: QueueState, message: m.SettleClaim) -> None:
    """Give back the lease if it was granted; asked again until the database answers."""
    queue.context.set_timer(message.lease_id, SETTLE_AFTER_S, message)
    lease = await queue.world.storage.leases.load(message.lease_id)
    queue.context.cancel_timer(message.lease_id)
    if lease is not None and lease.status in LIVE_LEASE:
        queue.leased = True
        queue.context.tell("lease", lease.id, Undelivered())


def note_wait(world: World, event: Event, waited_s: float) -> None:
    """Note how long an event waited; with its trace, where traces are sent."""
    spread = world.meters.ingress_to_lease
    if world.traces is None or not (context := context_of(event)).sampled:
        spread.note(waited_s)
    else:
        spread.note_example(Example(context.trace_id, waited_s, world.now_ms()))
