"""Asks the server who the caller is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sexton_cli.client import Client, Row, field, rows
from sexton_cli.exits import FAILED, USAGE, Fault
from sexton_cli.id_parts import fits, is_part, meant
from sexton_cli.tokens import Token

WHOAMI: Final = "/v1/whoami"
WORKSPACES: Final = "/v1/tenants/me/workspaces"
KEYS: Final = "/v1/api-keys"
PAGE_SIZE: Final = 100
MAX_PAGES: Final = 100
SHOWN: Final = 10
"""Ids that are named, of those that a part fits."""

WORKSPACE: Final[Mapping[str, type]] = {"workspace_id": str, "name": str, "paused": bool}
KEY: Final[Mapping[str, type]] = {"id": str, "key_name": str, "role": str, "active": bool}
"""What is relied upon of an item; whatever else it has is shown if it is there."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What is known of the bearer of a token that the server has just accepted."""

    kind: str
    name: str
    role: str
    tenant_id: str
    platform_admin: bool
    expires_at_ms: int | None
    workspaces: tuple[Row, ...]

    def document(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": self.name,
            "role": self.role,
            "tenant_id": self.tenant_id,
            "platform_admin": self.platform_admin,
            "expires_at": self.expires_at_ms,
        }


def identify(client: Client, token: Token) -> Identity:
    """Ask with the token; raises Refused when the server does not take it."""
    told = client.get(WHOAMI)
    claims = token.claims()
    return Identity(
        kind=field(told, "kind", str),
        name=field(told, "name", str),
        role=field(told, "role", str),
        tenant_id=field(told, "tenant_id", str),
        platform_admin=field(told, "platform_admin", bool),
        # The server has just found that it is not over; when it will be stands in the token alone.
        expires_at_ms=None if claims is None else claims.expires_at_ms,
        workspaces=tuple(workspaces_of(client)),
    )


def workspaces_of(client: Client) -> list[Row]:
    """All workspaces that the token reaches."""
    return rows(client.get(WORKSPACES), WORKSPACE)


def keys_of(client: Client) -> Iterator[Row]:
    """All keys of the tenant, newest first."""
    for page in range(1, MAX_PAGES + 1):
        answer = client.get(f"{KEYS}?page={page}&page_size={PAGE_SIZE}")
        yield from rows(answer, KEY)
        if page * PAGE_SIZE >= field(answer, "total", int):
            return


def pick(items: Sequence[Row], wanted: str, *, id_key: str, name_key: str, listing: str) -> Row:
    """The row of this id, else of this name, else the one whose id has this part. Raises Fault."""
    for key, value in ((id_key, wanted.lower()), (name_key, wanted)):
        for row in items:
            if row[key] == value:
                return row
    found = [row for row in items if is_part(wanted) and fits(wanted, row[id_key])]
    if len(found) == 1:
        return found[0]
    if found:
        raise ambiguous(wanted, [f"{row[id_key]} ({row[name_key]})" for row in found])
    way_out = f"{meant(wanted, (row[name_key] for row in items))}'{listing}' shows them."
    raise Fault(f"there is none named {wanted!r}", way_out, status=FAILED)


def ambiguous(wanted: str, found: Sequence[str]) -> Fault:
    """What is said of a part that more than one id has."""
    more = "" if len(found) <= SHOWN else f" and {len(found) - SHOWN} more"
    what = f"{wanted!r} is a part of {len(found)} ids: {', '.join(found[:SHOWN])}{more}"
    return Fault(what, "Give more of the one that you mean; ids differ most at their end.", status=USAGE)


def pick_workspace(items: Sequence[Row], wanted: str) -> Row:
    return pick(items, wanted, id_key="workspace_id", name_key="name", listing="sexton workspace list")


def workspace_in_use(items: Sequence[Row], *, given: str | None, kept: str | None) -> Row | None:
    """The one that was asked for, which has to be there; else the one chosen before, if it still is."""
    if given is not None:
        return pick_workspace(items, given)
    return next((row for row in items if row["workspace_id"] == kept), None)
