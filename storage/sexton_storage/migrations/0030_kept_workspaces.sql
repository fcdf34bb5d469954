-- Workspaces that stay: what a run left in its folder, for the next run of its agent. A snapshot counts when its lease was
-- reported, so it comes to count in the very commit of the report; one of a lease that was lost never does.

create table workspace_snapshots (
    lease_id      uuid primary key,
    zombie_id     uuid not null,
    workspace_id  uuid not null,
    event_id      uuid not null,
    fencing_token bigint not null,
    is_fork       boolean not null,
    blob_id       uuid not null,
    sha256        bytea not null,
    size          bigint not null,
    created_at    bigint not null
);
comment on column workspace_snapshots.is_fork is 'Of a replay, or what continues one: no other event starts from it.';
create index workspace_snapshots_of_agent on workspace_snapshots (zombie_id, fencing_token);

create table workspace_starts (
    zombie_id   uuid not null,
    event_id    uuid not null,
    snapshot_id uuid,
    is_fork     boolean not null,
    primary key (zombie_id, event_id)
);
comment on table workspace_starts is 'What each event started from, by the lease of the snapshot; null: an empty folder.';

create table workspace_resets (
    zombie_id     uuid primary key,
    fencing_token bigint not null
);
comment on table workspace_resets is 'Snapshots of leases up to this token count no more.';

create trigger blob_owned after insert on workspace_snapshots for each row execute function sexton_blob_owned();
create trigger blob_let_go after delete on workspace_snapshots for each row execute function sexton_blob_let_go();
-- Rows that are restored or copied by an administrator count as well.
alter table workspace_snapshots enable always trigger blob_owned;
alter table workspace_snapshots enable always trigger blob_let_go;
