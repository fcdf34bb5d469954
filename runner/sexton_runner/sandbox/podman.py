"""The tier for hosts where podman makes the containers: one for each sandbox, without an image of podman's.

What is inside is what the tier ``bubblewrap`` shows. The root is an empty folder in which podman mounts the
host's programs, or an image of ours. Podman keeps its records in a folder of our own, so that neither its
images nor its settings on this host matter here, and it does not list our containers among its others.
"""

import functools
import os
import resource
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from sexton_runner.errors import SandboxUnavailable
from sexton_runner.sandbox import podman_init, podman_start
from sexton_runner.sandbox.limits import NICENESS, OPEN_FILES, SHARED_MEMORY_BYTES
from sexton_runner.sandbox.privilege_drop import FIRST_UID, is_root
from sexton_runner.sandbox.programs import find_program
from sexton_runner.sandbox.tiers import (
    ADDED,
    ETC,
    MASKED,
    OUR_OWN,
    RUN_DIR,
    SYSTEM_LINKS,
    TEMPORARY,
    WORKSPACE,
    Inside,
    Job,
    bounds,
)
from sexton_runner.sandbox.walls import WALLS
from sexton_runner.settings import SandboxTier

RUNTIMES: Final = ("crun", "runc")
PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
TRIAL_S: Final = 30.0
MOST_PROCESSES: Final = 1 << 14
SETTINGS: Final = '[engine]\nlock_type = "file"\nevents_logger = "none"\n'
STORAGE: Final = '[storage]\ndriver = "vfs"\ngraphroot = "{0}/root"\nrunroot = "{0}/run"\n'
HIDDEN: Final = ("/sys", "/dev/mqueue", *(f"/proc/{name}" for name in MASKED))
START: Final = Path(podman_start.__file__).resolve()
INIT: Final = Path(podman_init.__file__).resolve()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What ``podman_start`` is told: nothing of it is a secret, as others can read a command line."""

    folder: str
    guard: int
    etc: str | None
    links: tuple[tuple[str, str], ...]
    first_uid: int | None
    name: str
    podman: tuple[str, ...]
    argv: tuple[str, ...]
    env: dict[str, str]


@dataclass(frozen=True, slots=True)
class Client:
    """The podman of this host, with the runtime that works here and our own folder for its records."""

    program: str
    runtime: str
    folder: Path

    def words(self, *rest: str) -> tuple[str, ...]:
        """Give the words of a call."""
        places = ("--root", f"{self.folder}/root", "--runroot", f"{self.folder}/run")
        return (
            *(self.program, *places, "--tmpdir", str(self.folder / "tmp"), "--storage-driver", "vfs"),
            *("--cgroup-manager", "cgroupfs", "--runtime", self.runtime, "--log-level", "fatal", *rest),
        )

    def environment(self) -> dict[str, str]:
        """Give the variables of a call: of the settings of this user's podman it reads none."""
        return {
            "PATH": PATH,
            "HOME": str(self.folder),
            "XDG_RUNTIME_DIR": str(self.folder),
            "XDG_CONFIG_HOME": str(self.folder),
            "CONTAINERS_CONF": f"{self.folder}/containers.conf",
            "CONTAINERS_STORAGE_CONF": f"{self.folder}/storage.conf",
        }

    def call(self, *rest: str) -> "subprocess.CompletedProcess[str]":
        """Call podman and wait for it; raises ``SandboxUnavailable`` when it cannot be called."""
        try:
            return subprocess.run(
                self.words(*rest),
                env=self.environment(),
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                check=False,
                timeout=TRIAL_S,
            )
        except (OSError, subprocess.TimeoutExpired) as fault:
            raise SandboxUnavailable(f"podman: {fault}") from fault


class Podman:
    """A container without network, privileges and images, whose first process is ours."""

    name = SandboxTier.PODMAN
    walls = WALLS[name]

    def __init__(self, client: Client) -> None:
        self.client = client

    def inside(self, run_dir: Path, workspace: Path) -> Inside:
        """Give the fixed places, the same for every run."""
        del run_dir, workspace
        return Inside(RUN_DIR, TEMPORARY)

    def wrap(self, job: Job) -> list[str]:
        """Give the words that make the container; the program itself is told to its first process."""
        (job.run_dir / "bin").mkdir(exist_ok=True)
        (job.run_dir / "bin" / INIT.name).write_bytes(INIT.read_bytes())
        whole = job.image if job.image is not None and job.image.whole else None
        etc = whole.folder / "etc" if whole is not None else None
        plan = Plan(
            folder=str(job.run_dir),
            guard=job.guard,
            etc=str(etc) if etc is not None and etc.is_dir() else None,
            links=tuple(_links(job)),
            first_uid=FIRST_UID if is_root() else None,
            name=container_name(job.owner),
            podman=self.client.words("run", *_options(job)),
            argv=(job.python, "-I", "-S", f"{RUN_DIR}/bin/{INIT.name}"),
            env=self.client.environment(),
        )
        interpreter = str(Path(sys.executable).resolve())
        return [interpreter, "-I", "-S", "-B", str(START), msgspec.json.encode(plan).decode()]


def argv_inside(job: Job) -> list[str]:
    """Give the words that the first process starts."""
    return ["/usr/bin/nice", "-n", str(NICENESS), "/usr/bin/prlimit", *bounds(job), "--", *job.argv]


def container_name(owner: str) -> str:
    """Give how the names of a runner's containers begin."""
    return f"sexton-{owner}"


def remove_containers(client: Client, owner: str) -> None:
    """Remove the containers that an earlier runner of this name left, with all that runs in them."""
    found = client.call("ps", "--all", "--quiet", "--filter", f"name=^{container_name(owner)}-")
    if names := found.stdout.split():
        client.call("rm", "--force", "--time", "0", *names)


def _options(job: Job) -> Iterator[str]:
    yield from ("--rm", "--pull", "never", "--network", "none", "--read-only", "--read-only-tmpfs=false")
    yield from ("--cap-drop", "all", "--security-opt", "no-new-privileges", "--security-opt", "label=disable")
    # What the run prints never passes podman, so nothing of it is kept.
    yield from ("--log-driver", "none", "--no-hosts", "--passwd=false", "--http-proxy=false")
    yield from ("--systemd", "false", "--sdnotify", "ignore", "--no-healthcheck", "--cgroups", "no-conmon")
    yield from ("--hostname", "sandbox", "--shm-size", str(SHARED_MEMORY_BYTES), "--preserve-fds", "4")
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    most = MOST_PROCESSES if hard == resource.RLIM_INFINITY else min(hard, MOST_PROCESSES)
    yield from ("--ulimit", f"nofile={OPEN_FILES}:{OPEN_FILES}", "--ulimit", f"nproc={most}:{most}")
    if not is_root():
        # One number is enough, and needs neither newuidmap nor ranges: inside 0, outside the runner's own.
        yield from ("--uidmap", "0:0:1", "--gidmap", "0:0:1")
    # To map /dev/zero is to make memory that nobody can count.
    hidden = HIDDEN if job.grouped else (*HIDDEN, "/dev/zero")
    yield from ("--security-opt", f"mask={':'.join(hidden)}")
    for source, place in _mounts(job):
        yield from ("--mount", f"type=bind,src={source},dst={place},ro")
    for scratch in (TEMPORARY, WORKSPACE):
        owned = ",U" if is_root() else ""
        size = job.limits.disk_bytes
        yield from ("--tmpfs", f"{scratch}:rw,size={size},mode=755,exec,nosuid,nodev{owned}")
    # The root of the container lies there: what is mounted in that must not be seen a second time, unmasked.
    yield from ("--mount", f"type=bind,src={job.run_dir},dst={RUN_DIR},ro,bind-nonrecursive=true")


def _mounts(job: Job) -> Iterator[tuple[Path, Path]]:
    if job.image is None or not job.image.whole:
        for name in ("usr", *SYSTEM_LINKS):
            place = Path("/") / name
            if place.is_dir() and not place.is_symlink():
                yield place, place
        for file in map(Path, ETC):
            if file.exists():
                yield file.resolve(), file
    if job.image is not None:
        for name, place, shown in job.image.entries():
            if _is_shown(job, name) and place.is_dir() and not place.is_symlink() and name != "etc":
                yield shown, Path("/") / name
    for place, source in job.read_only.items():
        yield source, place


def _links(job: Job) -> Iterator[tuple[str, str]]:
    if job.image is None or not job.image.whole:
        for name in SYSTEM_LINKS:
            if (place := Path("/") / name).is_symlink():
                yield name, str(place.readlink())
    if job.image is not None:
        for name, place, _ in job.image.entries():
            if _is_shown(job, name) and place.is_symlink():
                yield name, str(place.readlink())


def _is_shown(job: Job, name: str) -> bool:
    return name not in OUR_OWN and (name == ADDED or (job.image is not None and job.image.whole))


@functools.cache  # The same one each time, so that what was found out about it is known again.
def find_client() -> Client:
    """Find podman and a runtime that works here; raises ``SandboxUnavailable``."""
    program = find_program("podman", "podman")
    folder = own_folder()
    refusals = []
    for runtime in RUNTIMES:
        if any(os.access(f"{place}/{runtime}", os.X_OK) for place in PATH.split(":")):
            client = Client(program, runtime, folder)
            if (why := _refusal(client)) is None:
                return client
            refusals.append(why)
    missing = "neither crun nor runc is installed (Debian and Ubuntu: apt-get install crun)"
    raise SandboxUnavailable(f"podman cannot run a container here: {'; '.join(refusals) or missing}")


def _refusal(client: Client) -> str | None:
    """Run an empty container, and give what podman says where it cannot."""
    with tempfile.TemporaryDirectory(prefix="trial-", dir=client.folder) as root:
        Path(root).chmod(0o755)
        hard = ("--ulimit", f"nofile={OPEN_FILES}:{OPEN_FILES}", "--ulimit", "nproc=64:64")
        words = ("run", "--rm", "--network", "none", "--read-only", "--log-driver", "none", *hard)
        usr = "type=bind,src=/usr,dst=/usr,ro"
        links = {name: Path("/") / name for name in SYSTEM_LINKS}
        mounts = [
            word
            for name, place in links.items()
            if place.is_dir() and not place.is_symlink()
            for word in ("--mount", f"type=bind,src={place},dst=/{name},ro")
        ]
        for name, place in links.items():
            if place.is_symlink():
                (Path(root) / name).symlink_to(place.readlink())
        done = client.call(*words, "--mount", usr, *mounts, "--rootfs", root, "/usr/bin/true")
    if done.returncode == 0:
        return None
    said = done.stderr.strip().splitlines() or ["it gave no reason"]
    return f"with {client.runtime}: {said[-1]}"


def own_folder(parent: Path | None = None) -> Path:
    """Make the folder of podman's records, which is ours alone; raises ``SandboxUnavailable``.

    It is below the folder for temporary files: podman takes no path of a socket that is much longer.
    """
    folder = (parent or Path(tempfile.gettempdir())) / f"sexton-podman-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise SandboxUnavailable(f"{folder} is not a folder of this user alone: remove it")
    (folder / "containers.conf").write_text(SETTINGS, encoding="ascii")
    (folder / "storage.conf").write_text(STORAGE.format(folder), encoding="utf-8")
    return folder
