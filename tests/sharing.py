"""Shares the tests out among processes: a file's tests stay together, for they share its fixtures."""

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

TOGETHER = ("tests/house", "tests/pages")
"""Folders whose tests go to one process: they share what all modules say, and a browser."""
EARLY = (
    "tests/tutorials/test_tutorials.py",
    "tests/http/test_http_schemathesis.py",
    "tests/recipes/test_recipes_carried_out.py",
    "tests/simulation/test_simulation_product.py",
    "tests/acceptance/test_acceptance_demo.py",
    "tests/faults/test_faults_two_nodes.py",
    "tests/bench/test_leasebench_run.py",
    "tests/faults/test_faults_workers.py",
    "tests/runner/test_runner_floods.py",
    "tests/bench/test_bench_cleanup.py",
    "tests/http/test_http_loop_time.py",
    "tests/clients/test_python_client_restart.py",
    "tests/storage/test_storage_backlog_plans.py",
    "tests/house",
    "tests/cli/test_cli_people.py",
    "tests/runner/test_runner_attacks.py",
    "tests/cli/test_cli_agents.py",
    "tests/http/test_http_matrix.py",
    "tests/faults/test_faults_three_clocks.py",
    "tests/cli/test_cli_up.py",
    "tests/faults/test_faults_server_killed.py",
    "tests/storage/test_storage_embedded.py",
    "tests/cli/test_cli_tls.py",
    "tests/cli/test_cli_login.py",
    "tests/acceptance/test_acceptance_canary.py",
    "tests/cli/test_cli_operators.py",
    "tests/cli/test_cli_migrate.py",
    "tests/cli/test_cli_commands.py",
    "tests/cli/test_cli_money.py",
    "tests/pages",
    "tests/faults/test_faults_server_stops.py",
    "tests/faults/test_faults_frozen_node.py",
    "tests/conformance/test_conformance_signals.py",
    "tests/acceptance/test_acceptance_travels.py",
    "tests/faults/test_faults_signals.py",
    "tests/faults/test_faults_chat_killed.py",
    "tests/cli/test_cli_logs.py",
    "tests/faults/test_faults_keys_killed.py",
    "tests/http/test_http_frozen_database.py",
    "tests/runner/test_runner_kept_workspaces.py",
    "tests/faults/test_faults_memory_attacks.py",
    "tests/faults/test_faults_switch_over.py",
    "tests/faults/test_faults_runner_killed.py",
    "tests/runner/test_runner_process.py",
    "tests/cli/test_cli_apply.py",
    "tests/runner/test_runner_agent_cut_answers.py",
    "tests/runner/test_runner_agent.py",
    "tests/storage/test_storage_outages.py",
    "tests/faults/test_faults_agent_dies.py",
    "tests/storage/test_storage_held_rows.py",
    "tests/storage/test_storage_archives.py",
    "tests/clients/test_client_programs.py",
)
"""The longest, the longest first: at the end, all others would wait for one of them."""


class ByFile(LoadScopeScheduling):
    def _assign_work_unit(self, node: WorkerController) -> None:
        early = next((scope for scope in EARLY if scope in self.workqueue), None)
        if early is not None:
            self.workqueue.move_to_end(early, last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((folder for folder in TOGETHER if file.startswith(f"{folder}/")), file)
