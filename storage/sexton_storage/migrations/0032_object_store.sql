-- Contents that are whole may be kept in a store of objects; the row says where the bytes are.

alter table blobs
    add column place text not null default 'database' check (place in ('database', 'both', 'store')),
    add column store_until bigint;
comment on column blobs.place is 'both: the store has it whole and verified, and the chunks are being deleted.';
comment on column blobs.store_until is
    'Null: nothing of it was ever sent to a store. Else one node has it until then, to send it or to delete it there.';

create index blobs_to_move on blobs (coalesce(store_until, 0))
    where state = 'kept' and place = 'database' and owners > 0 and size > 0;
create index blobs_to_clear on blobs (id) where place = 'both';
create index blobs_in_store on blobs (store_until) where owners = 0 and store_until is not null;
