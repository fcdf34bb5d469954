"""Keeps the runner's token between starts, and gets one by enrolment at the first."""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import structlog
import trio

from sexton_runner.client import ControlPlane, Outage, open_http
from sexton_runner.errors import BadSettings, Unavailable, Untrusted
from sexton_runner.settings import RunnerSettings
from sexton_runner.timing import Timing
from sexton_runner.wire import Enrolled

STATE_FILE = "runner.json"
LOCK_FILE = "lock"
log = structlog.get_logger()


class Kept(msgspec.Struct, frozen=True):
    """The state file: for which control plane the token is good, and the token."""

    base_url: str
    runner_id: str
    runner_token: str

    def __repr__(self) -> str:
        return f"<Kept {self.runner_id}>"


@contextmanager
def own_state_dir(folder: Path) -> Iterator[None]:
    """Make the state folder, mode 0700, and hold its lock.

    Two runners in one folder would clear each other's runs away.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as fault:
        raise BadSettings(f"state folder {folder}: {fault.strerror}") from fault
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as fault:
            raise BadSettings(f"state folder {folder} is in use by another runner") from fault
        yield
    finally:
        os.close(descriptor)


async def find_token(settings: RunnerSettings, timing: Timing) -> str:
    """Give the token to use: the one handed in, else the one kept, else a new one by enrolment."""
    if settings.runner_token is not None:
        return settings.runner_token
    kept = load(settings.state_dir)
    if kept is not None and kept.base_url == settings.base_url:
        return kept.runner_token
    if settings.enrolment_token is None:
        raise BadSettings("no runner token: give one, or an enrolment token (zre_…) for the first start")
    return await _enrol(settings, settings.enrolment_token, timing)


async def _enrol(settings: RunnerSettings, token: str, timing: Timing) -> str:
    body = {
        "host_id": settings.host_id,
        "sandbox_tier": settings.sandbox_tier.value,
        "labels": list(settings.labels),
        "slots": settings.slots,
    }
    async with open_http(settings.base_url, token, timing.call_timeout_s, settings.server_cert) as http:
        enrolled = await _ask_until_answered(ControlPlane(http, Outage(trio.current_time)), body, timing)
    save(settings.state_dir, Kept(settings.base_url, enrolled.runner_id, enrolled.runner_token))
    log.info("enrolled", runner_id=enrolled.runner_id)
    return enrolled.runner_token


async def _ask_until_answered(plane: ControlPlane, body: Mapping[str, Any], timing: Timing) -> Enrolled:
    while True:
        try:
            return await plane.enrol(body)
        except Untrusted as fault:
            raise BadSettings(str(fault)) from fault
        except Unavailable as fault:
            # One use only: if the answer was lost the token is spent, and the next try says so clearly.
            await trio.sleep(fault.retry_after_s or timing.backoff_max_s / 5)


def load(folder: Path) -> Kept | None:
    """Read the state file; None when there is none, ``BadSettings`` when it cannot be used."""
    try:
        return msgspec.json.decode((folder / STATE_FILE).read_bytes(), type=Kept)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, msgspec.ValidationError) as fault:
        raise BadSettings(f"state file {folder / STATE_FILE} cannot be read: {fault}") from fault


def save(folder: Path, kept: Kept) -> None:
    """Write the state file, mode 0600, whole or not at all."""
    draft = folder / f"{STATE_FILE}.new"
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(kept))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / STATE_FILE)
