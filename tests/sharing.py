"""Shares the tests out among processes: a file's tests stay together, for they share its fixtures."""

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

EARLY = (
    "tests/http/test_http_matrix.py",
    "tests/storage/test_storage_embedded.py",
    "tests/cli/test_cli_people.py",
    "tests/cli/test_cli_agents.py",
    "tests/http/test_http_providers.py",
    "tests/cli/test_cli_up.py",
    "tests/faults/test_faults_signals.py",
    "tests/http/test_http_schemathesis.py",
    "tests/acceptance/test_acceptance_demo.py",
    "tests/cli/test_cli_commands.py",
    "tests/cli/test_cli_tokens.py",
    "tests/runner/test_runner_process.py",
    "tests/http/test_http_provocation.py",
    "tests/cli/test_cli_login.py",
    "tests/cli/test_cli_tls.py",
    "tests/http/test_http_strictness.py",
    "tests/http/test_http_refusals.py",
    "tests/faults/test_faults_two_nodes.py",
    "tests/faults/test_faults_server_stops.py",
    "tests/faults/test_faults_server_killed.py",
    "tests/faults/test_faults_three_clocks.py",
    "tests/runner/test_runner_floods.py",
    "tests/faults/test_faults_runner_killed.py",
    "tests/faults/test_faults_chat_killed.py",
)
"""The longest, the longest first: at the end, all others would wait for one of them."""


class ByFile(LoadScopeScheduling):
    def _assign_work_unit(self, node: WorkerController) -> None:
        early = next((scope for scope in EARLY if scope in self.workqueue), None)
        if early is not None:
            self.workqueue.move_to_end(early, last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0]
