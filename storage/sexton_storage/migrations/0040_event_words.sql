-- The words of events, for searches, in a table beside: a round fills it behind the events, from their frames, so that no
-- event that arrives or ends writes here. What it has not come to yet is found through the frames behind its place.

create table event_words (
    zombie_id    uuid not null,
    event_id     uuid not null,
    completed_at bigint,
    words        tsvector not null,
    primary key (zombie_id, event_id)
) with (autovacuum_vacuum_insert_scale_factor = 0.05);
comment on table event_words is 'The different words of each event''s texts, as sexton_words has them, and its workspace.';
comment on column event_words.completed_at is 'That of the event when its texts were read; null: it was not over.';
create index event_words_found on event_words using gin (words) with (gin_pending_list_limit = 1024);

-- One row. Whoever writes event_words holds it, so that nothing is written of an agent that is being purged.
create table event_words_place (
    only_one  boolean primary key default true check (only_one),
    txid      bigint not null,
    walked_to uuid,
    walked_at bigint,
    filled    boolean not null default false
);
comment on column event_words_place.txid is 'The words of what older transactions wrote are there.';
comment on column event_words_place.walked_to is 'How far the walk through all events is, by their ids; null: it rests.';
comment on column event_words_place.filled is 'A walk has come to its end: every event is there, or behind the place.';
insert into event_words_place (txid, walked_to)
values (txid_snapshot_xmin(txid_current_snapshot()), '00000000-0000-0000-0000-000000000000');
