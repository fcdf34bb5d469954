"""The words of the page on which people keep the keys of their programs."""

from collections.abc import Sequence
from typing import Final

from sexton_http.answers import Answer
from sexton_http.bodies.shapes import KeyItem, KeyMade, KeyPage
from sexton_http.identity.principals import SignedIn
from sexton_http.pages.forms import Field, Trouble, choice, error, moment, page_links, text_field
from sexton_http.pages.layout import Safe, joined, page, safe

TITLE: Final = "API keys"
OK: Final = 200
CREATED: Final = 201
KEY_NAME: Final = Field(
    "key_name", "Name", "Use 1 to 64 letters, digits, hyphens and underscores.", 64, required=True
)
DESCRIPTION: Final = Field("description", "Description", "Use at most 256 characters, or none.", 256)
EXPIRES: Final = Field(
    "expires_at",
    "Last day (optional)",
    "Use a day to come, as in 2027-01-31: the key works until it is over, in UTC. Without, it has no end.",
    10,
    kind="date",
)
FIELDS: Final = (KEY_NAME, DESCRIPTION, EXPIRES)

_INTRO: Final = "<p>Programs use a key in place of a person. A key is shown once, when it is made.</p>"
_NEW: Final = """<section aria-labelledby="new"><h2 id="new">Create a key</h2>
<form method="post" action="/keys">{error}{fields}
<p class="actions"><button class="go">Create key</button></p></form></section>"""
_NOT_YOURS: Final = '<p class="soft">Creating and revoking keys needs the role {needed}; yours is {role}.</p>'
_LIST: Final = '<section aria-labelledby="all"><h2 id="all">Keys ({total})</h2>{items}{pages}</section>'
_ITEM: Final = """<li class="card"><h3>{name}</h3>
<dl><dt>State</dt><dd>{state}</dd><dt>Role</dt><dd>{role}</dd><dt>Description</dt><dd>{description}</dd>
<dt>Created</dt><dd>{created}</dd><dt>Last used</dt><dd>{used}</dd><dt>Ends</dt><dd>{ends}</dd>
<dt>Owner</dt><dd>{owner}</dd></dl>{error}{actions}</li>"""
_REVOKE: Final = """<details><summary aria-label="Revoke {name}">Revoke</summary>
<form method="post" action="/keys/{id}/revoke">
<p>Programs with this key are refused from then on, and it cannot be taken back.</p>
<p class="actions"><button class="go" aria-label="Revoke for good: {name}">Revoke for good</button></p>
</form></details>"""
_DELETE: Final = """<form method="post" action="/keys/{id}/delete">
<p class="actions"><button aria-label="Delete {name}">Delete</button></p></form>"""
_MADE: Final = """<p class="good" role="status">The key {name} is made. This is the only time that it is
shown: copy it now and keep it where your program reads its secrets.</p>
<p class="field"><label for="key">The key</label>
<textarea id="key" rows="3" readonly autofocus autocomplete="off" spellcheck="false"
 aria-describedby="key-rule">{key}</textarea>
<span class="soft" id="key-rule">To copy it by keyboard, select all of this field, then copy.</span></p>
<p class="actions"><a class="button go" href="/keys">I have kept it</a></p>"""


def keys_page(
    who: SignedIn,
    keys: KeyPage,
    *,
    roles: Sequence[str],
    needed: str,
    typed: dict[str, str],
    trouble: Trouble | None = None,
) -> Answer:
    """All keys, and a form for another; ``roles`` are those that it can have, none for who may make none.

    ``typed`` is what a form that comes back had in its fields.
    """
    body = Safe(_INTRO)
    if roles:
        fields = [text_field(field, typed.get(field.name, ""), trouble) for field in FIELDS]
        fields.append(choice("role", "Role", roles, typed.get("role", "")))
        body += safe(_NEW, error=error(trouble), fields=joined(fields))
    else:
        body += error(trouble) + safe(_NOT_YOURS, needed=needed, role=who.user.role)
    body += _listed(keys, changeable=bool(roles), trouble=trouble)
    return page(TITLE, body, who=who, here="keys", status=OK if trouble is None else trouble.status)


def made_page(who: SignedIn, made: KeyMade) -> Answer:
    """The only page that ever has the key."""
    return page("A new key", safe(_MADE, name=made.key_name, key=made.key), who=who, status=CREATED)


def _listed(keys: KeyPage, *, changeable: bool, trouble: Trouble | None) -> Safe:
    rows = [_item(key, changeable=changeable, trouble=trouble) for key in keys.items]
    items = safe('<ul class="items">{rows}</ul>', rows=joined(rows)) if rows else Safe("<p>None here.</p>")
    return safe(_LIST, total=keys.total, items=items, pages=_pages(keys))


def _item(key: KeyItem, *, changeable: bool, trouble: Trouble | None) -> Safe:
    form = Safe("")
    if changeable:
        form = safe(_REVOKE if key.revoked_at is None else _DELETE, id=str(key.id), name=key.key_name)
    return safe(
        _ITEM,
        name=key.key_name,
        state=_state(key),
        role=f"{key.role.value}, platform admin" if key.platform_admin else key.role.value,
        description=key.description or "none",
        created=moment(key.created_at),
        used=moment(key.last_used_at),
        ends=_end(key),
        owner="the tenant" if key.owner_id is None else str(key.owner_id),
        error=error(trouble, item=str(key.id), within=f"key-{key.id}"),
        actions=form,
    )


def _state(key: KeyItem) -> Safe:
    if key.revoked_at is not None:
        return safe("revoked {at}", at=moment(key.revoked_at))
    return Safe("active" if key.active else "expired")


def _end(key: KeyItem) -> Safe:
    if key.expires_at is None:
        return Safe("when it is revoked")
    soon = ' <strong class="bad">soon: make another, and revoke this one</strong>' if key.expires_soon else ""
    return safe("{at}", at=moment(key.expires_at)) + Safe(soon)


def _pages(keys: KeyPage) -> Safe:
    words = ("Newer keys", "Older keys")
    return page_links("/keys", "More keys", words, page=keys.page, page_size=keys.page_size, total=keys.total)
