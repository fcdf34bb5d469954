-- The servers of this database, and what they ask each other; a question lives for seconds, and no truth is in either.

create table nodes (
    id         uuid primary key,
    host       text not null,
    version    text not null,
    started_at bigint not null,
    heard_at   bigint not null
);
comment on table nodes is 'One row a server, written again every few seconds; gone when it ends by itself.';

create table node_questions (
    id         uuid primary key,
    node_id    uuid not null,
    asker_id   uuid not null,
    question   bytea not null,
    asked_at   bigint not null,
    expires_at bigint not null,
    taken_at   bigint,
    answer     bytea
);
comment on table node_questions is 'Taken once, before it expires; its asker deletes it with the answer, else a beat does.';
create index node_questions_open on node_questions (node_id, expires_at) where taken_at is null;
