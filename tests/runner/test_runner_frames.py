"""Frames are joined, cut and, when there are far too many, thinned."""

from hypothesis import given, strategies as st

from sexton_runner.frames import (
    MAX_CALL_BYTES,
    MAX_CHUNK_CHARS,
    FrameQueue,
    chunk,
    step_completed,
    step_progress,
    step_started,
)
from sexton_runner.wire import MAX_FRAMES_PER_CALL


def drained(queue: FrameQueue) -> list[list[object]]:
    batches: list[list[object]] = []
    while batch := queue.take():
        batches.append(list(batch))
    return batches


@given(st.lists(st.text(max_size=3 * MAX_CHUNK_CHARS), max_size=12))
def test_chunks_lose_nothing_and_none_is_longer_than_it_may_be(texts: list[str]) -> None:
    queue = FrameQueue()
    for text in texts:
        queue.put(chunk(text))
    sent = [str(frame["text"]) for batch in drained_frames(queue) for frame in batch]
    assert "".join(sent) == "".join(texts)
    assert all(0 < len(text) <= MAX_CHUNK_CHARS for text in sent)


def drained_frames(queue: FrameQueue) -> list[list[dict[str, object]]]:
    return [[dict(frame) for frame in batch] for batch in iter(queue.take, [])]


def test_neighbouring_chunks_share_a_frame_and_steps_keep_their_place() -> None:
    queue = FrameQueue()
    for frame in (chunk("a"), chunk("b"), step_started("s"), chunk("c"), step_completed("s", 5, ok=True)):
        queue.put(frame)
    assert drained_frames(queue) == [
        [
            {"kind": "chunk", "text": "ab"},
            {"kind": "tool_call_started", "name": "s", "args_redacted": {}},
            {"kind": "chunk", "text": "c"},
            {"kind": "tool_call_completed", "name": "s", "ms": 5, "ok": True},
        ]
    ]


def test_a_call_carries_no_more_frames_than_the_contract_allows() -> None:
    queue = FrameQueue()
    for number in range(MAX_FRAMES_PER_CALL + 1):
        queue.put(step_started(str(number)))
    assert [len(batch) for batch in drained(queue)] == [MAX_FRAMES_PER_CALL, 1]


def test_a_call_stays_far_below_the_greatest_body() -> None:
    queue = FrameQueue()
    for _ in range(200):
        queue.put(chunk("\x01" * MAX_CHUNK_CHARS))  # Each becomes six bytes of JSON.
        queue.put(step_progress("s", 1))
    sizes = [sum(len(str(frame)) for frame in batch) for batch in drained(queue)]
    assert len(sizes) > 1
    assert max(sizes) < 2 * MAX_CALL_BYTES


def test_a_full_queue_forgets_output_before_it_forgets_steps() -> None:
    queue = FrameQueue(capacity=3)
    queue.put(step_started("a"))
    queue.put(chunk("spare me"))
    queue.put(step_completed("a", 1, ok=True))
    queue.put(step_started("b"))
    queue.put(step_completed("b", 1, ok=True))
    kept = [frame["name"] for batch in drained_frames(queue) for frame in batch]
    assert kept == ["a", "b", "b"]
    assert queue.dropped == 2
