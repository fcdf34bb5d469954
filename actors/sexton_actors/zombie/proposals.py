"""Takes proposals to change an agent's files, and people's decisions on them."""

from uuid import UUID

import msgspec

from sexton_actors.manifest.problems import ManifestRejected
from sexton_actors.proposal import transitions
from sexton_actors.proposal.drafts import Origin, draft_fault, files_after, proposed
from sexton_actors.protocol import zombie as m
from sexton_actors.refusal import Refusal
from sexton_actors.zombie.compiled_version import Compiled
from sexton_actors.zombie.configuration import Activator, Configuration, Next
from sexton_actors.zombie.record import HeldZombie
from sexton_actors.zombie.transitions import Unchanged, may_be_configured
from sexton_storage.records.improvement import Proposal
from sexton_storage.records.zombies import Zombie


class Application(msgspec.Struct, frozen=True):
    """A proposal that can be applied, with the version that it becomes."""

    compiled: Compiled
    proposal: Proposal


class Proposals:
    """The only writer of the agent's proposals on this node, but for what runs propose as they end."""

    def __init__(self, held: HeldZombie, configuration: Configuration) -> None:
        self._held = held
        self._configuration = configuration

    def __repr__(self) -> str:
        return f"<Proposals {self._held!r}>"

    async def propose(self, zombie: Zombie, message: m.Propose) -> Proposal | Refusal:
        if refusal := may_be_configured(zombie) or draft_fault(message.draft):
            return refusal
        world = self._held.world
        base = await world.storage.zombies.load_config(zombie.config_version_id)
        if base is None:
            return self._held.unknown()
        origin = Origin(zombie.workspace_id, zombie.tenant_id, message.by)
        proposal = proposed(message.draft, base, origin, world.new_id(), world.now_ms())
        return proposal if await world.storage.improvement.propose(proposal) else self._held.unknown()

    async def reject(self, message: m.RejectProposal) -> m.Decided | Refusal:
        """Also of a killed agent: nothing comes of it."""

        async def attempt(_zombie: Zombie, now: int) -> m.Decided | Refusal:
            proposal = await self._find(message.proposal_id)
            if isinstance(proposal, Refusal):
                return proposal
            rejected = transitions.reject(proposal, message.reason, message.by, now)
            if isinstance(rejected, Refusal):
                return rejected
            await self._held.world.storage.improvement.decide(rejected)
            return m.Decided(rejected)

        return await self._held.until_kept(attempt)

    async def approve(self, message: m.ApproveProposal) -> m.Decided | Refusal:
        """Applied with its configuration in one commit; what cannot be applied is closed by itself."""
        judgements: list[Application | Proposal] = []

        async def choose(zombie: Zombie, now: int) -> Next | Unchanged | Refusal:
            judged = await self._judge(zombie, message, now)
            if isinstance(judged, Refusal):
                return judged
            judgements[:] = [judged]
            if isinstance(judged, Proposal):
                return Unchanged()
            return Next(judged.compiled, judged.proposal)

        async def attempt(_zombie: Zombie, _now: int) -> m.Decided | Refusal:
            # Read again: whether its base is still the active version must not be judged by an old record.
            await self._held.load()
            by = Activator(message.by, may_grant=message.may_grant)
            configured = await self._configuration.activate(choose, by)
            if isinstance(configured, Refusal):
                return configured
            judged = judgements[0]
            if isinstance(judged, Application):
                return m.Decided(judged.proposal, configured)
            await self._held.world.storage.improvement.decide(judged)
            return m.Decided(judged)

        return await self._held.until_kept(attempt)

    async def _judge(
        self, zombie: Zombie, message: m.ApproveProposal, now: int
    ) -> Application | Proposal | Refusal:
        proposal = await self._find(message.proposal_id)
        if isinstance(proposal, Refusal):
            return proposal
        base = await self._held.world.storage.zombies.load_config(proposal.base_config_version_id)
        if base is None or base.id != zombie.config_version_id:
            return transitions.overtaken(proposal, message.by, now)
        compiled = await self._configuration.compiled(files_after(proposal, base), now, message.by)
        if isinstance(compiled, ManifestRejected):
            return transitions.not_compiled(proposal, compiled.detail, message.by, now)
        applied = transitions.apply(proposal, compiled.config.id, message.by, now)
        return applied if isinstance(applied, Refusal) else Application(compiled, applied)

    async def _find(self, proposal_id: UUID) -> Proposal | Refusal:
        proposal = await self._held.world.storage.improvement.load(proposal_id)
        if proposal is None or proposal.zombie_id != self._held.id:
            return Refusal("UZ-AGENT-001", f"The agent has no proposal {proposal_id}.")
        return proposal
