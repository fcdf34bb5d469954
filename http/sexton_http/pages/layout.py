"""Pages whose words are markup of their own: what is escaped, and the frame that they stand in."""

from dataclasses import dataclass
from html import escape
from typing import Final

from markupsafe import Markup

from sexton_http.answers import Answer, Headers
from sexton_http.identity.principals import SignedIn
from sexton_http.pages.headers import HEADERS
from sexton_http.pages.templates.frame import Frame, show


@dataclass(frozen=True, slots=True)
class Safe:
    """Markup. Everything that is only text has been escaped on its way in."""

    markup: str

    def __add__(self, other: "Safe") -> "Safe":
        return Safe(self.markup + other.markup)


def safe(template: str, **values: "str | int | Safe") -> Safe:
    """Fill a template of our own; each value is escaped unless it is markup already.

    >>> safe("<p>{name}</p>", name="<b>").markup
    '<p>&lt;b&gt;</p>'
    """
    filled = {
        name: value.markup if isinstance(value, Safe) else escape(str(value))
        for name, value in values.items()
    }
    return Safe(template.format(**filled))


def joined(parts: "list[Safe]") -> Safe:
    return Safe("".join(part.markup for part in parts))


SEE_OTHER: Final = 303


def page(
    title: str,
    body: Safe,
    *,
    who: SignedIn | None = None,
    here: str = "",
    scripts: tuple[str, ...] = (),
    going_on: str | None = None,
    status: int = 200,
    headers: Headers = (),
) -> Answer:
    """A whole page.

    ``who`` is signed in; ``here`` is its key in the navigation; ``scripts`` are names of assets; ``headers``
    are added; ``going_on`` is a page to which this one leads by itself.
    """
    frame = Frame(title, here, who, scripts=scripts, going_on=going_on)
    template = "visitor" if who is None else "form_page"
    return show(frame, template, status=status, headers=headers, body=Markup(body.markup))  # noqa: S704 - escaped by safe()


def see(path: str) -> Answer:
    """After a form has done its work: the page to look at, so that loading it again does nothing again."""
    return Answer(SEE_OTHER, ((b"location", path.encode()), *HEADERS), b"")
