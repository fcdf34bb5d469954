"""Runners, their leases, and how runs fail."""

from typing import Final

from sexton_http.error_codes.code import ANSWER, ANSWER_EVENT, EVENT, EVENT_STREAM, Code

# fmt: off
ROWS: Final = (
    Code(
        "UZ-RUN-001", 401, "Invalid runner token", ANSWER,
        cause="The runner token is missing or unknown.",
        way_out="enrol the runner again: `sexton runner enrol` prints the command, which works once within the hour. See that it runs against this server and with its own data folder.",
        detail="no runner has this token",
    ),
    Code(
        "UZ-RUN-005", 409, "Stale fencing token", ANSWER,
        cause="The lease was superseded or has ended; the write was refused.",
        way_out="Stop this run and throw away its result: another runner has the event, or it is over. This is how two runs of one event are kept apart; nothing is to be mended. If it happens often, the runner is too slow to renew, or loses its network.",
        detail="Fencing token 7 is not that of lease 019346de-6400-7000-8000-000000000013.",
    ),
    Code(
        "UZ-RUN-006", 404, "Lease not found", ANSWER,
        cause="The runner holds no lease of this id.",
        way_out="Stop the run and ask for new work. A runner of your own must use the `lease_id` of the answer that gave it the work, with its own token.",
        detail="There is no lease 019346de-6400-7000-8000-000000000013 of this runner.",
    ),
    Code(
        "UZ-RUN-007", 500, "Sandbox not established", EVENT,
        cause="The run was ended before it began, because no sandbox could be made.",
        way_out="Run `sexton doctor` on the runner's machine: it says what the sandbox lacks there. Where there are no user namespaces, start the runner with `--sandbox podman` or `--sandbox landlock`. Then replay the event.",
        detail="UZ-RUN-007: the sandbox could not be established: bwrap: setting up uid map: Permission denied",
    ),
    Code(
        "UZ-RUN-009", 401, "Runner revoked", ANSWER,
        cause="The runner was revoked; enrol it again.",
        way_out="Enrol it again with `sexton runner enrol`, if it is to work again; `sexton audit list` tells who revoked it. As its program: stop, do not ask again.",
        detail="this runner was revoked",
    ),
    Code(
        "UZ-RUN-010", 409, "Lease past its ceiling", ANSWER_EVENT,
        cause="An event runs for twelve hours at most.",
        way_out="Split the work: an event may run for twelve hours, over all its leases. A run that waits for a person gives its slot back by parking. Replaying starts the twelve hours again.",
        detail="The event has had its 12 hours, at 1732104000076.",
    ),
    Code(
        "UZ-RUN-011", 409, "Lease lost", ANSWER,
        cause="The lease has expired or was taken back.",
        way_out="Stop the run and throw away its result; another runner has the event. Renew every ten seconds, well before the thirty of a term. If it happens under load, give the runner fewer slots.",
        detail="Lease 019346de-6400-7000-8000-000000000013 is not held any more: its term passed.", facts={"current_state": "expired", "now": 1732060830089},
    ),
    Code(
        "UZ-RUN-012", 402, "Balance exhausted", ANSWER,
        cause="The tenant's balance is zero; the run stops.",
        way_out="Stop the run and report it with `balance_exhausted`. People add credit with `sexton billing credit`; then the event is replayed.",
        detail="The tenant's balance is used up; stop the run and report.",
    ),
    Code(
        "UZ-ACTOR-001", 404, "Actor not found", ANSWER,
        cause="No such actor is awake at this server, or the worker that was named does not answer.",
        way_out="`sexton actor tree` and `sexton fleet top` show the actors that are awake. An actor that nobody asked for some time sleeps, and wakes by itself with its next message; on several servers name the one that has it.",
        detail="there is no actor zombie/019346de-6400-7000-8000-000000000009 awake there",
    ),
    Code(
        "UZ-ACTOR-002", 409, "Actor cannot be stopped", ANSWER,
        cause="The server needs it, and there is one only; it can be restarted.",
        way_out="Use `sexton actor restart`: it is started again by its supervisor, with its state read again.",
        detail="there is one dispatcher, and the server needs it: restart it instead",
    ),
    Code(
        "UZ-ACTOR-003", 503, "Node does not answer", ANSWER,
        cause="The server that was named is silent, did not answer in time, or is of another release.",
        way_out="See whether that server is alive (`/healthz` at its own address) and of the same release. One that is gone is forgotten by itself; its agents wake on the others.",
        detail="node 01a209d6-6d55-76a4-ab82-3616b9818fa3 at other is silent: it was last heard 21.4 s ago",
    ),
    Code(
        "UZ-RUN-014", 404, "Runner not found", ANSWER,
        cause="No runner has this id.",
        way_out="`sexton runner list` shows the runners of this server.",
        detail="There is no runner 019346de-6400-7000-8000-000000000009.",
    ),
    Code(
        "UZ-RUN-015", 401, "Enrolment token used or expired", ANSWER,
        cause="An enrolment token works once, within its hour.",
        way_out="Have a new one made with `sexton runner enrol` and use it within the hour, once. A runner that is enrolled already keeps its token in its data folder and needs none.",
        detail="the enrolment token is unknown, used or expired",
    ),
    Code(
        "UZ-RUN-016", 500, "Attempts used up", EVENT,
        cause="Five leases of the event ended without a word from their runners; replay it.",
        way_out="Five runners died with the event, or the event killed them: look at their logs and at `sexton event transcript EVENT` for memory or disk. When the reason is mended, `sexton event replay EVENT`.",
        detail="runner_lost",
    ),
    Code(
        "UZ-RUN-017", 403, "Label reserved", ANSWER,
        cause="A label that begins with reserved: needs an enrolment token that allows it.",
        way_out="Leave the label out, or have a platform admin run `sexton runner enrol --label reserved:…` and enrol with that command.",
        detail="reserved without leave: reserved:pci. Leave it out, or have a platform admin mint an enrolment token that names it in `labels`.", facts={"labels": ["reserved:pci"]},
    ),
    Code(
        "UZ-EXEC-001", 500, "Execution session create failed", EVENT,
        cause="The run's session could not be made.",
        way_out="Replay the event (`sexton event replay EVENT`). If one runner fails again and again, look at its log, its disk and its memory, and cordon it meanwhile: `sexton runner cordon NAME`.",
        detail="the run's session could not be made",
    ),
    Code(
        "UZ-EXEC-002", 500, "Run start failed", EVENT,
        cause="The run could not be started.",
        way_out="Read the event's text and the runner's log. An MCP server that does not answer is named there. When it is mended, `sexton event replay EVENT`.",
        detail="the runner could not carry out the run; its log says more",
    ),
    Code(
        "UZ-EXEC-003", 500, "Execution timeout kill", EVENT,
        cause="The run was killed at its time limit.",
        way_out="Let the program do less for each event, or raise `resources.wall` in `TRIGGER.md`, up to what the operator allows (`--run-most`). `sexton event transcript EVENT` shows how far it came.",
        detail="the run took longer than it may: 3600 s",
    ),
    Code(
        "UZ-EXEC-009", 500, "Execution startup posture failure", EVENT,
        cause="The host could not offer what the run needs to be safe.",
        way_out="The event was not begun, since it would not have been safe. Run `sexton doctor` on the runner's machine, build a missing image (`sexton image build`), see that its disk has room; then `sexton event replay EVENT`.",
        detail="UZ-RUN-007: the sandbox could not be established: the image `tools` is gone",
    ),
    Code(
        "UZ-EXEC-012", 500, "Runner agent init failed", EVENT_STREAM,
        cause="The agent, or a preview, could not be prepared.",
        way_out="Look at the key (`sexton credentials llm set PROVIDER`) and at the name of the model (`sexton model list`). `sexton agent run DIR` tries the agent on your own machine. Then replay the event.",
        detail="the provider refuses the key",
    ),
    Code(
        "UZ-EXEC-013", 500, "Runner agent run failed", EVENT_STREAM,
        cause="The agent, or a preview, failed while it ran.",
        way_out="This is the agent's own failure: read its last words with `sexton event show EVENT`, and all of it with `sexton event transcript EVENT`. Change the agent's files, try them with `sexton agent run DIR`, update, and replay the event.",
        detail="git push: the remote has rejected the branch release-2.4",
    ),
    Code(
        "UZ-EXEC-014", 400, "Runner invalid config", EVENT,
        cause="The runner was given a configuration that it cannot use.",
        way_out="Run `sexton agent check DIR` with the release of the runner, mend the files as the event's text says, then `sexton agent update DIR` and replay the event.",
        detail="the instructions hold no fenced sh or python block, so there is nothing to run",
    ),
)
# fmt: on
