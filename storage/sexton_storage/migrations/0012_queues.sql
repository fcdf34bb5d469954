-- An index of what waits or runs is empty when a quiet database takes its statistics, and then it looks to the planner
-- as if to read all of it were as cheap as to look one row up elsewhere. So that each serves only the statements it is
-- meant for, each asks for a condition of its own, which always holds and which those statements repeat.

-- By age, for the census: created_at >= 0.
drop index events_oldest;
create index events_oldest on events (created_at) where status = 'received' and created_at >= 0;

-- By what became of them, for the history.
drop index events_by_status;
create index events_by_status on events (workspace_id, status, created_at, id)
    where status <> 'processed' and created_at >= 0;

-- By agent: fencing_token >= 0. By runner, and for all that live: granted_at >= 0.
drop index leases_one_live_an_agent;
create unique index leases_one_live_an_agent on leases (zombie_id)
    where status in ('active', 'cancelling') and fencing_token >= 0;
drop index leases_live_of_runner;
create index leases_live_of_runner on leases (runner_id)
    where status in ('active', 'cancelling') and granted_at >= 0;
