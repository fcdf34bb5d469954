"""Keeps tokens between commands, in one file that only its owner can read."""

import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from sexton_cli.exits import CONFIG, Fault

FILE_NAME: Final = "credentials.json"
LOCK_NAME: Final = "credentials.lock"
VERSION: Final = 1
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
MAX_BYTES: Final = 1024 * 1024


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept for one server. The token goes to no other address."""

    token: str | None = None
    workspace_id: str | None = None
    sign_in_id: str | None = None
    refresh_token: str | None = None
    """Renews the token, which lives for minutes."""

    def __repr__(self) -> str:
        return f"<Kept {'a token' if self.token else 'no token'}, workspace {self.workspace_id}>"


class Credentials(msgspec.Struct, frozen=True):
    """All of the file: servers by base URL, and the one that is meant when none is named."""

    version: int = VERSION
    current: str | None = None
    servers: dict[str, Kept] = {}

    def of(self, base_url: str) -> Kept:
        return self.servers.get(base_url, Kept())

    def with_server(self, base_url: str, kept: Kept) -> "Credentials":
        """The same with this server, which becomes the current one."""
        return msgspec.structs.replace(self, current=base_url, servers={**self.servers, base_url: kept})

    def without(self, base_url: str) -> "Credentials":
        rest = {url: kept for url, kept in self.servers.items() if url != base_url}
        return msgspec.structs.replace(
            self, current=None if self.current == base_url else self.current, servers=rest
        )


def default_folder(environ: Mapping[str, str]) -> Path:
    """Where a user's programs keep their settings. By XDG's convention a relative path is none."""
    given = environ.get("XDG_CONFIG_HOME", "")
    root = Path(given) if given and Path(given).is_absolute() else Path.home() / ".config"
    return root / "sexton"


class CredentialFile:
    """The file in its folder. Raises Fault (78) for one that others can read, or that is not ours."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Who keeps it elsewhere and has a link here keeps his link.
        self.path = (folder / FILE_NAME).resolve()

    def load(self) -> Credentials:
        try:
            with self.path.open("rb") as file:
                if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & OTHERS:
                    raise Fault(f"{self.path} can be read by others", f"chmod 600 {self.path}", status=CONFIG)
                raw = file.read(MAX_BYTES)
            credentials = msgspec.json.decode(raw, type=Credentials)
        except FileNotFoundError:
            return Credentials()
        except OSError as fault:
            raise self._fault(fault.strerror or str(fault)) from fault
        except msgspec.DecodeError:
            # The text of that error may quote the file, and there are tokens in it.
            raise self._fault("it is not what 'sexton login' writes") from None
        if credentials.version != VERSION:
            raise self._fault(f"another release wrote it (version {credentials.version})")
        return credentials

    def change(self, how: Callable[[Credentials], Credentials]) -> Credentials:
        """Load, change and save while nobody else does."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self._folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                changed = how(self.load())
                self._save(changed)
            finally:
                os.close(lock)
        except OSError as fault:
            raise self._fault(fault.strerror or str(fault)) from fault
        return changed

    def _save(self, credentials: Credentials) -> None:
        if not credentials.servers:
            self.path.unlink(missing_ok=True)
            return
        # mkstemp makes it its owner's alone from the first moment.
        descriptor, draft = tempfile.mkstemp(prefix=f".{FILE_NAME}.", dir=self.path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(credentials), indent=2) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            Path(draft).replace(self.path)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise

    def _fault(self, what: str) -> Fault:
        return Fault(f"{self.path}: {what}", "Fix the file, or remove it and sign in again.", status=CONFIG)
