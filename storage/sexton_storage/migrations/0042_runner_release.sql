-- The program that a runner is, as it says of itself; and bulk jobs that people begin, pause and stop are told in the
-- audit log. A page of a job is nobody's change, and pays for no more than the condition.

alter table runners add column release text not null default '';
comment on column runners.release is 'The header User-Agent that it came with last.';

create constraint trigger audited after insert on bulk_jobs deferrable initially deferred
    for each row when (current_setting('sexton.audit', true) <> '') execute function sexton_audit_row();
create constraint trigger audited_change after update on bulk_jobs deferrable initially deferred
    for each row when (current_setting('sexton.audit', true) <> '' and old *<> new) execute function sexton_audit_row();
