"""What changes an agent, and what an agent may do."""

from typing import Final

from sexton_http.error_codes.code import ANSWER, ANSWER_EVENT, ANSWER_STREAM, EVENT, Code

# fmt: off
ROWS: Final = (
    Code(
        "UZ-SCHEDULE-001", 404, "Schedule not found", ANSWER,
        cause="The agent has no schedule of this id.",
        way_out="`sexton schedule list` shows the schedules with their ids. Other times in `TRIGGER.md` make another schedule with another id.",
        detail="The agent has no schedule 019346de-6400-7000-8000-000000000021.",
    ),
    Code(
        "UZ-FOLLOWUP-001", 404, "Follow-up not found", ANSWER,
        cause="The agent has no follow-up of this id.",
        way_out="List the follow-ups of the agent again: it may have been purged with its agent.",
        detail="The agent has no follow-up 019346de-6400-7000-8000-000000000015.",
    ),
    Code(
        "UZ-AGENT-001", 404, "Agent or proposal not found", ANSWER,
        cause="The tenant has no agent or proposal of this id.",
        way_out="`sexton proposals list AGENT` shows the proposals, and `sexton agent list` the agents of the workspace in use.",
        detail="The agent has no proposal 019346de-6400-7000-8000-00000000000f.",
    ),
    Code(
        "UZ-AGENT-002", 409, "Proposal already decided", ANSWER,
        cause="The proposal was approved or rejected before.",
        way_out="Nothing is left to decide; `outcome`, `decided_by` and `decided_at` say what became of it. To undo one that was applied use `sexton agent roll-back`.",
        detail="Proposal 019346de-6400-7000-8000-00000000000b is APPLIED already.", facts={"outcome": "APPLIED", "decided_at": 1732060800290, "decided_by": "api:019346de-6400-7000-8000-000000000004"},
    ),
    Code(
        "UZ-HARNESS-001", 404, "Config version not found", ANSWER,
        cause="No such configuration version.",
        way_out="`sexton agent versions NAME` shows the versions that are there.",
        detail="The agent has no version 9.",
    ),
    Code(
        "UZ-HARNESS-002", 409, "Config version not compiled", ANSWER,
        cause="Only a compiled version can be activated.",
        way_out="Compile it first (`POST …/harness/compile`). If it is `INVALID`, `errors` lists what is wrong in its files: mend them and keep them as a new draft.",
        detail="Version 2 is DRAFT; compile it first.",
    ),
    Code(
        "UZ-HARNESS-003", 409, "Version cannot be run", ANSWER_EVENT,
        cause="The version that was asked for is gone, or it needs what the agent is not lent, or another runner than the active version.",
        way_out="Let the event go with the active version, or give the version what it lacks: approve the credential's grant (`sexton credentials grants approve`), or activate it where it needs another runner. `sexton agent versions NAME` shows what is there.",
        detail="Version 3 needs github-hook, which the agent may not be lent.",
    ),
    Code(
        "UZ-HARNESS-004", 409, "Agent pinned", ANSWER,
        cause="The agent is pinned to another version, or the version that it is to be pinned to is not the active one.",
        way_out="Let the agent go with `sexton agent unpin NAME`, or make the other version the active one first (`sexton agent roll-back`) and pin that. `sexton agent show NAME` tells who pinned it and why: ask them before you undo it.",
        detail="Version 3 is the active one, not 2; make that the active one first.", facts={"active_version": 3},
    ),
    Code(
        "UZ-SHADOW-001", 403, "Shadow run", ANSWER,
        cause="The run is a shadow: nothing that it asks for takes effect.",
        way_out="Nothing is wrong: a shadow repeats a saved event under other files, and keeps, lends and sends nothing. `sexton agent shadow report JOB` shows what came of it. To have it take effect, make the version the active one and run `sexton event replay EVENT`.",
        detail="This is a shadow run: nothing that it asks for takes effect.",
    ),
    Code(
        "UZ-TOOL-004", 400, "Tool not attached", ANSWER_STREAM,
        cause="The tool exists, but the agent does not declare it.",
        way_out="Add the tool to `tools` in `TRIGGER.md` and run `sexton agent update DIR`, if the agent is to have it. A model that calls it without is told so and goes on.",
        detail="the agent does not declare the tool `shell`",
    ),
    Code(
        "UZ-TOOL-005", 400, "Unknown tool", ANSWER_STREAM,
        cause="No tool has this name.",
        way_out="Write the name as the page of tools has it, such as `shell`. `sexton agent check DIR` suggests the nearest.",
        detail="no tool has the name `bash`",
    ),
    Code(
        "UZ-GRANT-001", 403, "No integration grant for service", ANSWER_EVENT,
        cause="The agent has not asked for this service.",
        way_out="Ask for it: `sexton grants request AGENT SERVICE --reason TEXT`; an operator approves it with `sexton grants approve`. Then try again.",
        detail="The agent has not asked for slack.",
    ),
    Code(
        "UZ-GRANT-002", 403, "Integration grant pending approval", ANSWER_EVENT,
        cause="The request has not been decided yet.",
        way_out="An operator decides: `sexton grants list --agent AGENT`, then `sexton grants approve`. Then replay the event.",
        detail="The request for slack has not been decided yet.", facts={"grant_id": "019346de-6400-7000-8000-000000000019", "service": "slack"},
    ),
    Code(
        "UZ-GRANT-003", 403, "Integration grant denied or revoked", ANSWER_EVENT,
        cause="The agent's use of the service was denied or revoked.",
        way_out="Somebody said no on purpose: ask them. A new request (`sexton grants request`) puts the question again.",
        detail="The grant for slack is revoked.", facts={"grant_id": "019346de-6400-7000-8000-000000000019", "service": "slack"},
    ),
    Code(
        "UZ-GATE-001", 500, "Gate command failed", EVENT,
        cause="A check of the agent's work failed.",
        way_out="Read the check's output in `sexton event transcript EVENT`. Mend what it found, or the check itself in `gates.checks`, and replay the event.",
        detail="the check `make test` ended with status 2",
    ),
    Code(
        "UZ-GATE-002", 504, "Gate command timed out", EVENT,
        cause="A check of the agent's work took too long.",
        way_out="Raise the check's `timeout_s` in `gates.checks`, or let it do less; then `sexton agent update DIR` and replay the event.",
        detail="the check `make test` took longer than 600 s",
    ),
    Code(
        "UZ-GATE-003", 500, "Gate repair attempts exhausted", EVENT,
        cause="The agent could not repair what a check found.",
        way_out="The agent tried and could not. Read what the check said each time (`sexton event transcript EVENT`), tell the agent more in `SKILL.md`, or do it by hand. More tries are given by `repair_attempts` of the check.",
        detail="the check `make test` failed after 3 repairs",
    ),
    Code(
        "UZ-APPROVAL-001", 400, "Approval parse failed", ANSWER,
        cause="The gates of the configuration are not valid.",
        way_out="Mend the place that `detail` names; `sexton agent check DIR` shows all of them at once, without a server.",
        detail="TRIGGER.md line 8, key `gates.rules`: must be a list, one `- value` a line",
    ),
    Code(
        "UZ-APPROVAL-002", 404, "Approval not found or already resolved", ANSWER,
        cause="There is no such gate, or it is already decided.",
        way_out="`sexton approvals list --status all` shows what became of it: somebody may have answered, or its time is over. A run whose gate timed out is replayed.",
        detail="the agent has no such approval",
    ),
    Code(
        "UZ-APPROVAL-003", 401, "Approval invalid signature", ANSWER,
        cause="The callback's signature or timestamp is wrong.",
        way_out="Enter the chat platform's signing secret at the server as the page on Slack says, and see that the clocks agree. `reason` says which of the two it is.",
        detail="the signature does not fit the body and the secret", facts={"reason": "signature_mismatch"},
    ),
    Code(
        "UZ-APPROVAL-004", 503, "Approval store unavailable", ANSWER_EVENT,
        cause="The gate cannot be reached; what it guards is denied.",
        way_out="What cannot be asked is not done. See that the database answers (`/readyz`), then decide again, or replay the event.",
        detail="the gates cannot be reached now, so the answer is no",
    ),
    Code(
        "UZ-APPROVAL-005", 400, "Approval condition invalid", ANSWER,
        cause="The condition of a rule cannot be read.",
        way_out="Write the condition like `branch == 'main' and event != 'push'`: fields, `==` or `!=`, values in single quotes, `and`, `or`. `sexton agent check DIR` shows the character at which it stops.",
        detail="TRIGGER.md line 8, key `gates.rules[0].condition`: character 5: expected a value in quotes, found the end; a condition reads like: branch == 'main'",
    ),
    Code(
        "UZ-APPROVAL-006", 403, "Approval of one's own", ANSWER,
        cause="The role user approves nothing that their own agent, or a run that they started, asks for.",
        way_out="Ask a colleague, or an operator, to answer it: `sexton approvals show` gives them the id. That nobody approves their own work is the purpose of the gate.",
        detail="You started this run: somebody else, or an operator, has to approve it.",
    ),
)
# fmt: on
