"""What reads HTTP/2: the connection, with its bytes cut in several ways, and a plain reading of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final
from unittest.mock import patch
from urllib.parse import unquote_to_bytes

import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from tests.fuzz.http2_answers import CANCEL, REFUSED, Answers, Outcome
from tests.fuzz.http2_app import PIECE, PIECES, Seen
from tests.fuzz.http2_reading import WINDOW, Reading, Timing
from tests.fuzz.http2_requests import Request
from tests.fuzz.http2_script import Kernel, Part, Script, script_of
from tests.fuzz.http2_world import Told, World

MOST_PARTS: Final = 600
"""Bytes come one by one, or in as many parts as this."""
COUNTED_READS: Final = 3
"""Frames of a head that may come byte by byte: libnghttp2 counts reads within their beginnings."""
CALM: Final = "ENHANCE_YOUR_CALM"
LATE: Final = frozenset({b"/slow", b"/poll"})
"""Not answered before a client that ends at once has gone."""


def http2(data: bytes) -> None:
    """Requests and answers are the same however the bytes are cut, and as a plain reading has them."""
    script = script_of(data)
    reading = Reading(script.data)
    # Which of two tasks goes first is the input's to say, so that what is found is found again.
    order: dict[str, Any] = {"_r": Random(script.cut), "_ALLOW_DETERMINISTIC_SCHEDULING": True}
    with capture_logs(), patch.multiple("trio._core._run", **order):
        try:
            runs = trio.run(_each_way, script, clock=MockClock(autojump_threshold=0))
        except BaseExceptionGroup as group:
            raise _first_of(group)  # noqa: B904 - the groups around it say nothing
    to_its_end = not script.loses and script.kernel is not Kernel.NOT_AT_ALL
    is_prompt = to_its_end and script.kernel is Kernel.WILLING
    judged = [Answers(told, reading, to_its_end=to_its_end, is_prompt=is_prompt) for told in runs]
    for told in runs:
        _check_seen(told, reading)
    if script.loses or script.kernel not in {Kernel.WILLING, Kernel.IN_PARTS}:
        return
    waited = any(part.after_s for part in script.parts)
    for told, answers in zip(runs, judged, strict=True):
        if not waited:
            _check_end(told, answers, reading, is_cut=told is not runs[0])
            _check_answers(answers, reading, script)
    if not reading.depends_on(Timing.OF_READS):
        for told, answers in zip(runs[1:], judged[1:], strict=True):
            _agree((runs[0], judged[0]), (told, answers), reading)


def _first_of(fault: BaseException) -> BaseException:
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    return fault


async def _each_way(script: Script) -> list[Told]:
    return [await World(script, parts).run() for parts in _cuts(script)]


def _cuts(script: Script) -> Iterator[Sequence[Part]]:
    """Whole, cut in two, and byte by byte."""
    yield script.parts
    size = sum(len(part.data) for part in script.parts)
    place = size * script.cut // 256
    two: list[Part] = []
    for after, data in script.parts:
        at = min(max(place, 0), len(data))
        two += [Part(after, data[:at]), Part(0, data[at:])]
        place -= len(data)
    yield two
    step = 1 + size // MOST_PARTS
    yield [
        Part(after if not at else 0, data[at : at + step])
        for after, data in script.parts
        for at in range(0, max(1, len(data)), step)
    ]


def _check_seen(told: Told, reading: Reading) -> None:
    """What the application was given is what the client asked for."""
    for stream, seen in told.seen.items():
        request = reading.requests.get(stream)
        assert request is not None, "the application sees what nobody asked for"
        fields = dict(request.fields)
        target, _, query = fields[b":path"].partition(b"?")
        expected = Seen(
            fields[b":method"].decode(),
            target + (b"?" + query if query else b""),
            _headers(request),
            request.body if seen.whole else request.body[: len(seen.body)],
            whole=seen.whole,
        )
        assert seen == expected, "two readers, two requests"
        assert request.ended or not seen.whole, "the application sees an end that was never sent"


def _headers(request: Request) -> list[tuple[bytes, bytes]]:
    """With the host first, whichever header named it."""
    fields = request.fields
    named = [value for name, value in fields if name in {b":authority", b"host"} and value]
    rest = [field for field in fields if not field[0].startswith(b":") and field[0] != b"host"]
    return [(b"host", named[0] if named else b""), *rest]


def _check_end(told: Told, answers: Answers, reading: Reading, *, is_cut: bool) -> None:
    """A violation ends the connection in order, and nothing else does."""
    if reading.doubts:
        return
    if reading.violation:
        assert answers.error, f"{reading.violation}, and the connection does not end for it"
        assert answers.ends_with_goodbye
        assert told.finished
    elif _fits(reading) and not (is_cut and reading.continuations > COUNTED_READS and answers.error == CALM):
        assert not answers.error, f"{answers.error}, and nothing is wrong"


def _check_answers(answers: Answers, reading: Reading, script: Script) -> None:
    """Whoever asks plainly is answered."""
    if reading.doubts or answers.error:
        return
    plain = {key: one for key, one in reading.requests.items() if one.ended and one.is_plain()}
    if not _fits(reading):
        return
    expected = {key: _expected(one) for key, one in plain.items()}
    for stream, one in expected.items():
        if script.hangs_up and _path(plain[stream]) in LATE:
            continue
        got = answers.outcomes.get(stream, Outcome())
        assert _said(got) == _said(one), f"{got}, in place of {one}"


def _fits(reading: Reading) -> bool:
    """All answers together have room in the windows that a client opens at first."""
    return sum(len(_expected(one).body) for one in reading.requests.values()) <= WINDOW


def _path(request: Request) -> bytes:
    return unquote_to_bytes(dict(request.fields).get(b":path", b"").partition(b"?")[0])


def _expected(request: Request) -> Outcome:
    is_head = (b":method", b"HEAD") in request.fields
    match _path(request):
        case b"/no":
            status, body = 503, b"later"
        case b"/deaf":
            status, body = 401, b"no"
        case b"/slow":
            status, body = 200, b"slow"
        case b"/poll":
            status, body = 204, b""
        case b"/large":
            status, body = 200, PIECE * PIECES
        case b"/fail":
            status, body = 500, b""
        case b"/half" if not is_head:
            return Outcome(reset="INTERNAL_ERROR")
        case _:
            status, body = 200, request.body
    return Outcome(status, [], b"" if is_head else body, ended=True)


def _said(outcome: Outcome) -> tuple[int, bytes, str]:
    """What was said of a stream to its end; a reset may overtake what was said before."""
    # Behind a whole answer it only says that no more of the request is wanted.
    if outcome.reset and not outcome.ended:
        return 0, b"", outcome.reset
    return outcome.status, outcome.body, ""


def _agree(one: tuple[Told, Answers], other: tuple[Told, Answers], reading: Reading) -> None:
    """Wherever the bytes are cut, the same comes of them."""
    if reading.continuations > COUNTED_READS and other[1].error == CALM:
        return
    assert one[1].error == other[1].error, "another end when cut"
    if one[1].error:
        return
    sound = {stream for stream, request in reading.requests.items() if not request.is_spoilt()}
    assert set(one[0].seen) & sound == set(other[0].seen) & sound, "other requests when cut"
    for stream in sound:
        first, second = (found[1].outcomes.get(stream, Outcome()) for found in (one, other))
        # Whose turn it was when the windows were used up may differ.
        if first.over and second.over and not {first.reset, second.reset} & {REFUSED, CANCEL}:
            assert _said(first) == _said(second), "another answer when cut"
            assert not first.ended or first.headers == second.headers, "other headers when cut"
