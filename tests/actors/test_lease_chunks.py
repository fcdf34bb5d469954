"""Pieces of text that follow each other become one frame, and nothing is lost or moved by it."""

from uuid import UUID

from hypothesis import given, strategies as st
from trio.testing import MockClock

from sexton_actors.lease.transitions.chunks import MAX_CHUNK_CHARS, coalesced
from sexton_actors.protocol.lease import Activity, FrameIn, FramesTaken
from sexton_storage.records.frames import NewFrame
from tests.worlds.actors import ActorsWorld

IT = UUID(int=1)


def chunk(text: str, at: int = 0) -> NewFrame:
    return NewFrame(IT, IT, "chunk", at, {"text": text})


def other(kind: str = "tool_call_started") -> NewFrame:
    return NewFrame(IT, IT, kind, 0, {"name": "http"})


FRAMES = st.lists(
    st.builds(chunk, st.text(max_size=5000), st.integers(0, 9))
    | st.just(other())
    | st.just(NewFrame(IT, IT, "chunk", 0, {"text": "a", "more": 1}))
    | st.just(NewFrame(IT, IT, "chunk", 0, {"text": 7}))
    | st.just(NewFrame(IT, IT, "chunk", 0, {})),
    max_size=30,
)


def told(frames: tuple[NewFrame, ...] | list[NewFrame]) -> list[object]:
    """What a reader has in the end: all text in its place between all else."""
    parts: list[object] = [""]
    for frame in frames:
        text = frame.data.get("text")
        if frame.kind == "chunk" and len(frame.data) == 1 and isinstance(text, str):
            parts[-1] = f"{parts[-1]}{text}"
        else:
            parts += [frame, ""]
    return parts


@given(FRAMES)
def test_a_reader_has_the_same_in_the_end(frames: list[NewFrame]) -> None:
    joined = coalesced(frames)
    assert told(joined) == told(frames)
    assert coalesced(joined) == joined
    assert len(joined) <= len(frames)

    longest = max((len(str(f.data.get("text"))) for f in frames), default=0)
    assert all(len(str(f.data.get("text"))) <= max(MAX_CHUNK_CHARS, longest) for f in joined)


def test_chunks_are_joined_up_to_a_bound_and_say_when_they_began() -> None:
    assert coalesced([chunk("a", 1), chunk("b", 2), other(), chunk("c", 3)]) == (
        chunk("ab", 1),
        other(),
        chunk("c", 3),
    )

    long = "x" * MAX_CHUNK_CHARS
    assert coalesced([chunk("a"), chunk(long), chunk("b")]) == (chunk("a"), chunk(long), chunk("b"))
    assert coalesced([chunk(long + "y"), chunk("b")]) == (chunk(long + "y"), chunk("b"))


async def test_a_model_that_streams_word_by_word_writes_one_frame_a_call(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    words = tuple(FrameIn("chunk", None, {"text": f"{n} "}) for n in range(256))
    taken = await world.system.ask("lease", grant.lease.id, Activity(runner_id, words))
    assert taken == FramesTaken(256)

    last = world.frames(zombie_id)[-1]
    assert last.data == {"text": "".join(f"{n} " for n in range(256))}
    assert len(world.frames(zombie_id)) == 3
