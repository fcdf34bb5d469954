-- The newest trial of each agent, and a narrow row for each run that counts in one, in the commit that ended it.

alter table zombies add column canary json not null default '{}';
comment on column zombies.canary is 'The newest trial of one of its versions; empty: there never was one.';
create index zombies_on_trial on zombies (id) where (canary ->> 'status') = 'on_trial';

create table canary_runs (
    zombie_id     uuid not null,
    trial_id      uuid not null,
    event_id      uuid not null,
    candidate     boolean not null,
    failed        boolean not null,
    charged_nanos bigint not null,
    primary key (zombie_id, trial_id, event_id)
);
comment on table canary_runs is 'Counts of a trial: a run of the version that its side asks for, once its event has ended.';

create function sexton_canary_run() returns trigger language plpgsql as $$
begin
    insert into canary_runs (zombie_id, trial_id, event_id, candidate, failed, charged_nanos)
    values (new.zombie_id, new.trial_id, new.id, new.asked_version is not null, new.status <> 'processed',
            new.charged_nanos)
    on conflict do nothing;
    return null;
end $$;
create trigger counts_in_trial after update of status on events for each row
    when (new.trial_id is not null and new.completed_at is not null and old.completed_at is null
          and new.status in ('processed', 'agent_error', 'dead_lettered') and new.ran_version is not null
          and (new.asked_version is null or new.asked_version = new.ran_version))
    execute function sexton_canary_run();
alter table events enable always trigger counts_in_trial;
