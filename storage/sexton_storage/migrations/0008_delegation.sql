-- What agents are trusted with: keys for programs that act for them, services that they may use, what they remember.

create table agent_keys (
    id           uuid primary key,
    tenant_id    uuid not null references tenants,
    workspace_id uuid not null references workspaces,
    zombie_id    uuid not null,
    name         text not null,
    description  text not null,
    token_hash   bytea not null unique,
    created_at   bigint not null,
    last_used_at bigint,
    constraint agent_keys_name_taken unique (zombie_id, name)
) with (fillfactor = 80);
create index agent_keys_newest on agent_keys (workspace_id, created_at, id);

create table grants (
    id           uuid primary key,
    tenant_id    uuid not null references tenants,
    workspace_id uuid not null references workspaces,
    zombie_id    uuid not null,
    service      text not null,
    reason       text not null,
    status       text not null check (status in ('pending', 'approved', 'denied', 'revoked')),
    version      bigint not null,
    requested_at bigint not null,
    requested_by text not null,
    created_at   bigint not null,
    decided_at   bigint,
    decided_by   text,
    constraint grants_one_a_service unique (zombie_id, service)
);
create index grants_newest on grants (workspace_id, created_at, id);

-- folded: key and content as they are searched. It is made by the program, so that every database finds the same.
create table memories (
    zombie_id  uuid not null,
    key        text not null,
    content    text not null,
    category   text not null,
    folded     text not null,
    updated_at bigint not null,
    primary key (zombie_id, key)
);
create index memories_daily on memories (updated_at) where category = 'daily';
