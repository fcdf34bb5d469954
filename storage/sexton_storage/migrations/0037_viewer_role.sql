-- A role below user, which sees and changes nothing.

alter table users drop constraint users_role_check;
alter table users add constraint users_role_check check (role in ('viewer', 'user', 'operator', 'admin'));
alter table api_keys drop constraint api_keys_role_check;
alter table api_keys add constraint api_keys_role_check check (role in ('viewer', 'user', 'operator', 'admin'));
