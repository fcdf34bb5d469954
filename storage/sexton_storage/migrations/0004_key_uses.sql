-- What was done under an Idempotency-Key. Keys are kept as hashes; seeds and answers are sealed.

create table key_uses (
    scope         uuid not null,
    key_hash      bytea not null,
    digest        bytea not null,
    claim         uuid not null,
    created_at    bigint not null,
    running_since bigint not null,
    resumable     boolean not null,
    sealed        bytea not null,
    status        integer,
    primary key (scope, key_hash)
);
create index key_uses_age on key_uses (created_at);
