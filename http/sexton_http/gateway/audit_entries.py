"""Says for the audit log who calls, from where, and about what."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, TypeVar
from uuid import UUID

from msgspec.structs import replace

from sexton_actors.protocol.attributed import Attributed
from sexton_engine import ActorSystem, Message
from sexton_http.gateway.call import Call
from sexton_http.identity.principals import Delegate, Enroller, Member, SignedIn
from sexton_storage.attribution import current_entry
from sexton_storage.records.audit import PLATFORM_LOG, AuditEntry

R = TypeVar("R")
FACT_CHARS: Final = 256
"""What is longer is cut: the log tells what was done, and is no second copy of it."""
NAMES: Final = frozenset({"credential", "name", "provider"})
"""Parameters of paths that are told beside the ids; no other can be known to be no secret."""


def entry_of(call: Call[Any, Any]) -> AuditEntry | None:
    """None where nobody is known yet, or the route changes nothing that is told."""
    match call.principal:
        case Member() as member:
            return _entry(call, member.tenant_id, member.by, member.name)
        case SignedIn(member=member) as who:
            return _entry(call, member.tenant_id, member.by, who.shown)
        case Delegate() as delegate:
            return _entry(call, delegate.tenant_id, delegate.by, delegate.by)
        case Enroller(admin=Member() as admin):
            return _entry(call, PLATFORM_LOG, admin.by, admin.name)
        case Enroller():
            return _entry(call, PLATFORM_LOG, "enrolment", "the bearer of an enrolment token")
        case _:
            return None


def entry_by(
    call: Call[Any, Any],
    tenant_id: UUID,
    by: str,
    name: str = "",
    *,
    workspace_id: UUID | None = None,
    target: str = "",
) -> AuditEntry | None:
    """For a caller whom only the handler comes to know."""
    entry = _entry(call, tenant_id, by, name or by)
    if entry is None:
        return None
    where = entry.workspace_id if workspace_id is None else workspace_id
    return replace(entry, workspace_id=where, target=target or entry.target)


def _entry(call: Call[Any, Any], log_id: UUID, by: str, name: str) -> AuditEntry | None:
    if call.audit is None:
        return None
    told = {key: value for key, value in call.params.items() if key.endswith("_id") or key in NAMES}
    workspace_id = told.pop("workspace_id", None)
    tenant_id = told.pop("tenant_id", None)
    sent = {field: getattr(call.body, field, getattr(call.query, field, None)) for field in call.audit.facts}
    named = getattr(call.body, call.audit.target, None) if call.audit.target else None
    target = named or (told.popitem()[1] if told else tenant_id or "")
    return AuditEntry(
        id=call.ctx.world.new_id(),
        log_id=tenant_id or (PLATFORM_LOG if call.audit.of_platform else log_id),
        action=call.audit.action,
        actor=by,
        name=name[:FACT_CHARS],
        address=call.head.client,
        request_id=call.request_id,
        workspace_id=workspace_id,
        target=str(target)[:FACT_CHARS],
        facts=_facts({**told, **sent, "via": call.head.via}),
    )


def _facts(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Short and plain; what was not sent is left out."""
    return {name: _plain(value) for name, value in sent.items() if value is not None and value != ""}


def _plain(value: Any) -> Any:
    match value:
        case bool() | int():
            return value
        case Enum():
            return _plain(value.value)
        case str() | UUID():
            return str(value)[:FACT_CHARS]
        case list() | tuple() | set() | frozenset():
            return [_plain(one) for one in [*value][:16]]
        case _:
            return str(value)[:FACT_CHARS]


async def ask(
    system: ActorSystem, kind: str, key: object, message: Message[R], timeout: float | None = None
) -> R:
    """Ask an actor in the caller's name: what it changes for this message is put down to the caller."""
    entry = current_entry()
    if entry is not None and isinstance(message, Attributed):
        message = replace(message, audit=replace(entry, target=entry.target or str(key)))
    return await system.ask(kind, key, message, timeout=timeout)


async def tell_first(call: Call[Any, Any], target: str) -> None:
    """Add the caller's line before something is done that changes no row, and so takes none along."""
    entry = current_entry()
    if entry is not None:
        await call.ctx.world.storage.audit.append(replace(entry, target=target[:FACT_CHARS]))
