"""Reports what this host can give a sandbox, and what it lacks: ``sexton runner doctor``."""

import argparse
import enum
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson
import structlog
import trio

from sexton_runner.egress_settings import CA_BUNDLE, read_egress_settings, system_roots
from sexton_runner.errors import BadSettings, SandboxUnavailable
from sexton_runner.sandbox.bubblewrap_advice import namespace_advice
from sexton_runner.sandbox.cgroup import find_layout
from sexton_runner.sandbox.landlock import kernel_abi, refusal
from sexton_runner.sandbox.limits import Limits
from sexton_runner.sandbox.privilege_drop import is_root
from sexton_runner.sandbox.probe import ROOTS_NUMBER, Bound, check, find_lowering, group_name, make_sandbox
from sexton_runner.sandbox.programs import bubblewrap_features, bundled_bubblewrap, find_program
from sexton_runner.sandbox.registry import TIERS
from sexton_runner.sandbox.seccomp import this_machine
from sexton_runner.settings import DEFAULT_RUN_MEMORY_BYTES, DEFAULT_RUN_PIDS, SandboxTier

EXIT_OK = 0
EXIT_UNAVAILABLE = 69
LIMITS = Limits(wall_s=60, memory_bytes=DEFAULT_RUN_MEMORY_BYTES, pids=DEFAULT_RUN_PIDS)
PROGRAMS = (("bwrap", "bubblewrap"), ("setpriv", "util-linux"), ("prlimit", "util-linux"))


class Grade(enum.StrEnum):
    """How much of something there is."""

    GOOD = "good"
    WEAK = "weak"  # Runs are shut in all the same, by less.
    MISSING = "missing"  # No run is taken on.


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, and what can be done where it is not good."""

    name: str
    grade: Grade
    seen: str
    advice: str = ""

    def line(self) -> str:
        """Tell it in one line.

        >>> Finding("system calls", Grade.GOOD, "filtered").line()
        'good     system calls: filtered'
        """
        advice = f" ({self.advice})" if self.advice else ""
        return f"{self.grade.value:<8} {self.name}: {self.seen}{advice}"


async def examine(state_dir: Path) -> list[Finding]:
    """Look at everything; never raises for what the host lacks."""
    findings = [*_programs()]
    if all(finding.grade is Grade.GOOD for finding in findings):
        tested, bound = await _self_test(state_dir)
        findings += [_bounds(state_dir, bound), _share(state_dir), _user(state_dir), _sizes()]
        findings += [_namespaces(), tested]
    return [*findings, _calls(), _network(os.environ)]


def weaknesses(findings: Sequence[Finding]) -> list[str]:
    """Name what is less than good."""
    return [f"{one.name}: {one.seen}" for one in findings if one.grade is not Grade.GOOD]


def _programs() -> Iterator[Finding]:
    for name, package in PROGRAMS:
        try:
            path = find_program(name, package)
        except SandboxUnavailable:
            yield Finding(
                name, Grade.MISSING, "not installed", f"Debian and Ubuntu: apt-get install {package}"
            )
        else:
            told = subprocess.run(
                [path, "--version"], capture_output=True, text=True, check=False, timeout=10
            )
            whose = ", installed with sexton" if path == bundled_bubblewrap() else ""
            yield Finding(name, Grade.GOOD, (told.stdout.strip() or path).splitlines()[0] + whose)


def _bounds(state_dir: Path, bound: Bound) -> Finding:
    name = "memory and processes"
    layout = find_layout(f"{group_name(state_dir)}-doctor", LIMITS)
    if layout is not None:
        version = 2 if layout.unified else 1
        return Finding(name, Grade.GOOD, f"bounded a run, by control groups of version {version}")
    if os.geteuid() == 0:
        advice = "run the runner as an ordinary user, or let root make control groups"
        return Finding(name, Grade.MISSING, "root without control groups is not bounded", advice)
    advice = (
        "delegate a control group: systemd-run --user --scope -p Delegate=yes, or Delegate=yes in its unit"
    )
    if bound is Bound.WATCHDOG:
        return Finding(name, Grade.GOOD, "bounded a run, by a watchdog; control groups are quicker", advice)
    return Finding(name, Grade.WEAK, "bounded a process, not a run", advice)


def _share(state_dir: Path) -> Finding:
    name = "processors"
    layout = find_layout(f"{group_name(state_dir)}-doctor", LIMITS)
    if layout is not None and layout.shares:
        return Finding(name, Grade.GOOD, "a run is kept to its share, by its control group")
    # Not weak: what keeps a run from its neighbours is how nice it is, and that does not need a group.
    seen = "a process is bounded by its processor time; a run has no share of its own"
    return Finding(name, Grade.GOOD, seen, "hand the cpu controller down to the runner's control group")


def _user(state_dir: Path) -> Finding:
    name = "a command's user on the host"
    if not is_root():
        return Finding(name, Grade.GOOD, "the runner's own, without privileges")
    if find_lowering(TIERS[SandboxTier.BUBBLEWRAP](), state_dir) is not None:
        return Finding(name, Grade.GOOD, "a number that no account has, another for each run")
    return Finding(name, Grade.WEAK, "root's number, behind the sandbox's walls", ROOTS_NUMBER)


def _sizes() -> Finding:
    name = "disk"
    if "--size" in bubblewrap_features():
        return Finding(name, Grade.GOOD, "the workspace is in memory, and bounded")
    return Finding(name, Grade.WEAK, "the workspace is bounded by memory alone", "bubblewrap 0.7 or newer")


def _namespaces() -> Finding:
    name = "further namespaces"
    if "--disable-userns" in bubblewrap_features():
        return Finding(name, Grade.GOOD, "none can be made inside")
    if this_machine() is not None:
        return Finding(name, Grade.GOOD, "none can be made inside, by the filter of system calls")
    return Finding(name, Grade.WEAK, "can be made inside", "bubblewrap 0.8 or newer")


def _calls() -> Finding:
    name = "system calls"
    if this_machine() is not None:
        return Finding(name, Grade.GOOD, f"filtered for {platform.machine()}")
    return Finding(name, Grade.WEAK, f"not filtered: no table for {platform.machine()}")


def _network(environment: Mapping[str, str]) -> Finding:
    name = "network of runs"
    try:
        settings = read_egress_settings(environment)
    except BadSettings as fault:
        return Finding(name, Grade.MISSING, str(fault), "a runner does not start with it")
    hosts = ", ".join(sorted(settings.private_hosts)) or "none"
    roots, own = system_roots(), settings.ca_bundle
    if roots is None and own is None:
        advice = f"Debian and Ubuntu: apt-get install ca-certificates, or name a file in {CA_BUNDLE}"
        return Finding(name, Grade.WEAK, "no authorities are known, so no https reaches anything", advice)
    trusted = " and ".join(str(file) for file in (roots, own) if file is not None)
    return Finding(name, Grade.GOOD, f"by a proxy that trusts {trusted}; private hosts: {hosts}")


async def _self_test(state_dir: Path) -> tuple[Finding, Bound]:
    name = "self-test inside the sandbox"
    try:
        bound = await check(make_sandbox(SandboxTier.BUBBLEWRAP, LIMITS, state_dir))
    except SandboxUnavailable as fault:
        advice = namespace_advice()
        layout = find_layout(f"{group_name(state_dir)}-doctor", LIMITS)
        if refusal(kernel_abi(), is_root=is_root(), has_groups=layout is not None) is None:
            advice += "; or start the runner with --sandbox landlock, which needs no namespaces"
        if shutil.which("podman") is not None:
            advice += "; or start it with --sandbox podman, which is installed here"
        return Finding(name, Grade.MISSING, str(fault), advice), Bound.NONE
    return Finding(name, Grade.GOOD, "nothing of the host could be reached"), bound


def command(words: list[str]) -> int:
    """Examine this host, tell what was found, and give the exit status: 0, or 69 for what is missing."""
    parser = argparse.ArgumentParser(
        prog="sexton runner doctor", description="Say what this host can give a sandbox."
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--strict", action="store_true", help="fail for what is weak as well")
    given = parser.parse_args(words)
    structlog.configure(processors=[_drop])
    with tempfile.TemporaryDirectory(prefix="sexton-doctor-") as folder:
        findings = trio.run(examine, Path(folder))
    for finding in findings:
        line = orjson.dumps(asdict(finding)).decode() if given.json else finding.line()
        sys.stdout.write(f"{line}\n")
    refused = {Grade.MISSING, Grade.WEAK} if given.strict else {Grade.MISSING}
    return EXIT_UNAVAILABLE if any(one.grade in refused for one in findings) else EXIT_OK


def _drop(_logger: object, _name: str, _event: object) -> str:
    # The report is the output here; what a starting runner would log is not.
    raise structlog.DropEvent
