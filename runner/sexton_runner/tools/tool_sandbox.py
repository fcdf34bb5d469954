"""Opens a sandbox when a tool first needs one, and another when the first is gone."""

from pathlib import Path

import orjson
import trio

from sexton_runner.errors import SandboxUnavailable
from sexton_runner.event import event_json
from sexton_runner.kept_workspace import KeptWorkspace, WorkspaceLost
from sexton_runner.run import Run
from sexton_runner.run_files.files_pipe import put_sender
from sexton_runner.sandbox.workspace import Workspace, WorkspaceGone, open_workspace


class ToolSandbox:
    """The sandbox of one run. ``host`` has to run beside whatever asks for it."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._turn = trio.Lock()
        self._wanted = trio.Event()
        self._answered = trio.Event()
        self._open: Workspace | None = None
        self._fault = ""
        self._lost: WorkspaceLost | None = None
        self.kept = KeptWorkspace(run)
        self._count = 0

    async def workspace(self) -> Workspace:
        """Give the sandbox that stands; raises ``SandboxUnavailable`` when none can be made to."""
        async with self._turn:
            if self._open is None or self._open.gone is not None:
                self._open, self._answered = None, trio.Event()
                self._wanted.set()
                await self._answered.wait()
            if self._open is None:
                raise self._lost or SandboxUnavailable(self._fault)
            return self._open

    @property
    def standing(self) -> Workspace | None:
        """Give the sandbox that stands, if one does."""
        return None if self._open is None or self._open.gone is not None else self._open

    async def host(self) -> None:
        """Keep a sandbox standing while it lasts; until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            try:
                await self._stand()
            except (WorkspaceGone, SandboxUnavailable, OSError) as fault:
                self._fault = str(fault)
                self._lost = fault if isinstance(fault, WorkspaceLost) else None
                self._answered.set()

    async def _stand(self) -> None:
        self._count += 1
        serial = f"{self._run.live.lease.lease_id}-{self._count}"
        run_dir, folder = self._furnish()
        opening = open_workspace(
            self._run.sandbox,
            run_dir=run_dir,
            folder=folder,
            serial=serial,
            network=self._run.network,
            brought=self._run.brought,
            lasting=True,
        )
        async with opening as found:
            await self.kept.restore(found, run_dir)
            self._open = found
            self._answered.set()
            await found.lost.wait()

    def _furnish(self) -> tuple[Path, Path]:
        run_dir = self._run.folder / f"run-{self._count}"
        run_dir.mkdir(parents=True)
        put_sender(self._run.sandbox, run_dir)
        (run_dir / "event.json").write_bytes(event_json(self._run.live.lease))
        (run_dir / "memory.json").write_bytes(orjson.dumps(self._run.live.lease.memory))
        return run_dir, self._run.folder / f"workspace-{self._count}"
