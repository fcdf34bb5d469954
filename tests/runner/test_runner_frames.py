"""Frames are joined, cut and, when there are far too many, thinned."""

from typing import Any

from hypothesis import given, strategies as st

from sexton_runner.frames import (
    MAX_CALL_BYTES,
    MAX_CHUNK_CHARS,
    MAX_QUEUED_FRAMES,
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


def test_a_full_queue_forgets_the_oldest_step_when_there_is_nothing_else() -> None:
    queue = FrameQueue(capacity=2)
    for name in "abc":
        queue.put(step_started(name))

    assert [frame["name"] for batch in drained_frames(queue) for frame in batch] == ["b", "c"]


@given(st.lists(st.sampled_from("cspt"), max_size=60))
def test_what_is_left_of_too_much_is_in_order_and_begins_with_what_was_spared_last(kinds: list[str]) -> None:
    queue, shown = FrameQueue(capacity=5), 0
    for number, kind in enumerate(kinds):
        if kind == "t":
            shown += len(queue.take())
        else:
            queue.put(step_progress(str(number), 1) if kind == "p" else step_started(str(number)))
        assert len(queue) <= 5
    left = [int(str(frame["name"])) for batch in drained_frames(queue) for frame in batch]

    assert left == sorted(left)
    assert shown + len(left) + queue.dropped == len(kinds) - kinds.count("t")


class Counted(dict[str, Any]):
    """A frame that counts how often somebody looks at it."""

    looks = 0

    def __getitem__(self, key: str) -> Any:
        Counted.looks += 1
        return super().__getitem__(key)


def test_a_full_queue_takes_the_next_frame_without_looking_through_the_others() -> None:
    queue = FrameQueue()
    for number in range(MAX_QUEUED_FRAMES):
        queue.put(Counted(step_started(str(number))))
    Counted.looks = 0

    for number in range(100):
        queue.put(Counted(step_started(str(number))))

    assert Counted.looks <= 5 * 100
