-- A firing of an agent's cron triggers. There is a row for each trigger that may fire: those of active agents only, so
-- a look at what is due costs what is due, however many agents sleep. The agent's own save keeps the rows, in its commit.
create table cron_triggers (
    zombie_id uuid not null,
    schedule  text not null,
    timezone  text not null,
    since     bigint not null,
    next_at   bigint,
    primary key (zombie_id, schedule, timezone)
);
comment on column cron_triggers.next_at is 'When it fires next; null until somebody has worked it out, from since on.';
create index cron_triggers_next on cron_triggers (next_at nulls first);

-- Agents that were installed before there was a scheduler fire from now on.
insert into cron_triggers (zombie_id, schedule, timezone, since)
select distinct z.id, t ->> 'schedule', coalesce(t ->> 'timezone', 'UTC'), sexton_now_ms()
  from zombies z
  join config_versions c on c.id = z.config_version_id
 cross join lateral json_array_elements(
       case json_typeof(c.compiled -> 'triggers') when 'array' then c.compiled -> 'triggers' else '[]'::json end) t
 where z.status = 'active' and t ->> 'type' = 'cron';

-- A delivery that bears an id is remembered by its body, too, so that it is known when it comes again without one.
alter table dedup_keys add column by_body boolean not null default false;
comment on column dedup_keys.by_body is 'Not the key of the event itself, but of the body of one that has an id.';

-- History is read newest first: of a workspace by what became of the events, where that is rare, and by who woke.
create index events_by_status on events (workspace_id, status, created_at, id) where status <> 'processed';
create index events_by_actor on events (workspace_id, actor text_pattern_ops, created_at, id);
