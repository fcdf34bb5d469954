-- Which transactions changed rows that pages show, and for whom, so that open pages hear of what leaves no frame. A row for
-- each transaction and scope: two that change the same thing never wait for each other here. Kept for minutes.

create table page_changes (
    scope_id uuid not null,
    txid     bigint not null default txid_current(),
    at       bigint not null default sexton_now_ms(),
    primary key (scope_id, txid)
);
comment on table page_changes is 'Read by open pages: see docs/adr/0037-console.md.';
comment on column page_changes.scope_id is 'A workspace, a tenant, or the id of zeros: everybody.';
create index page_changes_oldest on page_changes (at);

-- What people do: the line that their change brings along says where. A log is a tenant's, or the platform's (zeros).
create function sexton_people_changed() returns trigger language plpgsql as $$
begin
    insert into page_changes (scope_id) values (coalesce(new.workspace_id, new.log_id)) on conflict do nothing;
    return null;
end $$;
create trigger shows after insert on audit_log for each row execute function sexton_people_changed();

-- What rounds do.
create function sexton_row_changed() returns trigger language plpgsql as $$
begin
    insert into page_changes (scope_id) values (new.workspace_id) on conflict do nothing;
    return null;
end $$;
create trigger shows after insert or update on bulk_jobs for each row execute function sexton_row_changed();
create trigger shows after insert or update on failure_groups for each row execute function sexton_row_changed();

create function sexton_rows_came() returns trigger language plpgsql as $$
begin
    insert into page_changes (scope_id) select distinct workspace_id from fresh on conflict do nothing;
    return null;
end $$;
create trigger shows after insert on webhook_deliveries referencing new table as fresh
    for each statement execute function sexton_rows_came();

create function sexton_schedule_changed() returns trigger language plpgsql as $$
begin
    insert into page_changes (scope_id) select workspace_id from agent_heads where zombie_id = new.zombie_id
    on conflict do nothing;
    return null;
end $$;
create trigger shows after insert or update on schedule_notes for each row execute function sexton_schedule_changed();
