"""What comes next for a batch of an archive, decided without a database."""

import pytest

from sexton_storage.decisions.archives import Step, next_step
from sexton_storage.records.archives import ArchiveStatus


@pytest.mark.parametrize(
    ("status", "step"),
    [
        (ArchiveStatus.COLLECTED, Step.WRITE),
        (ArchiveStatus.WRITTEN, Step.READ_BACK),
        (ArchiveStatus.VERIFIED, Step.DROP),
        (ArchiveStatus.DROPPED, None),
    ],
)
def test_a_batch_is_written_then_read_back_and_only_then_dropped(
    status: ArchiveStatus, step: Step | None
) -> None:
    assert next_step(status) is step
