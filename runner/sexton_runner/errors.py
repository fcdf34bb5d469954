"""Everything that can go wrong in a runner, as one small tree."""


class RunnerError(Exception):
    """Root of the tree; never raised itself."""


class BadSettings(RunnerError):
    """The settings cannot be used: exit status 78."""


class SandboxUnavailable(RunnerError):
    """The chosen sandbox tier cannot be given: exit status 69, or ``startup_posture`` for one event."""


class TooWeak(RunnerError):
    """The host gives the sandbox less than a strict runner asks for: exit status 78."""


class ToolsMissing(RunnerError):
    """A run lacks tools that its workspace promises: it ends ``run_start``, before its model is asked."""


class TooManyAsks(RunnerError):
    """A run has asked people for more decisions than a run may: it ends ``resource_kill``."""


class ControlPlaneError(RunnerError):
    """Root of what a call to the control plane can end in."""


class Unavailable(ControlPlaneError):
    """No usable answer: connection fault, time-out, 408, 429 or 5xx. The same call may be made again."""

    def __init__(self, why: str, retry_after_s: float | None = None) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s


class Untrusted(Unavailable):
    """The server shows a certificate that does not count here."""


class Refused(ControlPlaneError):
    """An answer that repeating will not change: 4xx with a ``UZ-…`` code."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(f"{status} {code}: {detail}")
        self.status = status
        self.code = code
        self.detail = detail


class TokenRejected(Refused):
    """401: the runner's token is unknown or revoked, or its enrolment token is spent. Exit status 77."""
