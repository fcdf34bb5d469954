"""Shares the tests out among processes: a file's tests stay together, for they share its fixtures."""

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

EARLY = (
    "tests/http/test_http_matrix.py",
    "tests/http/test_http_providers.py",
    "tests/http/test_http_schemathesis.py",
    "tests/acceptance/test_acceptance_demo.py",
    "tests/faults/test_faults_server_killed.py",
    "tests/faults/test_faults_three_clocks.py",
    "tests/faults/test_faults_two_nodes.py",
    "tests/faults/test_faults_runner_killed.py",
    "tests/storage/test_storage_embedded.py",
)
"""The longest. At the end, where the scheduler puts files of few tests, all would wait for the last."""


class ByFile(LoadScopeScheduling):
    def _assign_work_unit(self, node: WorkerController) -> None:
        early = next((scope for scope in EARLY if scope in self.workqueue), None)
        if early is not None:
            self.workqueue.move_to_end(early, last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0]
