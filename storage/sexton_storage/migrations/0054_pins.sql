-- The version that an agent is pinned to: other files of it wait as versions until it is let go.

alter table zombies add column pin json not null default '{}';
comment on column zombies.pin is 'The version that the agent is pinned to, and by whom; empty: it is pinned to none.';
