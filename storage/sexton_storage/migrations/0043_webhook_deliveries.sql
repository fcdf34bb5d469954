-- What came to the addresses of webhooks and what became of it; written beside the answers, never before them.

create table webhook_deliveries (
    id           uuid primary key,
    zombie_id    uuid not null,
    workspace_id uuid not null,
    tenant_id    uuid not null,
    at           bigint not null,
    address      text not null check (address in ('first', 'several', 'source', 'secret', 'unknown')),
    source       text not null,
    segment_hash bytea,
    verdict      text not null
        check (verdict in ('accepted', 'duplicate', 'ignored', 'challenge', 'refused', 'replayed')),
    code         text,
    reason       text not null,
    detail       text not null,
    event_id     uuid,
    headers      json not null,
    size         bigint not null,
    body_bytes   bigint not null,
    replays      bigint not null,
    replayed_at  bigint,
    replayed_by  text
);
comment on column webhook_deliveries.segment_hash is 'SHA-256 of the last part of the address, which may be a secret.';
comment on column webhook_deliveries.body_bytes is 'How many bytes of the body are kept: all of it, or none.';
create index webhook_deliveries_of_agent on webhook_deliveries (zombie_id, at, id);
create index webhook_deliveries_newest on webhook_deliveries (workspace_id, at, id);
create index webhook_deliveries_oldest on webhook_deliveries (at);

create table webhook_bodies (
    delivery_id uuid primary key references webhook_deliveries (id) on delete cascade,
    body        bytea not null
);

create table webhook_refusals (
    zombie_id    uuid not null,
    hour         bigint not null,
    workspace_id uuid not null,
    refused      bigint not null,
    unkept       bigint not null,
    last_at      bigint not null,
    last_code    text not null,
    last_reason  text not null,
    primary key (zombie_id, hour)
);
comment on column webhook_refusals.unkept is 'Those of the refused that are only counted: too many came at once.';
create index webhook_refusals_newest on webhook_refusals (workspace_id, hour);
