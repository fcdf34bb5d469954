-- A page shows the few agents of a workspace that are paused, among ten thousand that are not.
create index zombies_not_active on zombies (workspace_id, status, created_at, id) where status <> 'active';
