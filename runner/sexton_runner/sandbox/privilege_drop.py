"""Runs a command as a user that no account has, where the runner is root.

A folder of root's is often closed to everybody else: the state folder, or a home with the interpreter in it.
So the command's folders are shown in a mount namespace of their own, at a place that anybody may enter, and
the program that makes the sandbox is started there with a user number that no account has.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sexton_runner.sandbox.programs import bundled_bubblewrap
from sexton_runner.sandbox.tiers import Job, Tier

FIRST_UID = 0x7000_0000
"""A process number is added, at most 0x40_0000: no account, container or service is given any of these."""
STAGE = Path("/sys")
"""Exists everywhere, and no sandbox takes anything from there; covered for the outermost process only."""

# The number of the process stays the same to the end, and no other living process has it: runs are strangers
# to each other as well. What a run may read is made its own, since a runner's files may be closed to others.
# A change of user takes the death signal away, so it is set again; the runner may have died in between.
LOWER = """
set -e
runner=$1 user=$(($2 + $$)) stage=$3 own=$4 n=$5
shift 5
chown -hR "$user:$user" "$own"
mount -n -t tmpfs -o mode=755,nosuid,nodev,size=64k sandbox "$stage"
at=0
while [ "$at" -lt "$n" ]; do
    mkdir "$stage/$at"
    mount -n --rbind "$1" "$stage/$at"
    shift
    at=$((at + 1))
done
exec setpriv --reuid "$user" --regid "$user" --clear-groups --inh-caps=-all --pdeathsig KILL -- \\
    /bin/sh -c '[ "$PPID" = "$1" ] || exit 125; shift; exec "$@"' sh "$runner" "$@"
"""


@dataclass(frozen=True, slots=True)
class PrivilegeDrop:
    """The programs that take root's number away from what is started."""

    unshare: str

    def wrap(self, tier: Tier, job: Job, runner: int) -> list[str]:
        """Give the words that run the job shut in by ``tier``, as nobody.

        ``runner`` is the process that starts it; ``job.run_dir`` is given to that user.
        """
        image = () if job.image is None else (job.image.folder,)
        sources = [job.run_dir, *job.read_only.values(), *image]
        staged = {source: STAGE / str(number) for number, source in enumerate(sources)}
        shown: Mapping[Path, Path] = {place: staged[source] for place, source in job.read_only.items()}
        root = None if job.image is None else replace(job.image, shown=staged[job.image.folder])
        words = tier.wrap(replace(job, run_dir=staged[job.run_dir], read_only=shown, image=root))
        words, sources = _program_staged(words, sources)
        folders = [str(len(sources)), *map(str, sources)]
        return [
            *(self.unshare, "--mount", "--propagation", "slave", "--"),
            *("/bin/sh", "-c", LOWER, "sh", str(runner), str(FIRST_UID), str(STAGE), str(job.run_dir)),
            *folders,
            *words,
        ]


def _program_staged(words: Sequence[str], sources: list[Path]) -> tuple[list[str], list[Path]]:
    """Show the program too, when it came with us: it lies where we lie, and its libraries beside its package.

    The system's is left where it is, as a profile of AppArmor's knows it by its path.
    """
    if words[0] != bundled_bubblewrap():
        return [*words], sources
    program = Path(words[0])
    packages = program.parents[2]
    staged = STAGE / str(len(sources)) / program.relative_to(packages)
    return [str(staged), *words[1:]], [*sources, packages]


def lowered_uid(pid: int) -> int:
    """Give the user of a sandbox by the number of its outermost process.

    >>> lowered_uid(1)
    1879048193
    """
    return FIRST_UID + pid


def is_root() -> bool:
    """Tell whether what we start would be root if nobody lowered it."""
    return os.geteuid() == 0
