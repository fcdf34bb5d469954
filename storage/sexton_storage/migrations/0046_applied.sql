-- What folders have applied to a workspace: one side of the three-way comparison of `sexton apply`. No secret stands here.

create table applied (
    workspace_id uuid primary key references workspaces,
    revision     bigint not null,
    applying     boolean not null,
    holder       text not null,
    items        json not null,
    updated_at   bigint not null,
    updated_by   text not null
);
comment on column applied.items is 'By kind and name: the folder that named the thing, and its fields as text or as SHA-256.';
