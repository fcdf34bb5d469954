-- What is done to many events at once, and the failures of agents in groups.

create table bulk_jobs (
    id              uuid primary key,
    tenant_id       uuid not null references tenants (id),
    workspace_id    uuid not null references workspaces (id),
    kind            text not null check (kind in ('replay', 'cancel')),
    status          text not null
        check (status in ('waiting', 'running', 'paused', 'stopping', 'stopped', 'done', 'failed')),
    version         bigint not null,
    filter          text not null,
    created_by      text not null,
    created_by_name text not null,
    created_at      bigint not null,
    updated_at      bigint not null,
    until_arrival   bigint not null,
    total           bigint not null,
    failure_id      uuid,
    request_json    text,
    merges          boolean not null,
    rate_limit      bigint not null,
    done            bigint not null,
    skipped         bigint not null,
    failed          bigint not null,
    refused         json not null,
    rate            bigint not null,
    after_at        bigint not null,
    after_arrival   bigint not null,
    page            uuid[] not null,
    page_agents     uuid[] not null,
    holder          uuid,
    held_until      bigint not null,
    waits_for       text,
    started_at      bigint,
    ended_at        bigint,
    detail          text
);
comment on column bulk_jobs.page is 'The events in hand: kept before anything is done about them.';
create index bulk_jobs_newest on bulk_jobs (workspace_id, created_at, id);
create index bulk_jobs_open on bulk_jobs (workspace_id, created_at)
    where status in ('waiting', 'running', 'paused', 'stopping');
create index bulk_jobs_over on bulk_jobs (ended_at) where ended_at is not null;

create table failure_groups (
    id              uuid primary key,
    tenant_id       uuid not null,
    workspace_id    uuid not null,
    zombie_id       uuid not null,
    digest          bytea not null,
    failure_label   text,
    error_code      text,
    message         text not null,
    sample_event_id uuid not null,
    first_seen_at   bigint not null,
    last_seen_at    bigint not null,
    count           bigint not null,
    acknowledged_by text,
    acknowledged_at bigint,
    muted_by        text,
    muted_until     bigint,
    constraint failure_groups_alike unique (zombie_id, digest)
);
create index failure_groups_newest on failure_groups (workspace_id, last_seen_at, id);

create table failure_hours (
    zombie_id uuid not null,
    group_id  uuid not null,
    hour      bigint not null,
    count     bigint not null,
    primary key (zombie_id, group_id, hour)
);
comment on column failure_hours.hour is 'Hours since 1970.';
create index failure_hours_of_group on failure_hours (group_id, hour);

-- A narrow row for each event that failed, in the commit that ended it, whoever wrote that; sorted into a group later.
create table failure_events (
    zombie_id    uuid not null,
    event_id     uuid not null,
    workspace_id uuid not null,
    arrival      bigint not null,
    created_at   bigint not null,
    at           bigint not null,
    group_id     uuid,
    primary key (zombie_id, event_id)
);
create index failure_events_unsorted on failure_events (at) where group_id is null;
create index failure_events_of_group on failure_events (group_id, created_at, arrival) where group_id is not null;

create function sexton_event_failed() returns trigger language plpgsql as $$
begin
    insert into failure_events (zombie_id, event_id, workspace_id, arrival, created_at, at)
    values (new.zombie_id, new.id, new.workspace_id, new.arrival, new.created_at,
            coalesce(new.completed_at, new.updated_at))
    on conflict do nothing;
    return null;
end $$;
create trigger fails after update of status on events for each row
    when (new.status in ('agent_error', 'dead_lettered') and old.status <> new.status)
    execute function sexton_event_failed();
alter table events enable always trigger fails;

insert into failure_events (zombie_id, event_id, workspace_id, arrival, created_at, at)
select zombie_id, id, workspace_id, arrival, created_at, coalesce(completed_at, updated_at) from events
 where unusual_status in ('agent_error', 'dead_lettered') and created_at >= 0;
