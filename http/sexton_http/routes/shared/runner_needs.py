"""Says what an agent needs that no runner of the fleet has."""

from sexton_storage.offers import nearest_unmet
from sexton_storage.records.runners import AdminState
from sexton_storage.records.zombies import Zombie
from sexton_storage.scopes import is_within, scope_of
from sexton_storage.stores import Storage
from sexton_storage.terms import ONLINE_MS

UNSANDBOXED = "none"
RUNNERS_A_LOOK = 1000
"""How many runners are looked through for one that could serve a set of tags."""


async def unmet_needs(storage: Storage, zombie: Zombie, now: int) -> tuple[str, ...]:
    """Give what the nearest of the runners that were seen lately lacks of the agent's needs."""
    if not zombie.required_tags:
        return ()
    runners, _ = await storage.runners.list(page=1, page_size=RUNNERS_A_LOOK, sort="-created_at")
    usable = (
        runner.abilities
        for runner in runners
        if runner.admin_state is AdminState.ACTIVE
        and (runner.last_seen_at or 0) >= now - ONLINE_MS
        and (zombie.allows_unsandboxed or runner.sandbox_tier != UNSANDBOXED)
        and is_within(scope_of(runner), zombie.tenant_id, zombie.workspace_id)
    )
    return nearest_unmet(usable, tuple(sorted(zombie.required_tags)))
