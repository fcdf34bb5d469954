"""Remembers what an agent was woken for, as far as its anomaly rules look back."""

from sexton_actors.gate_rules.anomaly import Observation, anomaly
from sexton_actors.gate_rules.model import Gates
from sexton_actors.zombie.record import HeldZombie

ACTIONS_WATCHED = 256
"""Different actions remembered of one agent; one that is forgotten is read from its events again."""
LOOK_BACK = 1000
"""Events read to remember one action: as many as a rule can count."""

Action = tuple[str, str]


class Actions:
    """A cache over the agent's events, so that neither sleep nor a restart makes a rule forget."""

    def __init__(self, held: HeldZombie) -> None:
        self._held = held
        self._seen: dict[Action, tuple[int, ...]] = {}

    def __repr__(self) -> str:
        return f"<Actions {len(self._seen)} watched>"

    async def observe(self, gates: Gates, action: Action, now: int) -> Observation:
        """Count this one. Raises StorageUnavailable."""
        if not gates.anomaly_rules:
            return Observation((), None)
        record = self._seen.get(action)
        if record is None:
            record = await self._read(gates, action, now)
        seen = anomaly(gates, record, now)
        if len(self._seen) >= ACTIONS_WATCHED and action not in self._seen:
            self._seen.pop(next(iter(self._seen)))
        self._seen[action] = seen.record
        return seen

    def withdraw(self, action: Action, at: int) -> None:
        """The one counted then was not kept, so it did not happen."""
        record = list(self._seen.get(action, ()))
        if at in record:
            record.remove(at)
            self._seen[action] = tuple(record)

    async def _read(self, gates: Gates, action: Action, now: int) -> tuple[int, ...]:
        zombie = self._held.record
        if zombie is None:
            return ()
        window_ms = 1_000 * max(rule.threshold_window_s for rule in gates.anomaly_rules)
        events = await self._held.world.storage.events.list(
            zombie.workspace_id, limit=LOOK_BACK, zombie_id=zombie.id, since=now - window_ms, whole_bytes=0
        )
        times = (
            event.created_at
            for event in events
            if (event.event_type, event.actor) == action and event.shadow_job is None
        )
        return tuple(sorted(times))
