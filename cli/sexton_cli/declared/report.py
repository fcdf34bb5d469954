"""Says what is to change: a line a thing, fields and texts below it, or one document for a program."""

import difflib
import json
from collections.abc import Iterator
from typing import Any, Final

from sexton_cli.declared.declaration_file import literal_secret
from sexton_cli.declared.session import Left
from sexton_cli.declared.things import SECRET, SECRETS, TEXTS, name_of
from sexton_cli.declared.three_way import Change, FieldChange, Plan, Verb

SIGNS: Final = {Verb.MAKE: "+", Verb.CHANGE: "~", Verb.REMOVE: "-", Verb.LEAVE: "?"}
LEFT: Final = "is in the folder no more, and stays; --prune removes it"
BY_HAND: Final = "changed since it was applied"


def lines_of(planned: Plan) -> list[str]:
    """A line for each thing that changes, or would with ``--prune``."""
    return [_line(change) for change in planned.changes]


def line_of_trial(left: Left) -> str:
    """Why files stay as they are.

    >>> line_of_trial(Left("herald", 4, 10))
    '? agent/herald: version 4 is on trial on 10 percent of its events; its files stay until that ends'
    """
    told = f"version {left.version} is on trial on {left.share} percent of its events"
    return f"? agent/{left.agent}: {told}; its files stay until that ends"


def _line(change: Change) -> str:
    return f"{SIGNS[change.verb]} {_named(change)}{_of_fields(change)}"


def _named(change: Change) -> str:
    return change.key.removesuffix("/")


def _of_fields(change: Change) -> str:
    if change.verb is Verb.LEAVE:
        return f" {LEFT}"
    if change.verb is not Verb.CHANGE:
        return ""
    told = [f"{_title(one)}{_values(one)}{f' ({BY_HAND})' if one.by_hand else ''}" for one in change.fields]
    return f": {', '.join(told)}"


def _title(one: FieldChange) -> str:
    return TEXTS.get(one.field, one.field)


def _values(one: FieldChange) -> str:
    if one.field in TEXTS:
        return ""
    if one.field in SECRETS:
        return " differs"
    return f" {_masked(one, one.before)} -> {_masked(one, one.after)}"


def _shown(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False)


def diff_of(planned: Plan) -> str:
    """Every change as a unified diff, from what is there to what is wanted."""
    return "\n".join(line for change in planned.steps for line in _diff(change))


def _diff(change: Change) -> Iterator[str]:
    if change.verb is Verb.REMOVE:
        yield from (f"--- {_named(change)}", "+++ /dev/null")
        return
    plain = [one for one in change.fields if one.field not in TEXTS]
    for one in change.fields:
        if one.field in TEXTS:
            yield from _unified(f"{change.key}/{_title(one)}", one.before or "", one.after or "", one)
    if plain or not change.fields:
        before = "".join(
            f"{one.field}: {_masked(one, one.before)}\n" for one in plain if one.before is not None
        )
        after = "".join(f"{one.field}: {_masked(one, one.after)}\n" for one in plain if one.after is not None)
        yield from _unified(_named(change), before, after, *plain)


def _masked(one: FieldChange, value: Any) -> str:
    if one.field in SECRETS:
        return str(value)
    part, _, name = one.field.partition(".")
    if part in {"headers", "env"} and value is not None and literal_secret(name, value):
        # Somebody has put it there by hand; it is not to stand in a log too.
        return SECRET
    return _shown(value)


def _unified(name: str, before: str, after: str, *fields: FieldChange) -> Iterator[str]:
    by_hand = f" ({BY_HAND})" if any(one.by_hand for one in fields) else ""
    old, new = ("/dev/null" if not before else f"{name} on the server{by_hand}"), f"{name} in the folder"
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), old, new, lineterm=""))
    if lines:
        yield from lines
    elif before != after:
        yield from (f"--- {old}", f"+++ {new}", "@@ the ends of lines differ @@")
    else:
        yield from (f"--- {old}", f"+++ {new}")


def document_of(planned: Plan, *, with_diff: bool) -> list[dict[str, Any]]:
    """For ``--json``."""
    return [
        {
            "verb": change.verb.value,
            "kind": change.kind.value,
            "name": name_of(change.key),
            "fields": [
                {
                    "field": _title(one),
                    "by_hand": one.by_hand,
                    **({} if one.field in TEXTS else _both(one)),
                }
                for one in change.fields
            ],
            **({"diff": "\n".join(_diff(change))} if with_diff and change.is_step else {}),
        }
        for change in planned.changes
    ]


def _both(one: FieldChange) -> dict[str, Any]:
    """Both values, as far as they are nobody's secret."""
    hidden = [SECRET in _masked(one, value) for value in (one.before, one.after)]
    return {"before": SECRET if hidden[0] else one.before, "after": SECRET if hidden[1] else one.after}


def count_of(planned: Plan) -> str:
    """The changes in a few words.

    >>> count_of(Plan((Change(Verb.MAKE, "agent/a"), Change(Verb.LEAVE, "agent/b")), {}))
    '1 to make, 0 to change, 0 to remove'
    """
    counts = {verb: sum(change.verb is verb for change in planned.changes) for verb in Verb}
    return f"{counts[Verb.MAKE]} to make, {counts[Verb.CHANGE]} to change, {counts[Verb.REMOVE]} to remove"
