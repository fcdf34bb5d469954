"""Workspaces, plans and money."""

from typing import Final

from sexton_http.error_codes.code import ANSWER, ANSWER_EVENT, Code

# fmt: off
ROWS: Final = (
    Code(
        "UZ-WORKSPACE-001", 404, "Workspace not found", ANSWER,
        cause="The tenant has no workspace of this id.",
        way_out="`sexton workspace list` shows the workspaces that you may see, and `sexton workspace use NAME` chooses one. A workspace of another tenant looks just like one that is not there.",
        detail="there is no workspace 019346de-6400-7000-8000-000000000002",
    ),
    Code(
        "UZ-WORKSPACE-002", 402, "Workspace paused", ANSWER,
        cause="A paused workspace starts no work.",
        way_out="Let it go on with `sexton workspace resume`. Somebody paused it on purpose: `sexton audit list` tells who.",
        detail="The workspace is paused; nothing new is started in it.",
    ),
    Code(
        "UZ-WORKSPACE-003", 402, "Workspace free limit reached", ANSWER,
        cause="The free plan allows no more of these.",
        way_out="Delete what you do not need, or go over to a larger plan. Whoever runs the server sets the limits in `billing.toml`.",
        detail="the free plan allows 3 workspaces",
    ),
    Code(
        "UZ-WORKSPACE-004", 409, "Workspace name taken", ANSWER,
        cause="The tenant already has a workspace with this name.",
        way_out="Choose another name, or use the one that is there: `sexton workspace use NAME`.",
        detail="there is a workspace named 'lab'",
    ),
    Code(
        "UZ-BILLING-001", 400, "Invalid subscription ID", ANSWER,
        cause="The subscription id has a format that the payment provider does not use.",
        way_out="Copy the subscription's id from the payment provider: `sub_`, then 3 to 255 letters, digits or underscores. An id of a customer (`cus_`) or a price (`price_`) is not it.",
        detail="/subscription_id: sub_ and 3 to 255 letters, digits or underscores.", facts={"pointer": "/subscription_id"},
    ),
    Code(
        "UZ-BILLING-002", 500, "Billing state missing", ANSWER,
        cause="The workspace has no plan on record.",
        way_out="This cannot come from a request: a row of the database is missing. As the operator, restore it from a backup, or write a billing event for the tenant, and find out who removed it.",
        detail="There is no plan on record for tenant 019346de-6400-7000-8000-000000000001.",
    ),
    Code(
        "UZ-BILLING-003", 500, "Billing state invalid", ANSWER,
        cause="The plan on record is inconsistent.",
        way_out="This cannot come from a request: rows of the database contradict one another. As the operator, read `detail`, and set the plan again with a billing event; keep hands and scripts off these tables.",
        detail="The plan on record is inconsistent: the plan says pro and the tenant enterprise.",
    ),
    Code(
        "UZ-BILLING-004", 400, "Invalid billing event", ANSWER,
        cause="No such billing event.",
        way_out="Send one of the event types that `detail` lists, in capitals.",
        detail="/event_type: one of PAYMENT_FAILED, PAYMENT_RECOVERED, DOWNGRADE_TO_FREE.", facts={"pointer": "/event_type"},
    ),
    Code(
        "UZ-BILLING-005", 402, "Credit exhausted", ANSWER_EVENT,
        cause="The tenant's balance is zero.",
        way_out="Add credit: `sexton billing credit DOLLARS` as a platform admin, or ask whoever runs the server. `sexton billing balance` shows what is left and `sexton billing charges` where it went. What was blocked because the money was gone starts by itself once there is credit; an event that failed is done again with `sexton event replay`.",
        detail="The tenant's balance is used up; work goes on when it has credit.",
    ),
    Code(
        "UZ-TENANT-001", 404, "Tenant not found", ANSWER,
        cause="No tenant has this id.",
        way_out="Compare the id with that in `sexton whoami` of somebody of that tenant.",
        detail="there is no tenant 019346de-6400-7000-8000-000000000001",
    ),
    Code(
        "UZ-SCORING-001", 400, "Invalid scoring context", ANSWER,
        cause="context_tokens is 512 to 8192.",
        way_out="Send a whole number from 512 to 8192, not a text.",
        detail="/context_tokens: a whole number from 512 to 8192", facts={"pointer": "/context_tokens"},
    ),
    Code(
        "UZ-RETENTION-001", 409, "Charged events would be deleted", ANSWER,
        cause="With the days that were sent, events that were charged would be deleted at once.",
        way_out="`sexton retention preview` counts them. Export what you need: `sexton billing charges` for charges, `sexton event list --json` for events. Then send the same again with `drop_charged` (`sexton retention set … --drop-charged`), or choose more days. With `--archive` a server archives such events before they go, and refuses nothing. The sums of what was charged stay in any case.",
        detail="12 events, charged 480000000 nanos, would be deleted at once", facts={"rows": 12, "charged_nanos": 480000000},
    ),
    Code(
        "UZ-ENTL-001", 503, "Entitlement service unavailable", ANSWER,
        cause="What the plan allows cannot be read now.",
        way_out="Try again after `Retry-After`; it passes by itself when the database answers again. Nothing was done.",
        detail="What the plan allows cannot be read now.",
    ),
    Code(
        "UZ-ENTL-003", 402, "Run limit reached", ANSWER,
        cause="The plan's events for today are used up.",
        way_out="The count begins again at midnight UTC, which is what `Retry-After` says. Until then raise the plan, or filter what wakes the agents. Whoever runs the server sets `events_per_day` in `billing.toml`.",
        detail="The plan allows no more events today (UTC).", facts={"reason": "webhook_rejected: rate_limited"},
    ),
    Code(
        "UZ-ENTL-004", 403, "Skill not allowed", ANSWER,
        cause="The plan does not include a tool or runtime of this agent.",
        way_out="Take the tool or runtime that `detail` names out of the agent's files, or go over to a plan that has it. Whoever runs the server sets `tools` and `runtimes` in `billing.toml`.",
        detail="The plan does not include shell.", facts={"tools": ["shell"]},
    ),
    Code(
        "UZ-ENTL-005", 402, "Plan limit reached", ANSWER,
        cause="The tenant has as many of these as its plan allows.",
        way_out="Delete some of what `limit` names, or go over to a larger plan. Whoever runs the server sets the limits in `billing.toml`.",
        detail="The plan allows the tenant 100 credentials: delete some, or go over to a larger plan.", facts={"limit": "credentials", "allowed": 100},
    ),
    Code(
        "UZ-RUNS-410", 410, "Pipeline v1 permanently removed", ANSWER,
        cause="The run pipeline is gone; agent events took its place.",
        way_out="Send the work to an agent: `POST …/zombies/{zombie_id}/messages`, or `sexton event send`. The events of the agent take the place of runs.",
        detail="the run pipeline was removed; agent events took its place",
    ),
    Code(
        "UZ-CATALOGUE-001", 503, "Catalogue empty", ANSWER,
        cause="The operator offers no model, so there are no prices to show.",
        way_out="Agents without a model work; only prices cannot be shown. Whoever runs the server lists models and prices in `catalogue.json` (`--catalogue`).",
        detail="the operator offers no model",
    ),
)
# fmt: on
