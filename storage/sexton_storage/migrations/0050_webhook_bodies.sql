-- The bodies of a workspace's deliveries have a bound: the newest are kept, and found by this.

create index webhook_deliveries_bodies on webhook_deliveries (workspace_id, at desc, id desc) include (body_bytes)
    where body_bytes > 0;
