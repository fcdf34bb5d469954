"""The words of the page on which operators say which agents may use which credentials and services."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from sexton_http.answers import Answer
from sexton_http.bodies.grant_shapes import CredentialGrantItem, CredentialGrantPage, GrantItem, GrantPage
from sexton_http.bodies.shapes import WorkspaceItem
from sexton_http.identity.principals import SignedIn
from sexton_http.pages.forms import Trouble, error, moment, more_links
from sexton_http.pages.layout import Safe, joined, page, safe
from sexton_storage.records.grants import GrantStatus

TITLE: Final = "Grants"
OK: Final = 200

_INTRO: Final = """<p>An agent is lent a credential or a service only while it is granted. While the grant of
a credential waits, so do the agent's events.</p>"""
_NOT_YOURS: Final = '<p class="soft">Deciding needs the role {needed}; yours is {role}.</p>'
_NO_WORKSPACE: Final = (
    '<p class="bad" role="alert">There is no such workspace. <a href="/workspaces">Your workspaces</a></p>'
)
_SECTION: Final = """<section aria-labelledby="{id}"><h2 id="{id}">{title}</h2>{items}{more}</section>"""
_ITEM: Final = """<li class="card"><h3>{what} for {agent}</h3><dl><dt>State</dt><dd>{state}</dd>{facts}
<dt>Asked</dt><dd>{asked}</dd><dt>Decided</dt><dd>{decided}</dd></dl>{actions}</li>"""
_FACT: Final = "<dt>{name}</dt><dd>{value}</dd>"
_BUTTON: Final = """<form method="post" action="/grants/{path}">
<input type="hidden" name="status" value="{status}">
<button class="{kind}" aria-label="{verb}: {what} for {agent}">{verb}</button></form>"""


@dataclass(frozen=True, slots=True)
class Shown:
    """What the page is about: one workspace, and what there is of grants in it."""

    workspace: WorkspaceItem
    workspaces: Sequence[WorkspaceItem]
    asked_credentials: CredentialGrantPage
    asked_services: GrantPage
    credentials: CredentialGrantPage
    services: GrantPage
    agents: Mapping[UUID, str]


@dataclass(frozen=True, slots=True)
class _Row:
    """A grant of either kind. ``path`` is behind ``/grants/``."""

    what: str
    agent: str
    path: str
    status: GrantStatus
    facts: Sequence[tuple[str, str]]
    asked: Safe
    decided: Safe
    again: bool
    """Whether one that was denied or revoked can be approved without being asked for again."""


def grants_page(
    who: SignedIn, shown: Shown, *, changeable: bool, needed: str, trouble: Trouble | None = None
) -> Answer:
    """What waits, and below it what was decided."""
    body = Safe(_INTRO) + _workspaces(shown) + error(trouble)
    if not changeable:
        body += safe(_NOT_YOURS, needed=needed, role=who.user.role)
    waiting = [*_credentials(shown, shown.asked_credentials), *_services(shown, shown.asked_services)]
    following = {
        "waiting_credentials": shown.asked_credentials.next_cursor,
        "waiting_services": shown.asked_services.next_cursor,
    }
    title = f"Waiting: {len(waiting)}{' on this page' if any(following.values()) else ''}"
    body += _section("waiting", title, waiting, changeable=changeable, more=_more(shown, following))
    decided = [row for row in _credentials(shown, shown.credentials) if row.status is not GrantStatus.PENDING]
    body += _section(
        "credentials",
        "Credentials",
        decided,
        changeable=changeable,
        more=_more(shown, {"credentials": shown.credentials.next_cursor}),
    )
    decided = [row for row in _services(shown, shown.services) if row.status is not GrantStatus.PENDING]
    body += _section(
        "services",
        "Services",
        decided,
        changeable=changeable,
        more=_more(shown, {"services": shown.services.next_cursor}),
    )
    return page(TITLE, body, who=who, here="grants", status=OK if trouble is None else trouble.status)


def no_grants_page(who: SignedIn, status: int) -> Answer:
    """For a workspace that is not there."""
    return page(TITLE, Safe(_INTRO) + Safe(_NO_WORKSPACE), who=who, status=status)


def _workspaces(shown: Shown) -> Safe:
    others = [
        (f"/grants?workspace_id={row.id}", row.name)
        for row in shown.workspaces
        if row.id != shown.workspace.id
    ]
    here = safe("<p>Workspace: <strong>{name}</strong></p>", name=shown.workspace.name)
    return here + more_links(others, "Other workspaces")


def _more(shown: Shown, following: Mapping[str, str | None]) -> Safe:
    """Where lists go on, by the parameter that says so."""
    links = []
    for kind, cursor in following.items():
        if cursor is not None:
            query = urlencode({"workspace_id": str(shown.workspace.id), kind: cursor})
            links.append((f"/grants?{query}", f"Older {kind.replace('_', ' ')}"))
    return more_links(links, f"More {' and '.join(following).replace('_', ' ')}")


def _credentials(shown: Shown, grants: CredentialGrantPage) -> list[_Row]:
    return [_credential(shown, grant) for grant in grants.items]


def _credential(shown: Shown, grant: CredentialGrantItem) -> _Row:
    return _Row(
        what=grant.credential,
        agent=_agent(shown, grant.zombie_id),
        path=f"{shown.workspace.id}/credentials/{grant.zombie_id}/{grant.credential}",
        status=grant.status,
        facts=(("Hosts", ", ".join(grant.hosts) or "none"), ("Tools", ", ".join(grant.tools) or "none")),
        asked=_when(grant.requested_at, grant.requested_by),
        decided=_when(grant.decided_at, grant.decided_by),
        again=True,
    )


def _services(shown: Shown, grants: GrantPage) -> list[_Row]:
    return [_service(shown, grant) for grant in grants.items]


def _service(shown: Shown, grant: GrantItem) -> _Row:
    return _Row(
        what=grant.service,
        agent=_agent(shown, grant.zombie_id),
        path=f"{shown.workspace.id}/services/{grant.zombie_id}/{grant.grant_id}",
        status=grant.status,
        facts=(("Reason", grant.reason or "none"),),
        asked=_when(grant.requested_at, grant.requested_by),
        decided=_when(grant.decided_at, grant.decided_by),
        again=False,
    )


def _agent(shown: Shown, zombie_id: UUID) -> str:
    return shown.agents.get(zombie_id, str(zombie_id))


def _when(at: int | None, by: str | None) -> Safe:
    if at is None:
        return Safe("not yet")
    return moment(at) + (safe(" by {by}", by=by) if by else Safe(""))


def _section(
    name: str, title: str, rows: Sequence[_Row], *, changeable: bool, more: Safe | None = None
) -> Safe:
    items = Safe("<p>None here.</p>")
    if rows:
        cards = [_item(row, changeable=changeable) for row in rows]
        items = safe('<ul class="items">{rows}</ul>', rows=joined(cards))
    return safe(_SECTION, id=name, title=title, items=items, more=more or Safe(""))


def _item(row: _Row, *, changeable: bool) -> Safe:
    return safe(
        _ITEM,
        what=row.what,
        agent=row.agent,
        state=row.status.value,
        facts=joined([safe(_FACT, name=name, value=value) for name, value in row.facts]),
        asked=row.asked,
        decided=row.decided,
        actions=_actions(row) if changeable else Safe(""),
    )


def _actions(row: _Row) -> Safe:
    approve, deny, revoke = (
        ("Approve", "approved", "go"),
        ("Deny", "denied", ""),
        ("Revoke", "revoked", ""),
    )
    offered = {
        GrantStatus.PENDING: (approve, deny),
        GrantStatus.APPROVED: (revoke,),
        GrantStatus.DENIED: (approve,) if row.again else (),
        GrantStatus.REVOKED: (approve,) if row.again else (),
    }[row.status]
    buttons = [
        safe(_BUTTON, path=row.path, what=row.what, agent=row.agent, verb=verb, status=status, kind=kind)
        for verb, status, kind in offered
    ]
    return safe('<div class="actions">{buttons}</div>', buttons=joined(buttons)) if buttons else Safe("")
