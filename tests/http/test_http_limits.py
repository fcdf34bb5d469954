"""Rates, ceilings and cursors."""

from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from sexton_http.answers import Problem
from sexton_http.bodies.cursors import Place, decode, encode
from sexton_http.ceilings import Ceiling, Full
from sexton_http.gateway.limits import BURST_S, MAX_BUCKETS, Gcra
from sexton_http.routes.events import parse_since
from sexton_storage.records.tenants import PlanTier
from sexton_storage.records.users import Role
from tests.worlds.http import HttpWorld, open_http_world


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_of_twice_the_rate_passes_and_the_next_waits() -> None:
    clock = Clock()
    limiter = Gcra(clock)
    verdicts = [limiter.admit("a", 20) for _ in range(41)]
    assert [verdict.allowed for verdict in verdicts] == [True] * 40 + [False]
    assert (verdicts[0].burst, verdicts[0].remaining, verdicts[39].remaining) == (40, 39, 0)
    assert verdicts[40].wait_s == 1
    assert limiter.admit("b", 20).allowed

    clock.now += 0.05
    assert limiter.admit("a", 20).allowed
    assert not limiter.admit("a", 20).allowed


@given(st.lists(st.floats(0, 0.5), min_size=1, max_size=200), st.integers(1, 50))
def test_over_any_time_no_more_pass_than_the_rate_and_one_burst(gaps: list[float], rate: int) -> None:
    clock = Clock()
    limiter = Gcra(clock)
    passed = 0
    for gap in gaps:
        clock.now += gap
        passed += limiter.admit("a", rate).allowed

    assert passed <= rate * (sum(gaps) + BURST_S) + 1


def test_the_buckets_of_a_flood_are_bounded() -> None:
    limiter = Gcra(Clock())
    for number in range(MAX_BUCKETS + 10):
        limiter.admit(number, 10)

    assert len(limiter._empty_at) <= MAX_BUCKETS


def test_a_ceiling_counts_who_is_in() -> None:
    ceiling = Ceiling(1)
    place = ceiling.enter()
    with pytest.raises(Full):
        ceiling.enter()

    place.leave()
    place.leave()
    assert ceiling.now == 0

    ceiling.enter()
    assert repr(ceiling) == "<Ceiling 1/1>"


@given(st.integers(0, 2**53), st.uuids(), st.none() | st.integers(0, 2**53))
def test_a_cursor_comes_back_as_it_was(created_at: int, row: UUID, since: int | None) -> None:
    place = Place(created_at, row, "f", since)
    text = encode(place)

    assert "=" not in text
    assert decode(text, "f") == place


@given(st.text(max_size=60))
def test_a_text_that_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(Problem) as caught:
        decode(text, "f")
    assert caught.value.code == "UZ-REQ-001"


def test_a_cursor_is_bound_to_its_filters() -> None:
    text = encode(Place(1, UUID(int=1), "f"))
    with pytest.raises(Problem, match="other filters"):
        decode(text, "g")


@pytest.mark.parametrize("text", ["", "x", "7", "7w", "-7d", "2024-13-01T00:00:00Z", "2024-01-01", "1e9s"])
def test_a_since_that_says_no_time_is_refused(text: str) -> None:
    with pytest.raises(Problem):
        parse_since(text, 0)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("7d", 1_000_000_000 - 7 * 86_400_000),
        ("1970-01-01T01:00:00.5+01:00", 500),
        ("1970-01-01t00:00:01z", 1000),
    ],
)
def test_a_since_is_a_duration_or_a_time(text: str, at: int) -> None:
    assert parse_since(text, 1_000_000_000) == at


async def test_a_free_tenant_is_told_its_rate_and_held_to_it(world: HttpWorld) -> None:
    world.set_plan(PlanTier.FREE)
    answers = [await world.get(f"{world.ws}/zombies") for _ in range(60)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert answers[0].headers["ratelimit-policy"] == '"default";q=40;w=2'
    assert answers[0].headers["ratelimit"].startswith('"default";r=39;t=')

    for answer in refused:
        assert answer.json()["error_code"] == "UZ-REQ-006"
        assert int(answer.headers["retry-after"]) >= 1
        assert '"default";r=0' in answer.headers["ratelimit"]


async def test_an_enterprise_tenant_has_no_rate(world: HttpWorld) -> None:
    answer = await world.get(f"{world.ws}/zombies")
    assert "ratelimit" not in answer.headers


async def test_whoever_guesses_at_tokens_is_slowed_down_by_his_address() -> None:
    async with open_http_world(address_rate=1) as world:
        answers = [await world.get("/v1/api-keys", f"zmb_t_{number:064x}") for number in range(4)]

        assert [answer.status_code for answer in answers] == [401, 401, 429, 429]
        assert (await world.get("/v1/api-keys")).status_code == 200


async def test_whoever_enrols_with_a_platform_token_is_counted_by_the_token() -> None:
    """A fleet behind one address is no crowd of guessers, and takes nothing from another admin's."""
    async with open_http_world(address_rate=1, plan_rates=dict.fromkeys(PlanTier, 2)) as world:
        body = {"host_id": "h", "sandbox_tier": "bubblewrap"}

        async def enrolled(token: str) -> list[int]:
            return [(await world.post("/v1/runners", body, token)).status_code for _ in range(5)]

        first = await enrolled(world.admin_token())
        other = await enrolled(world.user_token(Role.ADMIN, platform_admin=True))

    assert (first[:4], other[:4]) == ([201] * 4, [201] * 4)
    assert (first[4], other[4]) == (429, 429)


async def test_at_the_ceiling_requests_are_shed_but_never_the_health_check() -> None:
    async with open_http_world(max_in_flight=0) as world:
        shed = await world.get("/v1/api-keys")
        assert (shed.status_code, shed.json()["error_code"]) == (429, "UZ-API-001")
        assert int(shed.headers["retry-after"]) >= 1

        for path in ("/healthz", "/readyz", "/metrics"):
            assert (await world.get(path, None)).status_code == 200
