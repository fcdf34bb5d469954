-- serves-from: 0056
-- Erasures: a value of a person is taken out of all that a workspace keeps. The value itself stands nowhere here.

create table erasures (
    id              uuid primary key,
    tenant_id       uuid not null,
    workspace_id    uuid not null,
    path            text not null,
    sha256          bytea not null check (length(sha256) = 32),
    chars           bigint not null check (chars > 0),
    dry_run         boolean not null,
    restored        boolean not null,
    status          text not null check (status in ('running', 'waiting', 'done', 'stopped')),
    created_by      text not null,
    created_by_name text not null,
    created_at      bigint not null,
    updated_at      bigint not null,
    surface         bigint not null,
    after           text[] not null,
    passes          bigint not null,
    waits           bigint not null,
    erased          json not null,
    kept            json not null,
    ended_at        bigint
);
comment on table erasures is 'Kept for good: each is the receipt of what was done, and a tombstone for older data that comes back.';
comment on column erasures.sha256 is 'Of the value in UTF-8.';
comment on column erasures.waits is 'What the pass had to leave, as it has not ended yet.';
create index erasures_newest on erasures (workspace_id, created_at, id);
create index erasures_open on erasures (created_at, id) where status in ('running', 'waiting');

create table erasure_events (
    erasure_id uuid not null,
    event_id   uuid not null,
    whole      boolean not null,
    primary key (erasure_id, event_id)
);
comment on table erasure_events is 'Events that an erasure has come to, until it is over.';
comment on column erasure_events.whole is 'The event is the person''s: all of it goes. Else only the value.';

-- One row, in whose place no sequence will do: it has to be seen no sooner than what was changed.
create table erasure_changes (
    only_one boolean primary key default true check (only_one),
    changes  bigint not null
);
insert into erasure_changes (changes) values (0);
comment on column erasure_changes.changes is 'Grows with each page that erased something: nodes forget what they hold.';

create constraint trigger audited after insert on erasures deferrable initially deferred
    for each row when (current_setting('sexton.audit', true) <> '') execute function sexton_audit_row();
create constraint trigger audited_change after update on erasures deferrable initially deferred
    for each row when (current_setting('sexton.audit', true) <> '' and old.status <> new.status)
    execute function sexton_audit_row();
