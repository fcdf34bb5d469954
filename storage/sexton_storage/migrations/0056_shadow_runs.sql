-- Shadow runs: events that are worked on without effects, by the job that made them.

alter table events add column shadow_job uuid;
comment on column events.shadow_job is 'The bulk job that has the event run without effects; null: it is an event as any other.';
create index events_of_shadow on events (shadow_job, created_at, id) where shadow_job is not null;
alter table leases add column shadow boolean not null default false;
comment on column leases.shadow is 'Nothing that the run asks for takes effect.';
alter table bulk_jobs drop constraint bulk_jobs_kind_check;
alter table bulk_jobs add constraint bulk_jobs_kind_check check (kind in ('replay', 'cancel', 'shadow'));
alter table bulk_jobs add column budget_nanos bigint, add column events_limit bigint;
comment on column bulk_jobs.budget_nanos is 'What the runs of a shadow may cost together.';
comment on column bulk_jobs.events_limit is 'How many events a shadow repeats at most.';

drop trigger fails on events;
create trigger fails after update of status on events for each row
    when (new.status in ('agent_error', 'dead_lettered') and old.status <> new.status and new.shadow_job is null)
    execute function sexton_event_failed();
alter table events enable always trigger fails;
