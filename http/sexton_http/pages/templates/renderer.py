"""Fills the console's templates. Every value is escaped, and control characters in it are shown, not sent."""

from functools import partial
from typing import Any, Final

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sexton_actors.amounts import dollars
from sexton_http.answers import Answer, Headers
from sexton_http.pages.assets import ASSETS
from sexton_http.pages.headers import HEADERS
from sexton_http.pages.templates import words


def _finalize(value: object) -> object:
    """What an expression of a template is before it is escaped."""
    if value is None:
        return ""
    if isinstance(value, Markup):
        return value
    return words.plain(str(value))


def _pretty(value: Any) -> str:
    """A value of JSON for people; `Raw` is text of JSON already."""
    text = bytes(value) if isinstance(value, msgspec.Raw) else msgspec.json.encode(value)
    return msgspec.json.format(text or b"null", indent=2).decode()


def _compact(value: Any) -> str:
    """A short value of JSON in one line; nothing of an empty one."""
    return msgspec.json.encode(value).decode() if value else ""


_TEMPLATES: Final = Environment(
    loader=PackageLoader("sexton_http.pages.templates", "html"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_finalize,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters |= {
    "ago": words.ago,
    "compact": _compact,
    "dollars": dollars,
    "exact": words.exact,
    "pretty": _pretty,
    "size": words.size,
    "slack_counts": words.slack_counts,
    "span": words.span,
    "tail": words.tail,
}
_TEMPLATES.globals |= {
    "agent_mark": partial(words.mark, words.AGENTS),
    "asset": lambda name: ASSETS[name].address,
    "delivery_mark": partial(words.mark, words.DELIVERIES),
    "event_mark": partial(words.mark, words.EVENTS),
    "failure_mark": partial(words.mark, words.FAILURES),
    "gate_mark": partial(words.mark, words.GATES),
    "grant_mark": partial(words.mark, words.GRANTS),
    "job_mark": partial(words.mark, words.JOBS),
    "outcome_mark": words.outcome,
    "runner_mark": partial(words.mark, words.RUNNERS),
    "schedule_mark": partial(words.mark, words.SCHEDULES),
    "version_mark": partial(words.mark, words.VERSIONS),
}


def filled(template: str, **values: Any) -> str:
    """The text of a template by its name, without the ending."""
    return _TEMPLATES.get_template(f"{template}.html").render(values)


def html(text: str, status: int = 200, headers: Headers = ()) -> Answer:
    """A whole page or a part of one, with what keeps strangers out of it."""
    return Answer(status, (*HEADERS, *headers), text.encode())
