-- What people do to schedules, deliveries of webhooks and groups of failures is told in the audit log, by the commit that
-- does it. The rounds that write the same tables are nobody's, and pay for no more than the condition.

create constraint trigger audited after insert or delete on schedule_notes deferrable initially deferred
    for each row when (current_setting('sexton.audit', true) <> '') execute function sexton_audit_row();
create constraint trigger audited_change after update on schedule_notes deferrable initially deferred
    for each row when (current_setting('sexton.audit', true) <> '' and old *<> new) execute function sexton_audit_row();
create constraint trigger audited after update on webhook_deliveries deferrable initially deferred
    for each row when (current_setting('sexton.audit', true) <> '' and old.replays <> new.replays)
    execute function sexton_audit_row();
create constraint trigger audited after update on failure_groups deferrable initially deferred
    for each row when (current_setting('sexton.audit', true) <> '' and old *<> new) execute function sexton_audit_row();
