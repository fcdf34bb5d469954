"""Shares the tests out among processes: a file's tests stay together, for they share its fixtures."""

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

TOGETHER = "tests/http/"
"""One test looks back at what all others of this folder have seen."""
APART = "tests/http/test_http_schemathesis.py"
"""The longest of that folder; what it sees, others provoke as well."""
EARLY = (
    TOGETHER,
    "tests/acceptance/test_acceptance_demo.py",
    "tests/faults/test_faults_server_killed.py",
    "tests/faults/test_faults_three_clocks.py",
    "tests/faults/test_faults_two_nodes.py",
    APART,
)
"""Few tests, and long ones. At the end, where the scheduler puts them, all would wait for the last."""


class ByFile(LoadScopeScheduling):
    def _assign_work_unit(self, node: WorkerController) -> None:
        early = next((scope for scope in EARLY if scope in self.workqueue), None)
        if early is not None:
            self.workqueue.move_to_end(early, last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return TOGETHER if file.startswith(TOGETHER) and file != APART else file
