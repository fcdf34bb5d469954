"""Faults in what servers give out, when they wake agents, and whom they let in."""

from __future__ import annotations

import itertools
from typing import Any, Final

from tests.simulation.drill.planting import Fault

SCHEDULES: Final = "sexton_actors.schedules.times"


def _nothing(_: Any) -> Any:
    return lambda *_, **__: None


def _always(_: Any) -> Any:
    return lambda *_: True


def _never_transparent(_: Any) -> Any:
    return ()


def _plan_only(_: Any) -> Any:
    # As where the plan is moved by a statement of its own, before the event is kept.
    async def changed(self: Any, *given: Any) -> None:
        *_, entry, fired = given
        await self._held.world.storage.crons.plan(entry, fired.next_at)

    return changed


def _another_each_time(seed: Any) -> Any:
    # As where ids are drawn when they are needed, and not from what is kept with the key.
    numbers = itertools.count()
    return lambda secret, at_ms: seed(b"%d %b" % (next(numbers), secret), at_ms)


def _crossed(send: Any) -> Any:
    def changed(self: Any) -> None:
        if len(self._ready) > 1:
            writes, told = zip(*self._ready, strict=True)
            self._ready = list(zip(writes, (*told[1:], told[0]), strict=True))
        send(self)

    return changed


def _to_whoever_waits(give_back: Any) -> Any:
    def changed(self: Any, grant: Any) -> None:
        others = (
            entry
            for entry in self._matching.offers._open.values()
            if entry.offer.runner_id != grant.lease.runner_id
        )
        waits = next(others, None)
        if waits is None:
            give_back(self, grant)
        else:
            waits.grants.append(grant)
            self._matching._end(waits)

    return changed


def _any_tenant(_: Any) -> Any:
    async def changed(self: Any, member: Any, workspace_id: Any) -> Any:
        del member
        return await self._storage.workspaces.load(workspace_id)

    return changed


FAULTS: Final = (
    Fault(
        "other-ids",
        "a request that is carried out again, since its server died before it answered, makes other ids",
        "sexton_http.gateway.idempotency",
        "Seed",
        _another_each_time,
    ),
    Fault(
        "firing-twice",
        "a schedule that two servers see due wakes its agent twice",
        "sexton_storage.decisions.append",
        "is_due",
        _always,
        ((SCHEDULES, "key_of", _nothing),),
    ),
    Fault(
        "firing-lost",
        "a schedule is planned on, and its event is not kept",
        "sexton_actors.zombie.firings",
        "Firings._wake",
        _plan_only,
    ),
    Fault(
        "claims-crossed",
        "claims of one poll are answered with one another's events",
        "sexton_actors.claim_groups",
        "ClaimGroup._send",
        _crossed,
    ),
    Fault(
        "lease-of-another",
        "a lease whose poll has gone is given to another runner that waits",
        "sexton_actors.dispatcher.actor",
        "Dispatcher.give_back",
        _to_whoever_waits,
    ),
    Fault(
        "stranger-let-in",
        "whose workspace it is is not looked at",
        "sexton_http.identity.scopes",
        "Scopes.workspace",
        _any_tenant,
    ),
    Fault(
        "outage-crashes",
        "leases crash where the database is away",
        "sexton_actors.lease.actor",
        "LeaseActor.transparent",
        _never_transparent,
    ),
)
