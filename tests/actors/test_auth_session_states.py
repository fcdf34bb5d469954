"""Auth sessions do what docs/reference/states.md says, and survive races, outages and restarts."""

from collections.abc import Callable
from uuid import UUID

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sexton_actors.auth_session.transitions import (
    EXPIRED,
    MAX_WRONG_CODES,
    REPEAT_MS,
    SESSION_TTL_MS,
    decide,
    opened,
    status_at,
)
from sexton_actors.protocol import auth_session as m
from sexton_actors.refusal import Refusal
from sexton_actors.terms import PRUNE_INTERVAL_S
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.auth_sessions import AuthSession, AuthSessionStatus, SessionBounds
from sexton_storage.terms import AUTH_SESSION_KEEP_MS
from tests.worlds.actors import ActorsWorld, open_actors_world
from tests.worlds.states_page import cells

NOW = 1_000_000
CODE, ME, OTHER = b"code", b"me", b"other"
COMPLETE = m.Complete(b"sealed", "user:1")
APPROVE = m.Approve("d", "c", "n", CODE, "user:1")
RIGHT, WRONG = m.Verify(CODE, ME), m.Verify(b"wrong", ME)


def session(status: str) -> AuthSession:
    """One in that state, ten seconds old at ``NOW``."""
    begun = NOW - 10_000
    pending = opened(UUID(int=1), m.Open("key", None), begun)
    approved = decide(pending, APPROVE, begun).session
    assert approved is not None
    by_state = {
        "pending": pending,
        "verification_pending": approved,
        "complete": decide(pending, COMPLETE, begun).session,
        "consumed": decide(approved, RIGHT, begun).session,
        "expired": replace(approved, expires_at=NOW),
        "aborted": decide(approved, m.Abort(), begun).session,
    }
    found = by_state[status]
    assert found is not None
    return found


CALLS: dict[str, Callable[[AuthSession], tuple[AuthSession, m.Ask, int]]] = {
    "complete": lambda s: (s, COMPLETE, NOW),
    "approve": lambda s: (s, APPROVE, NOW),
    "approve, the terminal sent no key": lambda s: (replace(s, public_key=None), APPROVE, NOW),
    "verify, right": lambda s: (s, RIGHT, NOW),
    "verify, right, by another or after 60 s": lambda s: (s, m.Verify(CODE, OTHER), NOW),
    "verify, wrong": lambda s: (s, WRONG, NOW),
    "verify, wrong for the fifth time": lambda s: (replace(s, wrong_codes=MAX_WRONG_CODES - 1), WRONG, NOW),
    "read": lambda s: (s, m.Read(), NOW),
    "abort": lambda s: (s, m.Abort(), NOW),
}


@pytest.mark.parametrize(("call", "state", "cell"), cells("Auth session"))
def test_a_session_does_what_its_table_says(call: str, state: str, cell: str) -> None:
    before, message, now = CALLS[call](session(state))
    decision = decide(before, message, now)
    if isinstance(decision.reply, Refusal):
        assert cell == f"`{decision.reply.code}`"
    else:
        assert cell == ("nothing" if decision.session is None else str(decision.session.status))
    if decision.session is not None:
        assert decision.session.version == before.version + 1


def test_every_state_and_every_call_stands_in_the_table() -> None:
    rows, columns = {row for row, _, _ in cells("Auth session")}, {c for _, c, _ in cells("Auth session")}

    assert rows == set(CALLS)
    assert columns == {*(str(status) for status in AuthSessionStatus), EXPIRED}


def test_approval_gives_five_minutes_more() -> None:
    pending = opened(UUID(int=1), m.Open("key", None), 0)
    for message in (APPROVE, COMPLETE):
        changed = decide(pending, message, SESSION_TTL_MS - 1).session
        assert changed is not None
        assert changed.expires_at == 2 * SESSION_TTL_MS - 1
        assert changed.approved_by == "user:1"


def test_what_was_completed_cannot_be_completed_when_its_time_is_over_either() -> None:
    late = replace(session("complete"), expires_at=NOW)
    reply = decide(late, COMPLETE, NOW).reply

    assert isinstance(reply, Refusal)
    assert reply.code == "UZ-AUTH-007"


def test_a_token_is_in_the_first_answer_and_in_no_other() -> None:
    complete = session("complete")
    first = decide(complete, m.Read(), NOW)
    assert first.reply == m.Seen(complete, "complete", b"sealed")
    assert first.session is not None
    assert first.session.sealed_token is None
    assert decide(first.session, m.Read(), NOW).reply == m.Seen(first.session, "consumed")

    glance = decide(complete, m.Read(take=False), NOW)
    assert (glance.session, glance.reply) == (None, m.Seen(complete, "complete"))


def test_the_same_terminal_may_ask_again_for_a_minute() -> None:
    consumed = session("consumed")
    consumed_at = consumed.consumed_at or 0
    given = m.HandedOver("d", "c", "n")
    assert decide(consumed, RIGHT, consumed_at + REPEAT_MS - 1).reply == given

    for message, at in ((RIGHT, REPEAT_MS), (WRONG, 1), (m.Verify(CODE, OTHER), 1)):
        late = decide(consumed, message, consumed_at + at)
        assert isinstance(late.reply, Refusal)
        assert (late.session, late.reply.code) == (None, "UZ-AUTH-012")


def test_four_wrong_codes_leave_one_and_the_fifth_leaves_nothing() -> None:
    current = session("verification_pending")
    for left in (4, 3, 2, 1):
        decision = decide(current, WRONG, NOW)
        assert decision.reply.facts == {"attempts_left": left}
        assert decision.session is not None
        current = decision.session
    last = decide(current, WRONG, NOW)
    assert last.session is not None
    assert last.session.status is AuthSessionStatus.ABORTED
    assert (last.session.ciphertext, last.session.nonce) == (None, None)

    right = decide(last.session, RIGHT, NOW).reply
    assert right.code == "UZ-AUTH-013"


def test_a_session_is_what_the_terminal_asked_for() -> None:
    asked = m.Open("key", "laptop", b"origin")

    assert opened(UUID(int=1), asked, 5) == AuthSession(
        id=UUID(int=1),
        status=AuthSessionStatus.PENDING,
        version=1,
        created_at=5,
        expires_at=5 + 300_000,
        public_key="key",
        token_name="laptop",
        origin=b"origin",
    )


def test_the_minute_of_a_lost_answer_has_sixty_seconds() -> None:
    consumed = replace(session("consumed"), consumed_at=NOW)

    assert decide(consumed, RIGHT, NOW + 59_999).reply == m.HandedOver("d", "c", "n")
    assert decide(consumed, RIGHT, NOW + 60_000).reply.code == "UZ-AUTH-012"
    assert decide(replace(consumed, consumed_at=None), RIGHT, NOW).reply.code == "UZ-AUTH-012"


def test_what_was_over_before_its_time_stays_what_it_was() -> None:
    taken = decide(session("complete"), m.Read(), NOW).session
    assert taken is not None

    again = decide(taken, RIGHT, NOW).reply

    assert status_at(taken, taken.expires_at) == "consumed"
    assert (taken.consumed_at, taken.sealed_token) == (NOW, None)
    assert isinstance(again, Refusal)
    assert (again.code, again.facts) == ("UZ-AUTH-012", {})
    assert again.detail == "The token was handed over before."


def test_what_is_ended_keeps_the_count_of_wrong_codes_and_ends_once() -> None:
    open_still = replace(session("verification_pending"), wrong_codes=3, sealed_token=b"sealed")
    done = decide(open_still, m.Abort(), NOW)
    never_wrong = decide(session("pending"), m.Abort(), NOW).session
    late = decide(open_still, m.Abort(), open_still.expires_at)

    assert done.session is not None
    assert never_wrong is not None
    assert (done.reply, done.session.wrong_codes, never_wrong.wrong_codes) == (True, 3, 0)
    assert done.session.sealed_token is None
    assert (late.session, late.reply) == (None, False)


def test_what_a_browser_left_out_is_handed_over_as_nothing() -> None:
    bare = replace(session("verification_pending"), dashboard_public_key=None, ciphertext=None, nonce=None)

    assert decide(bare, RIGHT, NOW).reply == m.HandedOver("", "", "")


# --- the actor ----------------------------------------------------------------------------------------------


async def begin(world: ActorsWorld) -> UUID:
    session_id = world.actors_world.new_id()
    made = await world.system.ask("session", session_id, m.Open("key", "laptop"))
    assert isinstance(made, AuthSession)
    return session_id


async def test_a_session_outlives_its_server(autojump_clock: MockClock) -> None:
    async with open_actors_world() as first:
        session_id = await begin(first)
        await first.system.ask("session", session_id, APPROVE)
        wrong = await first.system.ask("session", session_id, WRONG)
        assert isinstance(wrong, Refusal)

        kept = first.storage.tables
    async with open_actors_world() as second:
        second.storage.tables.auth_sessions.update(kept.auth_sessions)
        again = await second.system.ask("session", session_id, WRONG)

        assert isinstance(again, Refusal)
        assert again.facts == {"attempts_left": 3}
        assert await second.system.ask("session", session_id, RIGHT) == m.HandedOver("d", "c", "n")


async def test_a_session_that_nobody_made_is_not_found(world: ActorsWorld, autojump_clock: MockClock) -> None:
    for message in (COMPLETE, APPROVE, RIGHT, m.Read(), m.Abort()):
        reply = await world.system.ask("session", world.actors_world.new_id(), message)
        assert isinstance(reply, Refusal)
        assert reply.code == "UZ-AUTH-005"


async def test_guesses_at_the_same_time_are_counted_one_by_one(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    session_id = await begin(world)
    await world.system.ask("session", session_id, APPROVE)
    codes: list[str] = []

    async def guess() -> None:
        reply = await world.system.ask("session", session_id, WRONG)
        assert isinstance(reply, Refusal)
        codes.append(reply.code)

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(guess)

    assert sorted(codes) == ["UZ-AUTH-011"] * 4 + ["UZ-AUTH-013"] * 16


async def test_what_another_node_did_is_decided_on_again(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    session_id = await begin(world)
    rows = world.storage.tables.auth_sessions
    elsewhere = decide(rows[session_id], APPROVE, world.actors_world.now_ms()).session
    assert elsewhere is not None

    rows[session_id] = elsewhere
    late = await world.system.ask("session", session_id, COMPLETE)
    assert isinstance(late, Refusal)
    assert late.code == "UZ-AUTH-015"

    rows[session_id] = replace(elsewhere, status=AuthSessionStatus.ABORTED, version=elsewhere.version + 1)
    await trio.sleep(1)
    seen = await world.system.ask("session", session_id, m.Read())
    assert isinstance(seen, m.Seen)
    assert seen.status == "aborted"


async def test_an_outage_loses_no_guess_and_gives_nothing_away(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    session_id = await begin(world)
    await world.system.ask("session", session_id, APPROVE)
    world.faults.away = True
    for message in (RIGHT, WRONG, m.Abort()):
        with pytest.raises(StorageUnavailable):
            await world.system.ask("session", session_id, message)
    world.faults.away = False

    assert await world.system.ask("session", session_id, RIGHT) == m.HandedOver("d", "c", "n")


async def test_a_session_expires_while_nobody_looks_and_is_gone_in_time(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    session_id = await begin(world)
    await trio.sleep(SESSION_TTL_MS / 1000)
    seen = await world.system.ask("session", session_id, m.Read())
    assert isinstance(seen, m.Seen)
    assert seen.status == EXPIRED

    await trio.sleep(AUTH_SESSION_KEEP_MS / 1000 + 2 * PRUNE_INTERVAL_S)
    assert world.storage.tables.auth_sessions == {}

    gone = await world.system.ask("session", session_id, m.Read())
    assert isinstance(gone, Refusal)
    assert gone.code == "UZ-AUTH-005"


async def test_one_more_than_may_be_open_is_turned_away(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    first = await begin(world)
    row = world.storage.tables.auth_sessions[first]
    for _ in range(SessionBounds().all - 1):
        other = world.actors_world.new_id()
        world.storage.tables.auth_sessions[other] = replace(row, id=other)
    full = await world.system.ask("session", world.actors_world.new_id(), m.Open(None, None))

    assert isinstance(full, Refusal)
    assert full.code == "UZ-AUTH-008"
    assert await world.system.ask("session", first, m.Abort()) is True
    assert isinstance(
        await world.system.ask("session", world.actors_world.new_id(), m.Open(None, None)), AuthSession
    )
