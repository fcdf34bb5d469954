-- Events that ask for a version of their agent, and which version ran each event.

alter table events add column asked_version bigint, add column ran_version bigint, add column trial_id uuid;
comment on column events.asked_version is 'The number of the version that it is to run under; null: whichever is active.';
comment on column events.ran_version is 'The number of the version that its newest lease was given.';
comment on column events.trial_id is 'The trial that it counts in; with asked_version it is on the side of the candidate.';

-- The narrow row says it too, so that a claim needs no wide row to know which version is wanted.
alter table waiting_events add column asked_version bigint, add column trial_id uuid;
create or replace function sexton_event_waits() returns trigger language plpgsql as $$
begin
    insert into waiting_events
        (zombie_id, arrival, event_id, workspace_id, created_at, retry_at, asked_version, trial_id)
    values (new.zombie_id, new.arrival, new.id, new.workspace_id, new.created_at, new.retry_at, new.asked_version,
            case when new.asked_version is not null then new.trial_id end);
    return null;
end $$;
