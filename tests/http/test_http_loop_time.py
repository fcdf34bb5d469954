"""What the worst bodies of each route cost the loop at a stretch, beside an empty one of the same run.

The ordinary run sends each route a part of them, and each of them to a part of the routes.
"""

import base64
import hashlib
import sys
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import trio
from trio.lowlevel import Task

from sexton_http.answers import Problem
from sexton_http.bodies.decoding import BodyDecoder
from sexton_http.bodies.lenient import decoder_of
from sexton_http.bodies.shapes import Nothing
from sexton_http.bodies.weight import SMALL_BODY
from sexton_http.gateway.operations import Auth, Operation
from sexton_http.routes.table import OPERATIONS
from tests.thorough import PART, THOROUGH

UNIT_TURNS = 25_000
"""Turns of a plain loop that take about a millisecond of a quiet machine of today."""
UNIT_BYTES = b"x" * 400_000
UNIT_BASE64 = base64.b64encode(UNIT_BYTES)
UNIT_JSON = b"[" + b"1," * 30_000 + b"1]"
MOST_UNITS = 5.0
RUNS = 20
"""At most, until one is within the bound: what else the machine does only adds to a run."""
SHOWN = 12


class Steps(trio.abc.Instrument):
    """Measures the longest stretch for which one task kept the loop, in processor time."""

    def __init__(self) -> None:
        self.began = 0.0
        self.longest = 0.0

    def before_task_step(self, task: Task) -> None:
        self.began = time.thread_time()

    def after_task_step(self, task: Task) -> None:
        self.longest = max(self.longest, time.thread_time() - self.began)


def unit_s() -> float:
    """The longer of a plain loop and of what C does to bytes.

    Each takes about a millisecond; a faster interpreter does not make both faster alike.
    """
    began = time.thread_time()
    total = 0
    for number in range(UNIT_TURNS):
        total += number
    looped = time.thread_time()
    hashlib.sha256(UNIT_BYTES).digest()
    base64.b64decode(UNIT_BASE64)
    msgspec.json.decode(UNIT_JSON)
    return max(looped - began, time.thread_time() - looped)


def filled(size: int, before: bytes, unit: bytes, after: bytes) -> bytes:
    return before + unit * ((size - len(before) - len(after)) // len(unit)) + after


def worst_bodies(size: int, field: bytes) -> Iterator[tuple[str, bytes]]:
    """As large as the route takes, each worst at something else, at a field that the route has."""
    start = b'{"%b":' % field
    yield "numbers", filled(size, start + b"[", b"1,", b"1]}")
    yield "fractions", filled(size, start + b"[", b"1.5,", b"1]}")
    yield "a fraction and more", filled(size, start + b'1.5,"more":[', b"1.5,", b"1]}")
    yield "many objects", filled(size, start + b"[", b'{"a":1},', b"{}]}")
    yield "lists to depth", filled(size, start + b"[", b"[" * 60 + b"]" * 60 + b",", b"1]}")
    yield "one deep list", filled(size, start, b"[", b"")
    yield "escapes", filled(size, start + b'"', b"\\n", b'"}')
    yield "escaped characters", filled(size, start + b'"', b"\\u00e9", b'"}')
    yield "escaped NUL", filled(size, start + b'"', b"\\u0000", b'"}')
    yield "half surrogates", filled(size, start + b'"', b"\\ud800", b'"}')
    yield "no UTF-8 at the end", filled(size, start + b'"', b"a", b'\xff"}')
    yield "one key again and again", filled(size, b"{", b'"%b":1,' % field, b'"%b":1}' % field)
    yield "a huge number", filled(size, start, b"9", b"}")


async def longest(steps: Steps, decoder: BodyDecoder[Any], body: bytes, most: float) -> float:
    """In units of this moment of this machine; what is within ``most`` is not measured again."""
    best = float("inf")
    for _ in range(RUNS):
        unit = unit_s()
        await trio.lowlevel.checkpoint()
        steps.longest = 0.0
        try:
            if len(body) <= SMALL_BODY:
                decoder.decode(body)
            else:
                await decoder.decode_in_steps(body)
        except Problem:
            pass
        await trio.lowlevel.checkpoint()
        best = min(best, steps.longest / max(unit, unit_s()))
        if best <= most:
            break
    return best


def decoded() -> Iterator[tuple[Operation, type[Any]]]:
    """One route for each shape and size of body."""
    seen = set()
    for operation in OPERATIONS:
        shape = Nothing if operation.takes_nothing else operation.body
        if (operation.has_body or operation.takes_nothing) and (shape, operation.max_body) not in seen:
            seen.add((shape, operation.max_body))
            yield operation, shape


async def test_no_body_keeps_the_loop_for_long(capsys: pytest.CaptureFixture[str]) -> None:
    steps, rows = Steps(), list[tuple[float, float, str, str, int]]()
    trio.lowlevel.add_instrument(steps)
    for turn, (operation, shape) in enumerate(decoded()):
        decoder = decoder_of(shape)
        # A report may be quotes from end to end: it comes from a runner, and once a run.
        allowed = 4 if hasattr(shape, "max_escapes") else 1
        empty = await longest(steps, decoder, b"{}", MOST_UNITS)
        names = [field.encode_name for field in msgspec.structs.fields(shape)] or ["none"]
        for place, name in enumerate(dict.fromkeys((names[0], names[-1]))):
            bodies = [*worst_bodies(operation.max_body, name.encode())]
            for kind, body in bodies if THOROUGH else bodies[(turn + place) % PART :: PART]:
                units = await longest(steps, decoder, body, allowed * MOST_UNITS) / allowed
                rows.append((units, empty, f"{operation.method} {operation.path}", kind, len(body)))
    rows.sort(reverse=True)

    shown = [f"{u:6.2f} {e:8.4f} {size:9,} {route} ({kind})" for u, e, route, kind, size in rows[:SHOWN]]
    with capsys.disabled():
        sys.stdout.write("\n units    empty     bytes route (body)\n" + "\n".join(shown) + "\n")

    assert rows[0][0] <= MOST_UNITS, rows[0]


def test_strangers_send_little_and_nobody_more_than_the_most() -> None:
    for operation in OPERATIONS:
        most = 16 * 1024 if operation.auth in {Auth.PUBLIC, Auth.BROWSER} else 2 * 1024 * 1024
        if not operation.takes_bytes:  # A chat platform's form is proven by its signature before it is read.
            assert operation.max_body <= most, operation.path
