"""The pieces of a page's forms: fields with their labels, and what was wrong, said beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qsl

from sexton_http.answers import Problem
from sexton_http.bodies.decoding import MAX_QUERY_FIELDS
from sexton_http.pages.layout import Safe, joined, safe

CLIENT_FAULT: Final = range(400, 500)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a form came back. ``field`` is the name of the one at fault; empty when none is.

    ``item`` is the id of the thing on the page whose form it was.
    """

    status: int
    code: str
    sentence: str
    request_id: str
    field: str = ""
    item: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """One line of text. ``rule`` says what may be written; it is also what a wrong value is told."""

    name: str
    label: str
    rule: str
    max_chars: int
    required: bool = False
    kind: str = "text"
    """As HTML names it: with `date` a browser shows a calendar, and sends `2026-12-31`."""


_ERROR: Final = """<p class="bad" role="alert" id="{id}">{sentence}
<span class="trace">{code}, request {request_id}</span></p>"""
_INPUT: Final = """<p class="field"><label for="{id}">{label}</label>
<input id="{id}" type="{kind}" name="{name}" value="{value}" maxlength="{max_chars}" autocomplete="off"
 autocapitalize="none" spellcheck="false" aria-describedby="{id}-rule{described}"{marks}>
<span class="soft" id="{id}-rule">{rule}</span></p>{error}"""
_SELECT: Final = """<p class="field"><label for="{id}">{label}</label>
<select id="{id}" name="{name}">{options}</select></p>"""
_OPTION: Final = '<option value="{value}"{chosen}>{text}</option>'
_TIME: Final = '<time datetime="{iso}">{text}</time>'


def trouble_of(
    problem: Problem, request_id: str, fields: Sequence[Field], *, at: str = "", item: str = ""
) -> Trouble:
    """What a page says of a problem; ``at`` is the field that the problem is about when it names none.

    Raises the problem again when it is not about what somebody has sent, or when a page cannot be made of it.
    """
    if problem.status not in CLIENT_FAULT or problem.code == "UZ-REQ-005":
        raise problem
    if problem.code != "UZ-REQ-001":
        return Trouble(problem.status, problem.code, sentence(problem.detail), request_id, at, item)
    about = problem.facts.get("parameter") or problem.facts.get("pointer", "").removeprefix("/")
    named = [field for field in fields if field.name == about]
    if not named:
        raise problem
    return Trouble(problem.status, problem.code, named[0].rule, request_id, named[0].name, item)


def sentence(text: str) -> str:
    """As it stands in a text.

    >>> sentence("there is no key")
    'There is no key.'
    """
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def error(trouble: Trouble | None, *, field: str = "", item: str = "", within: str = "form") -> Safe:
    """What was wrong with one field; with none, what was wrong with the whole of a form."""
    if trouble is None or (trouble.field, trouble.item) != (field, item):
        return Safe("")
    return safe(
        _ERROR,
        id=f"{within}-error",
        sentence=trouble.sentence,
        code=trouble.code,
        request_id=trouble.request_id,
    )


def text_field(field: Field, value: str = "", trouble: Trouble | None = None, *, item: str = "") -> Safe:
    """A field with its label, its rule, and what is wrong with it; then the page opens with it in focus."""
    element = f"{field.name}-{item}" if item else field.name
    wrong = error(trouble, field=field.name, item=item, within=element)
    marks = (" required" if field.required else "") + (
        ' aria-invalid="true" autofocus' if wrong.markup else ""
    )
    return safe(
        _INPUT,
        id=element,
        name=field.name,
        label=field.label,
        rule=field.rule,
        value=value,
        max_chars=field.max_chars,
        kind=field.kind,
        described=f" {element}-error" if wrong.markup else "",
        marks=Safe(marks),
        error=wrong,
    )


Option = str | tuple[str, str]
"""What is sent; as a pair, with what is shown in its place."""


def choice(name: str, label: str, options: Sequence[Option], chosen: str, *, item: str = "") -> Safe:
    """One of a few."""
    pairs = [(option, option) if isinstance(option, str) else option for option in options]
    rows = [
        safe(_OPTION, value=value, text=text, chosen=Safe(" selected" if value == chosen else ""))
        for value, text in pairs
    ]
    element = f"{name}-{item}" if item else name
    return safe(_SELECT, id=element, name=name, label=label, options=joined(rows))


def more_links(links: Sequence[tuple[str, str]], name: str) -> Safe:
    """Where more of a list is: addresses with their words."""
    rows = [safe('<a href="{to}">{words}</a>', to=to, words=words) for to, words in links]
    if not rows:
        return Safe("")
    return safe('<nav class="actions" aria-label="{name}">{rows}</nav>', name=name, rows=joined(rows))


def page_links(
    path: str, name: str, words: tuple[str, str], *, page: int, page_size: int, total: int
) -> Safe:
    """The pages before and behind this one; ``words`` are what leads to them."""
    links = []
    if page > 1:
        links.append((f"{path}?page={page - 1}", words[0]))
    if page * page_size < total:
        links.append((f"{path}?page={page + 1}", words[1]))
    return more_links(links, name)


def moment(ms: int | None, never: str = "never") -> Safe:
    """A time of the database's clock, to the minute, in UTC.

    >>> moment(0).markup
    '<time datetime="1970-01-01T00:00Z">1970-01-01 00:00 UTC</time>'
    """
    if ms is None:
        return Safe(never)
    at = datetime.fromtimestamp(ms / 1000, UTC)
    return safe(_TIME, iso=f"{at:%Y-%m-%dT%H:%MZ}", text=f"{at:%Y-%m-%d %H:%M} UTC")


def sent_fields(raw: bytes) -> dict[str, str]:
    """What a form had in its fields, to be shown again; nothing where that cannot be read."""
    try:
        return dict(parse_qsl(raw.decode("ascii"), errors="strict", max_num_fields=MAX_QUERY_FIELDS))
    except ValueError:
        return {}
