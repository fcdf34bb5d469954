-- Where in a request a credential stands: `header:NAME`, `query:NAME` or `basic`; none: the header authorization and `basic`.

alter table credentials add column uses text[] not null default '{}';
