-- The audit log: a line for each change that somebody made, written by the commit of the change itself. A session that
-- changes something for somebody sets sexton.audit for its transaction; the first row that changes in one of the tables
-- below then brings the line along, when all else of the transaction is done, so that the end of a log is locked last.

create table audit_log (
    log_id        uuid not null,
    seq           bigint not null,
    at            bigint not null,
    entry_id      uuid not null,
    workspace_id  uuid,
    actor         text not null,
    action        text not null,
    target        text not null,
    body          text not null,
    previous_hash bytea not null,
    hash          bytea not null,
    primary key (log_id, seq)
);
comment on column audit_log.log_id is 'A tenant, or the id of zeros: the log of the platform.';
comment on column audit_log.body is 'What was hashed; the columns before it are copies to search by.';
create unique index audit_log_entries on audit_log (log_id, entry_id);
create index audit_log_by_workspace on audit_log (log_id, workspace_id, seq);
create index audit_log_by_actor on audit_log (log_id, actor, seq);
create index audit_log_by_target on audit_log (log_id, target, seq);

create table audit_heads (
    log_id uuid primary key,
    seq    bigint not null,
    hash   bytea not null
);

create function sexton_audit_append(entry jsonb, row_id text) returns void language plpgsql as $$
declare
    of_log uuid := (entry ->> 'log_id')::uuid;
    what text := coalesce(nullif(entry ->> 'target', ''), nullif(row_id, ''), entry ->> 'workspace_id', '');
    head audit_heads;
    next_seq bigint;
    now_ms bigint;
    next_hash bytea;
begin
    insert into audit_heads values (of_log, 0, decode(repeat('00', 32), 'hex')) on conflict do nothing;
    select * into strict head from audit_heads where log_id = of_log for update;
    if exists (select from audit_log where log_id = of_log and entry_id = (entry ->> 'id')::uuid) then
        return; -- An earlier transaction of the same request.
    end if;
    next_seq := head.seq + 1;
    now_ms := sexton_now_ms();
    next_hash := sha256(head.hash || int8send(next_seq) || int8send(now_ms) || convert_to(what, 'UTF8')
                        || '\x00'::bytea || convert_to(entry ->> 'body', 'UTF8'));
    insert into audit_log values (of_log, next_seq, now_ms, (entry ->> 'id')::uuid, (entry ->> 'workspace_id')::uuid,
                                  entry ->> 'actor', entry ->> 'action', what, entry ->> 'body', head.hash, next_hash);
    update audit_heads set seq = next_seq, hash = next_hash where log_id = of_log;
end
$$;

create function sexton_audit_row() returns trigger language plpgsql as $$
declare
    entry text := current_setting('sexton.audit', true);
begin
    if entry <> '' then
        perform set_config('sexton.audit', '', true); -- One line for a transaction.
        perform sexton_audit_append(entry::jsonb, to_jsonb(coalesce(new, old)) ->> 'id');
    end if;
    return null;
end
$$;

do $$
declare
    of_table text;
begin
    foreach of_table in array array[
        'agent_keys', 'api_keys', 'artefacts', 'auth_sessions', 'billing_plans', 'browser_sessions', 'chat_installs',
        'config_versions', 'credentials', 'credits', 'enrolment_tokens', 'follow_ups', 'grants', 'mcp_servers', 'platform_keys',
        'proposals', 'runners', 'sign_in_links', 'tenant_providers', 'users', 'workspace_resets', 'workspace_scoring',
        'workspaces', 'zombies']
    loop
        execute format(
            'create constraint trigger audited after insert or delete on %I deferrable initially deferred'
            ' for each row when (current_setting(''sexton.audit'', true) <> '''') execute function sexton_audit_row()',
            of_table);
        execute format(
            'create constraint trigger audited_change after update on %I deferrable initially deferred'
            ' for each row when (current_setting(''sexton.audit'', true) <> '''' and old *<> new)'
            ' execute function sexton_audit_row()',
            of_table);
    end loop;
end
$$;

-- Whoever may write here may only add. The owner of the tables could take this away again: see the reference.
create function sexton_audit_keep() returns trigger language plpgsql as $$
begin
    raise exception 'the audit log is only added to' using errcode = 'insufficient_privilege';
end
$$;
create trigger only_added_to before update or delete on audit_log for each row execute function sexton_audit_keep();
create trigger never_emptied before truncate on audit_log for each statement execute function sexton_audit_keep();
