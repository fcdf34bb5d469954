"""What all pages for people have in common: the frame, and the headers that keep strangers out of it."""

from dataclasses import dataclass
from html import escape
from typing import Final

from sexton_http.answers import Answer, Headers

POLICY: Final = (
    b"default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final[Headers] = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # Not "no-referrer": a form of such a page would be sent with the origin "null".
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


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


_FRAME: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>{title} · Sexton</title>
<link rel="stylesheet" href="/assets/sexton.css">
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
{head}</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header><a class="brand" href="/">Sexton</a>{who}</header>{places}
<main id="main">
<h1>{title}</h1>
{body}
</main>
</body>
</html>
"""
_WHO: Final = """<form class="who" method="post" action="/auth/sign-out">
<span>{name}</span> <button class="quiet">Sign out</button></form>"""
PLACES: Final = (
    ("Overview", "/"),
    ("Grants", "/grants"),
    ("API keys", "/keys"),
    ("Members", "/members"),
    ("Workspaces", "/workspaces"),
)
_PLACE: Final = '<li><a href="{to}"{here}>{name}</a></li>'
SEE_OTHER: Final = 303


def page(
    title: str,
    body: Safe,
    *,
    who: str | None = None,
    scripts: tuple[str, ...] = (),
    going_on: str | None = None,
    status: int = 200,
    headers: Headers = (),
) -> Answer:
    """A whole page.

    ``who`` is signed in; ``scripts`` are names of assets; ``headers`` are added; ``going_on`` is a page to
    which this one leads by itself.
    """
    lines = [safe('<script src="/assets/{name}" defer></script>\n', name=name) for name in scripts]
    if going_on is not None:
        lines.append(safe('<meta http-equiv="refresh" content="0;url={to}">\n', to=going_on))
    head = joined(lines)
    signed_in = Safe("") if who is None else safe(_WHO, name=who)
    places = Safe("") if who is None else _places(title)
    text = safe(_FRAME, title=title, head=head, who=signed_in, places=places, body=body).markup
    return Answer(status, (*HEADERS, *headers), text.encode())


def see(path: str) -> Answer:
    """After a form has done its work: the page to look at, so that loading it again does nothing again."""
    return Answer(SEE_OTHER, ((b"location", path.encode()), *HEADERS), b"")


def _places(title: str) -> Safe:
    rows = [
        safe(_PLACE, to=to, name=name, here=Safe(' aria-current="page"' if name == title else ""))
        for name, to in PLACES
    ]
    return safe('<nav class="places" aria-label="Pages"><ul>{rows}</ul></nav>', rows=joined(rows))
