-- MCP servers that a workspace declares for its agents. No secret stands here: headers and variables name credentials.

create table mcp_servers (
    workspace_id uuid not null references workspaces,
    name         text not null,
    url          text not null,
    command      text not null,
    headers      json not null,
    env          json not null,
    tools        text[] not null,
    created_at   bigint not null,
    updated_at   bigint not null,
    updated_by   text not null,
    primary key (workspace_id, name),
    check ((url = '') <> (command = ''))
);
comment on column mcp_servers.command is 'The name of a server that runners offer; their operator says what is run.';
comment on column mcp_servers.tools is 'Those that agents may use; none: all.';
