-- Where a credential may go; empty: its owner named no host.

alter table credentials add column hosts text[] not null default '{}';
