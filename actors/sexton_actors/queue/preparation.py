"""Works out what a claim is made with: the version of the agent, its models, and the terms."""

from typing import Final, NamedTuple

from sexton_actors.canaries.record import canary_on_trial
from sexton_actors.loans import unlent
from sexton_actors.manifest.model import Manifest, Runtime
from sexton_actors.protocol import queue as m
from sexton_actors.providers import NONE_CONFIGURED, ModelChain, ProviderChoice
from sexton_actors.queue.state import QueueState
from sexton_actors.refusal import Refusal
from sexton_actors.run_versions import RunVersion, active_version, fault_of
from sexton_actors.terms import EVENT_CEILING_MS, LEASE_TERM_MS
from sexton_storage.records.events import Asked
from sexton_storage.records.zombies import Zombie
from sexton_storage.writes import ClaimEvent

VERSION_LOST: Final = "version_lost"
"""The label of an event that asked for a version which cannot be run any more."""


class Fault(NamedTuple):
    """Why a run must not start."""

    label: str
    detail: str


class Run(NamedTuple):
    """What a claim is made with."""

    version: RunVersion
    asked: Asked | None
    """What the next event is taken to ask for."""
    models: ModelChain
    unlent: tuple[str, ...]
    active: Manifest
    fault: Fault | None

    @property
    def choice(self) -> ProviderChoice | None:
        first = self.models.first
        return first if isinstance(first, ProviderChoice) else None


async def prepared(queue: QueueState, zombie: Zombie, manifest: Manifest, asked: Asked | None) -> Run:
    """All that a claim of an event needs which asks for this. Raises StorageUnavailable."""
    version, fault = await _version(queue, zombie, manifest, asked)
    missing = await queue.world.secrets.missing(zombie.workspace_id, version.manifest.ungated_credentials)
    models = await _models(queue, zombie, version.manifest)
    if fault is None and missing:
        fault = Fault("secret_missing", f"The vault has no credential named {', '.join(missing)}.")
    elif fault is None and isinstance(models.first, Refusal) and models.first.code != NONE_CONFIGURED:
        fault = Fault("secret_missing", models.first.detail)
    if asked is None:
        lacking = queue.lending_of(zombie, manifest).unlent
    else:
        lacking = unlent(zombie.lending, version.manifest)
    return Run(version, asked, models, lacking, manifest, fault)


async def _version(
    queue: QueueState, zombie: Zombie, manifest: Manifest, asked: Asked | None
) -> tuple[RunVersion, Fault | None]:
    """The version to run an event under, and why it cannot be run under the one that it asks for."""
    active = active_version(zombie, manifest)
    if asked is None:
        return active, None
    if asked.trial_id is not None:
        return await _candidate(queue, zombie, active, asked), None
    version = await queue.version(asked.version)
    fault = version.detail if isinstance(version, Refusal) else fault_of(zombie, version)
    if isinstance(version, Refusal) or fault is not None:
        return active, Fault(VERSION_LOST, fault or "")
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


def claim_of(queue: QueueState, message: m.Claim, zombie: Zombie, run: Run) -> ClaimEvent:
    world, lease_id, choice = queue.world, queue.world.new_id(), run.choice
    model = run.version.manifest.model if choice is None else choice.model
    own_key = choice is not None and choice.own_key
    return ClaimEvent(
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
