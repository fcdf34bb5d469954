-- What a runner's standing went through; its leases are told by their own rows.
create table runner_changes (
    id           uuid primary key,
    runner_id    uuid not null,
    at           bigint not null,
    changed_from text not null,
    changed_to   text not null,
    changed_by   text not null
);
create index runner_changes_newest on runner_changes (runner_id, at, id);
create index runner_changes_age on runner_changes (at);

create index leases_of_runner on leases (runner_id, granted_at, id);

-- How long the oldest event has waited is asked every few seconds, whatever the length of the queue.
create index events_oldest on events (created_at) where status = 'received';
