"""Shares the tests out among processes: a file's tests stay together, for they share its fixtures."""

from xdist.scheduler import LoadScopeScheduling

TOGETHER = "tests/http/"
"""One test looks back at what all others of this folder have seen."""
APART = "tests/http/test_http_schemathesis.py"
"""The longest of that folder; what it sees, others provoke as well."""


class ByFile(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return TOGETHER if file.startswith(TOGETHER) and file != APART else file
