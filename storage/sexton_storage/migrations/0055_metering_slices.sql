-- Slices of metering stand in a partition for each day of their events, and are gone with it: what is older has one row
-- for each attempt at an event. An event's id begins with its time, so that whoever has the id asks one partition.
-- The table that was there keeps its rows under another name; nothing is copied, and the lock is held for a moment.

alter table metering rename to metering_runs;
alter index metering_pkey rename to metering_runs_pkey;
comment on table metering_runs is 'One row for each attempt whose slices were compacted; in order of age, slices of before.';

create table metering_slices (like metering_runs including defaults including constraints)
    partition by range (event_id);
alter table metering_slices add primary key (event_id, attempt, slice_seq);
-- What has an id without a time of these days, or belongs to an event that is older than the partitions that are left.
create table metering_slices_rest partition of metering_slices default;

create view metering as select * from metering_slices union all select * from metering_runs;
comment on view metering is 'All that was charged. An older release, which still writes here, writes into metering_slices.';

create function sexton_meter_slice() returns trigger language plpgsql as $$
begin
    insert into metering_slices select new.*;
    return new;
end $$;
create trigger written_by_an_older_release instead of insert on metering
    for each row execute function sexton_meter_slice();

-- The first and the last id that a UUIDv7 of this time (Unix ms) can be.
create function sexton_first_id(of_ms bigint) returns uuid language sql immutable parallel safe
    return (lpad(to_hex(of_ms), 12, '0') || repeat('0', 20))::uuid;
create function sexton_last_id(of_ms bigint) returns uuid language sql immutable parallel safe
    return (lpad(to_hex(of_ms), 12, '0') || repeat('f', 20))::uuid;

-- When a UTC day begins, in Unix ms.
create function sexton_day_ms(of_day date) returns bigint language sql immutable parallel safe
    return (of_day - date '1970-01-01')::bigint * 86400000;

create function sexton_slices_of(of_day date) returns text language sql immutable parallel safe
    return 'metering_slices_' || to_char(of_day, 'YYYYMMDD');

-- Those who make and drop partitions, and move slices, hold this until they commit.
create function sexton_hold_compaction() returns boolean language sql volatile
    return pg_try_advisory_xact_lock(1234554321, 54);

-- Make the partitions of yesterday and of as many days from today on; how many are new. Takes no lock for longer than
-- a look at the partition of the rest: a day that has rows there already stays there.
create function sexton_slices_ahead(days integer) returns integer language plpgsql security definer as $$
declare
    today date := (to_timestamp(sexton_now_ms() / 1000.0) at time zone 'UTC')::date;
    of_day date;
    of_table text;
    made integer := 0;
begin
    if not sexton_hold_compaction() then
        return 0;
    end if;
    perform set_config('lock_timeout', '50ms', true);
    for back in -1 .. days - 1 loop
        of_day := today + back;
        of_table := sexton_slices_of(of_day);
        if to_regclass(of_table) is not null then
            continue;
        end if;
        begin
            execute format('create table %I (like metering_slices including all)', of_table);
            execute format('alter table metering_slices attach partition %I for values from (%L) to (%L)', of_table,
                           sexton_first_id(sexton_day_ms(of_day)), sexton_first_id(sexton_day_ms(of_day + 1)));
            made := made + 1;
        exception
            when lock_not_available or check_violation then null; -- The next round tries again; until then the rest has them.
        end;
    end loop;
    return made;
end $$;

-- All that was metered for events between two ids, by tenant: attempts, money, tokens and time. Null: for all of them,
-- else for these.
create function sexton_metered(first_id uuid, last_id uuid, of_events uuid[]) returns jsonb language sql volatile as $$
    select coalesce(jsonb_object_agg(tenant_id, sums), '{}') from (
        select tenant_id, jsonb_build_array(
                   count(distinct (event_id, attempt)), sum(charged_nanos), sum(run_fee_nanos), sum(token_cost_nanos),
                   sum(d_input_tokens), sum(d_cached_tokens), sum(d_cache_write_tokens), sum(d_output_tokens),
                   sum(run_ms)) as sums
          from metering
         where event_id >= first_id and event_id <= last_id and (of_events is null or event_id = any(of_events))
         group by tenant_id) t
$$;

-- Refuse what would change a sum: the transaction ends here, and all is as it was.
create function sexton_same_money(was jsonb, is_now jsonb) returns void language plpgsql as $$
begin
    if was is distinct from is_now then
        raise exception 'compaction would change what was metered: before %, after %', left(was::text, 500),
            left(is_now::text, 500) using errcode = 'check_violation', constraint = 'compaction_keeps_sums';
    end if;
end $$;

-- Keep slices as one row for each attempt, together with the rows that these attempts have already. Gives how many rows
-- there were, and how many there are now.
create function sexton_merge_slices(taken text, first_id uuid, last_id uuid, of_events uuid[],
                                    out slices bigint, out runs bigint) language plpgsql as $$
begin
    execute format($sql$
        with taken as (
            %s
        ), attempts as (
            select distinct event_id, attempt from taken
             union select distinct event_id, attempt from metering_runs where event_id = any($3)
        ), known as (
            delete from metering_runs r using attempts a
             where r.event_id = a.event_id and r.attempt = a.attempt returning r.*
        ), together as (
            select * from taken union all select * from known
        ), kept as (
            insert into metering_runs
                   (event_id, attempt, slice_seq, zombie_id, workspace_id, tenant_id, d_input_tokens, d_cached_tokens,
                    d_output_tokens, run_ms, run_fee_nanos, token_cost_nanos, charged_nanos, created_at,
                    d_cache_write_tokens)
            select event_id, attempt, max(slice_seq), zombie_id, workspace_id, tenant_id, sum(d_input_tokens),
                   sum(d_cached_tokens), sum(d_output_tokens), sum(run_ms), sum(run_fee_nanos),
                   sum(token_cost_nanos), sum(charged_nanos), max(created_at), sum(d_cache_write_tokens)
              from together group by event_id, attempt, zombie_id, workspace_id, tenant_id
            returning 1
        )
        select (select count(*) from together), (select count(*) from kept)$sql$, taken)
    into slices, runs using first_id, last_id, of_events;
end $$;

-- Compact the slices of the oldest day that ended so long ago and has no run that goes on: its partition is dropped in
-- the same transaction. Where there is none, a page of events of the rest; and where there is none, a page of what was
-- written before there were partitions. Gives what it dealt with (null: nothing is due), how many rows there were, how
-- many there are now, and whether there may be more.
create function sexton_compact_slices(keep_ms bigint, page integer, out what text, out slices bigint, out runs bigint,
                                      out more boolean) language plpgsql security definer as $$
declare
    before_ms bigint := sexton_now_ms() - keep_ms;
    of_table text;
    of_day date;
    first_id uuid;
    last_id uuid;
    events uuid[];
    was jsonb;
begin
    slices := 0; runs := 0; more := false;
    if not sexton_hold_compaction() then
        return;
    end if;
    perform set_config('lock_timeout', '50ms', true), set_config('enable_seqscan', 'on', true);
    for of_table in
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
         where i.inhparent = 'metering_slices'::regclass and c.relname ~ '^metering_slices_\d{8}$' order by c.relname
    loop
        of_day := to_date(right(of_table, 8), 'YYYYMMDD');
        exit when sexton_day_ms(of_day + 1) > before_ms;
        first_id := sexton_first_id(sexton_day_ms(of_day));
        last_id := sexton_last_id(sexton_day_ms(of_day + 1) - 1);
        continue when exists (select from live_leases where event_id >= first_id and event_id <= last_id);
        begin
            execute format('lock table %I in share mode', of_table);
        exception
            when lock_not_available then continue; -- Somebody writes there. The next round tries again.
        end;
        was := sexton_metered(first_id, last_id, null);
        select m.slices, m.runs into slices, runs
          from sexton_merge_slices(format('select * from %I', of_table), first_id, last_id, null) m;
        -- Whoever renews waits behind us for as long as we wait for this, so it is asked for briefly, and often.
        for attempt in 1 .. 100 loop
            begin
                lock table metering_slices in access exclusive mode;
                exit;
            exception
                when lock_not_available then
                    if attempt = 100 then
                        raise;
                    end if;
                    perform pg_sleep(0.05);
            end;
        end loop;
        execute format('drop table %I', of_table);
        perform sexton_same_money(was, sexton_metered(first_id, last_id, null));
        what := of_table; more := true;
        return;
    end loop;

    select array_agg(event_id order by event_id) into events from (
        select event_id from metering_slices_rest r
         where not exists (select from live_leases l where l.event_id = r.event_id)
         group by event_id having max(created_at) < before_ms order by event_id limit page) e;
    if events is not null then
        first_id := events[1]; last_id := events[cardinality(events)];
        was := sexton_metered(first_id, last_id, events);
        select m.slices, m.runs into slices, runs from sexton_merge_slices(
            'delete from metering_slices_rest where event_id >= $1 and event_id <= $2 and event_id = any($3) returning *',
            first_id, last_id, events) m;
        perform sexton_same_money(was, sexton_metered(first_id, last_id, events));
        what := 'metering_slices_rest'; more := cardinality(events) = page;
        return;
    end if;

    -- The place of this walk moves on by the order of the ids; rows that are compacted already are only looked at.
    select convert_from(value, 'UTF8')::uuid into first_id from settings where name = 'compaction_place';
    select array_agg(distinct event_id order by event_id) into events from (
        select event_id from metering_runs
         where event_id > coalesce(first_id, '00000000-0000-0000-0000-000000000000')
           and event_id <= sexton_last_id(before_ms)
         order by event_id limit page) e;
    if events is null then
        return;
    end if;
    last_id := events[cardinality(events)]; first_id := events[1];
    insert into settings (name, value) values ('compaction_place', convert_to(last_id::text, 'UTF8'))
    on conflict (name) do update set value = excluded.value;
    more := cardinality(events) > 1;
    select array_agg(event_id order by event_id) into events from (
        select event_id from metering_runs
         where event_id = any(events) and not exists (select from live_leases l where l.event_id = metering_runs.event_id)
         group by event_id having count(*) > count(distinct attempt)) e;
    what := 'metering_runs';
    if events is null then
        return;
    end if;
    was := sexton_metered(first_id, last_id, events);
    select m.slices, m.runs into slices, runs
      from sexton_merge_slices('select * from metering_runs where false', first_id, last_id, events) m;
    perform sexton_same_money(was, sexton_metered(first_id, last_id, events));
end $$;

-- Whoever may only use the tables can make and drop partitions by these alone; they look in this schema and nowhere else.
do $$
begin
    execute format('alter function sexton_slices_ahead(integer) set search_path = %I, pg_temp', current_schema());
    execute format('alter function sexton_compact_slices(bigint, integer) set search_path = %I, pg_temp',
                   current_schema());
end $$;
select sexton_slices_ahead(4);
