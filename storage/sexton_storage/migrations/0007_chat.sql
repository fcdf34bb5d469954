-- Where a workspace's approval requests are shown in a chat, and what was shown there of which gate.
-- The bot's token is no column here: it is a credential of the vault.

create table chat_installs (
    workspace_id uuid primary key references workspaces (id),
    tenant_id    uuid not null,
    team_id      text not null,
    team_name    text not null,
    channel_id   text not null,
    channel_name text not null,
    bot_user_id  text not null,
    installed_by text not null,
    created_at   bigint not null,
    updated_at   bigint not null,
    revoked_at   bigint
);

-- One row for each gate that was, or may have been, shown; it goes once the message shows the gate's outcome.
-- It outlives a purged gate, so that its message can still be closed.
create table chat_posts (
    gate_id      uuid primary key,
    workspace_id uuid not null,
    channel_id   text not null,
    message_id   text,
    attempts     integer not null,
    unsure       boolean not null,
    due_at       bigint not null,
    created_at   bigint not null
);
create index chat_posts_due on chat_posts (workspace_id, due_at);
create index gates_asked on gates (zombie_id, tool_name, action_name, requested_at) where lease_id is not null;
create index gates_pending_of_workspace on gates (workspace_id, requested_at, id) where status = 'pending';
