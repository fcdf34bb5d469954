-- serves-from: 0057
-- A workspace may keep less than its plan and the server allow: days of each class, null where it keeps as long as they do.

create table workspace_retention (
    workspace_id    uuid primary key references workspaces,
    event_days      integer check (event_days between 1 and 36500),
    transcript_days integer check (transcript_days between 1 and 36500),
    file_days       integer check (file_days between 1 and 36500),
    delivery_days   integer check (delivery_days between 1 and 36500),
    updated_at      bigint not null
);
comment on table workspace_retention is 'Written by PUT /v1/workspaces/{workspace_id}/retention alone; the newest write counts.';

create constraint trigger audited after insert or delete on workspace_retention deferrable initially deferred
    for each row when (current_setting('sexton.audit', true) <> '') execute function sexton_audit_row();
create constraint trigger audited_change after update on workspace_retention deferrable initially deferred
    for each row when (current_setting('sexton.audit', true) <> '' and old *<> new) execute function sexton_audit_row();
