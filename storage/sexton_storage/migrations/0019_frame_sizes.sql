-- How long a frame's JSON is, so that a reader takes as many as fit into its bytes without unpacking all that
-- follow. Frames of earlier releases, and of those that still write beside this one, have none: they are
-- measured when they are read, and gone with their retention.
alter table frames add column size integer;
