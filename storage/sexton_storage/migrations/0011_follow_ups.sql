-- What a run asked to be woken for later. What is over stays for as long as its run might ask again.
create table follow_ups (
    id           uuid primary key,
    zombie_id    uuid not null,
    event_id     uuid not null,
    call_id      text not null,
    message      text not null,
    at           bigint not null,
    status       text not null check (status in ('pending', 'fired', 'cancelled', 'dropped')),
    created_at   bigint not null,
    closed_at    bigint,
    constraint follow_ups_asked_once unique (zombie_id, event_id, call_id)
);
comment on column follow_ups.event_id is 'The event whose run asked.';
create index follow_ups_next on follow_ups (at) where status = 'pending';
create index follow_ups_newest on follow_ups (zombie_id, created_at, id);
create index follow_ups_closed on follow_ups (closed_at) where closed_at is not null;
