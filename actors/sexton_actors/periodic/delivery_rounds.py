"""Writes down what came to the addresses of webhooks, some at a time and beside the answers."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from sexton_actors.rounds import Round, RoundsActor
from sexton_actors.webhooks.delivery_log import Arrival
from sexton_actors.webhooks.delivery_rows import counts_of, delivery_of
from sexton_actors.world import World
from sexton_engine import Context, Message
from sexton_storage.records.deliveries import DeliveryVerdict, KeptDelivery
from sexton_storage.records.zombies import Zombie

WRITE_INTERVAL_S: Final = 1.0
STEPS: Final = 16
"""A workspace's bodies are measured each time that a node has written this part of what they may have."""
TRIMMED: Final = 1_000
"""Bodies that one transaction lets go."""
KNOWN_WORKSPACES: Final = 4_096
KNOWN_AGENTS: Final = 256
KNOWN_FOR_MS: Final = 20_000
"""How old what is known of an agent's triggers may be; it only says what an address meant."""


class WriteDeliveries(msgspec.Struct, Message[None], frozen=True):
    """Write what was noted since the last round."""


class DeliveryRounds(RoundsActor):
    """Each node writes what came to it. While the database is away what comes is lost, beyond its number."""

    kind = "delivery_rounds"

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context, world)
        self._agents: dict[UUID, tuple[Zombie, int]] = {}
        self._unmeasured: dict[UUID, int] = {}
        """Bytes of bodies that were written for each workspace since its bodies were measured."""

    def rounds(self) -> Sequence[Round]:
        return (Round(WriteDeliveries(), WRITE_INTERVAL_S, self._write, first_s=WRITE_INTERVAL_S),)

    async def _write(self) -> float | None:
        noted = self._world.delivery_log.take()
        if not noted.arrivals and not noted.tallies:
            return None
        rows = [row for arrival in noted.arrivals if (row := await self._row(arrival)) is not None]
        await self._world.storage.deliveries.keep(rows, counts_of(noted))
        await self._keep_bound(rows)
        written = self._world.meters.deliveries
        for row in rows:
            refused = row.delivery.verdict is DeliveryVerdict.REFUSED
            written["refused" if refused else "taken"] += 1
        written["unkept"] += sum(tally.unkept for tally in noted.tallies.values())
        return None

    async def _keep_bound(self, rows: Sequence[KeptDelivery]) -> None:
        """Measure a workspace's bodies when it gets the first from here, and then after each step."""
        most = self._world.files.webhook_bytes
        if most is None:
            return
        step = most // STEPS
        for row in rows:
            workspace_id = row.delivery.workspace_id
            self._unmeasured[workspace_id] = (
                self._unmeasured.get(workspace_id, step) + row.delivery.body_bytes
            )
        due = [one for one, written in self._unmeasured.items() if written > step]
        for workspace_id in due:
            trim = self._world.storage.deliveries.trim
            while await trim(workspace_id, max_bytes=most, limit=TRIMMED) == TRIMMED:
                pass
            self._unmeasured[workspace_id] = 0
        if len(self._unmeasured) > KNOWN_WORKSPACES:
            self._unmeasured.clear()

    async def _row(self, arrival: Arrival) -> KeptDelivery | None:
        zombie = await self._agent(arrival.zombie_id)
        return None if zombie is None else delivery_of(arrival, zombie, self._world.new_id())

    async def _agent(self, zombie_id: UUID) -> Zombie | None:
        now, known = self._world.now_ms(), self._agents.get(zombie_id)
        if known is not None and now - known[1] < KNOWN_FOR_MS:
            return known[0]
        zombie = await self._world.storage.zombies.load(zombie_id)
        if zombie is not None:
            if len(self._agents) >= KNOWN_AGENTS:
                self._agents.clear()
            self._agents[zombie_id] = (zombie, now)
        return zombie
