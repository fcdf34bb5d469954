"""What a filter of events is made of, once it has been read."""

from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

MAX_CHARS: Final = 1024
"""The length of a filter, as it is written."""
MAX_TERMS: Final = 16
MAX_VALUES: Final = 32
"""The values of one term."""
MAX_PATH: Final = 8
"""Names of a path into a JSON document."""
MAX_WORDS: Final = 16
"""The words of one phrase."""
SEARCHED_ELEMENTS: Final = 256
"""The first elements of an array at a path are looked at, up to here."""
SEARCHED_CHARS: Final = 65_536
"""How much of a request, an answer and evidence is searched for words: so much of the beginning of each."""


class Field(StrEnum):
    STATUS = "status"
    AGENT = "agent"
    """By its id where the value is a UUID, else by its name."""
    ACTOR = "actor"
    SOURCE = "source"
    """Where an event comes from: ``github`` of ``webhook:github``, ``steer`` of ``steer:ann``."""
    TYPE = "type"
    CODE = "code"
    FAILURE = "failure"
    RUNNER = "runner"
    """That held a lease of the event, by its id."""
    LABEL = "label"
    """What the agent needs of a runner: a label or an offer."""
    ID = "id"
    AFTER = "after"
    BEFORE = "before"
    TEXT = "text"
    """Words in the request, the answer or the evidence."""
    REQUEST = "request"
    """What stands at a path of the request."""
    EVIDENCE = "evidence"


class Op(StrEnum):
    IS = ":"
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="


LOOKED_THROUGH: Final = 10_000
"""Events that one search looks through at most; whoever wants more goes on from where it stopped."""
LOOKED_BYTES: Final = 8 * 1024 * 1024
"""As much of their requests, answers and evidence, where a search reads those."""

DOCUMENTS: Final = frozenset({Field.REQUEST, Field.EVIDENCE})
TIMES: Final = frozenset({Field.AFTER, Field.BEFORE})
READS_TEXTS: Final = DOCUMENTS | {Field.TEXT}


class Term(msgspec.Struct, frozen=True, gc=False):
    """One condition: the field has one of the values. That of ``AFTER`` and ``BEFORE`` is Unix ms."""

    field: Field
    values: tuple[str, ...]
    negated: bool = False
    op: Op = Op.IS
    path: tuple[str, ...] = ()
    """Names of keys, and numbers of elements, from the outside in; only of ``DOCUMENTS``."""


class EventFilter(msgspec.Struct, frozen=True, gc=False):
    """All terms hold of the events that it picks; without a term it picks every event."""

    terms: tuple[Term, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.terms)

    def statuses(self) -> frozenset[str] | None:
        """Give the only statuses that an event it picks may have; None: any.

        >>> twice = (Term(Field.STATUS, ("running", "received")), Term(Field.STATUS, ("running",)))
        >>> EventFilter(twice).statuses()
        frozenset({'running'})
        """
        named = [
            frozenset(term.values) for term in self.terms if term.field is Field.STATUS and not term.negated
        ]
        return frozenset.intersection(*named) if named else None

    def and_all(self, terms: tuple[Term, ...]) -> "EventFilter":
        """Give the filter of which these terms hold as well."""
        return EventFilter(self.terms + terms)

    def reads_texts(self) -> bool:
        """Whether the request, the answer or the evidence of an event must be read to tell."""
        return any(term.field in READS_TEXTS for term in self.terms)


EVERY: Final = EventFilter()


def as_uuid(text: str) -> UUID | None:
    """Give the UUID that is spelled in its canonical form; capitals count as small letters.

    >>> as_uuid("00000000-0000-0000-0000-00000000000A"), as_uuid("{0}"), as_uuid("deploy-doctor")
    (UUID('00000000-0000-0000-0000-00000000000a'), None, None)
    """
    try:
        found = UUID(text)
    except ValueError:
        return None
    return found if str(found) == text.lower() else None
