-- Events are handled and listed in the order in which they arrived. Their ids hold the time of the node that took them,
-- and two nodes' clocks differ, so the order is a number that the database gives out. It is taken while the agent's head
-- is locked: of two events of one agent, the one that was kept first has the lower number.
create sequence events_arrival as bigint;
alter table events add column arrival bigint;
update events e set arrival = n.arrival
  from (select id, row_number() over (order by id) as arrival from events) n
 where n.id = e.id;
select setval('events_arrival', (select coalesce(max(arrival), 0) from events) + 1, false);
alter table events
    alter column arrival set default nextval('events_arrival'),
    alter column arrival set not null;
alter sequence events_arrival owned by events.arrival;
comment on column events.arrival is 'The order of the queue; taken by the inserting statement, under the lock of the agent''s head.';

drop index events_received;
create index events_received on events (zombie_id, arrival) where status = 'received';

drop index events_newest;
create index events_newest on events (workspace_id, created_at, arrival);
drop index events_of_agent;
create index events_of_agent on events (zombie_id, created_at, arrival);
drop index events_by_status;
create index events_by_status on events (workspace_id, status, created_at, arrival)
    where status <> 'processed' and created_at >= 0;
drop index events_by_actor;
create index events_by_actor on events (workspace_id, actor text_pattern_ops, created_at, arrival);
