"""A frame that is too long becomes several, or says what it left out; nothing moves, no character is torn."""

from uuid import UUID

import pytest
from hypothesis import given, strategies as st
from trio.testing import MockClock

from sexton_actors.lease.transitions.frame_sizes import NAME_BYTES, TEXT_BYTES, bounded, pieces
from sexton_actors.protocol.lease import Activity, FrameIn, FramesTaken
from sexton_storage.documents import to_json
from sexton_storage.records.frames import NewFrame
from tests.worlds.actors import ActorsWorld

IT = UUID(int=1)
SLACK = 64
"""What a field's name, quotes and the notice of a cut may add."""


def frame(kind: str, **data: object) -> NewFrame:
    return NewFrame(IT, IT, kind, 7, data)


@given(st.text(), st.integers(4, 40))
def test_pieces_lose_nothing_and_tear_no_character(text: str, most: int) -> None:
    found = list(pieces(text, most))

    assert "".join(found) == text
    assert all(len(piece.encode()) <= most for piece in found)
    assert len(found) <= 1 + 2 * len(text.encode()) // most


def test_a_long_text_becomes_several_frames_in_its_place() -> None:
    text = "a" + "€" * TEXT_BYTES
    before, after = frame("tool_call_started", name="http"), frame("chunk", text="after")
    found = bounded([before, frame("chunk", text=text, tag="t"), after])

    assert found[0] is before
    assert found[-1] is after

    middle = found[1:-1]
    assert len(middle) == 4
    assert "".join(str(one.data["text"]) for one in middle) == text
    assert all(len(str(one.data["text"]).encode()) <= TEXT_BYTES for one in middle)
    assert [one.data.get("tag") for one in middle] == ["t", None, None, None]
    assert {(one.kind, one.at_ms, one.event_id) for one in middle} == {("chunk", 7, IT)}


def test_other_fields_that_are_too_long_are_left_out_and_it_is_said() -> None:
    arguments = {"body": "x" * TEXT_BYTES}
    [started] = bounded([frame("tool_call_started", name="http", args_redacted=arguments)])
    assert started.data == {"name": "http", "truncated": True, "bytes": TEXT_BYTES + 43}

    [completed] = bounded([frame("tool_call_completed", name="n" * TEXT_BYTES, ms=3, ok=True)])
    assert completed.data["name"] == "n" * NAME_BYTES
    assert (completed.data["ms"], completed.data["ok"], completed.data["truncated"]) == (3, True, True)

    first, *_ = bounded([frame("chunk", text="said", more="x" * TEXT_BYTES)])
    assert (first.data["text"], first.data["truncated"]) == ("said", True)


@given(
    st.lists(
        st.builds(lambda text: frame("chunk", text=text), st.text(max_size=20).map(lambda t: t * 9000))
        | st.builds(lambda n: frame("tool_call_started", name="x" * n), st.integers(0, 2 * TEXT_BYTES)),
        max_size=5,
    )
)
def test_no_frame_is_longer_than_it_may_be_and_short_ones_stay_as_they_are(frames: list[NewFrame]) -> None:
    found = bounded(frames)
    texts = [one.data["text"] for one in found if one.kind == "chunk"]
    assert all(len(str(text).encode()) <= TEXT_BYTES for text in texts)

    others = [to_json(one.data) for one in found if one.kind != "chunk"]
    assert all(len(text) <= TEXT_BYTES + SLACK for text in others)
    assert bounded(found) == found


async def test_a_runners_long_text_is_kept_in_several_frames(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    text = "ü" * TEXT_BYTES
    activity = Activity(runner_id, (FrameIn("chunk", None, {"text": text}),))
    assert await world.system.ask("lease", grant.lease.id, activity) == FramesTaken(1)

    shown = [one for one in world.frames(zombie_id) if one.kind == "chunk"]
    assert [len(one.data["text"]) for one in shown] == [TEXT_BYTES // 2, TEXT_BYTES // 2]
    assert "".join(one.data["text"] for one in shown) == text


@pytest.mark.parametrize(("more", "is_whole"), [(0, True), (1, False)])
def test_what_has_sixty_four_kilobytes_is_whole(more: int, is_whole: bool) -> None:
    data = {"a": "x" * (65_536 - len(to_json({"a": ""})) + more)}
    [other] = bounded([NewFrame(IT, IT, "tool_call_progress", 7, data)])
    texts = bounded([frame("chunk", text="x" * (65_536 + more))])

    assert (other.data == data) is is_whole
    assert is_whole or other.data == {"truncated": True, "bytes": 65_537}
    assert [len(one.data["text"]) for one in texts] == ([65_536] if is_whole else [65_536, 1])


@pytest.mark.parametrize(
    "name",
    [
        *("name", "elapsed_ms", "ms", "ok"),
        *("host", "port", "verdict", "why", "bytes_in", "bytes_out"),
    ],
)
def test_what_a_kind_has_to_have_stays_and_is_cut(name: str) -> None:
    [small] = bounded([NewFrame(IT, IT, "connection", 7, {name: "x" * 1_025, "big": "y" * 70_000})])

    assert small.data[name] == "x" * 1_024
    assert set(small.data) == {name, "truncated", "bytes"}


def test_half_a_surrogate_pair_is_cut_like_any_character() -> None:
    text = "\ud800" * 30_000
    cut = bounded([frame("chunk", text=text)])

    assert "".join(one.data["text"] for one in cut) == text
