"""What stands around every page of the console: where one is, who one is, and what waits."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from sexton_http.answers import Answer, Headers
from sexton_http.identity.principals import SignedIn
from sexton_http.pages.templates.renderer import filled, html
from sexton_storage.records.workspaces import Workspace


class Place(NamedTuple):
    """One page in the navigation."""

    key: str
    name: str
    path: str
    """Below the workspace's part of the console; with a slash in front: an address of its own."""
    thumb: bool = False
    """Whether it stands in the bar of a phone."""


GROUPS: Final[Sequence[tuple[str, Sequence[Place]]]] = (
    (
        "Work",
        (
            Place("now", "Now", "now", thumb=True),
            Place("events", "Events", "events", thumb=True),
            Place("approvals", "Approvals", "approvals", thumb=True),
            Place("agents", "Agents", "agents", thumb=True),
            Place("failures", "Failures", "failures"),
            Place("jobs", "Bulk jobs", "jobs"),
        ),
    ),
    (
        "World",
        (
            Place("webhooks", "Webhooks", "webhooks"),
            Place("schedules", "Schedules", "schedules"),
            Place("credentials", "Credentials", "credentials"),
            Place("models", "Models", "models"),
            Place("grants", "Grants", "/grants"),
        ),
    ),
    (
        "Machine",
        (Place("fleet", "Fleet", "fleet"), Place("tree", "Tree", "tree"), Place("money", "Money", "money")),
    ),
    (
        "House",
        (
            Place("members", "Members", "/members"),
            Place("keys", "API keys", "/keys"),
            Place("audit", "Audit log", "audit"),
            Place("workspaces", "Workspaces", "/workspaces"),
            Place("settings", "Settings", "settings"),
            Place("api", "API", "api"),
        ),
    ),
)


class Frame(NamedTuple):
    """``workspace``: whose pages these are; None on those that belong to the tenant or to nobody."""

    title: str
    here: str = ""
    who: SignedIn | None = None
    workspace: Workspace | None = None
    workspaces: Sequence[Workspace] = ()
    waiting: Mapping[str, int] = {}
    """What waits for a person, by the key of the page that shows it."""
    scripts: Sequence[str] = ()
    calls: Mapping[str, Any] = {}
    """Each operation of the interface by its name, so that a page can say where its figures come from."""
    going_on: str | None = None
    """An address that the page leads to by itself."""
    bare: bool = False
    """Whether only what may have changed is wanted, for a page that is open already."""
    began_ms: int = 0
    """When it was begun to be made, before anything that it shows was read."""

    @property
    def signed_in(self) -> SignedIn:
        """Who looks at a page of a workspace; there is always somebody."""
        if self.who is None:
            raise TypeError("this page is nobody's")
        return self.who

    def call(self, name: str) -> str:
        """An operation as people write it, as in ``GET /v1/whoami``."""
        operation = self.calls[name]
        return f"{operation.method} {operation.path}"

    def address(self, path: str) -> str:
        """Where a page of this workspace is, or of the first one while none is chosen."""
        if path.startswith("/"):
            return path
        return f"/console/{'-' if self.workspace is None else self.workspace.id}/{path}"

    def to(self, path: str, *more: UUID | str) -> str:
        return "/".join((self.address(path), *map(str, more)))


def show(frame: Frame, template: str, *, status: int = 200, headers: Headers = (), **values: Any) -> Answer:
    """A whole page; ``values`` are what its template shows."""
    return html(filled(template, frame=frame, groups=GROUPS, **values), status, headers)
