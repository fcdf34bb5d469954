-- What people are called, as their identity provider says it; empty for who signs in here.
alter table users add column name text not null default '';
