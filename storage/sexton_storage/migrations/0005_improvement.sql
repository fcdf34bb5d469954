-- What an agent was configured with, what it proposes, and how its runs are scored.

alter table config_versions add column findings json not null default '{}';
alter table config_versions add constraint config_versions_status
    check (status in ('DRAFT', 'COMPILED', 'INVALID', 'ACTIVE', 'SUPERSEDED'));
drop index config_versions_of_agent;
alter table config_versions add constraint config_versions_revision_taken unique (zombie_id, revision);
create index config_versions_newest on config_versions (zombie_id, created_at, id);

-- Runs that were processed in a row; settled with the lease that ends.
alter table agent_heads add column streak bigint not null default 0;

-- The configuration that a run was given; null for leases of before.
alter table leases add column config_version_id uuid;

create table proposals (
    id                     uuid primary key,
    zombie_id              uuid not null,
    workspace_id           uuid not null,
    tenant_id              uuid not null,
    status                 text not null check (status in ('PENDING', 'APPLIED', 'CONFIG_CHANGED', 'REJECTED')),
    title                  text not null,
    rationale              text not null,
    diff                   text not null,
    base_config_version_id uuid not null,
    created_by             text not null,
    created_at             bigint not null,
    source_markdown        text,
    trigger_markdown       text,
    event_id               uuid,
    config_version_id      uuid,
    rejection_reason       text,
    decided_at             bigint,
    decided_by             text,
    handed_lease_id        uuid,
    heard_at               bigint,
    check ((status = 'PENDING') = (decided_at is null)),
    check (status <> 'REJECTED' or rejection_reason is not null)
);
create index proposals_newest on proposals (zombie_id, created_at, id);
create index proposals_decided on proposals (zombie_id, decided_at, id) where decided_at is not null;
create index proposals_applied on proposals (zombie_id, decided_at, id) where status = 'APPLIED';
create index proposals_pending on proposals (zombie_id, created_at, id) where status = 'PENDING';
create index proposals_unheard on proposals (zombie_id, decided_at, id) where status = 'REJECTED' and heard_at is null;

-- One row a finished run, in the commit that settles it.
create table scores (
    event_id      uuid primary key,
    zombie_id     uuid not null,
    outcome       text not null check (outcome in ('processed', 'agent_error', 'cancelled', 'dead_lettered')),
    score         double precision not null check (score between 0 and 1),
    attempts      integer not null,
    denied_gates  integer not null,
    failed_checks integer not null,
    charged_nanos bigint not null,
    budget_nanos  bigint,
    created_at    bigint not null
);
create index scores_newest on scores (zombie_id, created_at, event_id);

create table workspace_scoring (
    workspace_id   uuid primary key references workspaces,
    context_tokens integer not null check (context_tokens between 512 and 8192),
    updated_at     bigint not null
);
