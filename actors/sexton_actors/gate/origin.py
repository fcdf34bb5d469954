"""Says whose a question is, for nobody below an operator approves what is their own."""

from typing import Final

import msgspec

from sexton_actors.loans import OWN, token_refused
from sexton_actors.protocol.gate import Resolve
from sexton_actors.refusal import Refusal
from sexton_storage.records.gates import Gate
from sexton_storage.stores import Storage

CHAIN_MAX: Final = 32
"""Events of one chain of replays and follow-ups that are looked at."""


class Origin(msgspec.Struct, frozen=True):
    """Where the run that waits at a gate comes from."""

    authors: frozenset[str]
    """Who wrote the files of the run, and the agent's newest: ``user:<id>`` or ``api:<id>``."""
    actors: frozenset[str]
    """The actors of its event, and of those that it resumes."""
    decides_by_token: bool
    """The agent's approval token was handed to an operator or above."""


def may_approve(origin: Origin, message: Resolve) -> Refusal | None:
    """None unless the question comes of an agent that this caller wrote, or of a run that they started.

    >>> own = Origin(frozenset({"user:7"}), frozenset({"steer:7"}), decides_by_token=False)
    >>> may_approve(own, Resolve(approve=True, by="api:9", own=frozenset({"api:9", "user:7"}))).code
    'UZ-APPROVAL-006'
    >>> may_approve(own, Resolve(approve=True, by="user:8", own=frozenset({"user:8", "steer:8"})))
    >>> may_approve(own, Resolve(approve=True, by="api:1", by_token=True)).code
    'UZ-APPROVAL-006'
    """
    if message.by_token:
        return None if origin.decides_by_token else token_refused()
    if message.own is None:
        return None
    if message.own & origin.authors:
        return Refusal(OWN, "You wrote this agent: somebody else, or an operator, has to approve it.")
    if message.own & origin.actors:
        return Refusal(OWN, "You started this run: somebody else, or an operator, has to approve it.")
    return None


async def read_origin(storage: Storage, gate: Gate) -> Origin:
    """Raises StorageUnavailable."""
    agent = await storage.zombies.load(gate.zombie_id)
    lease = None if gate.lease_id is None else await storage.leases.load(gate.lease_id)
    versions = {one.config_version_id for one in (agent, lease) if one is not None}
    configs = [await storage.zombies.load_config(version) for version in versions if version is not None]
    actors, event_id = set(), gate.event_id
    for _ in range(CHAIN_MAX):
        event = await storage.events.load(event_id)
        if event is None:
            break
        actors.add(event.actor)
        if event.resumes_event_id is None:
            break
        event_id = event.resumes_event_id
    return Origin(
        frozenset(config.author for config in configs if config is not None),
        frozenset(actors),
        decides_by_token=agent is None or agent.decides_by_token,
    )
