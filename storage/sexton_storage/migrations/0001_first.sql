-- Every *_at and *_ms is a bigint in Unix milliseconds, every *_nanos a billionth of a US dollar.
-- Free documents are json, not jsonb: jsonb refuses an escaped NUL and reorders keys, and nothing here looks inside.
-- Hot rows have no foreign keys: each of those would lock its parent once for every row. Agents are purged as one.

create function sexton_now_ms() returns bigint language sql stable parallel safe
    return (extract(epoch from statement_timestamp()) * 1000)::bigint;

-- ---------------------------------------------------------------------------------------------- installation

create table settings (
    name  text primary key,
    value bytea not null
);

-- One row a journal lane: its number says, after a lost connection, whether the batch of that number committed.
create table journal_lanes (
    id    uuid primary key,
    batch bigint not null,
    at    bigint not null
) with (fillfactor = 10);

-- The same for the transactions of the stores, which are not numbered.
create table commit_marks (
    id uuid primary key,
    at bigint not null
);

-- ---------------------------------------------------------------------------------------------- tenancy

create table tenants (
    id            uuid primary key,
    name          text not null,
    plan_tier     text not null check (plan_tier in ('free', 'pro', 'enterprise')),
    balance_nanos bigint not null check (balance_nanos >= 0),
    exhausted_at  bigint,
    created_at    bigint not null,
    updated_at    bigint not null
) with (fillfactor = 50);

create table credits (
    id           bigint generated always as identity primary key,
    tenant_id    uuid not null references tenants,
    amount_nanos bigint not null check (amount_nanos >= 0),
    reason       text not null,
    actor        text not null,
    created_at   bigint not null
);
create index credits_of_tenant on credits (tenant_id, id);

create table workspaces (
    id         uuid primary key,
    tenant_id  uuid not null references tenants,
    name       text not null,
    paused     boolean not null,
    created_at bigint not null,
    constraint workspaces_name_taken unique (tenant_id, name)
);

create table users (
    id             uuid primary key,
    tenant_id      uuid not null references tenants,
    subject        text not null unique,
    role           text not null check (role in ('user', 'operator', 'admin')),
    platform_admin boolean not null,
    created_at     bigint not null
);

create table api_keys (
    id           uuid primary key,
    tenant_id    uuid not null references tenants,
    key_name     text not null,
    description  text not null,
    role         text not null check (role in ('user', 'operator', 'admin')),
    token_hash   bytea not null unique,
    created_at   bigint not null,
    last_used_at bigint,
    revoked_at   bigint,
    constraint api_keys_name_taken unique (tenant_id, key_name)
) with (fillfactor = 80);

create table credentials (
    workspace_id uuid not null references workspaces,
    name         text not null,
    sealed       bytea not null,
    created_at   bigint not null,
    updated_at   bigint not null,
    primary key (workspace_id, name)
);

-- ---------------------------------------------------------------------------------------------- agents

create table config_versions (
    id               uuid primary key,
    zombie_id        uuid not null,
    revision         integer not null,
    status           text not null,
    source_markdown  text not null,
    trigger_markdown text not null,
    compiled         json not null,
    created_at       bigint not null
);
create index config_versions_of_agent on config_versions (zombie_id, revision);

create table zombies (
    id                  uuid primary key,
    workspace_id        uuid not null references workspaces,
    tenant_id           uuid not null references tenants,
    name                text not null,
    status              text not null check (status in ('active', 'paused', 'stopped', 'killed')),
    version             bigint not null,
    config_version_id   uuid not null references config_versions,
    config_revision     integer not null,
    required_tags       text[] not null,
    approval_token_hash bytea not null,
    url_secret_hashes   json not null,
    created_at          bigint not null,
    updated_at          bigint not null,
    allows_unsandboxed  boolean not null,
    constraint zombies_name_taken unique (workspace_id, name)
);
create index zombies_newest on zombies (workspace_id, created_at, id);

-- What changes about an agent with every event, beside its wide record; its row lock serialises the agent's writes.
create table agent_heads (
    zombie_id      uuid primary key,
    workspace_id   uuid not null,
    tenant_id      uuid not null,
    status         text not null,
    fence          bigint not null default 0,
    live_lease_id  uuid,
    last_runner_id uuid,
    frame_seq      bigint not null default 0,
    last_event_at  bigint
) with (fillfactor = 70);

-- ---------------------------------------------------------------------------------------------- events

create table events (
    id                  uuid primary key,
    zombie_id           uuid not null,
    workspace_id        uuid not null,
    tenant_id           uuid not null,
    actor               text not null,
    event_type          text not null,
    status              text not null check (status in ('received', 'waiting_approval', 'running', 'processed',
                            'agent_error', 'gate_blocked', 'cancelled', 'dead_lettered')),
    request_json        text not null,
    created_at          bigint not null,
    updated_at          bigint not null,
    source_event_id     text,
    resumes_event_id    uuid,
    traceparent         text,
    attempts            integer not null default 0,
    first_leased_at     bigint,
    parked_ms           bigint not null default 0,
    parked_at           bigint,
    checkpoint          json,
    response_text       text,
    evidence            json,
    input_tokens        bigint not null default 0,
    cached_input_tokens bigint not null default 0,
    output_tokens       bigint not null default 0,
    wall_ms             bigint not null default 0,
    charged_nanos       bigint not null default 0,
    failure_label       text,
    error_code          text,
    completed_at        bigint,
    lease_count         integer not null default 0,
    waiting_gate_id     uuid
) with (fillfactor = 85);
create index events_received on events (zombie_id, id) where status = 'received';
create index events_blocked on events (tenant_id) where status = 'gate_blocked' and failure_label = 'balance_exhausted';
create index events_newest on events (workspace_id, created_at, id);
create index events_of_agent on events (zombie_id, created_at, id);

create table dedup_keys (
    zombie_id uuid not null,
    key       bytea not null,
    event_id  uuid not null,
    seen_at   bigint not null,
    primary key (zombie_id, key)
);
create index dedup_keys_age on dedup_keys using brin (seen_at) with (pages_per_range = 16, autosummarize = on);

-- ---------------------------------------------------------------------------------------------- leases and money

-- No index holds a column that a renewal changes, so renewals are heap-only updates.
create table leases (
    id                          uuid primary key,
    event_id                    uuid not null,
    zombie_id                   uuid not null,
    workspace_id                uuid not null,
    tenant_id                   uuid not null,
    runner_id                   uuid not null,
    fencing_token               bigint not null,
    attempt                     integer not null,
    status                      text not null check (status in ('active', 'cancelling', 'reported', 'released',
                                    'parked', 'reclaimed')),
    version                     bigint not null,
    granted_at                  bigint not null,
    expires_at                  bigint not null,
    ceiling_at                  bigint not null,
    metered_at                  bigint not null,
    run_nanos_per_sec           bigint not null,
    input_nanos_per_mtok        bigint not null,
    cached_input_nanos_per_mtok bigint not null,
    output_nanos_per_mtok       bigint not null,
    slice_seq                   integer not null default 0,
    input_tokens                bigint not null default 0,
    cached_input_tokens         bigint not null default 0,
    output_tokens               bigint not null default 0,
    run_ms                      bigint not null default 0,
    budget_daily_nanos          bigint,
    budget_monthly_nanos        bigint,
    ended_at                    bigint,
    report_digest               bytea
) with (fillfactor = 50);
create unique index leases_tokens on leases (zombie_id, fencing_token);
create unique index leases_one_live_an_agent on leases (zombie_id) where status in ('active', 'cancelling');
create index leases_live_of_runner on leases (runner_id) where status in ('active', 'cancelling');

create table metering (
    event_id         uuid not null,
    attempt          integer not null,
    slice_seq        integer not null,
    zombie_id        uuid not null,
    workspace_id     uuid not null,
    tenant_id        uuid not null,
    d_input_tokens   bigint not null check (d_input_tokens >= 0),
    d_cached_tokens  bigint not null check (d_cached_tokens >= 0),
    d_output_tokens  bigint not null check (d_output_tokens >= 0),
    run_ms           bigint not null check (run_ms >= 0),
    run_fee_nanos    bigint not null check (run_fee_nanos >= 0),
    token_cost_nanos bigint not null check (token_cost_nanos >= 0),
    charged_nanos    bigint not null check (charged_nanos >= 0),
    created_at       bigint not null,
    primary key (event_id, attempt, slice_seq)
);

-- day: days since 1970, UTC.
create table spend (
    zombie_id uuid not null,
    day       integer not null,
    nanos     bigint not null,
    primary key (zombie_id, day)
) with (fillfactor = 50);

-- ---------------------------------------------------------------------------------------------- gates and streams

create table gates (
    id              uuid primary key,
    zombie_id       uuid not null,
    workspace_id    uuid not null,
    tenant_id       uuid not null,
    event_id        uuid not null,
    lease_id        uuid,
    action_id       text not null,
    status          text not null check (status in ('pending', 'approved', 'denied', 'timed_out', 'auto_killed')),
    requested_at    bigint not null,
    timeout_at      bigint not null,
    zombie_name     text not null,
    tool_name       text not null,
    action_name     text not null,
    gate_kind       text not null,
    proposed_action text not null,
    evidence        json not null,
    blast_radius    text not null,
    detail          text not null,
    updated_at      bigint,
    resolved_by     text,
    constraint gates_one_an_action unique (event_id, action_id)
);
create index gates_oldest on gates (workspace_id, requested_at, id);
create index gates_by_action on gates (zombie_id, action_id);
create index gates_of_lease on gates (lease_id) where lease_id is not null;
create index gates_pending on gates (timeout_at) where status = 'pending';

create table frames (
    zombie_id uuid not null,
    seq       bigint not null,
    event_id  uuid,
    kind      text not null,
    at_ms     bigint not null,
    data      json not null,
    primary key (zombie_id, seq)
);
create index frames_age on frames using brin (at_ms) with (pages_per_range = 16, autosummarize = on);

-- ---------------------------------------------------------------------------------------------- runners

create table runners (
    id           uuid primary key,
    host_id      text not null,
    sandbox_tier text not null,
    labels       text[] not null,
    slots        integer not null check (slots > 0),
    token_hash   bytea not null unique,
    admin_state  text not null check (admin_state in ('active', 'cordoned', 'draining', 'drained', 'revoked')),
    version      bigint not null,
    created_at   bigint not null,
    last_seen_at bigint
) with (fillfactor = 70);

create table enrolment_tokens (
    token_hash bytea primary key,
    created_by text not null,
    created_at bigint not null,
    expires_at bigint not null,
    used_at    bigint
);
