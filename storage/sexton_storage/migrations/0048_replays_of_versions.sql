-- Bulk replays may ask for a version of their agents' files, as a replay of one event may.

alter table bulk_jobs add column asked_version bigint;
comment on column bulk_jobs.asked_version is 'The number of the version that each new event asks for; null: whichever is active.';
