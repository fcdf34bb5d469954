-- serves-from: 0059
-- The archive: what goes by age is written to a folder or an object store first. A batch is one row here; at most one is
-- under way, so that each manifest can name the one before it.

create table archive_batches (
    number       bigint primary key,
    id           uuid not null,
    kind         text not null check (kind in ('events', 'transcripts', 'deliveries', 'metering')),
    status       text not null check (status in ('collected', 'written', 'verified', 'dropped')),
    place        text not null,
    workspace_id uuid,
    source       text not null,
    agents       uuid[] not null,
    ids          uuid[] not null,
    attempts     integer[] not null,
    fence        bigint not null,
    held_until   bigint not null,
    manifest     bytea,
    sha256       bytea check (length(sha256) = 32),
    created_at   bigint not null,
    updated_at   bigint not null
);
comment on column archive_batches.place is 'Where it is written to; a batch that is under way begins again at another place.';
comment on column archive_batches.source is 'Of metering: what is compacted. Else empty.';
comment on column archive_batches.ids is 'Whose rows these are: events, deliveries, or the first and the last id of a day. Emptied at the end.';
comment on column archive_batches.fence is 'Grows whenever a node takes the batch; a node with an older number changes nothing any more.';
comment on column archive_batches.manifest is 'From written on, the bytes of the manifest; emptied at the end.';
comment on column archive_batches.sha256 is 'Of the manifest, from verified on; null: there was nothing to write.';
create unique index archive_batches_under_way on archive_batches ((true)) where status <> 'dropped';
create index archive_batches_of_workspace on archive_batches (workspace_id, number);

-- A number for a line; the sum over all lines of a table says whether these are the same lines, in whatever order.
create function sexton_line_sum(line text) returns numeric language sql immutable parallel safe
    return ('x' || encode(substr(sha256(convert_to(line, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint::numeric
           * 18446744073709551616
           + ('x' || encode(substr(sha256(convert_to(line, 'UTF8')), 9, 8), 'hex'))::bit(64)::bigint;

-- The metering rows of a batch: of the days between two ids, or of some events.
create function sexton_archived_metering(source text, ids uuid[]) returns setof metering_slices language sql stable
begin atomic
    select * from metering_slices
     where source like 'metering_slices_2%' and event_id >= ids[1] and event_id <= ids[2]
    union all
    select * from metering_slices where source = 'metering_slices_rest' and event_id = any(ids)
    union all
    select * from metering_runs where source = 'metering_runs' and event_id = any(ids);
end;

-- What sexton_compact_slices would deal with next; source is null where nothing is due. It changes nothing but the place
-- of the walk through old rows, past pages in which nothing is to be compacted.
create function sexton_slices_due(keep_ms bigint, page integer, out source text, out ids uuid[])
    language plpgsql security definer as $$
declare
    before_ms bigint := sexton_now_ms() - keep_ms;
    of_table text;
    of_day date;
    place uuid;
    found uuid[];
begin
    for of_table in
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
         where i.inhparent = 'metering_slices'::regclass and c.relname ~ '^metering_slices_\d{8}$' order by c.relname
    loop
        of_day := to_date(right(of_table, 8), 'YYYYMMDD');
        exit when sexton_day_ms(of_day + 1) > before_ms;
        ids := array[sexton_first_id(sexton_day_ms(of_day)), sexton_last_id(sexton_day_ms(of_day + 1) - 1)];
        if not exists (select from live_leases where event_id >= ids[1] and event_id <= ids[2]) then
            source := of_table;
            return;
        end if;
    end loop;

    select array_agg(event_id order by event_id) into ids from (
        select event_id from metering_slices_rest r
         where not exists (select from live_leases l where l.event_id = r.event_id)
         group by event_id having max(created_at) < before_ms order by event_id limit page) e;
    if ids is not null then
        source := 'metering_slices_rest';
        return;
    end if;

    for pages in 1 .. 100 loop
        select convert_from(value, 'UTF8')::uuid into place from settings where name = 'compaction_place';
        select array_agg(distinct event_id order by event_id) into found from (
            select event_id from metering_runs
             where event_id > coalesce(place, '00000000-0000-0000-0000-000000000000')
               and event_id <= sexton_last_id(before_ms)
             order by event_id limit page) e;
        exit when found is null;
        select array_agg(event_id order by event_id) into ids from (
            select event_id from metering_runs
             where event_id = any(found)
               and not exists (select from live_leases l where l.event_id = metering_runs.event_id)
             group by event_id having count(*) > count(distinct attempt)) e;
        if ids is not null then
            source := 'metering_runs';
            return;
        end if;
        insert into settings (name, value)
        values ('compaction_place', convert_to(found[cardinality(found)]::text, 'UTF8'))
        on conflict (name) do update set value = excluded.value;
    end loop;
end $$;

-- Compact what a batch of the archive has, and nothing else: refused where these are no longer the same rows.
create function sexton_compact_archived(keep_ms bigint, page integer, of_source text, of_ids uuid[], of_rows bigint,
                                        of_sum numeric, out what text, out slices bigint, out runs bigint,
                                        out more boolean) language plpgsql security definer as $$
declare
    due record;
    is_rows bigint;
    is_sum numeric;
begin
    slices := 0; runs := 0; more := false;
    if not sexton_hold_compaction() then
        return;
    end if;
    perform set_config('lock_timeout', '50ms', true), set_config('enable_seqscan', 'on', true);
    select * into due from sexton_slices_due(keep_ms, page);
    if due.source is distinct from of_source or due.ids is distinct from of_ids then
        raise exception 'what is to be compacted is not what was archived: %, not %', due.source, of_source
            using errcode = 'check_violation', constraint = 'archive_has_rows';
    end if;
    begin
        execute format('lock table %I in share mode', of_source);
    exception
        when lock_not_available then return; -- Somebody writes there. The next round tries again.
    end;
    select count(*), coalesce(sum(sexton_line_sum(row_to_json(m)::text)), 0) into is_rows, is_sum
      from sexton_archived_metering(of_source, of_ids) m;
    if is_rows <> of_rows or is_sum <> of_sum then
        raise exception 'the metering rows of % are not those that were archived', of_source
            using errcode = 'check_violation', constraint = 'archive_has_rows';
    end if;
    select c.what, c.slices, c.runs, c.more into what, slices, runs, more from sexton_compact_slices(keep_ms, page) c;
    if what is distinct from of_source then
        raise exception 'compaction took %, and not %, which was archived', what, of_source
            using errcode = 'check_violation', constraint = 'archive_has_rows';
    end if;
end $$;

-- Whoever may only use the tables can compact by these; they look in this schema and nowhere else.
do $$
declare
    of_function text;
begin
    foreach of_function in array array[
        'sexton_slices_due(bigint, integer)',
        'sexton_compact_archived(bigint, integer, text, uuid[], bigint, numeric)'
    ] loop
        execute format('alter function %s set search_path = %I, pg_temp', of_function, current_schema());
    end loop;
end $$;
