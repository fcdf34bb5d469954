"""The words of the page on which people keep their workspaces."""

from typing import Final

from sexton_http.answers import Answer
from sexton_http.bodies.shapes import NAME_CHARS, WorkspaceItem, WorkspaceList
from sexton_http.identity.principals import SignedIn
from sexton_http.pages.forms import Field, Trouble, error, moment, text_field
from sexton_http.pages.layout import Safe, joined, page, safe

TITLE: Final = "Workspaces"
OK: Final = 200
NAME: Final = Field("name", "Name", f"Use 1 to {NAME_CHARS} characters.", NAME_CHARS, required=True)
FIELDS: Final = (NAME,)

_INTRO: Final = (
    "<p>Agents, their secrets and their limits belong to a workspace. A paused one starts no work.</p>"
)
_NEW: Final = """<section aria-labelledby="new"><h2 id="new">Create a workspace</h2>
<form method="post" action="/workspaces">{error}{field}
<p class="actions"><button class="go">Create workspace</button></p></form></section>"""
_NOT_YOURS: Final = '<p class="soft">Creating a workspace needs the role {needed}; yours is {role}.</p>'
_LIST: Final = """<section aria-labelledby="all"><h2 id="all">Workspaces ({total})</h2>
<ul class="items">{rows}</ul></section>"""
_ITEM: Final = """<li class="card"><h3>{name}</h3>
<dl><dt>State</dt><dd>{state}</dd><dt>Id</dt><dd><code>{id}</code></dd><dt>Plan</dt><dd>{plan}</dd>
<dt>Created</dt><dd>{created}</dd></dl>{error}{actions}</li>"""
_CHANGE: Final = """<form method="post" action="/workspaces/{id}">
<input type="hidden" name="paused" value="{paused}">
<p class="actions"><button aria-label="{verb} {name}">{verb}</button></p></form>
<details{open}><summary aria-label="Rename {name}">Rename</summary>
<form method="post" action="/workspaces/{id}">{field}
<p class="actions"><button class="go" aria-label="Rename now: {name}">Rename now</button></p>
</form></details>"""


def workspaces_page(
    who: SignedIn,
    listed: WorkspaceList,
    *,
    creatable: bool,
    needed: str,
    changeable: bool,
    typed: dict[str, str],
    trouble: Trouble | None = None,
) -> Answer:
    """All workspaces, and a form for another; ``typed`` is what a form that comes back had in its fields."""
    own = typed.get("name", "") if trouble is not None and not trouble.item else ""
    body = Safe(_INTRO)
    if creatable:
        body += safe(_NEW, error=error(trouble), field=text_field(NAME, own, trouble))
    else:
        body += error(trouble) + safe(_NOT_YOURS, needed=needed, role=who.user.role)
    rows = [_item(row, changeable=changeable, typed=typed, trouble=trouble) for row in listed.items]
    body += safe(_LIST, total=listed.total, rows=joined(rows))
    return page(TITLE, body, who=who, here="workspaces", status=OK if trouble is None else trouble.status)


def _item(row: WorkspaceItem, *, changeable: bool, typed: dict[str, str], trouble: Trouble | None) -> Safe:
    item = str(row.id)
    return safe(
        _ITEM,
        name=row.name,
        id=item,
        state="paused" if row.paused else "active",
        plan=row.plan_tier.value,
        created=moment(row.created_at),
        error=error(trouble, item=item, within=f"workspace-{item}"),
        actions=_change(row, typed, trouble) if changeable else Safe(""),
    )


def _change(row: WorkspaceItem, typed: dict[str, str], trouble: Trouble | None) -> Safe:
    item = str(row.id)
    came_back = trouble is not None and (trouble.item, trouble.field) == (item, NAME.name)
    name = typed.get(NAME.name, "") if came_back else row.name
    return safe(
        _CHANGE,
        id=item,
        name=row.name,
        paused="false" if row.paused else "true",
        verb="Resume" if row.paused else "Pause",
        open=Safe(" open" if came_back else ""),
        field=text_field(NAME, name, trouble, item=item),
    )
