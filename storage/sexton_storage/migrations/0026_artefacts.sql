-- What runs leave: files with a name, each of one attempt, whose contents are blobs.

create table artefacts (
    id           uuid primary key,
    zombie_id    uuid not null,
    workspace_id uuid not null,
    event_id     uuid not null,
    lease_id     uuid not null,
    attempt      integer not null,
    name         text not null,
    media_type   text not null,
    blob_id      uuid not null,
    sha256       bytea not null,
    size         bigint not null,
    created_at   bigint not null
);
create unique index artefacts_names on artefacts (event_id, attempt, name);
create index artefacts_of_event on artefacts (event_id, created_at, id);
create index artefacts_of_agent on artefacts (zombie_id);
create index artefacts_age on artefacts (created_at);

create trigger blob_owned after insert on artefacts for each row execute function sexton_blob_owned();
create trigger blob_let_go after delete on artefacts for each row execute function sexton_blob_let_go();
-- Rows that are restored or copied by an administrator count as well.
alter table artefacts enable always trigger blob_owned;
alter table artefacts enable always trigger blob_let_go;
