"""Agents, their events and what is done to many of them."""

from typing import Final

from sexton_http.error_codes.code import ANSWER, ANSWER_EVENT, EVENT, Code

# fmt: off
ROWS: Final = (
    Code(
        "UZ-ZMB-001", 402, "Agent budget exceeded", ANSWER_EVENT,
        cause="The agent has spent its dollars for the day or month.",
        way_out="Wait for the next day (UTC) or month, or raise `budget` in `TRIGGER.md` and run `sexton agent update`. First see what it was spent on: `sexton billing charges`. `Retry-After` says when the budget begins again.",
        detail="The agent has spent its budget for this day.",
    ),
    Code(
        "UZ-ZMB-002", 500, "Agent timeout", EVENT,
        cause="The agent took longer than it may.",
        way_out="Give the agent less to do for each event, or more time: `resources.wall` in `TRIGGER.md`, up to what the runner allows (`--run-most`). `sexton event transcript EVENT` shows what took so long. Then `sexton event replay EVENT`.",
        detail="the run took longer than it may: 3600 s",
    ),
    Code(
        "UZ-ZMB-003", 424, "Agent credential missing", ANSWER_EVENT,
        cause="The vault lacks a credential that the agent names.",
        way_out="Keep it: `sexton credentials set NAME`. A user's agent also needs an operator's word that it may use it (`sexton credentials grants list`). Then `sexton event replay EVENT`, or send the message again.",
        detail="The vault has no credential named slack.",
    ),
    Code(
        "UZ-ZMB-004", 500, "Agent claim failed", EVENT,
        cause="The runner could not start the event.",
        way_out="Replay the event (`sexton event replay EVENT`), which gives it to any runner that fits. If it comes again from one runner, look at that runner's log and cordon it meanwhile: `sexton runner cordon NAME`.",
        detail="the runner could not start the event",
    ),
    Code(
        "UZ-ZMB-005", 500, "Agent checkpoint failed", EVENT,
        cause="The run's checkpoint could not be kept or read.",
        way_out="Replay the event (`sexton event replay EVENT`): it starts afresh, without the checkpoint. If all runners are of one release this should not happen again; report it if it does.",
        detail="the checkpoint has another form than this runner knows",
    ),
    Code(
        "UZ-ZMB-006", 409, "Agent name already exists", ANSWER,
        cause="The workspace already has an agent with this name.",
        way_out="To change that agent use `sexton agent update DIR`. To have a second one, write another `name` into its files.",
        detail="The workspace has an agent named 'doctor' already.",
    ),
    Code(
        "UZ-ZMB-008", 400, "Invalid agent config", ANSWER,
        cause="One of the agent's two files does not compile; the detail names line and key.",
        way_out="Run `sexton agent check DIR`: it needs no server and lists every fault with file, line, key and what to write instead. `errors` of the answer holds the same list. `sexton agent init` writes files that are right to begin with.",
        detail="ERR_ZOMBIE_INVALID_CONFIG: SKILL.md line 2, key `description`: is missing; add it",
    ),
    Code(
        "UZ-ZMB-009", 404, "Agent not found", ANSWER,
        cause="The workspace has no agent of this id.",
        way_out="`sexton agent list` shows the agents of the workspace; see that the right workspace is in use (`sexton workspace use`). An agent that was installed again has a new id.",
        detail="the workspace has no agent 019346de-6400-7000-8000-000000000009",
    ),
    Code(
        "UZ-ZMB-010", 409, "Agent already stopped or killed", ANSWER,
        cause="The agent's state does not allow this change.",
        way_out="Read `current_state`. `sexton agent resume NAME` starts a stopped or paused agent again; a killed one stays killed and can only be deleted and installed again.",
        detail="The agent is stopped already.", facts={"current_state": "stopped"},
    ),
    Code(
        "UZ-ZMB-011", 400, "Skill and trigger files disagree on top-level name", ANSWER,
        cause="Both files carry the same top-level name.",
        way_out="Write the same `name` in both files, or leave it out of `TRIGGER.md`; then `sexton agent check DIR`.",
        detail="TRIGGER.md line 2, key `name`: `doctor` is not the name in SKILL.md, `nurse`; write the same in both",
    ),
    Code(
        "UZ-ZMB-012", 409, "Agent not active", ANSWER,
        cause="Only an active agent takes messages; resume it first.",
        way_out="Resume it with `sexton agent resume NAME`, then send again. If nobody stopped it, the platform paused it after a gate rule: `sexton agent status NAME` says which.",
        detail="The agent is stopped.", facts={"current_state": "stopped"},
    ),
    Code(
        "UZ-EVENT-001", 404, "Event not found", ANSWER,
        cause="The agent, or the workspace, has no event of this id.",
        way_out="`sexton events list` shows the events with their ids. An id that the sender of a webhook gave (`source_event_id`) is another one: find the event by a filter. Events of a deleted agent are gone with it.",
        detail="The agent has no event 019346de-6400-7000-8000-00000000000a.",
    ),
    Code(
        "UZ-EVENT-002", 429, "Queue full", ANSWER,
        cause="As many events wait as may, of the agent or its workspace, or the oldest has waited too long; `bound` says which.",
        way_out="Wait for `Retry-After` and send again, more slowly. `sexton workspace queue` says why events wait: most often there is no runner with the labels that the agent asks for, or too few slots. What nobody wants any more is cancelled with `sexton events cancel`. `bound` names the bound; the operator's options are `--max-waiting-agent`, `--max-waiting-workspace` and `--max-waiting-age`.",
        detail="25000 events of the agent wait, and no more may.", facts={"bound": "agent"},
    ),
    Code(
        "UZ-APPLY-001", 409, "Applied meanwhile", ANSWER,
        cause="Another has applied a folder to the workspace since this revision was read; read it again.",
        way_out="Run `sexton workspace apply` again: it reads what is there now. With `--diff` look first at what somebody else has changed.",
        detail="revision 2 was read, and 3 is there",
    ),
    Code(
        "UZ-APPLY-002", 409, "Being applied", ANSWER,
        cause="Another is applying a folder to the workspace at this moment; try again.",
        way_out="Wait until the other `sexton workspace apply` is done and run yours again. In CI let one job at a time apply to a workspace. One that has died gives way by itself after its time.",
        detail="api:019346de-6400-7000-8000-000000000004 is applying a folder to this workspace",
    ),
    Code(
        "UZ-ERASURE-001", 404, "Erasure not found", ANSWER,
        cause="The workspace has no erasure of this id.",
        way_out="`sexton erasures list` shows the erasures of the workspace; they are kept for good.",
        detail="the workspace has no erasure 019346de-6400-7000-8000-00000000005b",
    ),
    Code(
        "UZ-ERASURE-002", 409, "Too many erasures", ANSWER,
        cause="As many erasures of the workspace as may be are not over yet.",
        way_out="Wait until one is over (`sexton erasures wait ID`), or stop one with `sexton erasures stop ID`. One that waits for events to end tells how many rows it waits for: cancel those events with `sexton event cancel`.",
        detail="8 erasures of the workspace are not over, and no more may be; stop one, or wait.",
    ),
    Code(
        "UZ-JOB-001", 404, "Job not found", ANSWER,
        cause="The workspace has no bulk job of this id.",
        way_out="`sexton jobs list` shows the jobs of the workspace in use.",
        detail="the workspace has no job 019346de-6400-7000-8000-000000000007",
    ),
    Code(
        "UZ-JOB-002", 409, "Too many jobs", ANSWER,
        cause="As many bulk jobs of the workspace as may be are not over.",
        way_out="See what runs with `sexton jobs list`, then wait (`sexton jobs wait`) or stop one (`sexton jobs stop`). One job with a wider filter does the work of many.",
        detail="8 jobs of the workspace are not over, and no more may be; stop one, or wait.",
    ),
    Code(
        "UZ-FAILURE-001", 404, "Failure not found", ANSWER,
        cause="The workspace has no group of failures of this id.",
        way_out="`sexton failures list` shows the groups. One whose failures are no longer kept is gone.",
        detail="the workspace has no group of failures 019346de-6400-7000-8000-000000000026",
    ),
)
# fmt: on
