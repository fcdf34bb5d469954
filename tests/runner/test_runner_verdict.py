"""How a run ended, from what was seen of it."""

from dataclasses import replace

import pytest

from sexton_runner.output import Output
from sexton_runner.redact import Redactor
from sexton_runner.run import Outcome
from sexton_runner.runtimes.verdict import Observed, failure_reason, judge
from sexton_runner.sandbox.limits import Limits

LIMITS = Limits(wall_s=10, memory_bytes=64 << 20, pids=8)


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (Observed(started=True, exit_status=0), None),
        (Observed(started=True, exit_status=3), "agent_run"),
        (Observed(started=True, exit_status=-9), "resource_kill"),
        (Observed(started=True, exit_status=137), "resource_kill"),
        (Observed(started=True, exit_status=-9, out_of_memory=True), "oom_kill"),
        (Observed(started=True, exit_status=1, met_limit="disk_kill"), "disk_kill"),
        (Observed(started=True, exit_status=0, met_limit="disk_kill"), None),
        (Observed(started=True, exit_status=0, refusal="denied"), None),
        (Observed(started=True, exit_status=1, refusal="denied"), "approval_denied"),
        (Observed(started=True, exit_status=3, refusal="timed_out"), "approval_expired"),
        (Observed(started=True, exit_status=3, refusal="auto_killed"), "policy_deny"),
        (Observed(started=True, exit_status=137, out_of_memory=True), "oom_kill"),
        (Observed(started=True, exit_status=-9, out_of_disk=True), "disk_kill"),
        (Observed(started=True, exit_status=0, out_of_memory=True), None),
        (Observed(started=True, exit_status=152), "cpu_kill"),
        (Observed(started=True, exit_status=153), "resource_kill"),
        (Observed(started=True, timed_out=True), "timeout_kill"),
        (Observed(started=True, flooded=True), "resource_kill"),
        (Observed(exit_status=1), "startup_posture"),
        (Observed(exit_status=0), "startup_posture"),
        (Observed(timed_out=True), "startup_posture"),
    ],
)
def test_the_failure_is_named(seen: Observed, reason: str | None) -> None:
    assert failure_reason(seen) == reason


def outputs(out: bytes, err: bytes) -> tuple[Output, Output]:
    pair = Output(), Output()
    pair[0].feed(out)
    pair[1].feed(err)
    return pair


def test_a_good_run_answers_with_its_output_alone() -> None:
    ending = judge(
        Observed(started=True, exit_status=0),
        *outputs(b'done\n{"n": 1}\n', b"a warning\n"),
        Redactor({}),
        LIMITS,
    )
    assert (ending.outcome, ending.response_text, ending.evidence) == (
        Outcome.PROCESSED,
        'done\n{"n": 1}\n',
        {"n": 1},
    )


def test_a_failed_run_tells_its_status_and_its_errors_and_keeps_its_evidence() -> None:
    ending = judge(
        Observed(started=True, exit_status=2),
        *outputs(b'{"n": 1}\n', b"no such file\n"),
        Redactor({}),
        LIMITS,
    )

    assert ending.outcome is Outcome.AGENT_ERROR
    assert ending.response_text == '{"n": 1}\n[the command ended with status 2: agent_run]\nno such file'
    assert ending.evidence == {"n": 1}


def test_a_sandbox_that_did_not_stand_says_so_with_its_code() -> None:
    ending = judge(
        Observed(exit_status=1),
        *outputs(b"", b"bwrap: setting up uid map: Permission denied\n"),
        Redactor({}),
        LIMITS,
    )

    assert ending.failure_reason == "startup_posture"
    assert ending.response_text.startswith("UZ-RUN-007: the sandbox could not be established: bwrap:")


def test_a_sandbox_that_was_not_ready_in_time_says_how_long_it_had() -> None:
    ending = judge(Observed(timed_out=True), *outputs(b"", b""), Redactor({}), replace(LIMITS, wall_s=1.5))

    assert ending.failure_reason == "startup_posture"
    assert "was not ready within 1.5 s, all that the run may take (resources.wall)" in ending.response_text


def test_a_secret_spelt_with_json_escapes_is_still_hidden() -> None:
    ending = judge(
        Observed(started=True, exit_status=0),
        *outputs(rb'{"k": "pass\u0077ord1"}', b""),
        Redactor({"s": "password1"}),
        LIMITS,
    )
    assert ending.evidence == {"k": "[redacted]"}
