-- What a tenant pays for and with: its plan, its charges, and the keys that its models are called with.

-- One a tenant; the tier itself stands in tenants, where every request reads it, and is saved with this.
create table billing_plans (
    tenant_id        uuid primary key references tenants,
    version          bigint not null,
    status           text not null check (status in ('ACTIVE', 'GRACE', 'DOWNGRADED')),
    tier             text not null check (tier in ('free', 'pro', 'enterprise')),
    sku              text not null,
    subscription_id  text not null,
    grace_expires_at bigint,
    lapsed_tier      text check (lapsed_tier in ('pro', 'enterprise')),
    reason           text not null,
    changed_by       text not null,
    updated_at       bigint not null
) with (fillfactor = 70);
create index billing_plans_grace on billing_plans (grace_expires_at) where status = 'GRACE';
insert into billing_plans (tenant_id, version, status, tier, sku, subscription_id, reason, changed_by, updated_at)
select id, 1, 'ACTIVE', plan_tier, plan_tier || '_v1', '', '', 'system:migration', sexton_now_ms() from tenants;

-- A credit that is asked for again under the same id is the same credit.
alter table credits add column credit_id uuid unique;

-- Only tenants whose plan has a limit are counted, and what is refused is not: a row changes at most as often as
-- the limit says, and once a batch. day: days since 1970, UTC.
create table event_counts (
    tenant_id uuid not null,
    day       integer not null,
    events    bigint not null,
    primary key (tenant_id, day)
) with (fillfactor = 50);

-- What a lease was billed, once it has ended; its slices are in metering. id: the lease's.
alter table leases add column model text, add column own_key boolean not null default false;
create table charges (
    id                    uuid primary key,
    event_id              uuid not null,
    zombie_id             uuid not null,
    workspace_id          uuid not null,
    tenant_id             uuid not null,
    charge_type           text not null check (charge_type in ('run')),
    posture               text not null check (posture in ('platform', 'self_managed')),
    model                 text,
    credit_deducted_nanos bigint not null check (credit_deducted_nanos >= 0),
    token_count_input     bigint not null,
    token_count_output    bigint not null,
    wall_ms               bigint not null,
    recorded_at           bigint not null
);
create index charges_newest on charges (tenant_id, recorded_at, id);

create table tenant_providers (
    tenant_id               uuid primary key references tenants,
    mode                    text not null check (mode in ('platform', 'self_managed')),
    provider                text not null,
    model                   text not null,
    context_cap_tokens      bigint not null check (context_cap_tokens > 0),
    credential_ref          text,
    credential_workspace_id uuid references workspaces,
    updated_at              bigint not null,
    check ((mode = 'self_managed') = (credential_ref is not null and credential_workspace_id is not null))
);

-- Whose vault lends the platform's key of a provider; shared: to the tenants that have no entry of their own.
create table platform_keys (
    tenant_id           uuid not null references tenants,
    provider            text not null,
    source_workspace_id uuid not null references workspaces,
    shared              boolean not null,
    updated_at          bigint not null,
    primary key (tenant_id, provider)
);
create unique index platform_keys_one_shared on platform_keys (provider) where shared;

-- The bytes of a sealed secret that say which master key sealed it.
create index credentials_master_key on credentials (substring(sealed from 2 for 4));
