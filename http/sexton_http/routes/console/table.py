"""Every page of the console, in the order of its navigation."""

from typing import Final

from sexton_http.gateway.operations import Operation
from sexton_http.routes.console import (
    actor,
    agents,
    approvals,
    audit,
    changes,
    credentials,
    events,
    failures,
    fleet,
    jobs,
    money,
    now,
    parts,
    tree,
)

PAGES: Final[tuple[Operation, ...]] = (
    now.open_console,
    now.open_place,
    parts.show_parts,
    changes.follow_changes,
    now.show_now,
    events.show_events,
    events.show_event,
    events.submit_event,
    approvals.show_approvals,
    approvals.submit_decision,
    agents.show_agents,
    agents.show_agent,
    agents.submit_agent,
    failures.show_failures,
    failures.submit_failure,
    jobs.show_jobs,
    jobs.submit_job,
    jobs.submit_job_change,
    credentials.show_credentials,
    fleet.show_fleet,
    fleet.submit_enrolment,
    fleet.submit_runner,
    tree.show_tree,
    actor.show_actor,
    actor.submit_actor,
    money.show_money,
    audit.show_audit,
)
