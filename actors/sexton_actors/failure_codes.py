"""Why a run ended badly: each label with the code an event bears for it."""

from collections.abc import Mapping
from types import MappingProxyType

FAILURE_CODES: Mapping[str, str | None] = MappingProxyType(
    {
        "startup_posture": "UZ-EXEC-009",
        "session_create": "UZ-EXEC-001",
        "run_start": "UZ-EXEC-002",
        "timeout_kill": "UZ-EXEC-003",
        "agent_init": "UZ-EXEC-012",
        "agent_run": "UZ-EXEC-013",
        "invalid_config": "UZ-EXEC-014",
        "agent_timeout": "UZ-ZMB-002",
        "secret_missing": "UZ-ZMB-003",
        "claim_failed": "UZ-ZMB-004",
        "checkpoint_failed": "UZ-ZMB-005",
        "budget_exceeded": "UZ-ZMB-001",
        "balance_exhausted": "UZ-BILLING-005",
        "ceiling": "UZ-RUN-010",
        "files_refused": "UZ-FILE-010",
        "files_lost": "UZ-FILE-014",
        "workspace_lost": "UZ-FILE-011",
        "workspace_refused": "UZ-FILE-012",
        "gate_command_failed": "UZ-GATE-001",
        "gate_command_timeout": "UZ-GATE-002",
        "gate_repairs_exhausted": "UZ-GATE-003",
        "sandbox": "UZ-RUN-007",
        "version_lost": "UZ-HARNESS-003",
        "approval_denied": None,
        "approval_expired": None,
        "oom_kill": None,
        "resource_kill": None,
        "cpu_kill": None,
        "pids_kill": None,
        "disk_kill": None,
        "policy_deny": None,
        "runner_lost": None,
        "cancelled": None,
    }
)

DEFAULT_FAILURE = "agent_run"
CHECK_FAILURES = frozenset({"gate_command_failed", "gate_command_timeout", "gate_repairs_exhausted"})
"""A check of the agent's work had the last word."""


def failure_of(reason: str | None) -> tuple[str, str | None]:
    """The label and code of a reported reason; an unknown one is a failed run, its text is no label.

    >>> failure_of("timeout_kill")
    ('timeout_kill', 'UZ-EXEC-003')
    >>> failure_of("no such thing")
    ('agent_run', 'UZ-EXEC-013')
    """
    label = reason if reason is not None and reason in FAILURE_CODES else DEFAULT_FAILURE
    return label, FAILURE_CODES[label]
