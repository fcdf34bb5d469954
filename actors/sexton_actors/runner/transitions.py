"""What a runner's standing allows, and how it changes."""

from typing import assert_never

import msgspec

from sexton_actors.refusal import Refusal
from sexton_storage.records.runners import AdminState, Runner

POLL_AGAIN_MS = 5_000
"""When a runner that is to get nothing new asks again."""

_ASKABLE = frozenset({AdminState.ACTIVE, AdminState.CORDONED, AdminState.DRAINING, AdminState.REVOKED})
"""``drained`` comes by itself and cannot be asked for."""


def revoked(runner: Runner) -> Refusal | None:
    """What a revoked runner is told, whatever it asks."""
    if runner.admin_state is AdminState.REVOKED:
        return Refusal("UZ-RUN-009", f"Runner {runner.id} was revoked.")
    return None


def may_take(runner: Runner) -> bool:
    """Only an active runner gets anything new."""
    return runner.admin_state is AdminState.ACTIVE


def set_admin_state(runner: Runner, wanted: str, held: int) -> Runner | Refusal:
    """The runner in its new state; draining without a lease is drained at once. Revocation is for good."""
    try:
        state = AdminState(wanted)
    except ValueError:
        return Refusal("UZ-REQ-001", f"/admin_state: {wanted!r} is not a state of a runner.")
    facts = {"current_state": str(runner.admin_state)}
    detail = f"Runner {runner.id} is {runner.admin_state} and cannot become {state}."
    if state not in _ASKABLE:
        return Refusal("UZ-REQ-001", f"/admin_state: {detail}", facts)
    if runner.admin_state is AdminState.REVOKED and state is not AdminState.REVOKED:
        return Refusal("UZ-REQ-009", detail, facts)
    if state is AdminState.DRAINING and held == 0:
        state = AdminState.DRAINED
    return _with_state(runner, state)


def introduce(runner: Runner, offers: tuple[str, ...] | None, release: str) -> Runner | None:
    """The runner with what it is and offers now; None where nothing changes, or it was revoked.

    >>> from uuid import UUID
    >>> r = Runner(UUID(int=1), "h", "bubblewrap", (), 1, b"", AdminState.ACTIVE, 1, 0, offers=("image:web",))
    >>> introduce(r, ("image:web", "image:web"), "")
    >>> introduce(r, ("pids<=64", "image:node"), "").offers
    ('image:node', 'pids<=64')
    >>> introduce(r, None, "sexton-runner/2").release
    'sexton-runner/2'
    """
    told = runner.offers if offers is None else tuple(sorted(set(offers)))
    said = release or runner.release
    if (told, said) == (runner.offers, runner.release) or runner.admin_state is AdminState.REVOKED:
        return None
    return msgspec.structs.replace(runner, offers=told, release=said, version=runner.version + 1)


def drain(runner: Runner, held: int) -> Runner | None:
    """A draining runner without a lease is drained; one that got a last lease on the way drains again."""
    if runner.admin_state is AdminState.DRAINING and held == 0:
        return _with_state(runner, AdminState.DRAINED)
    if runner.admin_state is AdminState.DRAINED and held > 0:
        return _with_state(runner, AdminState.DRAINING)
    return None


def beat_status(runner: Runner) -> str:
    """What a heartbeat tells it to do: ``ok``, ``drain`` (finish what runs) or ``stop`` (nothing is left).

    >>> from uuid import UUID
    >>> r = Runner(UUID(int=1), "h", "bubblewrap", (), 1, b"", AdminState.DRAINED, 1, 0)
    >>> beat_status(r)
    'stop'
    """
    match runner.admin_state:
        case AdminState.ACTIVE | AdminState.CORDONED:
            return "ok"
        case AdminState.DRAINING:
            return "drain"
        case AdminState.DRAINED | AdminState.REVOKED:
            return "stop"
        case _:
            assert_never(runner.admin_state)


def _with_state(runner: Runner, state: AdminState) -> Runner:
    return msgspec.structs.replace(runner, admin_state=state, version=runner.version + 1)
