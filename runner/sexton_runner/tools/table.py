"""The table of tools: a new one is a file beside this and a row here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sexton_runner.run import Run
from sexton_runner.tools.approval import RequestApproval
from sexton_runner.tools.base import Tool
from sexton_runner.tools.folder_files import FolderFiles
from sexton_runner.tools.follow_up import ScheduleFollowUp
from sexton_runner.tools.http_request import HttpRequest
from sexton_runner.tools.integration import RequestIntegration
from sexton_runner.tools.lent_secrets import LentSecrets
from sexton_runner.tools.memory import MemoryRecall, MemoryStore
from sexton_runner.tools.programs import Programs, Python, Shell
from sexton_runner.tools.proposal import ProposeImprovement
from sexton_runner.tools.reach import Reach
from sexton_runner.tools.read_file import ReadFile
from sexton_runner.tools.request_files import RequestFiles
from sexton_runner.tools.tool_sandbox import ToolSandbox


@dataclass(frozen=True, slots=True)
class Kit:
    """What tools are made of."""

    run: Run
    tool_sandbox: ToolSandbox
    secrets: LentSecrets
    folder_files: FolderFiles
    proposals: list[dict[str, Any]] = field(default_factory=list)

    @property
    def programs(self) -> Programs:
        """Give what runs programs."""
        return Programs(
            tool_sandbox=self.tool_sandbox,
            sandbox=self.run.sandbox,
            redactor=self.run.redactor,
            network=self.run.network,
            hosts=self.run.live.lease.policy.hosts,
        )

    @property
    def reach(self) -> Reach:
        """Give where requests may go."""
        network, allow = self.run.network, self.run.live.lease.policy.network_policy.allow
        allow_loopback = self.run.tools.allow_loopback
        if network is None:
            return Reach(allow=allow, allow_loopback=allow_loopback)
        return Reach(
            allow=allow,
            allow_loopback=allow_loopback,
            limits=network.limits,
            private_hosts=network.private_hosts,
            authorities=network.authorities,
        )


TOOLS: Mapping[str, Callable[[Kit], Tool]] = {
    "shell": lambda kit: Shell(kit.programs),
    "python": lambda kit: Python(kit.programs),
    "http_request": lambda kit: HttpRequest(
        secrets=kit.secrets,
        reach=kit.reach,
        redactor=kit.run.redactor,
        files=RequestFiles(kit.run, kit.folder_files),
        hosts=kit.run.live.lease.policy.hosts,
    ),
    "read_file": lambda kit: ReadFile(kit.folder_files, kit.run.folder, kit.run.redactor),
    "memory_store": lambda kit: MemoryStore(kit.run.plane, kit.run.live.lease, kit.run.redactor),
    "memory_recall": lambda kit: MemoryRecall(kit.run.plane, kit.run.live.lease, kit.run.redactor),
    "request_integration": lambda kit: RequestIntegration(
        kit.run.plane, kit.run.live.lease, kit.secrets, kit.run.redactor
    ),
    "request_approval": lambda _: RequestApproval(),
    "schedule_follow_up": lambda kit: ScheduleFollowUp(kit.run.plane, kit.run.live.lease, kit.run.redactor),
    "propose_improvement": lambda kit: ProposeImprovement(kit.proposals, kit.run.redactor),
}
