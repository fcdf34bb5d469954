"""Contents as runners read them: part by part, each an answer of its own."""

from typing import Any

from sexton_http.answers import Answer, Problem
from sexton_http.gateway.call import Call
from sexton_storage.objects.store import ObjectStoreFault
from sexton_storage.records.blobs import PART_BYTES, Blob

BYTES = "application/octet-stream"
STORE_WAIT_S = 5


async def part_of(call: Call[Any, Any], blob: Blob, offset: int) -> Answer:
    """Give the bytes from ``offset`` on, at most 1 MiB.

    Raises ContentGone, and Problem UZ-FILE-009 or UZ-FILE-013.
    """
    if offset >= blob.size:
        raise Problem("UZ-FILE-009", f"there are {blob.size} bytes")
    await call.reserve(PART_BYTES)
    end = min(offset + PART_BYTES, blob.size)
    try:
        parts = [piece async for piece in call.services.contents.read(blob, offset, end)]
    except ObjectStoreFault as fault:
        raise Problem("UZ-FILE-013", str(fault), wait_s=STORE_WAIT_S) from fault
    call.services.metrics.file_bytes.labels("out").inc(end - offset)
    return Answer(200, ((b"content-type", BYTES.encode()),), b"".join(parts))
