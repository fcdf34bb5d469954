"""Whether a file of a run is kept."""

from sexton_storage.records.artefacts import ARTEFACTS_OF_ATTEMPT, Artefact, NotKept
from sexton_storage.records.blobs import Blob, BlobState


def keep(
    artefact: Artefact, known: Artefact | None, blob: Blob | None, of_attempt: int, *, held: bool
) -> Artefact | NotKept:
    """Give the artefact that there is then: a new one, or ``known``, which has its name in this attempt.

    >>> from msgspec.structs import replace
    >>> from uuid import UUID
    >>> one, two, lease = UUID(int=1), UUID(int=2), UUID(int=3)
    >>> blob = Blob(one, two, lease, bytes(32), 9, 9, BlobState.KEPT, 0, 0, 0)
    >>> new = Artefact(one, two, two, two, lease, 1, "a", "text/plain", one, bytes(32), 9, 0)
    >>> keep(new, None, blob, 0, held=True) is new, keep(new, None, blob, 0, held=False)
    (True, <NotKept.FENCED: 'fenced'>)
    >>> keep(new, None, None, 0, held=True), keep(new, None, blob, ARTEFACTS_OF_ATTEMPT, held=True)
    (<NotKept.NOT_SENT: 'not_sent'>, <NotKept.FULL: 'full'>)
    >>> keep(new, None, replace(blob, lease_id=one), 0, held=True)
    <NotKept.NOT_SENT: 'not_sent'>

    What is there is not overwritten.

    >>> known = replace(new, id=two)
    >>> keep(new, known, blob, ARTEFACTS_OF_ATTEMPT, held=True) is known
    True
    >>> keep(new, replace(known, sha256=bytes([1]) * 32), blob, 1, held=True)
    <NotKept.TAKEN: 'taken'>
    """
    if not held:
        return NotKept.FENCED
    if blob is None or blob.state is not BlobState.KEPT or blob.lease_id != artefact.lease_id:
        return NotKept.NOT_SENT
    if known is not None:
        same = (known.sha256, known.size) == (blob.sha256, blob.size)
        return known if same else NotKept.TAKEN
    return NotKept.FULL if of_attempt >= ARTEFACTS_OF_ATTEMPT else artefact
