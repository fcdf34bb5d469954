"""The vault: credentials go in, and only their names come out."""

import hmac
import re
from typing import Annotated, Any
from uuid import UUID

import msgspec

from sexton_actors.providers import LLM_CREDENTIAL
from sexton_actors.secret_uses import MAX_USES, Use, kept, problem, told
from sexton_http.answers import Problem
from sexton_http.bodies.cursors import NamedPlace, decode_name, encode, fingerprint
from sexton_http.bodies.names import fitting
from sexton_http.bodies.shapes import Body, Cursor, Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Creates, NoBody, NoQuery, operation
from sexton_http.routes.shared.plan_limits import FULL, leave_room
from sexton_storage.records.holdings import Holding
from sexton_storage.records.users import Role

TAG = "Credentials"
DATA_BYTES = 4096
LLM = "llm"
NAME = r"^[A-Za-z0-9_-]{1,64}$"
LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
MAX_HOSTS = 32
WITHOUT_LIMIT = 2_000
"""All that a tenant of the plan `team` may have: whoever asks for no page has them in one answer."""
Host = Annotated[str, fitting(rf"^(\*\.)?{LABEL}(\.{LABEL})*$"), msgspec.Meta(max_length=255)]


class NewCredential(Body):
    name: Annotated[str, fitting(NAME)]
    data: Annotated[Any, msgspec.Meta(extra_json_schema={"type": "object", "minProperties": 1})]
    """An object with at least one key, at most 4 KB as text."""
    hosts: Annotated[tuple[Host, ...], msgspec.Meta(max_length=MAX_HOSTS)] = ()
    """Where runs may send it: host names, or `*.` and a name for all below it.

    None: for an agent that may reach one host only, that host; for a service whose name is well known, its
    hosts; else it is refused towards every host.
    """
    use: Annotated[tuple[Use, ...], msgspec.Meta(max_length=MAX_USES)] = ()
    """Where in a request it stands.

    None: in the header `authorization`, and as the password of basic authentication.
    """


class CredentialKept(Shape):
    name: str


class CredentialItem(Shape):
    name: str
    created_at: int
    updated_at: int
    hosts: tuple[str, ...]
    """As they were named."""
    use: tuple[Use, ...]
    """Where in a request the proxy of a run puts it in."""


class CredentialList(Shape):
    credentials: list[CredentialItem]
    items: list[CredentialItem]
    """The same."""
    next_cursor: str | None


class ComparedData(Body):
    data: dict[str, Any]
    """As it would be kept; for `llm`: `provider` and `api_key`."""


class CredentialCompared(Shape):
    exists: bool
    same: bool
    """Whether the vault holds this very object under the name."""


class CredentialQuery(Query):
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] | None = None
    """Without it, 2,000."""
    cursor: Cursor | None = None


@operation(
    "POST",
    "/v1/workspaces/{workspace_id}/credentials",
    tag=TAG,
    role=Role.OPERATOR,
    status=201,
    creates=Creates.AGAIN,
    codes=("UZ-VAULT-001", "UZ-VAULT-002", *FULL),
)
async def put_credential(call: Call[NewCredential, NoQuery]) -> CredentialKept:
    """Keep a credential, replacing one of its name; `llm` is the name of the model key and taken."""
    data = call.body.data
    if call.body.name == LLM:
        # As a resource it is the model key: such a credential could be neither read nor deleted by its name.
        detail = f"/name: {LLM} is the model key's name, which PUT …/credentials/{LLM} keeps"
        raise Problem("UZ-REQ-001", detail, facts={"pointer": "/name"})
    if not isinstance(data, dict) or not data:
        raise Problem(
            "UZ-VAULT-001", "/data: must be an object with at least one key", facts={"pointer": "/data"}
        )
    size = len(msgspec.json.encode(data))
    if size > DATA_BYTES:
        raise Problem(
            "UZ-VAULT-002", f"/data: {size} bytes as text, {DATA_BYTES} may be", facts={"pointer": "/data"}
        )
    for number, use in enumerate(call.body.use):
        if wrong := problem(use):
            pointer = f"/use/{number}"
            raise Problem("UZ-REQ-001", f"{pointer}: {wrong}", facts={"pointer": pointer})
    if await call.ctx.world.secrets.open(_workspace(call), call.body.name) is None:
        await leave_room(call, Holding.CREDENTIALS)
    await call.ctx.world.secrets.put(
        _workspace(call), call.body.name, data, call.body.hosts, kept(call.body.use)
    )
    return CredentialKept(call.body.name)


@operation("GET", "/v1/workspaces/{workspace_id}/credentials", tag=TAG)
async def list_credentials(call: Call[NoBody, CredentialQuery]) -> CredentialList:
    """List names and times, by name; what was kept is never shown."""
    query, workspace_id = call.query, _workspace(call)
    filters = fingerprint("credentials", workspace_id)
    after = None if query.cursor is None else decode_name(query.cursor, filters).name
    limit = query.limit or WITHOUT_LIMIT
    rows = await call.ctx.world.secrets.list(workspace_id, limit=limit + 1, after=after)
    items = [
        CredentialItem(row.name, row.created_at, row.updated_at, row.hosts, told(row.uses))
        for row in rows[:limit]
    ]
    following = encode(NamedPlace(items[-1].name, filters)) if len(rows) > limit else None
    return CredentialList(items, items, following)


@operation("POST", "/v1/workspaces/{workspace_id}/credentials/{name}:compare", tag=TAG, role=Role.OPERATOR)
async def compare_credential(call: Call[ComparedData, NoQuery]) -> CredentialCompared:
    """Say whether the vault holds this under the name, without showing what it holds.

    So a program that keeps credentials in step with a store of secrets sends only what differs.
    """
    name, held = call.text("name"), None
    if re.fullmatch(NAME, name):
        kept_as = LLM_CREDENTIAL if name == LLM else name
        held = await call.ctx.world.secrets.open(_workspace(call), kept_as)
    if held is None:
        return CredentialCompared(exists=False, same=False)
    # In constant time: how long it takes tells nothing of how much of a guess is right.
    same = hmac.compare_digest(_spelt(held), _spelt(call.body.data))
    return CredentialCompared(exists=True, same=same)


@operation(
    "DELETE", "/v1/workspaces/{workspace_id}/credentials/{name}", tag=TAG, role=Role.OPERATOR, status=204
)
async def delete_credential(call: Call[NoBody, NoQuery]) -> None:
    """Forget a credential; one that does not exist is forgotten already."""
    if re.fullmatch(NAME, call.text("name")):
        await call.ctx.world.secrets.delete(_workspace(call), call.text("name"))


def _workspace(call: Call[Any, Any]) -> UUID:
    return call.id("workspace_id")


def _spelt(data: Any) -> bytes:
    return msgspec.json.encode(data, order="sorted")
