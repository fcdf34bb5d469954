"""A bulk job as its actor holds it."""

from sexton_actors.held.record import Held
from sexton_actors.refusal import Refusal
from sexton_storage.records.jobs import Job


class HeldJob(Held[Job]):
    """Any node may change it: it is read before each decision, and each write names its version."""

    __slots__ = ()

    subject = "The job"

    def unknown(self) -> Refusal:
        return Refusal("UZ-JOB-001", f"There is no job {self.id}.")

    async def _read(self) -> Job | None:
        return await self.world.storage.jobs.load(self.id)

    def _version(self, record: Job) -> int:
        return record.version

    def _may_have_changed(self, _mark: int) -> bool:
        return True

    async def save(self, job: Job) -> Job:
        """Raises Conflict where another node was first."""
        await self.world.storage.jobs.save(job)
        return self.adopt(job)
