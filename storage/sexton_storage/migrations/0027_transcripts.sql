-- What each attempt at an event said and did, kept longer than the stream: one narrow row an attempt, and its numbered
-- entries. Nothing that waits or runs is looked up here, so no hot statement touches these tables.
create table transcripts (
    zombie_id    uuid not null,
    event_id     uuid not null,
    attempt      integer not null,
    workspace_id uuid not null,
    began_at     bigint not null,
    entries      integer not null default 0,
    bytes        bigint not null default 0,
    last_number  integer not null default 0,
    is_cut       boolean not null default false,
    is_removed   boolean not null default false,
    primary key (zombie_id, event_id, attempt)
) with (fillfactor = 80);
comment on column transcripts.is_cut is 'The bound of a run was reached: the last entry says so, and none follows.';
comment on column transcripts.is_removed is 'Its entries made room for newer transcripts of the workspace.';
create index transcripts_oldest on transcripts (began_at);

create table transcript_entries (
    zombie_id uuid not null,
    event_id  uuid not null,
    attempt   integer not null,
    number    integer not null,
    kind      text not null,
    at_ms     bigint not null,
    data      json not null,
    size      integer not null,
    primary key (zombie_id, event_id, attempt, number)
);
