-- Who is signing in. Secrets are kept as hashes, or as MACs under a key that is not here, or sealed by the vault.

create table auth_sessions (
    id                   uuid primary key,
    status               text not null check (status in ('pending', 'verification_pending', 'complete', 'consumed',
                             'aborted')),
    version              bigint not null,
    created_at           bigint not null,
    expires_at           bigint not null,
    public_key           text,
    token_name           text,
    wrong_codes          integer not null default 0,
    approved_by          text,
    dashboard_public_key text,
    ciphertext           text,
    nonce                text,
    code_mac             bytea,
    sealed_token         bytea,
    consumed_at          bigint,
    consumer_mac         bytea
) with (fillfactor = 50);
create index auth_sessions_age on auth_sessions (expires_at);

create table sign_in_links (
    token_hash bytea primary key,
    user_id    uuid not null references users,
    created_at bigint not null,
    expires_at bigint not null,
    used_at    bigint
);

create table browser_sessions (
    id           uuid primary key,
    token_hash   bytea not null unique,
    user_id      uuid not null references users,
    created_at   bigint not null,
    seen_at      bigint not null,
    idle_ends_at bigint not null,
    ends_at      bigint not null
) with (fillfactor = 70);

create table sign_in_attempts (
    state_hash   bytea primary key,
    provider     text not null,
    browser_hash bytea not null,
    sealed       bytea not null,
    created_at   bigint not null,
    expires_at   bigint not null
);
