-- serves-from: 0057
-- What a stopped erasure has come to is taken over by the next one of the same value.

comment on table erasure_events is 'Events that an erasure has come to, until one of the same value is done.';
