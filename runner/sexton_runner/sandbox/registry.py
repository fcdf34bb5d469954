"""The kinds of sandbox, by the name under which a runner enrols."""

import functools
from collections.abc import Callable, Mapping

from sexton_runner.sandbox.landlock import Landlock
from sexton_runner.sandbox.podman import Podman, find_client
from sexton_runner.sandbox.programs import bubblewrap_features, find_bubblewrap, find_program
from sexton_runner.sandbox.tiers import Bare, Bubblewrap, Tier
from sexton_runner.settings import SandboxTier


def _bubblewrap() -> Tier:
    return _bubblewrap_of(find_bubblewrap(), bubblewrap_features())


@functools.cache  # The same one each time, so that what was found out about it is known again.
def _bubblewrap_of(program: str, features: str) -> Tier:
    return Bubblewrap(program, features)


def _landlock() -> Tier:
    return Landlock(find_program("prlimit", "util-linux"), find_program("nice", "coreutils"))


@functools.cache
def _podman() -> Tier:
    return Podman(find_client())


def _bare() -> Tier:
    return Bare(find_program("prlimit", "util-linux"), find_program("env", "coreutils"))


TIERS: Mapping[SandboxTier, Callable[[], Tier]] = {
    SandboxTier.BUBBLEWRAP: _bubblewrap,
    SandboxTier.LANDLOCK: _landlock,
    SandboxTier.PODMAN: _podman,
    SandboxTier.NONE: _bare,
}
