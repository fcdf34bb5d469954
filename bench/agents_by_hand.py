"""Many installed agents, their events and leases, copied by SQL from one that was installed properly.

Every column that is not named here is that of the first agent, so that the copies are what an installation
leaves behind, of whatever columns there are by now.
"""

from collections.abc import Mapping

from bench.leases_by_hand import RUN_NANOS_PER_SEC, identity
from bench.machine import query, superuser
from bench.product import Held

BALANCE_NANOS = 10**15
PAGE = 100_000
"""Agents of one statement: what it sorts and checks stays in the database's memory."""
APART_MS = 10
"""Between the events of a queue that was filled."""
AGENT, CONFIG, EVENT, LEASE = "4", "7", "3", "2"
"""The kinds of ids, as ``leases_by_hand`` has them."""

# Unique names and ids come from the number; the copies of one statement need no checks of their parents, who
# are the first agent's own.
_INSTALL = """
SET session_replication_role = replica;
INSERT INTO config_versions
SELECT c.* FROM zombies z JOIN config_versions t ON t.id = z.config_version_id, {numbers},
       LATERAL jsonb_populate_record(t, jsonb_build_object('id', {config}, 'zombie_id', {agent})) c
 WHERE z.id = '{first}';
INSERT INTO zombies
SELECT c.* FROM zombies t, {numbers},
       LATERAL jsonb_populate_record(t, jsonb_build_object(
           'id', {agent}, 'name', '{family}-' || n, 'config_version_id', {config})) c
 WHERE t.id = '{first}';
INSERT INTO agent_heads
SELECT c.* FROM agent_heads t, {numbers},
       LATERAL jsonb_populate_record(t, jsonb_build_object('zombie_id', {agent})) c
 WHERE t.zombie_id = '{first}';
"""
_QUEUE = """
INSERT INTO events (id, zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json,
                    created_at, updated_at)
SELECT {event}, {agent}, h.workspace_id, h.tenant_id, 'steer:bench', 'message', 'received', '{{}}',
       sexton_now_ms() - {apart_ms} * ({total} - n), sexton_now_ms()
  FROM agent_heads h, {numbers} WHERE h.zombie_id = '{first}';
"""
_LEASE = """
UPDATE events e SET status = 'running', attempts = 1, lease_count = 1, first_leased_at = sexton_now_ms()
  FROM {numbers} WHERE e.id = {event};
INSERT INTO leases (id, event_id, zombie_id, workspace_id, tenant_id, runner_id, fencing_token, attempt,
                    status, version, granted_at, expires_at, ceiling_at, metered_at, run_nanos_per_sec,
                    input_nanos_per_mtok, cached_input_nanos_per_mtok, output_nanos_per_mtok)
SELECT {lease}, e.id, e.zombie_id, e.workspace_id, e.tenant_id, {runner}, 1, 1, 'active', 1,
       sexton_now_ms(), sexton_now_ms() + {term_ms}, sexton_now_ms() + 43200000, sexton_now_ms(), {rate},
       0, 0, 0
  FROM {numbers} JOIN events e ON e.id = {event};
UPDATE agent_heads h SET fence = 1, live_lease_id = {lease}, last_runner_id = {runner}
  FROM {numbers} WHERE h.zombie_id = {agent};
"""


class Agents:
    """Agents 1..count of a family of ids, all of the first agent's workspace; ``family`` is a hex digit."""

    def __init__(self, database_url: str, family: str, *, first: str) -> None:
        self._url = database_url
        self._family = family
        self._first = first

    def _kind(self, kind: str) -> str:
        return f"{self._family}{kind:0>7}"

    def ids(self, kind: str, count: int) -> list[str]:
        """The ids of the first agents, as text."""
        return [f"{self._kind(kind)}-0000-7000-8000-{number:012x}" for number in range(1, count + 1)]

    def enrich(self) -> None:
        """Give their tenant more money than any run uses up; before any of it is asked for."""
        tenant = f"(SELECT tenant_id FROM zombies WHERE id = '{self._first}')"
        query(self._url, f"UPDATE tenants SET balance_nanos = {BALANCE_NANOS} WHERE id = {tenant}")

    def install(self, count: int) -> None:
        """Make ``count`` agents, asleep, without an event."""
        for at in range(0, count, PAGE):
            self._run(_INSTALL, at + 1, min(at + PAGE, count))

    def queue(self, agents: int, *, each: int, offset: int = 0) -> None:
        """Give each of the first agents that many received events; the offset is of events there already.

        They stand in turns, so far apart in age that every agent's first is run before any agent's second.
        """
        total = agents * each
        for at in range(offset, offset + total, PAGE):
            last = min(at + PAGE, offset + total)
            turn = identity(self._kind(AGENT), f"1 + (n - 1) % {agents}")
            self._run(_QUEUE, at + 1, last, {"agent": turn, "total": offset + total, "apart_ms": APART_MS})

    def lease(self, agents: int, *runner_ids: str, term_ms: int, together: int = 64) -> None:
        """Put each of the first agents, with an event of its own, under a live lease of a runner.

        The runners take turns, and each is given that many at a time.
        """
        ids = ", ".join(f"'{runner_id}'" for runner_id in runner_ids)
        turn = f"(ARRAY[{ids}]::uuid[])[1 + (n - 1) / {together} % {len(runner_ids)}]"
        self.queue(agents, each=1)
        for at in range(0, agents, PAGE):
            more: dict[str, object] = {"runner": turn, "term_ms": term_ms, "rate": RUN_NANOS_PER_SEC}
            self._run(_LEASE, at + 1, min(at + PAGE, agents), more)

    def held(self, count: int, *tokens: str, together: int = 64) -> list[Held]:
        """The first leases, as their runners know them; the ends that they were told are not known here."""
        ids = enumerate(zip(self.ids(LEASE, count), self.ids(EVENT, count), strict=True))
        return [
            Held(tokens[number // together % len(tokens)], lease_id, event_id, 1, 0)
            for number, (lease_id, event_id) in ids
        ]

    def _run(self, sql: str, first: int, last: int, more: Mapping[str, object] | None = None) -> None:
        values: dict[str, object] = {
            "agent": identity(self._kind(AGENT), "n"),
            "config": identity(self._kind(CONFIG), "n"),
            "event": identity(self._kind(EVENT), "n"),
            "lease": identity(self._kind(LEASE), "n"),
        }
        values |= {"numbers": f"generate_series({first}, {last}) n", "first": self._first}
        query(superuser(self._url), sql.format_map(values | {"family": self._family} | dict(more or {})))

    def waiting(self) -> int:
        """Events of this family that nobody has taken."""
        return int(
            query(self._url, f"SELECT count(*) FROM events WHERE status = 'received' AND {self._mine}")
        )

    def forget_waiting(self) -> None:
        """What is left of a flood: nobody is to take it any more."""
        done = "status = 'cancelled', completed_at = sexton_now_ms()"
        query(self._url, f"UPDATE events SET {done} WHERE status = 'received' AND {self._mine}")

    @property
    def _mine(self) -> str:
        return f"zombie_id::text LIKE '{self._kind(AGENT)}-%'"

    def metered(self) -> tuple[int, int]:
        """Metering rows of these agents' leases, and what they charged in sum."""
        sums = "count(*) || ' ' || coalesce(sum(charged_nanos), 0)"
        rows, charged = query(self._url, f"SELECT {sums} FROM metering WHERE {self._mine}").split()
        return int(rows), int(charged)
