-- Contents of any length: sent in parts, kept in chunks, verified by their SHA-256, and deleted when nothing owns them.

create table blobs (
    id           uuid primary key,
    workspace_id uuid not null,
    lease_id     uuid not null,
    sha256       bytea not null check (length(sha256) = 32),
    size         bigint not null check (size >= 0),
    received     bigint not null default 0 check (received between 0 and size),
    state        text not null default 'open' check (state in ('open', 'kept', 'doomed')),
    owners       integer not null default 0 check (owners >= 0),
    created_at   bigint not null,
    touched_at   bigint not null
);
comment on column blobs.size is 'Declared before the first byte comes; counts against the quota of the workspace from then on.';
comment on column blobs.owners is 'Rows of other tables with this blob_id; triggers of those tables keep it.';
create unique index blobs_of_lease on blobs (lease_id, sha256, size) where state <> 'doomed';
create index blobs_of_workspace on blobs (workspace_id) include (size);
create index blobs_unowned on blobs (touched_at) where owners = 0;

create table blob_chunks (
    blob_id uuid not null references blobs (id),
    number  integer not null check (number >= 0),
    content bytea not null,
    primary key (blob_id, number)
);
comment on table blob_chunks is 'All chunks of a blob but the last have the same length.';
-- Contents are often compressed already, and a part of a value that is not compressed can be read by itself.
alter table blob_chunks alter column content set storage external;

-- For every table whose rows own a blob (a column blob_id): after insert and after delete.
create function sexton_blob_owned() returns trigger language plpgsql as $$
begin
    update blobs set owners = owners + 1 where id = new.blob_id and state = 'kept';
    if not found then
        raise exception 'blob % is not kept', new.blob_id using errcode = 'foreign_key_violation';
    end if;
    return null;
end $$;
create function sexton_blob_let_go() returns trigger language plpgsql as $$
begin
    update blobs set owners = owners - 1, touched_at = sexton_now_ms() where id = old.blob_id;
    return null;
end $$;
