"""What the mixed day says of what it saw, and a client whose connections may fail."""

import asyncio
import math
from itertools import pairwise

import pytest

from bench.day import check, phases_from
from bench.day_clients import CROWDED, HUNG_UP, UNANSWERED, Lines, Phase, Reply
from bench.day_figures import Day, figures, level, levels, seconds_to_normal
from bench.day_loads import Followed, Worked
from bench.day_plan import PAGE, STEER, WEBHOOK
from bench.day_senders import Sent
from bench.day_watch import Watched

S = 10**9
MS = 10**6
PHASES = (
    Phase("warm-up", 1, 0, S),
    Phase("1 x", 1, S, 2 * S),
    Phase("2 x", 2, 2 * S, 3 * S),
    Phase("after", 1, 3 * S, 9 * S),
)


def a_day() -> Day:
    """At 1 x everything is taken and finished; at 2 x half is refused, and less is finished."""
    sent = [Sent(WEBHOOK, S + n, 202, 10 * MS) for n in range(8)]
    sent += [Sent(STEER, S + n, 202, 10 * MS) for n in range(2)]
    sent += [Sent(WEBHOOK, 2 * S + n, 202 if n % 2 else 503, 400 * MS) for n in range(20)]
    sent += [Sent(PAGE, 2 * S, 200, 900 * MS)]
    # After the end: slow for two seconds, then well.
    sent += [Sent(WEBHOOK, 3 * S + n * S // 2, 202, (900 if n < 4 else 10) * MS) for n in range(12)]
    finished = [(S + n, f"a{n}") for n in range(10)] + [(2 * S + n, f"b{n}") for n in range(5)]
    worked = Worked(finished=finished, slacks=[(2 * S, 29_000.0), (2 * S + 1, -5.0)], lost=[2 * S + 2])
    watched = Watched(
        health=[(at * S // 2, 200, (150 if at == 5 else 2) * MS) for at in range(18)],
        sizes=[(S, 140.0), (2 * S, 200.0), (2 * S + S // 2, 180.0)],
        processor_s=[(2 * S, 1.0), (2 * S + S // 2, 1.5)],
    )
    return Day(PHASES, sent, worked, Followed(), watched)


def test_a_level_counts_what_was_due_in_it() -> None:
    one = level(a_day(), 2)

    assert (one.offered, one.accepted, one.refused, one.finished) == (20, 10, {503: 10}, 5)
    assert (one.webhook_ms, one.page_p99_ms, one.health_ms[2]) == ((400, 400), 900, 150)
    assert (one.renewals, one.slack_s, one.late) == (2, -0.005, 2)
    assert (one.resident_mib, one.processor_ms) == (200, 100)


def test_finishing_less_when_more_comes_misses_the_budget() -> None:
    told = {figure.name: figure for figure in figures(a_day())}
    worst = told["finished, worst level"]

    assert worst.ratio is not None
    assert (worst.value.median, worst.ratio.median, worst.met) == (5, 0.5, False)
    assert told["late renewals and lost leases"].met is False
    assert told["slowest answer of health"].met is False


def test_it_is_normal_again_once_webhooks_and_health_are_as_before() -> None:
    assert seconds_to_normal(a_day(), normal_p99_ms=10) == 2
    assert seconds_to_normal(a_day(), normal_p99_ms=500) == 0


def test_a_server_that_never_recovers_has_all_of_the_recovery_as_its_time() -> None:
    day = a_day()
    day.watched.health.extend((3 * S + n * S, 200, 300 * MS) for n in range(6))

    told = {figure.name: figure for figure in figures(day)}

    assert seconds_to_normal(day, normal_p99_ms=10) == math.inf
    assert told["back to normal after the load's end"].value.median == 6
    assert told["back to normal after the load's end"].met is False


def test_the_table_has_a_line_for_each_level_and_the_recovery() -> None:
    lines = levels(a_day()).splitlines()

    assert len(lines) == 2 + 3
    assert lines[3].lstrip().startswith("2 x")
    assert "503: 10" in lines[3]


def test_an_event_that_was_finished_twice_fails_the_benchmark() -> None:
    day = a_day()
    check(day)
    day.worked.finished.append((S, "a1"))

    with pytest.raises(AssertionError, match="finished twice"):
        check(day)


def test_levels_follow_one_another_without_a_gap() -> None:
    phases = phases_from(7)

    assert phases[0].begin_ns == 7
    assert all(one.end_ns == next_one.begin_ns for one, next_one in pairwise(phases))
    assert [phase.factor for phase in phases[1:-1]] == [1, 2, 4, 8, 16]


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def test_a_client_uses_idle_connections_again_and_outlives_those_that_fail() -> None:
    opened = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if b"/silent" in head:
                    await reader.read()
                    break
                writer.write(OK)
                if b"/last" in head:
                    break
        except asyncio.IncompleteReadError:
            pass
        writer.close()

    async def talk() -> list[int]:
        listening = await asyncio.start_server(serve, "127.0.0.1", 0)
        lines = Lines(listening.sockets[0].getsockname(), most=2)
        replies: list[Reply] = []
        for path in ("/", "/", "/last", "/", "/silent"):
            patience_s = 0.1 if path == "/silent" else 30.0
            replies.append(await lines.call(f"GET {path} HTTP/1.1\r\n\r\n".encode(), patience_s))
        slow = [asyncio.create_task(lines.call(b"GET /silent HTTP/1.1\r\n\r\n", 30.0)) for _ in range(2)]
        await asyncio.sleep(0)
        replies.append(await lines.call(b"GET / HTTP/1.1\r\n\r\n", 30.0))
        listening.close()
        for writer in opened:
            writer.close()
        replies.extend([await one for one in slow])
        lines.close()
        return [reply.status for reply in replies]

    assert asyncio.run(talk()) == [200, 200, 200, 200, UNANSWERED, CROWDED, HUNG_UP, HUNG_UP]
