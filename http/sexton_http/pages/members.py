"""The words of the page on which an admin says who is admitted to the tenant."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from sexton_http.answers import Answer
from sexton_http.bodies.member_shapes import Invited, MemberItem, MemberPage, Removed
from sexton_http.identity.principals import SignedIn
from sexton_http.pages.forms import Field, Trouble, choice, error, moment, page_links, text_field
from sexton_http.pages.layout import Safe, joined, page, safe
from sexton_storage.records.users import MemberStatus, Role

TITLE: Final = "Members"
OK: Final = 200
CREATED: Final = 201
END_KEYS: Final = "end"
NAME: Final = Field("name", "Name", "Use 1 to 128 characters.", 128, required=True)
SUBJECT: Final = Field(
    "subject",
    "Known to a provider as (optional)",
    "As in https://id.example.com#42, at most 512 characters. With none, only links let the person in.",
    512,
)
HEIR: Final = Field("to", "Keys", "Choose an active member.", 36)
FIELDS: Final = (NAME, SUBJECT, HEIR)
ROLES: Final = tuple(role.value for role in Role)

_INTRO: Final = (
    "<p>Whoever is suspended or removed is signed out at once, and refused with every key and token.</p>"
)
_NOT_YOURS: Final = '<p class="soft">Members are for the role {needed}; yours is {role}.</p>'
_NEW: Final = """<section aria-labelledby="new"><h2 id="new">Invite somebody</h2>
<form method="post" action="/members">{error}{fields}
<p class="actions"><button class="go">Invite</button></p></form></section>"""
_LIST: Final = '<section aria-labelledby="all"><h2 id="all">Members ({total})</h2>{items}{pages}</section>'
_ITEM: Final = """<li class="card"><h3>{name}{you}</h3>
<dl><dt>State</dt><dd>{state}</dd><dt>Role</dt><dd>{role}</dd><dt>Known as</dt><dd>{subject}</dd>
<dt>Signed in</dt><dd>{places}</dd><dt>Admitted</dt><dd>{created}</dd><dt>Changed</dt><dd>{changed}</dd></dl>
{error}{actions}</li>"""
_BUTTON: Final = """<form method="post" action="/members/{id}/{what}">{hidden}
<p class="actions"><button aria-label="{verb}: {name}">{verb}</button></p></form>"""
_HIDDEN: Final = '<input type="hidden" name="{name}" value="{value}">'
_DETAILS: Final = """<details{open}><summary aria-label="{verb}: {name}">{verb}</summary>
<form method="post" action="/members/{id}/{what}">{fields}
<p class="actions"><button class="go" aria-label="{now}: {name}">{now}</button></p></form></details>"""
_REMOVE_NOTE: Final = "<p>The person is refused from then on, until somebody invites them again.</p>"
_INVITED: Final = """<p class="good" role="status">{name} can sign in with this link: once, in one browser,
until {until}. This is the only time that it is shown. Hand it over by a way that you trust.</p>
<p class="field"><label for="link">The link</label>
<textarea id="link" rows="3" readonly autofocus autocomplete="off" spellcheck="false"
 aria-describedby="link-rule">{url}</textarea>
<span class="soft" id="link-rule">To copy it by keyboard, select all of this field, then copy.</span></p>
<p class="actions"><a class="button go" href="/members">I have handed it over</a></p>"""
_REMOVED: Final = """<p class="good" role="status">{name} is removed.</p>
<dl class="card"><dt>Sign-ins ended</dt><dd>{sign_ins}</dd><dt>Keys ended</dt><dd>{ended}</dd>
<dt>Keys handed over</dt><dd>{handed}</dd></dl>
<p class="actions"><a class="button go" href="/members">To the members</a></p>"""


def members_page(
    who: SignedIn,
    members: MemberPage,
    places: Mapping[UUID, int],
    *,
    typed: dict[str, str],
    trouble: Trouble | None = None,
) -> Answer:
    """All members, and a form for another; ``places`` says where each is signed in how often.

    ``typed`` is what a form that comes back had in its fields.
    """
    own = typed if trouble is not None and not trouble.item else {}
    fields = [
        text_field(NAME, own.get("name", ""), trouble),
        choice("role", "Role", ROLES, own.get("role", Role.USER.value)),
        text_field(SUBJECT, own.get("subject", ""), trouble),
    ]
    body = Safe(_INTRO) + safe(_NEW, error=error(trouble), fields=joined(fields))
    heirs = [(str(one.id), f"give to {_called(one)}") for one in members.items if _is_active(one)]
    rows = [_item(who, one, places, heirs, trouble) for one in members.items]
    pages = page_links(
        "/members",
        "More members",
        ("Earlier members", "Later members"),
        page=members.page,
        page_size=members.page_size,
        total=members.total,
    )
    items = safe('<ul class="items">{rows}</ul>', rows=joined(rows))
    body += safe(_LIST, total=members.total, items=items, pages=pages)
    return page(TITLE, body, who=who, here="members", status=OK if trouble is None else trouble.status)


def no_members_page(who: SignedIn, needed: Role, trouble: Trouble | None = None) -> Answer:
    """For whoever may not see them."""
    wrong = error(trouble, item="" if trouble is None else trouble.item)
    body = wrong + safe(_NOT_YOURS, needed=needed.value, role=who.user.role)
    return page(TITLE, body, who=who, here="members", status=OK if trouble is None else trouble.status)


def invited_page(who: SignedIn, made: Invited) -> Answer:
    """The only page that ever has the link."""
    body = safe(_INVITED, name=made.member.name, until=moment(made.expires_at), url=made.sign_in_url)
    return page("A link to hand over", body, who=who, status=CREATED)


def removed_page(who: SignedIn, removed: Removed) -> Answer:
    """What ended with a member."""
    body = safe(
        _REMOVED,
        name=removed.member.name,
        sign_ins=removed.sign_ins_ended,
        ended=removed.keys_ended,
        handed=removed.keys_handed_over,
    )
    return page("A member is removed", body, who=who)


def places_of(member_ids: Sequence[UUID]) -> Mapping[UUID, int]:
    """How often each is there."""
    return Counter(member_ids)


def _called(member: MemberItem) -> str:
    return member.name or member.subject


def _is_active(member: MemberItem) -> bool:
    return member.status is MemberStatus.ACTIVE


def _item(
    who: SignedIn,
    member: MemberItem,
    places: Mapping[UUID, int],
    heirs: Sequence[tuple[str, str]],
    trouble: Trouble | None,
) -> Safe:
    item, count = str(member.id), places.get(member.id, 0)
    changed = moment(member.changed_at)
    if member.changed_at is not None and member.changed_by:
        changed += safe(" by {by}", by=member.changed_by)
    return safe(
        _ITEM,
        name=_called(member),
        you=Safe(' <span class="soft">(you)</span>' if member.id == who.user.id else ""),
        state=member.status.value,
        role=f"{member.role.value}, platform admin" if member.platform_admin else member.role.value,
        subject=member.subject,
        places="nowhere" if not count else f"in {count} place{'s' if count > 1 else ''}",
        created=moment(member.created_at),
        changed=changed,
        error=error(trouble, item=item, within=f"member-{item}"),
        actions=_actions(who, member, count, heirs, trouble),
    )


def _actions(
    who: SignedIn, member: MemberItem, places: int, heirs: Sequence[tuple[str, str]], trouble: Trouble | None
) -> Safe:
    item, role = str(member.id), choice("role", "Role", ROLES, member.role.value, item=str(member.id))
    if member.status is MemberStatus.REMOVED:
        return _details(member, "Invite again", "invitation", "Make a link", role)
    forms = []
    if _is_active(member):
        if member.issuer is None:
            forms.append(_details(member, "Change the role", "role", "Change it", role))
            forms.append(_button(member, "Make a sign-in link", "invitation"))
        if places and member.id != who.user.id:
            forms.append(_button(member, "Sign out everywhere", "sign-out"))
        forms.append(_button(member, "Suspend", "status", ("status", MemberStatus.SUSPENDED.value)))
    else:
        forms.append(_button(member, "Resume", "status", ("status", MemberStatus.ACTIVE.value)))
    others = [heir for heir in heirs if heir[0] != item]
    keys = choice("to", "Keys", [(END_KEYS, "end with the member"), *others], END_KEYS, item=item)
    wrong = error(trouble, field=HEIR.name, item=item, within=f"to-{item}")
    fields = Safe(_REMOVE_NOTE) + keys + wrong
    forms.append(_details(member, "Remove", "removal", "Remove now", fields, is_open=bool(wrong.markup)))
    return joined(forms)


def _button(member: MemberItem, verb: str, what: str, sends: tuple[str, str] | None = None) -> Safe:
    hidden = Safe("") if sends is None else safe(_HIDDEN, name=sends[0], value=sends[1])
    return safe(_BUTTON, id=str(member.id), name=_called(member), verb=verb, what=what, hidden=hidden)


def _details(
    member: MemberItem, verb: str, what: str, now: str, fields: Safe, *, is_open: bool = False
) -> Safe:
    return safe(
        _DETAILS,
        id=str(member.id),
        name=_called(member),
        verb=verb,
        what=what,
        now=now,
        fields=fields,
        open=Safe(" open" if is_open else ""),
    )
