"""The first commands to try with a new server."""

import shlex
import shutil
import sys
from pathlib import Path

from sexton_cli.data_folder import KEY_FILE
from sexton_cli.example_files import folder_of

EXAMPLE = "night-watch"


def first_commands(base_url: str, data: Path) -> list[str]:
    """Sign in with the first key, install an example, wake it, and look at this machine."""
    sexton = shlex.quote(program_name(Path.cwd()))
    key, example = (
        shlex.quote(from_here(path, Path.cwd())) for path in (data / KEY_FILE, folder_of(EXAMPLE))
    )
    return [
        f"{sexton} login --base-url {shlex.quote(base_url)} < {key}",
        f"{sexton} agent install {example}",
        f"{sexton} steer {EXAMPLE} 'Walk your round.'",
        f"{sexton} doctor",
    ]


def program_name(here: Path) -> str:
    """Give the word that starts this very program from the folder ``here``.

    In a clone it is on no PATH, and 'sexton' alone would not be found, or be another one.
    """
    program = Path(sys.executable).parent / "sexton"
    known = shutil.which("sexton")
    if known is not None and program.exists() and Path(known).resolve() == program.resolve():
        return "sexton"
    return from_here(program, here) if program.exists() else "sexton"


def from_here(path: Path, here: Path) -> str:
    """Spell a path as short as it can be from a folder.

    >>> from_here(Path("/srv/clone/.venv/bin/sexton"), Path("/srv/clone"))
    '.venv/bin/sexton'
    >>> from_here(Path("/var/lib/sexton/api-key"), Path("/srv/clone"))
    '/var/lib/sexton/api-key'
    """
    whole = path.absolute()
    return str(whole.relative_to(here)) if whole.is_relative_to(here) else str(whole)
