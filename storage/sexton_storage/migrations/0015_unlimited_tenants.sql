-- Tenants that no balance stops: charged as all others, so what they have used is below zero in the end.

alter table tenants add column unlimited boolean not null default false;
alter table tenants drop constraint tenants_balance_nanos_check;
alter table tenants add constraint tenants_balance_nanos_check
    check (balance_nanos >= 0 or unlimited or exhausted_at is not null);
create index tenants_exhausted on tenants (exhausted_at) where exhausted_at is not null;
