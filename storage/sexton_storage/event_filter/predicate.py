"""Says of one event whether a filter picks it, without a database."""

from collections.abc import Callable, Iterable
from decimal import Decimal
from operator import ge, gt, le, lt
from typing import Final, NamedTuple, assert_never
from uuid import UUID

from sexton_storage.documents import json_or_none
from sexton_storage.event_filter.json_scalars import Kind, Scalar, scalars_at
from sexton_storage.event_filter.parse import NUMBER
from sexton_storage.event_filter.words import has_phrase, words_of
from sexton_storage.globs import matches
from sexton_storage.records.event_filters import EventFilter, Field, Op, Term, as_uuid
from sexton_storage.records.events import Event

WEBHOOK: Final = "webhook:"
_COMPARE: Final[dict[Op, Callable[[Decimal, Decimal], bool]]] = {
    Op.LESS: lt,
    Op.AT_MOST: le,
    Op.MORE: gt,
    Op.AT_LEAST: ge,
}


class Subject(NamedTuple):
    """An event, with what a filter may ask about it."""

    event: Event
    agent_name: str
    needs: tuple[str, ...]
    """Labels and offers that its agent needs of a runner."""
    runner_ids: frozenset[UUID]
    """Those that have held a lease of it."""


def picks(events: EventFilter, subject: Subject) -> bool:
    """Whether all terms hold."""
    return all(_holds(term, subject) is not term.negated for term in events.terms)


def source_of(actor: str) -> str:
    """Name what an event came from.

    >>> source_of("webhook:github"), source_of("steer:ann"), source_of("system")
    ('github', 'steer', 'system')
    """
    return actor[len(WEBHOOK) :] if actor.startswith(WEBHOOK) else actor.partition(":")[0]


def _holds(term: Term, subject: Subject) -> bool:
    event, values = subject.event, term.values
    match term.field:
        case Field.STATUS:
            return event.status in values
        case Field.AGENT:
            return any(_is_agent(value, subject) for value in values)
        case Field.ACTOR:
            return _fits(values, [event.actor])
        case Field.SOURCE:
            return _fits(values, [source_of(event.actor)])
        case Field.TYPE:
            return _fits(values, [event.event_type])
        case Field.CODE:
            return _fits(values, [event.error_code])
        case Field.FAILURE:
            return _fits(values, [event.failure_label])
        case Field.RUNNER:
            return not subject.runner_ids.isdisjoint(map(UUID, values))
        case Field.LABEL:
            return _fits(values, subject.needs)
        case Field.ID:
            return str(event.id) in values
        case Field.AFTER:
            return event.created_at >= int(values[0])
        case Field.BEFORE:
            return event.created_at < int(values[0])
        case Field.TEXT:
            return _says(values, event)
        case Field.REQUEST:
            return _stands(term, event.request_json)
        case Field.EVIDENCE:
            evidence = json_or_none(event.evidence)
            return evidence is not None and _stands(term, evidence)
        case _:
            assert_never(term.field)


def _is_agent(value: str, subject: Subject) -> bool:
    agent_id = as_uuid(value)
    return matches(value, subject.agent_name) if agent_id is None else agent_id == subject.event.zombie_id


def _fits(globs: Iterable[str], texts: Iterable[str | None]) -> bool:
    return any(matches(glob, text) for text in texts if text is not None for glob in globs)


def _says(phrases: Iterable[str], event: Event) -> bool:
    texts = (event.request_json, event.response_text, json_or_none(event.evidence))
    spoken = [words_of(text) for text in texts if text is not None]
    return any(has_phrase(words, phrase) for phrase in phrases for words in spoken)


def _stands(term: Term, document: str) -> bool:
    found = scalars_at(document, term.path)
    return any(_equals(scalar, value, term.op) for scalar in found for value in term.values)


def _equals(scalar: Scalar, value: str, op: Op) -> bool:
    match scalar.kind:
        case Kind.NUMBER:
            if not NUMBER.fullmatch(value):
                return False
            there, asked = Decimal(scalar.text), Decimal(value)
            return there == asked if op is Op.IS else _COMPARE[op](there, asked)
        case Kind.STRING:
            return op is Op.IS and matches(value, scalar.text)
        case Kind.CONSTANT:
            return op is Op.IS and value == scalar.text
        case _:
            assert_never(scalar.kind)
