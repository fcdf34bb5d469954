"""What goes with an agent that is deleted, in memory: the one list of it."""

from uuid import UUID

from sexton_storage.memory import deliveries, event_files, kept_workspaces
from sexton_storage.memory.artefacts import let_go
from sexton_storage.memory.tables import Tables


def purge(tables: Tables, zombie_id: UUID) -> bool:
    """Delete the agent and what belongs to it; False when there is no such agent. Accounts stay."""
    if tables.zombies.pop(zombie_id, None) is None:
        return False
    del tables.heads[zombie_id]
    tables.frames.pop(zombie_id, None)
    for key in [key for key in tables.frame_commits if zombie_id in key]:
        del tables.frame_commits[key]
    tables.waiting.pop(zombie_id, None)
    for event_id in [event.id for event in tables.events.values() if event.zombie_id == zombie_id]:
        del tables.events[event_id]
        tables.waits_at.pop(event_id, None)
        tables.lease_counts.pop(event_id, None)
        tables.unsorted_failures.pop(event_id, None)
        tables.failure_of.pop(event_id, None)
    gone = {group.id for group in tables.failure_groups.values() if group.zombie_id == zombie_id}
    tables.failure_groups.keep_if(lambda group: group.id not in gone)
    tables.failure_hours = {key: n for key, n in tables.failure_hours.items() if key[0] not in gone}
    deliveries.forget_agent(tables, zombie_id)
    tables.leases = {i: row for i, row in tables.leases.items() if row.zombie_id != zombie_id}
    tables.gates = {i: row for i, row in tables.gates.items() if row.zombie_id != zombie_id}
    tables.configs.keep_if(lambda row: row.zombie_id != zombie_id)
    tables.proposals.keep_if(lambda row: row.zombie_id != zombie_id)
    tables.scores = {i: row for i, row in tables.scores.items() if row.zombie_id != zombie_id}
    tables.memories.pop(zombie_id, None)
    tables.agent_keys.keep_if(lambda row: row.zombie_id != zombie_id)
    tables.grants.keep_if(lambda row: row.zombie_id != zombie_id)
    tables.dedup = {key: row for key, row in tables.dedup.items() if key[0] != zombie_id}
    tables.crons = {key: row for key, row in tables.crons.items() if key[0] != zombie_id}
    tables.schedule_notes.keep_if(lambda note: note.zombie_id != zombie_id)
    tables.follow_ups.keep_if(lambda row: row.zombie_id != zombie_id)
    tables.chat_notices = {i: row for i, row in tables.chat_notices.items() if row.zombie_id != zombie_id}
    let_go(tables, [row for row in tables.artefacts.values() if row.zombie_id == zombie_id])
    files = [one for one in tables.event_files.values() if one.zombie_id == zombie_id]
    event_files.let_go(tables, files)
    for snapshot in [one for one in tables.workspace_snapshots.values() if one.zombie_id == zombie_id]:
        kept_workspaces.let_go(tables, snapshot)
    tables.workspace_starts = {k: row for k, row in tables.workspace_starts.items() if k[0] != zombie_id}
    tables.workspace_resets.pop(zombie_id, None)
    tables.transcripts = {key: row for key, row in tables.transcripts.items() if key[0] != zombie_id}
    tables.transcript_entries = {
        key: rows for key, rows in tables.transcript_entries.items() if key[0] != zombie_id
    }
    tables.spend = {key: row for key, row in tables.spend.items() if key[0] != zombie_id}
    return True
