"""Says why a content is not taken."""

from sexton_http.answers import Problem
from sexton_http.gateway.services import Services
from sexton_storage.records.blobs import BLOBS_OF_LEASE, NoRoom


def no_room(services: Services, why: NoRoom) -> Problem:
    """Give the problem UZ-FILE-002 or UZ-FILE-003, and count it."""
    bounds = services.ctx.world.files
    if why is NoRoom.QUOTA:
        code = "UZ-FILE-002"
        detail = (
            f"the workspace may keep {bounds.quota_bytes} bytes of files; delete some, or raise --files-quota"
        )
    else:
        code, detail = "UZ-FILE-003", f"{BLOBS_OF_LEASE} files were sent that became nothing yet"
    services.metrics.files.labels(code).inc()
    return Problem(code, detail)
