-- Keys of platform administrators, and terminals that stay signed in as browsers do.

alter table api_keys add column platform_admin boolean not null default false;

alter table browser_sessions
    add column kind text not null default 'browser' check (kind in ('browser', 'terminal')),
    add column name text not null default '';
create index browser_sessions_user on browser_sessions (user_id, created_at);
