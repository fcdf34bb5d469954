"""Makes the root of one container and becomes the client of podman that runs it.

This file is run by itself, on the host, with the standard library only: ``podman_start.py PLAN``, where PLAN
is the JSON of ``podman.Plan``. Its own streams become the program's, as descriptors that podman passes on
untouched; podman itself gets none but the errors. Descriptor ``guard`` is the socket to the runner.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

RUNNER, FIRST_STREAM = 3, 4
SKELETON = ("dev", "etc", "proc", "run", "sys", "tmp", "usr", "workspace")


def make_root(plan: dict[str, Any]) -> str:
    """Make what stands at the top of the container; what is mounted there comes later."""
    root = Path(tempfile.mkdtemp(prefix="root-", dir=plan["folder"]))
    root.chmod(0o755)
    for name in SKELETON:
        if name == "etc" and plan["etc"] is not None:
            # Podman adds files there, so it cannot be a mount that is read-only.
            shutil.copytree(plan["etc"], root / name, symlinks=True)
        else:
            (root / name).mkdir()
    for name, target in plan["links"]:
        (root / name).symlink_to(target)
    return str(root)


def give_away(folder: str, user: int) -> None:
    """Make the run's folder its user's, as a runner's files may be closed to others."""
    os.chown(folder, user, user)
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(os.path.join(place, name), user, user, follow_symlinks=False)  # noqa: PTH118 - of a walk


def pass_streams(guard: int) -> None:
    """Put the runner's socket and the streams where the container's first process finds them."""
    out_of_the_way = [os.dup(number) for number in (guard, 0, 1, 2)]
    high = [os.dup(number) for number in out_of_the_way]  # Above 6 for certain: the first four took no less.
    while min(high) <= FIRST_STREAM + 2:
        high = [os.dup(number) for number in high]
    for number, descriptor in enumerate(high, start=RUNNER):
        os.dup2(descriptor, number)
    os.closerange(FIRST_STREAM + 3, 1024)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)


def main(words: list[str]) -> None:
    """Become podman."""
    os.umask(0o022)  # A service may have a stricter one, and what is made here is the container's.
    plan = json.loads(words[0])
    user: list[str] = []
    if plan["first_uid"] is not None:
        number = plan["first_uid"] + os.getpid()
        give_away(plan["folder"], number)
        user = ["--user", f"{number}:{number}"]
    root = make_root(plan)
    name = ["--name", f"{plan['name']}-{os.getpid()}"]
    pass_streams(plan["guard"])
    argv = [*plan["podman"], *name, *user, "--rootfs", root, *plan["argv"]]
    os.execve(argv[0], argv, plan["env"])  # noqa: S606 - there is no shell in between, and none is wanted


if __name__ == "__main__":
    main(sys.argv[1:])
