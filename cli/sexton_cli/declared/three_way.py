"""What has to change: what was applied last, what is there, and what is wanted, held against each other."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from sexton_cli.declared.things import DEFAULTS, SECRETS, STAY, Fields, Kind, Things, kind_of, note_of


class Verb(StrEnum):
    MAKE = "make"
    CHANGE = "change"
    REMOVE = "remove"
    LEAVE = "leave"
    """The folder made it and names it no more; only ``--prune`` removes it."""


class Note(msgspec.Struct, frozen=True):
    """What is remembered of one thing since it was applied last."""

    folder: str
    fields: Mapping[str, str]


class FieldChange(msgspec.Struct, frozen=True):
    field: str
    before: Any
    """None: there is none."""
    after: Any
    by_hand: bool
    """Somebody has changed it since it was applied last, or has set it before anything was."""


class Change(msgspec.Struct, frozen=True):
    verb: Verb
    key: str
    fields: tuple[FieldChange, ...] = ()

    @property
    def kind(self) -> Kind:
        return kind_of(self.key)

    @property
    def is_step(self) -> bool:
        return self.verb is not Verb.LEAVE


class Plan(msgspec.Struct, frozen=True):
    changes: tuple[Change, ...]
    """In the order in which they are made."""
    notes: Mapping[str, Note]
    """What is to be remembered once all of it is done."""
    foreign: tuple[tuple[str, str], ...] = ()
    """Things that this folder wants, and another one has applied: the key, and that folder."""

    @property
    def steps(self) -> list[Change]:
        return [change for change in self.changes if change.is_step]


def field_changes(
    kind: Kind, last: Mapping[str, str] | None, live: Fields, want: Fields, *, sure: bool = True
) -> tuple[FieldChange, ...]:
    """The fields of one thing that differ from what they are to be.

    Without ``sure`` the last time was broken off, so nobody can say who has changed what since.

    A field that nobody names stays as somebody has set it:

    >>> field_changes(Kind.AGENT, {}, {"status": "stopped"}, {})
    ()

    One that the folder used to name, and names no more, goes back to what it is by itself:

    >>> [
    ...     change.after
    ...     for change in field_changes(Kind.AGENT, {"status": '"stopped"'}, {"status": "stopped"}, {})
    ... ]
    ['active']

    One that somebody has changed since is told, and is as the folder says:

    >>> [one] = field_changes(Kind.AGENT, {"status": '"active"'}, {"status": "stopped"}, {"status": "active"})
    >>> one.by_hand, one.after
    (True, 'active')
    """
    known = last or {}
    found = []
    for field in sorted({*want, *known}):
        if field in want:
            after = want[field]
        elif field in STAY:
            continue
        else:
            after = DEFAULTS[kind].get(field)
        before = live.get(field)
        if before == after:
            continue
        theirs = field in live and known.get(field) != note_of(before)
        found.append(FieldChange(field, before, after, by_hand=theirs and sure and field not in SECRETS))
    return tuple(found)


def plan(
    notes: Mapping[str, Note],
    live: Things,
    want: Things,
    *,
    folder: str,
    prune: bool = False,
    sure: bool = True,
) -> Plan:
    """Everything that has to change, in the order in which it can be done.

    >>> live = {"agent/a": {"skill": "1"}, "agent/hand": {"skill": "h"}}
    >>> notes = {"agent/a": Note("crew", {"skill": '"1"'}), "agent/gone": Note("crew", {})}
    >>> made = plan(notes, live, {"agent/b": {"skill": "2"}}, folder="crew", prune=True)
    >>> [(change.verb.value, change.key) for change in made.changes]
    [('make', 'agent/b'), ('remove', 'agent/a')]
    >>> sorted(made.notes)
    ['agent/b']
    """
    changes: list[Change] = []
    after = {key: note for key, note in notes.items() if note.folder != folder}
    foreign = tuple((key, after[key].folder) for key in sorted(want) if key in after)
    for key, fields in want.items():
        mine = notes.get(key)
        after[key] = Note(folder, {field: note_of(value) for field, value in fields.items()})
        if key not in live:
            made = tuple(FieldChange(field, None, fields[field], by_hand=False) for field in sorted(fields))
            changes.append(Change(Verb.MAKE, key, made))
            continue
        # What another folder has said of it is no word of this one.
        known = mine.fields if mine is not None and mine.folder == folder else None
        differing = field_changes(kind_of(key), known, live[key], fields, sure=sure)
        if differing:
            changes.append(Change(Verb.CHANGE, key, differing))
    for key, note in notes.items():
        if note.folder != folder or key in want or key not in live:
            continue
        if kind_of(key) is Kind.WORKSPACE:
            # A workspace is not removed with what was said of it: its fields go back.
            back = field_changes(Kind.WORKSPACE, note.fields, live[key], {}, sure=sure)
            changes += [Change(Verb.CHANGE, key, back)] if back else []
            continue
        if not prune:
            after[key] = note
        changes.append(Change(Verb.REMOVE if prune else Verb.LEAVE, key))
    return Plan(tuple(sorted(changes, key=_turn)), after, foreign)


def intended(
    notes: Mapping[str, Note], planned: Plan, *, done: Sequence[Change] | None = None
) -> dict[str, Note]:
    """What is to be remembered while it is done, or where it was broken off after these changes.

    What was begun counts as the folder's, so that a next time can go on, or take it away again.

    >>> made = plan({}, {}, {"agent/b": {"skill": "2"}}, folder="crew")
    >>> sorted(intended({}, made)), sorted(intended({}, made, done=()))
    (['agent/b'], [])
    """
    undone = [] if done is None else [change.key for change in planned.steps if change not in done]
    result = {**{key: note for key, note in notes.items() if key not in planned.notes}, **planned.notes}
    for key in undone:
        result.pop(key, None)
        if key in notes:
            result[key] = notes[key]
    for change in done or ():
        if change.verb is Verb.REMOVE:
            result.pop(change.key, None)
    return result


def _turn(change: Change) -> tuple[int, str]:
    kinds = list(Kind)
    place = kinds.index(change.kind)
    if change.kind is Kind.WORKSPACE:
        # A paused workspace takes no new agents: it is let go on before the rest, and paused after it.
        goes_on = any(one.field == "paused" and one.after is False for one in change.fields)
        return (0 if goes_on else 3 * len(kinds), change.key)
    return (2 * len(kinds) - place if change.verb in {Verb.REMOVE, Verb.LEAVE} else place, change.key)
