-- serves-from: 0057
-- An erasure is done after a pass that found nothing. Such a pass reads only what was written since an earlier one began.

alter table erasures add column found bigint not null default 0;
alter table erasures add column confirms boolean not null default false;
alter table erasures add column pass_txid bigint;
alter table erasures add column settled_txid bigint;
comment on column erasures.found is 'Rows that the pass has changed or deleted because they had the value.';
comment on column erasures.confirms is 'The pass looks only at what was written since another began.';
comment on column erasures.pass_txid is 'Transactions below it had ended when the pass began.';
comment on column erasures.settled_txid is 'What transactions below it have written was looked through, and is not waited for.';
