-- What waits and what runs is kept in two narrow tables beside the wide rows, so that no index of events or leases holds
-- a status: a claim, a renewal and a report change wide rows in place (heap-only), and no index hears of it.
-- The tables follow the statuses by triggers, whoever writes them: a server of an earlier release that still writes
-- beside this one keeps them too, and so does a statement by hand.

create table waiting_events (
    zombie_id    uuid not null,
    arrival      bigint not null,
    event_id     uuid not null,
    workspace_id uuid not null,
    created_at   bigint not null,
    primary key (zombie_id, arrival)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
comment on table waiting_events is 'The events with status received: a row comes and goes with the status.';
create index waiting_events_oldest on waiting_events (created_at);
create index waiting_events_newest on waiting_events (workspace_id, created_at, arrival);

create table live_leases (
    workspace_id uuid not null,
    zombie_id    uuid not null,
    lease_id     uuid not null,
    event_id     uuid not null,
    runner_id    uuid not null,
    look_at      bigint not null,
    constraint live_leases_one_an_agent primary key (workspace_id, zombie_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
comment on table live_leases is 'The leases with status active or cancelling; the key keeps an agent from having two.';
comment on column live_leases.look_at is 'Until then nobody need ask whether it has expired; never later than its deadline.';
create index live_leases_of_runner on live_leases (runner_id);
create index live_leases_due on live_leases (look_at);

insert into waiting_events (zombie_id, arrival, event_id, workspace_id, created_at)
select zombie_id, arrival, id, workspace_id, created_at from events where status = 'received';
insert into live_leases (workspace_id, zombie_id, lease_id, event_id, runner_id, look_at)
select workspace_id, zombie_id, id, event_id, runner_id, expires_at from leases
 where status in ('active', 'cancelling');

create function sexton_event_waits() returns trigger language plpgsql as $$
begin
    insert into waiting_events (zombie_id, arrival, event_id, workspace_id, created_at)
    values (new.zombie_id, new.arrival, new.id, new.workspace_id, new.created_at);
    return null;
end $$;
create function sexton_event_waits_no_more() returns trigger language plpgsql as $$
begin
    delete from waiting_events where zombie_id = old.zombie_id and arrival = old.arrival;
    return null;
end $$;
create function sexton_lease_lives() returns trigger language plpgsql as $$
begin
    insert into live_leases (workspace_id, zombie_id, lease_id, event_id, runner_id, look_at)
    values (new.workspace_id, new.zombie_id, new.id, new.event_id, new.runner_id, new.expires_at);
    return null;
end $$;
create function sexton_lease_lives_no_more() returns trigger language plpgsql as $$
begin
    delete from live_leases
     where workspace_id = old.workspace_id and zombie_id = old.zombie_id and lease_id = old.id;
    return null;
end $$;

create trigger waits_at_first after insert on events for each row
    when (new.status = 'received') execute function sexton_event_waits();
create trigger waits_again after update of status on events for each row
    when (new.status = 'received' and old.status <> 'received') execute function sexton_event_waits();
create trigger waits_no_more after update of status on events for each row
    when (old.status = 'received' and new.status <> 'received') execute function sexton_event_waits_no_more();
create trigger waits_and_goes after delete on events for each row
    when (old.status = 'received') execute function sexton_event_waits_no_more();
create trigger lives_at_first after insert on leases for each row
    when (new.status in ('active', 'cancelling')) execute function sexton_lease_lives();
create trigger lives_no_more after update of status on leases for each row
    when (old.status in ('active', 'cancelling') and new.status not in ('active', 'cancelling'))
    execute function sexton_lease_lives_no_more();
create trigger lives_and_goes after delete on leases for each row
    when (old.status in ('active', 'cancelling')) execute function sexton_lease_lives_no_more();
-- Rows that are restored or copied by an administrator count as well.
alter table events enable always trigger waits_at_first;
alter table events enable always trigger waits_again;
alter table events enable always trigger waits_no_more;
alter table events enable always trigger waits_and_goes;
alter table leases enable always trigger lives_at_first;
alter table leases enable always trigger lives_no_more;
alter table leases enable always trigger lives_and_goes;

-- What an index may know of a status: only what few events come to. It stays null from the first to the last of a run
-- that goes well.
alter table events add column unusual_status text generated always as (
    case when status not in ('received', 'running', 'processed') then status end) stored;
drop index events_received;
drop index events_oldest;
drop index events_blocked;
drop index events_by_status;
create index events_blocked on events (tenant_id)
    where unusual_status = 'gate_blocked' and failure_label = 'balance_exhausted';
create index events_by_status on events (workspace_id, unusual_status, created_at, arrival)
    where unusual_status is not null and created_at >= 0;
drop index leases_one_live_an_agent;
drop index leases_live_of_runner;
-- Room on the page for what a claim and a report leave of each row, so that the new version stays there.
alter table events set (fillfactor = 50);
