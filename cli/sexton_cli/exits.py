"""How a command ends: the exit statuses of sysexits.h, and one clear line with the way out."""

import sys

OK = 0
FAILED = 1
UNAVAILABLE = 69
CONFIG = 78


class StartupFault(Exception):
    """Something the operator has to see to before the command can run."""

    def __init__(self, code: str, what: str, way_out: str, status: int) -> None:
        super().__init__(f"{code}: {what}")
        self.code = code
        self.what = what
        self.way_out = way_out
        self.status = status


def explain(fault: StartupFault) -> int:
    """Print the line and give the exit status."""
    sys.stderr.write(f"sexton: {fault.code}: {fault.what}. {fault.way_out}\n")
    return fault.status
