"""A week of a workspace, written by SQL: many agents, their events, and what failed, in its groups.

It stands as the server would have left it, but for the words of the events: no page of the console that is
measured asks for words, so the index of them is left without these events.
"""

from bench.agents_by_hand import AGENT, EVENT, Agents
from bench.leases_by_hand import identity
from bench.machine import query, superuser

FAMILY = "a"
"""The family of their ids. Agents are named ``a-1``, ``a-2`` and so on."""
DAYS = 7
DAY_MS = 86_400_000
# A tenth waits, a tenth has failed. Rows of waiting events come by a trigger that fires for copies, too.
_EVENTS = """
SET session_replication_role = replica;
INSERT INTO events (id, zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json,
                    created_at, updated_at, response_text, failure_label, error_code, completed_at)
SELECT {event}, {agent}, h.workspace_id, h.tenant_id, 'webhook:github', 'push', s.status,
       '{{"pull": {{"number": ' || n || '}}, "text": "' || repeat('lorem ipsum dolor sit ', 40) || '"}}',
       t.at, t.at,
       CASE WHEN n % 10 <> 0 THEN repeat('sed do eiusmod tempor ', 40) || 'connection refused' END,
       CASE WHEN s.status <> 'processed' AND n % 10 <> 0 THEN 'agent_run' END,
       CASE WHEN s.status <> 'processed' AND n % 10 <> 0 THEN 'UZ-EXEC-013' END,
       CASE WHEN n % 10 <> 0 THEN t.at END
  FROM agent_heads h, generate_series(1, {events}) n,
       LATERAL (SELECT sexton_now_ms() - ({events} - n)::bigint * {span_ms} / {events} AS at) t,
       LATERAL (SELECT CASE WHEN n % 10 = 0 THEN 'received' WHEN n % 10 = 1 THEN 'agent_error'
                            WHEN n % 1000 = 2 THEN 'dead_lettered' ELSE 'processed' END AS status) s
 WHERE h.zombie_id = '{first}';
INSERT INTO failure_groups (id, tenant_id, workspace_id, zombie_id, digest, failure_label, error_code,
                            message, sample_event_id, first_seen_at, last_seen_at, count)
SELECT md5('group ' || zombie_id)::uuid, tenant_id, workspace_id, zombie_id, '\\x01', 'agent_run',
       'UZ-EXEC-013', 'sed do eiusmod tempor connection refused',
       (array_agg(id ORDER BY created_at DESC))[1], min(created_at), max(created_at), count(*)
  FROM events WHERE failure_label IS NOT NULL GROUP BY zombie_id, tenant_id, workspace_id;
INSERT INTO failure_events (zombie_id, event_id, workspace_id, arrival, created_at, at, group_id)
SELECT zombie_id, id, workspace_id, arrival, created_at, completed_at, md5('group ' || zombie_id)::uuid
  FROM events WHERE failure_label IS NOT NULL;
INSERT INTO failure_hours (zombie_id, group_id, hour, count)
SELECT zombie_id, group_id, at / 3600000, count(*) FROM failure_events GROUP BY 1, 2, 3;
ANALYZE;
"""


def plant(database_url: str, first: str, *, agents: int, events: int) -> None:
    """Copy the installed agent ``first``, and give the copies events of the last week, in turns."""
    Agents(database_url, FAMILY, first=first).install(agents)
    values = {
        "event": identity(f"{FAMILY}{EVENT:0>7}", "n"),
        "agent": identity(f"{FAMILY}{AGENT:0>7}", f"1 + n % {agents}"),
        "events": events,
        "span_ms": DAYS * DAY_MS,
        "first": first,
    }
    query(superuser(database_url), _EVENTS.format_map(values))
