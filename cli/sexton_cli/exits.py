"""The exit statuses of a command, most of them from sysexits.h, and the line that says what to do."""

from collections.abc import Mapping
from typing import Final, TypeVar

OK = 0
FAILED = 1
USAGE = 2
UNAVAILABLE = 69
PROTOCOL = 76
NO_PERMISSION = 77
CONFIG = 78
INTERRUPTED = 130

MEANINGS: Final[Mapping[int, str]] = {
    OK: "Done.",
    FAILED: "The server refused it, a check failed, or an event went wrong; the code says why.",
    USAGE: "The command line is wrong; nothing was sent.",
    UNAVAILABLE: "The server, the database or the sandbox is not available now; try again later.",
    PROTOCOL: "What answered is not a Sexton server, or its answer cannot be trusted.",
    NO_PERMISSION: "The token is missing, invalid, expired or revoked, or may not do this.",
    CONFIG: "A setting or a file on this machine has to be fixed.",
    INTERRUPTED: "Ctrl-C.",
}


class Fault(Exception):
    """Why a command cannot go on, for a person and for a script."""

    def __init__(
        self,
        what: str,
        way_out: str = "",
        *,
        status: int,
        code: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(f"{code}: {what}" if code else what)
        self.code = code
        self.what = what
        self.way_out = way_out
        self.status = status
        self.request_id = request_id

    def line(self) -> str:
        """One line: the code, what happened, what to do, and what finds it in the server's log."""
        said = [f"{self.code}: {self.what.rstrip('.')}." if self.code else f"{self.what.rstrip('.')}."]
        if self.way_out:
            said.append(self.way_out)
        if self.request_id:
            said.append(f"(request {self.request_id})")
        return printable(" ".join(said))

    def document(self) -> dict[str, object]:
        """The same for a program."""
        return {
            "error": {
                "code": self.code,
                "detail": self.what,
                "way_out": self.way_out or None,
                "request_id": self.request_id,
                "exit_status": self.status,
            }
        }


AnyFault = TypeVar("AnyFault", bound="Fault")


class StartupFault(Fault):
    """Something the operator has to see to before the command can run."""

    def __init__(self, code: str, what: str, way_out: str, status: int) -> None:
        super().__init__(what, way_out, code=code, status=status)


def first_of(group: BaseExceptionGroup[AnyFault]) -> AnyFault:
    """The first fault of those that a nursery raised."""
    inner = group.exceptions[0]
    return first_of(inner) if isinstance(inner, BaseExceptionGroup) else inner


def printable(text: str) -> str:
    r"""Take the sting out of control characters: what a server sends must not steer the terminal.

    >>> printable("a\x1b[2Jb")
    'a�[2Jb'
    """
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
