-- What people and the scheduler say of a schedule, beside its plan: that it is paused, and which firings were missed.

create table schedule_notes (
    zombie_id    uuid not null,
    schedule     text not null,
    timezone     text not null,
    paused_at    bigint,
    paused_by    text,
    missed       bigint not null default 0,
    missed_from  bigint,
    missed_until bigint,
    missed_why   text,
    primary key (zombie_id, schedule, timezone)
);
