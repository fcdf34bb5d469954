-- Models that are asked one after another, what each has cost, cache writes at their own rate, and events that wait for
-- a time because every model was busy. All of it is null or 0 for what is there.

alter table leases
    add column cache_write_nanos_per_mtok bigint not null default 0,
    add column cache_write_tokens bigint not null default 0,
    add column shares json;
comment on column leases.shares is 'Each model of a run that has more than one: its rates, its counts and its cost.';
alter table metering add column d_cache_write_tokens bigint not null default 0 check (d_cache_write_tokens >= 0);
alter table charges add column models json;
alter table events add column cache_write_tokens bigint not null default 0, add column retry_at bigint;

-- The narrow row says it too, so that a claim and the search for work need no wide row to know.
alter table waiting_events add column retry_at bigint;
create or replace function sexton_event_waits() returns trigger language plpgsql as $$
begin
    insert into waiting_events (zombie_id, arrival, event_id, workspace_id, created_at, retry_at)
    values (new.zombie_id, new.arrival, new.id, new.workspace_id, new.created_at, new.retry_at);
    return null;
end $$;
