"""The files that an event brings, as the runner of the event reads them."""

from sexton_http.answers import Answer, Problem
from sexton_http.bodies.fencing_token import FENCED, TAG, Token
from sexton_http.bodies.shapes import Count, Query
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, NoBody, operation
from sexton_http.routes.shared.content_parts import BYTES, part_of
from sexton_http.routes.shared.held_lease import held_lease
from sexton_storage.contents import ContentGone

LOST = "UZ-FILE-014"


class FileQuery(Query):
    number: Count = 0
    """The place of the file in the lease's `event.files`, from 0."""
    offset: Count = 0
    fencing_token: Token = None


@operation(
    "GET",
    "/v1/runners/me/leases/{lease_id}/files/content",
    tag=TAG,
    auth=Auth.RUNNER,
    media=BYTES,
    codes=(*FENCED, LOST, "UZ-FILE-009", "UZ-FILE-013"),
)
async def read_event_file(call: Call[NoBody, FileQuery]) -> Answer:
    """Give the next bytes of a file that the event of a lease brings, at most 1 MiB of them."""
    query, storage = call.query, call.ctx.world.storage
    lease = await held_lease(call, call.id("lease_id"), query.fencing_token)
    lost = Problem(LOST, f"event {lease.event_id} has no file {query.number}, or it is not kept any more")
    file = await storage.event_files.load(lease.event_id, query.number)
    blob = None if file is None else await storage.blobs.load(file.blob_id)
    if blob is None:
        raise lost
    try:
        return await part_of(call, blob, query.offset)
    except ContentGone as gone:
        raise lost from gone
