"""Runs PostgreSQL's own programs for backups."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final
from urllib.parse import unquote

from sexton_storage.backups.faults import BackupFault
from sexton_storage.embedded.processes import wait_process
from sexton_storage.embedded.programs import BINDIR_VARIABLE, find_bindir

LAST_WORDS: Final = 1000
_TLS: Final = f"For TLS, or a newer server, set {BINDIR_VARIABLE} to the folder of your PostgreSQL's programs"


def tools_folder(environ: Mapping[str, str]) -> Path:
    """Give the folder of programs for a database that is not ours: a named one before the embedded one."""
    named = environ.get(BINDIR_VARIABLE)
    return Path(named) if named else find_bindir(environ)


async def run_tool(command: Sequence[str], *, password: str | None = None, lock: int | None = None) -> None:
    """Run a program to its end. Raises BackupFault.

    ``lock``: a descriptor that it inherits. Should we be killed, it holds the folder until it has ended too.
    """
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    environment = clean | {"LC_ALL": "C"} | ({} if password is None else {"PGPASSWORD": password})
    with TemporaryFile() as output:
        try:
            process = subprocess.Popen[bytes](
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                pass_fds=() if lock is None else (lock,),
                start_new_session=True,
            )
        except OSError as fault:
            raise BackupFault(f"{command[0]} cannot be started: {fault.strerror}", _TLS) from fault
        try:
            status = await wait_process(process)
        except BaseException:
            process.kill()
            process.wait()
            raise
        output.seek(0)
        said = output.read().decode(errors="replace").strip()[-LAST_WORDS:]
    if status:
        raise BackupFault(f"{Path(command[0]).name} failed with exit status {status}: {said}", _TLS)


def without_password(dsn: str) -> tuple[str, str | None]:
    """Part an address from its password, which would be seen in the list of processes.

    >>> without_password("postgresql://u:p%40ss@db1,db2/sexton?sslmode=require")
    ('postgresql://u@db1,db2/sexton?sslmode=require', 'p@ss')
    >>> without_password("postgresql://u@/sexton?host=/run")
    ('postgresql://u@/sexton?host=/run', None)
    """
    scheme, _, address = dsn.partition("://")
    end = min((address.find(sign) for sign in "/?#" if sign in address), default=len(address))
    user, at, hosts = address[:end].rpartition("@")
    name, colon, password = user.partition(":")
    if not colon:
        return dsn, None
    return f"{scheme}://{name}{at}{hosts}{address[end:]}", unquote(password)
