-- Whose events a runner is given (null: everybody's), and reserved labels that an enrolment token allows.

alter table enrolment_tokens add column tenant_id uuid;
alter table enrolment_tokens add column workspace_id uuid check (workspace_id is null or tenant_id is not null);
alter table enrolment_tokens add column labels text[] not null default '{}';
alter table runners add column tenant_id uuid;
alter table runners add column workspace_id uuid check (workspace_id is null or tenant_id is not null);
-- Nobody had leave for a reserved label before there were any.
update runners set labels = array(select l from unnest(labels) with ordinality u(l, n)
                                   where not starts_with(l, 'reserved:') order by n)
 where exists (select from unnest(labels) l where starts_with(l, 'reserved:'));
