-- Who is admitted to a tenant, whose keys are whose, and until when they are good.

alter table users
    add column status text not null default 'active' check (status in ('active', 'suspended', 'removed')),
    add column changed_at bigint,
    add column changed_by text not null default '',
    add column issuer text;
-- Who comes with the tokens of an issuer elsewhere may be a member of several tenants; who signs in here, of one.
alter table users drop constraint users_subject_key;
create unique index users_subject_key on users (subject) where issuer is null;
create unique index users_from_elsewhere on users (tenant_id, subject) where issuer is not null;
create index users_of_tenant on users (tenant_id, created_at, id);
create index users_platform_admins on users (id) where platform_admin;

-- Null: the tenant's own, as all are that were made before there were owners.
alter table api_keys add column expires_at bigint, add column owner_id uuid;
create index api_keys_of_owner on api_keys (owner_id) where owner_id is not null;
alter table agent_keys add column owner_id uuid;
create index agent_keys_of_owner on agent_keys (owner_id) where owner_id is not null;
