-- serves-from: 0057
-- What a workspace's chat is told once, without buttons. Written in the commit of what it tells; it goes once it was told.

create table chat_notices (
    id           uuid not null,
    zombie_id    uuid not null,
    workspace_id uuid not null,
    zombie_name  text not null,
    facts        json not null,
    attempts     integer not null,
    due_at       bigint not null,
    created_at   bigint not null,
    primary key (zombie_id, id)
);
comment on column chat_notices.id is 'The trial that a guard has ended; the key by which the platform knows a message again.';
create index chat_notices_due on chat_notices (workspace_id, due_at);
