-- What was decided last. A gate is decided once, and rarely: the index costs no write that is hot.
create index gates_decided on gates (workspace_id, updated_at, id) where status <> 'pending';
