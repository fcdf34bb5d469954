"""Writes a filter of events as conditions on their rows."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, assert_never
from uuid import UUID

from sexton_storage.event_filter.parse import NUMBER
from sexton_storage.globs import like_pattern
from sexton_storage.records.event_filters import EventFilter, Field, Op, Term, as_uuid
from sexton_storage.records.events import EventStatus

_COLUMNS: Final = {
    Field.ACTOR: "e.actor",
    Field.SOURCE: (
        "CASE WHEN starts_with(e.actor, 'webhook:') THEN substr(e.actor, 9)"
        " ELSE split_part(e.actor, ':', 1) END"
    ),
    Field.TYPE: "e.event_type",
    Field.CODE: "e.error_code",
    Field.FAILURE: "e.failure_label",
}
_WORDS: Final = "sexton_event_words(e.request_json, e.response_text, e.evidence::text) LIKE ANY({}::text[])"
_NEED: Final = (
    "EXISTS (SELECT FROM zombies z CROSS JOIN LATERAL unnest(z.required_tags) t(need)"
    " WHERE z.id = e.zombie_id AND t.need LIKE ANY({}::text[]))"
)
_NAMED: Final = "EXISTS (SELECT FROM zombies z WHERE z.id = e.zombie_id AND z.name LIKE ANY({}::text[]))"
_RUNNER: Final = "EXISTS (SELECT FROM leases l WHERE l.event_id = e.id AND l.runner_id = ANY({}::uuid[]))"
_EQUALS: Final = (
    "EXISTS (SELECT FROM unnest(sexton_json_scalars({document}, {{}}::text[])) s(scalar)"
    " WHERE CASE left(s.scalar, 1) WHEN 's' THEN substr(s.scalar, 2) LIKE ANY({{}}::text[])"
    " WHEN 'n' THEN substr(s.scalar, 2)::numeric = ANY({{}}::text[]::numeric[])"
    " ELSE substr(s.scalar, 2) = ANY({{}}::text[]) END)"
)
_COMPARES: Final = (
    "EXISTS (SELECT FROM unnest(sexton_json_scalars({document}, {{}}::text[])) s(scalar)"
    " WHERE CASE left(s.scalar, 1) WHEN 'n' THEN substr(s.scalar, 2)::numeric {op} {{}}::text::numeric"
    " ELSE false END)"
)
_DOCUMENTS: Final = {Field.REQUEST: "e.request_json", Field.EVIDENCE: "e.evidence::text"}


class Clause(NamedTuple):
    """A condition, in which ``{}`` stand for the parameters."""

    sql: str
    args: Sequence[Any]


def clauses(events: EventFilter) -> Iterator[Clause]:
    """Give the conditions that hold of the row ``e`` of ``events``, all of them, when the event is picked.

    ``event_filter.predicate`` says the same without SQL.
    """
    return map(clause_of, events.terms)


def clause_of(term: Term) -> Clause:
    clause = _clause(term)
    return (
        Clause(f"({clause.sql}) IS NOT TRUE", clause.args)
        if term.negated
        else Clause(f"({clause.sql})", clause.args)
    )


def narrows(term: Term) -> bool:
    """Whether an index leads past what the term does not pick."""
    return not term.negated and term.field in {Field.ID, Field.AFTER, Field.BEFORE}


def only_status(events: EventFilter) -> EventStatus | None:
    """Give the one status that the events have; None: it may be several, or none."""
    statuses = events.statuses()
    return EventStatus(next(iter(statuses))) if statuses is not None and len(statuses) == 1 else None


def only_agent(events: EventFilter) -> str | None:
    """Give the name or the id of the one agent whose events they are; None: it may be several."""
    for term in events.terms:
        if (
            term.field is Field.AGENT
            and not term.negated
            and len(term.values) == 1
            and "*" not in term.values[0]
        ):
            return term.values[0]
    return None


def _clause(term: Term) -> Clause:
    values = list(term.values)
    match term.field:
        case Field.STATUS:
            return Clause("e.status = ANY({}::text[])", [values])
        case Field.AGENT:
            return _agent(values)
        case Field.ACTOR | Field.SOURCE | Field.TYPE | Field.CODE | Field.FAILURE:
            return _fits(_COLUMNS[term.field], values)
        case Field.RUNNER:
            return Clause(_RUNNER, [_uuids(values)])
        case Field.LABEL:
            return Clause(_NEED, [_patterns(values)])
        case Field.ID:
            return Clause("e.id = ANY({}::uuid[])", [_uuids(values)])
        case Field.AFTER:
            return Clause("e.created_at >= {}", [int(values[0])])
        case Field.BEFORE:
            return Clause("e.created_at < {}", [int(values[0])])
        case Field.TEXT:
            return Clause(_WORDS, [[_spoken(phrase) for phrase in values]])
        case Field.REQUEST | Field.EVIDENCE:
            return _stands(term, _DOCUMENTS[term.field])
        case _:
            assert_never(term.field)


def _agent(values: Sequence[str]) -> Clause:
    ids = _uuids(values)
    names = _patterns([value for value in values if as_uuid(value) is None])
    if not names:
        return Clause("e.zombie_id = ANY({}::uuid[])", [ids])
    return (
        Clause(f"e.zombie_id = ANY({{}}::uuid[]) OR {_NAMED}", [ids, names])
        if ids
        else Clause(_NAMED, [names])
    )


def _uuids(values: Sequence[str]) -> list[UUID]:
    return [found for value in values if (found := as_uuid(value)) is not None]


def _fits(column: str, values: Sequence[str]) -> Clause:
    if any("*" in value for value in values):
        return Clause(f"{column} LIKE ANY({{}}::text[])", [_patterns(values)])
    return Clause(f"{column} = ANY({{}}::text[])", [list(values)])


def _patterns(values: Sequence[str]) -> list[str]:
    return [like_pattern(value) for value in values]


def _spoken(phrase: str) -> str:
    r"""Write a phrase as a pattern for the words of an event.

    >>> _spoken("connection refused"), _spoken("no_ma*")
    ('% connection refused %', '% no\\_ma%')
    """
    words = like_pattern(phrase.removesuffix("*"))
    return f"% {words}%" if phrase.endswith("*") else f"% {words} %"


def _stands(term: Term, document: str) -> Clause:
    path, values = list(term.path), list(term.values)
    if term.op is not Op.IS:
        return Clause(_COMPARES.format(document=document, op=term.op.value), [path, values[0]])
    numbers = [value for value in values if NUMBER.fullmatch(value)]
    return Clause(_EQUALS.format(document=document), [path, _patterns(values), numbers, values])
