"""The words of the pages on which people sign in, see where they are, and approve a terminal."""

from collections.abc import Sequence
from typing import Final

from sexton_actors.protocol.auth_session import Seen
from sexton_http.answers import Answer, Headers
from sexton_http.identity.principals import SignedIn
from sexton_http.identity.sign_in_terms import SignInTerms, in_words
from sexton_http.pages.layout import Safe, joined, page, safe
from sexton_storage.records.sign_ins import SignInKind
from sexton_storage.records.workspaces import Workspace

GONE: Final = 410
NOT_FOUND: Final = 404
FORBIDDEN: Final = 403
UNAVAILABLE: Final = 502
FIRST_PAGE: Final = "/console"
"""Where a sign-in leads that began on no other page: what waits in the first workspace."""

Ways = Sequence[tuple[str, str]]
"""Identity providers: the name in addresses, and the label."""

_LINK: Final = """<p>This link signs you in, once. Opening it has not used it up.</p>
<form method="post" class="actions"><button class="go" autofocus>Sign in</button></form>"""
_NEW_LINK: Final = (
    "<p>The first start of <code>sexton up</code> prints a sign-in link that works once, within an hour. "
    "<code>sexton auth link</code>, on the server's machine, prints a fresh one.</p>"
)
_WAY: Final = '<a class="button go" href="/auth/login/{name}{following}">Sign in with {label}</a>'
_WORKSPACES: Final = """<h2>Workspaces</h2>
<table><thead><tr><th scope="col">Name</th><th scope="col">Id</th><th scope="col">State</th></tr></thead>
<tbody>{rows}</tbody></table>"""
_ROW: Final = (
    '<tr><td class="name"><a href="/console/{id}/now">{name}</a></td><td><code>{id}</code></td>'
    '<td class="word">{state}</td></tr>'
)
_HOME: Final = """<dl class="card"><dt>Signed in as</dt><dd>{shown}</dd>
<dt>Known as</dt><dd><code>{subject}</code></dd><dt>Role</dt><dd>{role}</dd>
<dt>Tenant</dt><dd>{tenant} <span class="soft">({plan})</span></dd></dl>"""
_LINKS: Final = """<h2>Reference</h2>
<ul><li><a href="/docs">Routes</a></li><li><a href="/docs/errors">Error codes</a></li>
<li><a href="/openapi.json">OpenAPI document</a></li></ul>"""


def link_page() -> Answer:
    """Behind a good sign-in link."""
    return page("Sign in", Safe(_LINK))


def used_link_page() -> Answer:
    """Behind one that is unknown, used or expired: they are not told apart."""
    return page("This link signs nobody in", Safe(_NEW_LINK), status=GONE)


def sign_in_page(ways: Ways, following: str = "") -> Answer:
    """For somebody who is not signed in. ``following`` is a query, with its question mark."""
    buttons = [safe(_WAY, name=name, label=label, following=following) for name, label in ways]
    choice = safe('<p class="actions">{buttons}</p>', buttons=joined(buttons)) if ways else Safe("")
    again = Safe("<p>Come back to this page when you are signed in.</p>") if following else Safe("")
    return page("Sign in", choice + Safe(_NEW_LINK) + again)


def refused_page(reason: str, status: int = FORBIDDEN) -> Answer:
    """For a sign-in elsewhere that came to nothing."""
    body = safe('<p class="bad" role="alert">{reason}</p><p><a href="/">Begin again</a></p>', reason=reason)
    return page("You are not signed in", body, status=status)


def signed_in_page(going_on: str, headers: Headers) -> Answer:
    """Goes on by itself. A redirect would not do.

    The browser was sent here from another site and would not bring its new, strict cookie along; what this
    page begins is a request of our own.
    """
    body = safe('<p>You are signed in. <a href="{to}">Go on</a></p>', to=going_on)
    return page("Signed in", body, headers=headers, going_on=going_on)


def home_page(who: SignedIn, workspaces: Sequence[Workspace]) -> Answer:
    """Who is signed in, and what is theirs."""
    user, tenant = who.user, who.tenant
    about = safe(
        _HOME,
        shown=who.shown,
        subject=user.subject,
        role=user.role,
        tenant=tenant.name,
        plan=tenant.plan_tier,
    )
    rows = [
        safe(_ROW, name=w.name, id=str(w.id), state="paused" if w.paused else "active") for w in workspaces
    ]
    listed = safe(_WORKSPACES, rows=joined(rows))
    return page("Overview", about + listed + Safe(_LINKS), who=who)


# --- device login ---------------------------------------------------------------------------------------

_DEVICE: Final = """<section id="device" data-session-id="{id}" data-public-key="{key}">
<dl class="card"><dt>Terminal</dt><dd>{name}</dd><dt>Session</dt><dd><code>{id}</code></dd>
<dt>Will act as</dt><dd>{subject}</dd>
<dt>Until</dt><dd>it signs out, is not used for {idle}, or has been signed in for {life}</dd></dl>
<noscript><p class="bad">This page encrypts the token for the terminal, by its script.</p></noscript>
<div id="ask" data-part tabindex="-1"><p>Did you start <code>sexton login</code> just now?
Approve only a terminal of your own.</p>
<p class="actions"><button id="approve" class="go" disabled>Approve</button>
<button id="refuse" disabled>Refuse</button></p></div>
<div id="approved" data-part tabindex="-1" role="status" hidden><p>Type this code into the terminal:</p>
<p class="code" id="code"></p><p class="soft">It works once, within five minutes.</p></div>
<div id="done" data-part tabindex="-1" role="status" hidden><p class="good">The terminal is signed in. You can
close this page.</p></div>
<div id="refused" data-part tabindex="-1" role="status" hidden><p>The terminal was refused.</p></div>
<div id="failed" data-part tabindex="-1" role="alert" hidden><p class="bad">That did not work:
<span id="reason"></span></p></div>
</section>"""
_OVER: Final = {
    "verification_pending": "This terminal was approved already; its code was shown on the page that did it.",
    "complete": "This terminal has its token already.",
    "consumed": "This terminal is signed in already.",
    "expired": "This terminal waited too long. Run sexton login again.",
    "aborted": "This sign-in was ended. Run sexton login again.",
}


def device_page(who: SignedIn, seen: Seen, terms: SignInTerms) -> Answer:
    """Asks whether the terminal may act as this person; all else is the script's."""
    session, title = seen.session, "Approve a terminal"
    if seen.status != "pending":
        return page(title, safe("<p>{why}</p>", why=_OVER[seen.status]), who=who)
    if session.public_key is None:
        why = Safe("<p>This terminal sent no key to encrypt a token for; it cannot be approved here.</p>")
        return page(title, why, who=who)
    body = safe(
        _DEVICE,
        id=str(session.id),
        key=session.public_key,
        name=session.token_name or "without a name",
        subject=who.shown,
        idle=in_words(terms.idle_of(SignInKind.TERMINAL)),
        life=in_words(terms.life_of(SignInKind.TERMINAL)),
    )
    return page(title, body, who=who, scripts=("device.js",))


def no_device_page(who: SignedIn) -> Answer:
    body = Safe("<p>No terminal waits here. Run <code>sexton login</code> again.</p>")
    return page("Approve a terminal", body, who=who, status=NOT_FOUND)
