-- In which commit a frame was written, so that those of a whole workspace have one order: two agents' numbers have none.
-- Null in what is there, so no row is rewritten; an earlier release that still writes beside this one writes it too.
alter table frames add column txid bigint;
alter table frames alter column txid set default txid_current();
comment on column frames.txid is 'The transaction that wrote it; null in what was written before this column was.';
create index frames_commit on frames using brin (txid) with (pages_per_range = 16, autosummarize = on);
