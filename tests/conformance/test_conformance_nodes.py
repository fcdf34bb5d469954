"""Nodes: who is there, and questions that one puts to another; taken once, answered once, forgotten soon."""

from uuid import UUID

from msgspec.structs import replace

from sexton_storage.records.nodes import OPEN_MAX, NodeQuestion, NodeRecord
from tests.worlds.storage import StorageWorld, new_id

TERM_MS = 60_000


def question_to(node_id: UUID, term_ms: int = TERM_MS) -> NodeQuestion:
    return NodeQuestion(new_id(), node_id, new_id(), b"what?", 0, term_ms)


async def test_a_node_is_listed_from_its_first_beat_until_it_leaves(world: StorageWorld) -> None:
    store = world.storage.nodes
    one, other = (NodeRecord(new_id(), host, "1.0", 5, 0) for host in ("a", "b"))
    await store.beat(one)
    await store.beat(other)
    await store.beat(one)
    seen = {node.id: node for node in await store.list()}
    await store.leave(one.id)
    await store.leave(new_id())

    assert set(seen) == {one.id, other.id}
    assert [replace(seen[node.id], heard_at=0) for node in (one, other)] == [one, other]
    assert seen[one.id].heard_at >= seen[other.id].heard_at > 0
    assert [node.id for node in await store.list()] == [other.id]


async def test_a_question_is_taken_once_and_its_answer_is_given_once(world: StorageWorld) -> None:
    store, node_id = world.storage.nodes, new_id()
    first, second = question_to(node_id), question_to(node_id)
    late, foreign = question_to(node_id, 0), question_to(new_id())
    asked = [await store.ask(one) for one in (first, second, late, foreign)]
    await store.answer(first.id, b"too early")
    nothing = await store.collect(first.id)
    taken = [*await store.take(node_id, limit=1), *await store.take(node_id, limit=9)]
    again = await store.take(node_id, limit=9)
    await store.answer(first.id, b"so")
    await store.answer(new_id(), b"who?")

    assert asked == [True] * 4
    assert nothing is None
    assert {(one.id, one.asker_id, one.question) for one in taken} == {
        (one.id, one.asker_id, b"what?") for one in (first, second)
    }
    assert {one.expires_at - one.asked_at for one in taken} == {TERM_MS}
    assert again == []
    assert [await store.collect(one.id) for one in (first, first, second)] == [b"so", None, None]


async def test_there_are_only_so_many_questions_at_once(world: StorageWorld) -> None:
    store, node_id = world.storage.nodes, new_id()
    for _ in range(OPEN_MAX):
        assert await store.ask(question_to(node_id))
    full = await store.ask(question_to(node_id))
    [taken] = await store.take(node_id, limit=1)
    still = await store.ask(question_to(node_id))
    await store.answer(taken.id, b"so")

    assert (full, still) == (False, False)
    assert await store.ask(question_to(node_id))
