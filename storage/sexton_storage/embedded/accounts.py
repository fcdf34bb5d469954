"""Chooses whom PostgreSQL runs as, and shows that account the folders it needs and nothing more."""

import os
import pwd
import shlex
import stat
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sexton_storage.startup import ConnectFailed

ACCOUNTS = ("sexton", "postgres", "nobody")
"""Whom root runs PostgreSQL as: the first of these that the machine has."""
_UNSHARE = ("unshare", "--mount", "--propagation", "private")
_FIRST_DESCRIPTOR = 3


@dataclass(frozen=True, slots=True)
class Account:
    """A user without privileges, by number: not every user has a name."""

    uid: int
    gid: int

    def may_enter(self, path: Path) -> bool:
        """Whether the modes let it into this folder and all above it."""
        return all(self._passes(folder.stat()) for folder in (path, *path.parents))

    def _passes(self, found: os.stat_result) -> bool:
        if found.st_uid == self.uid:
            return bool(found.st_mode & stat.S_IXUSR)
        if found.st_gid == self.gid:
            return bool(found.st_mode & stat.S_IXGRP)
        return bool(found.st_mode & stat.S_IXOTH)

    def command(self, words: Sequence[str], places: Iterable[Path]) -> list[str]:
        """Give the words by which root runs a command as this account.

        Root's folders are often closed to others. What lies in one is shown in a mount namespace of the
        command's own, at the same path, in place of the closed folder. Raises ConnectFailed where a place
        cannot be shown.
        """
        lowered = ["setpriv", "--reuid", str(self.uid), "--regid", str(self.gid), "--clear-groups"]
        lowered += ["--no-new-privs", "--", *words]
        closed = [place for place in places if not self.may_enter(place)]
        if not closed:
            return lowered
        if not may_mount():
            raise ConnectFailed(
                f"PostgreSQL does not run as root, and the user {self.uid} may not enter {closed[0]}: "
                "give --data a folder that others may pass through, such as /var/lib/sexton, or start "
                "sexton as an ordinary user"
            )
        return [*_UNSHARE, "sh", "-c", "\n".join(self._steps(closed)), "sh", *lowered]

    def _steps(self, closed: Sequence[Path]) -> Iterator[str]:
        yield "set -e; umask 022"
        held = {number: shlex.quote(str(place)) for number, place in enumerate(closed, _FIRST_DESCRIPTOR)}
        yield from (f"exec {number}<{place}" for number, place in held.items())
        for top in sorted({self._topmost_closed(place) for place in closed}):
            yield f"mount -t tmpfs -o mode=755,size=1m tmpfs {shlex.quote(str(top))}"
        # The descriptors still lead to what is now hidden; by name nobody gets there.
        for number, place in held.items():
            yield f"mkdir -p {place}; mount --no-canonicalize --rbind /proc/self/fd/{number} {place}"
        yield from (f"exec {number}<&-" for number in held)
        yield 'exec "$@"'

    def _topmost_closed(self, place: Path) -> Path:
        return next(folder for folder in reversed((place, *place.parents)) if not self._passes(folder.stat()))


def choose_account(euid: int, data: Path | None = None) -> Account | None:
    """Whom PostgreSQL is to run as; None: as ourselves. A cluster's owner keeps it, unless that is root.

    Raises ConnectFailed when we are root and there is nobody else.
    """
    if euid != 0:
        return None
    if data is not None and data.exists() and (found := data.stat()).st_uid != 0:
        return Account(found.st_uid, found.st_gid)
    for name in ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return Account(entry.pw_uid, entry.pw_gid)
    raise ConnectFailed(
        "PostgreSQL does not run as root, and there is no other user here: start sexton as one"
    )


def may_mount() -> bool:
    """Whether the host lets us have mounts of our own."""
    try:
        return subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def give(path: Path, account: Account | None) -> None:
    """Make the account the owner of one file or folder; a link itself, never what it leads to."""
    if account is not None:
        os.chown(path, account.uid, account.gid, follow_symlinks=False)


def give_all(top: Path, account: Account | None) -> None:
    """Make the account the owner of whatever of root's lies in a folder, and of the folder last.

    A folder that is not root's has been given before, and its new owner may since have put anything there.
    """
    if account is None or top.lstat().st_uid != 0:
        return
    # An administrator may have put the log of writes, or a tablespace, on another disk.
    for link in (top / "pg_wal", *top.glob("pg_tblspc/*")):
        if link.is_symlink():
            give_all(link.resolve(), account)
    for _, folders, files, descriptor in os.fwalk(top):
        for name in (*folders, *files):
            if os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_uid == 0:
                os.chown(name, account.uid, account.gid, dir_fd=descriptor, follow_symlinks=False)
    give(top, account)


def write_file(path: Path, text: str, account: Account | None) -> None:
    """Put a whole file in place of another, in a folder whose owner may try to mislead us with links."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        if account is not None:
            os.fchown(descriptor, account.uid, account.gid)
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    draft.replace(path)
