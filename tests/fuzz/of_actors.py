"""What reads agents' files, webhooks, schedules and filters."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, assert_never
from uuid import UUID

import msgspec
from msgspec.structs import replace

from sexton_actors.manifest.model import Manifest, Signature, WebhookTrigger, from_json, to_json
from sexton_actors.manifest.parse import ManifestRejected, parse
from sexton_actors.manifest.problems import MAX_PROBLEMS
from sexton_actors.schedules.times import Unreadable, following, latest, upcoming
from sexton_actors.webhooks.authentication import Genuine, Rejected, authenticate
from sexton_actors.webhooks.known_sources import NATIVE, source_of
from sexton_actors.webhooks.model import Reason
from sexton_actors.webhooks.normalisation import Challenge, Delivery, Malformed, Ping, read
from sexton_actors.webhooks.source import Sending
from sexton_storage.event_filter.parse import FilterError, parse_filter
from sexton_storage.event_filter.predicate import Subject, picks
from sexton_storage.records.crons import NEVER
from sexton_storage.records.event_filters import DOCUMENTS, MAX_TERMS, EventFilter, Term
from sexton_storage.records.events import Event, EventStatus

NOW = 1_732_060_800_000
SKILL = "---\nname: x\ndescription: d\nversion: 1.0.0\n---\n```sh\necho\n```\n"
TRIGGER = "---\nname: x\ntriggers: [{type: cron, schedule: '* * * * *'}]\n---\n"
BETWEEN = "\x1e"
"""Parts the two files of an agent, and the parts of a webhook."""
CODES = {"UZ-ZMB-008", "UZ-ZMB-011", "UZ-REQ-001", "UZ-APPROVAL-001", "UZ-APPROVAL-005"}


def manifests(data: bytes) -> None:
    """Two files are a manifest, which comes back from JSON as it was, or faults, each at a line of theirs."""
    source, mark, trigger = data.decode("utf-8", "surrogateescape").partition(BETWEEN)
    for skill, other in ((source, trigger),) if mark else ((source, TRIGGER), (SKILL, source)):
        found = parse(skill, other)
        assert parse(skill, other) == found
        if isinstance(found, Manifest):
            assert from_json(json.loads(json.dumps(to_json(found)))) == found
            continue
        assert isinstance(found, ManifestRejected)
        assert 1 <= len(found.errors) <= MAX_PROBLEMS
        for error in found.errors:
            text = skill if error.file == "SKILL.md" else other
            assert error.code in CODES
            assert error.message
            assert 1 <= error.line <= len(text.splitlines()) + 2


SOURCES = (*NATIVE, "billing")
SECRET = "whsec_" + "c2VjcmV0" * 4


def webhooks(data: bytes) -> None:
    """What its sender signs is genuine, and nothing else is; any body has a declared reading."""
    choice, rest = data[:1], data[1:]
    head, _, body = rest.partition(BETWEEN.encode())
    source = SOURCES[int.from_bytes(choice) % len(SOURCES)]
    own = None if source in NATIVE else "x-signature"
    trigger = WebhookTrigger(source, signature=Signature("hook", own, None, None))
    assert trigger.signature is not None
    headers = dict(_headers(head))
    stranger = authenticate(trigger, headers, body, [SECRET], NOW)
    assert isinstance(stranger, Rejected)
    assert stranger.reason in set(Reason)
    sending = Sending(trigger.signature, SECRET, body, NOW // 1000, "d1", "push")
    signed = {**headers, **source_of(source).sign(sending)}
    signed = {
        name: value for name, value in signed.items() if source == "svix" or not name.startswith("svix-")
    }
    assert authenticate(trigger, signed, body, [SECRET], NOW) == Genuine()
    assert isinstance(authenticate(trigger, signed, body + b"x", [SECRET], NOW), Rejected)
    assert isinstance(authenticate(trigger, signed, body, ["whsec_b3RoZXI="], NOW), Rejected)
    _read(trigger, headers, body)


def _headers(head: bytes) -> Iterator[tuple[str, str]]:
    for line in head.decode("latin-1").split("\n"):
        name, _, value = line.partition(":")
        yield name.strip().lower(), value.strip()


def _read(trigger: WebhookTrigger, headers: dict[str, str], body: bytes) -> None:
    found = read(trigger, headers, body)
    assert read(trigger, headers, body) == found
    match found:
        case Delivery():
            assert 1 <= len(found.event_type) <= 128
            assert found.event_type.isprintable()
            assert len(found.dedup_key) == len(found.body_key) == 32
            assert (found.source_event_id is None) == (found.dedup_key == found.body_key)
            assert msgspec.json.decode(found.text) == found.payload
            own = body.removeprefix(codecs.BOM_UTF8).strip(b" \t\r\n")
            if own.startswith(b"{"):
                assert own.decode() in found.text, "numbers and all are kept as they were sent"
        case Malformed():
            assert found.detail
        case Challenge():
            assert trigger.source == "slack"
        case Ping():
            assert headers["x-github-event"] == "ping"
        case _:
            assert_never(found)


ME = UUID(int=1)
EVENT = Event(
    *(ME, ME, ME, ME, "webhook:github", "push", EventStatus.PROCESSED),
    '{"n": 1, "pull": {"number": 17, "labels": ["bug", 3, true, null]}, "say": "Connection refused"}',
    *(NOW - 9, NOW),
    response_text="all went well",
    evidence={"exit_code": 0},
)


def filters(data: bytes) -> None:
    """A filter is read alike when it is written out again; the opposite of a term picks the others."""
    text = data.decode("utf-8", "surrogateescape")
    try:
        found = parse_filter(text, now=NOW)
    except FilterError as fault:
        _expect(fault.position, range(len(text) + 1))
        return
    assert len(found.terms) <= MAX_TERMS
    written = " ".join(map(_written, found.terms))
    # What is written out says all by name and in quotes, and so may be too long.
    try:
        again = parse_filter(written, now=NOW)
    except FilterError as fault:
        _expect("characters", str(fault))
    else:
        assert again == found
    subject = Subject(EVENT, "agent-1", ("gpu",), frozenset({ME}))
    for term in found.terms:
        one, other = EventFilter((term,)), EventFilter((replace(term, negated=not term.negated),))
        assert picks(one, subject) is not picks(other, subject)
    assert picks(found, subject) is all(picks(EventFilter((term,)), subject) for term in found.terms)


def _written(term: Term) -> str:
    path = "".join(f".{_quoted(name)}" for name in term.path)
    values = ",".join(map(_quoted, term.values))
    assert bool(path) == (term.field in DOCUMENTS)
    return f"{'-' * term.negated}{term.field}{path}{term.op}{values}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


NUMBERS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
LOOKED = 3_000
"""Minutes that are gone through one by one."""


def schedules(data: bytes) -> None:
    """A schedule fires in the minutes that it means to another reader, and in none between."""
    after = NOW + int.from_bytes(data[:2]) * 60_000
    text = data[2:].decode("latin-1")
    try:
        first = following(text, "UTC", after)
    except Unreadable:
        return
    assert first > after
    assert upcoming(text, "UTC", after, 1) == ([] if first == NEVER else [first])
    if first != NEVER:
        assert latest(text, "UTC", first, first) == first
    fields = _fields(text)
    if fields is None:
        return
    minute = after - after % 60_000
    for _ in range(LOOKED):
        minute += 60_000
        assert _means(fields, minute) is (minute == first), (text, minute, first)
        if minute == first:
            return
    assert first > minute


def _fields(text: str) -> tuple[list[frozenset[int]], bool, bool] | None:
    """Minutes, hours, days, months and weekdays; None where it is said in a way that this does not read."""
    words = text.split()
    if len(words) != len(NUMBERS):
        return None
    found = []
    for word, (low, high) in zip(words, NUMBERS, strict=True):
        meant: set[int] = set()
        for part in word.split(","):
            span, slash, step = part.partition("/")
            begin, dash, end = span.partition("-")
            spelled = [one for one in (begin, end, step) if one not in {"", "*"}]
            if not all(one.isascii() and one.isdigit() for one in spelled) or (slash and not step):
                return None
            if span == "*":
                first, last = low, high
            elif dash or slash:
                if not begin or (dash and not end):
                    return None
                first, last = int(begin), int(end) if dash else high
            else:
                first = last = int(begin or -1)
            if not low <= first <= last <= high or step == "0":
                return None
            meant |= set(range(first, last + 1, int(step or 1)))
        found.append(frozenset(meant))
    found[4] = frozenset(day % 7 for day in found[4])
    return found, words[2].startswith("*"), words[4].startswith("*")


def _means(fields: tuple[list[frozenset[int]], bool, bool], at: int) -> bool:
    (minutes, hours, days, months, weekdays), any_day, any_weekday = fields
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)
    is_day, is_weekday = moment.day in days, moment.isoweekday() % 7 in weekdays
    # With both said, either will do.
    fits = (is_day and is_weekday) if any_day or any_weekday else (is_day or is_weekday)
    return moment.minute in minutes and moment.hour in hours and moment.month in months and fits


def _expect(value: object, among: Any) -> None:
    assert value in among
