-- What a runner says of itself, beside the labels that it was enrolled with: its images, servers and limits.

alter table runners add column offers text[] not null default '{}';
