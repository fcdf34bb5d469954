-- What events bring: files that lie in the folder of each run of the event, whose contents are blobs.

create table event_files (
    event_id     uuid not null,
    number       integer not null,
    zombie_id    uuid not null,
    workspace_id uuid not null,
    name         text not null,
    media_type   text not null,
    blob_id      uuid not null,
    sha256       bytea not null,
    size         bigint not null,
    created_at   bigint not null,
    primary key (event_id, number)
);
comment on table event_files is 'Written before the event itself; what stays without an event is deleted after an hour.';
create index event_files_of_agent on event_files (zombie_id);
create index event_files_age on event_files (created_at);

create trigger blob_owned after insert on event_files for each row execute function sexton_blob_owned();
create trigger blob_let_go after delete on event_files for each row execute function sexton_blob_let_go();
-- Rows that are restored or copied by an administrator count as well.
alter table event_files enable always trigger blob_owned;
alter table event_files enable always trigger blob_let_go;
