"""Which credentials an agent may be lent: granted with the files of an operator, or asked for and decided."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, assert_never
from uuid import UUID

import msgspec

from sexton_actors.manifest.model import Manifest, Runtime
from sexton_actors.refusal import Refusal
from sexton_storage.documents import Json
from sexton_storage.records.frame_kinds import FrameKind
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.grants import GrantStatus

GRANT_CHANGED = FrameKind.GRANT_CHANGED
GRANT_PENDING = FrameKind.GRANT_PENDING
OWN = "UZ-APPROVAL-006"
MCP = "mcp."
"""Before the name of an MCP server of the workspace; no credential can have such a name."""


class Reach(msgspec.Struct, frozen=True):
    """How far an agent could carry a credential that it is lent."""

    hosts: tuple[str, ...]
    """The ``network.allow`` of its files, with the bounds of hosts that are allowed in part."""
    tools: tuple[str, ...]


class CredentialGrant(msgspec.Struct, frozen=True):
    """Whether one agent may be lent one credential. It is kept in the agent's record, under the name."""

    credential: str
    status: GrantStatus
    reach: Reach
    """What was granted, or what is asked for."""
    requested_at: int
    requested_by: str
    decided_at: int | None = None
    decided_by: str | None = None


class Files(msgspec.Struct, frozen=True):
    """New files of an agent, as far as lending is concerned."""

    manifest: Manifest
    by: str
    """Who wrote them, or made them active: ``user:<id>`` or ``api:<id>``."""
    may_grant: bool
    """An operator or above did."""


def reach_of(manifest: Manifest) -> Reach:
    return Reach(tuple(sorted(manifest.network_reach)), tuple(sorted(manifest.tools)))


def lent_names(manifest: Manifest) -> tuple[str, ...]:
    """What the agent's files alone ask for; a command without a network could use no credential.

    Beside credentials these are the MCP servers of the workspace, as ``mcp.NAME``: with a server, an agent is
    lent what its workspace has the server sent.
    """
    could_use = manifest.runtime is Runtime.AGENT or manifest.network_hosts
    servers = tuple(f"{MCP}{name}" for name in manifest.mcp_servers)
    return (*(manifest.ungated_credentials if could_use else ()), *servers)


def covers(granted: Reach, asked: Reach) -> bool:
    """Whether what is asked was granted.

    >>> covers(Reach(("*.a.com", "b.com"), ("http_request",)), Reach(("x.a.com",), ()))
    True
    >>> covers(Reach(("a.com",), ()), Reach(("a.com", "b.com"), ()))
    False
    >>> covers(Reach(("a.com",), ()), Reach(("a.com",), ("http_request",)))
    False
    >>> covers(Reach(("a.com",), ()), Reach(("a.com GET /x",), ()))
    True
    >>> covers(Reach(("a.com GET /x",), ()), Reach(("a.com",), ()))
    False
    """
    return set(asked.tools) <= set(granted.tools) and all(_within(h, granted.hosts) for h in asked.hosts)


def _within(asked: str, granted: Iterable[str]) -> bool:
    # What is asked of a part of a host is granted with that very part, or with all of the host.
    host = asked.partition(" ")[0]
    return any(one in (asked, host) or (one.startswith("*.") and host.endswith(one[1:])) for one in granted)


def grants_in(lending: Json) -> dict[str, CredentialGrant]:
    """The grants of an agent's record, by credential."""
    return msgspec.convert(lending, dict[str, CredentialGrant])


def grants_of(lending: Json, manifest: Manifest) -> list[CredentialGrant]:
    """One for each credential that the files name; nobody has asked for one without a record yet."""
    kept = grants_in(lending)
    return [kept.get(name) or _asked(name, reach_of(manifest), "", 0) for name in lent_names(manifest)]


def withheld(lending: Json, manifest: Manifest) -> tuple[str, ...]:
    """The credentials without which the agent must not run, and may not be lent now: its events wait.

    The one rule by which a credential of an agent's files leaves the vault.
    """
    names = lent_names(manifest)
    if not names:
        return ()
    kept, asked = grants_in(lending), reach_of(manifest)
    waits_unasked = manifest.runtime is Runtime.AGENT
    return tuple(
        name for name in names if (waits_unasked or name in kept) and not may_lend(kept.get(name), asked)
    )


def unlent(lending: Json, manifest: Manifest) -> tuple[str, ...]:
    """The credentials that a run goes without, because nobody was ever asked to lend them.

    Those of commands that were installed when a command was lent none: they go on as they did, until an
    operator grants the credential or somebody installs the files again.
    """
    kept = grants_in(lending)
    return tuple(name for name in manifest.ungated_credentials if name not in kept)


def may_lend(grant: CredentialGrant | None, asked: Reach) -> bool:
    """Whether it was approved, for this and no less.

    >>> may_lend(None, Reach((), ()))
    False
    """
    return grant is not None and grant.status is GrantStatus.APPROVED and covers(grant.reach, asked)


def after_files(lending: Json, files: Files, now: int) -> Json:
    """The record's grants once these files are active; what is no longer named is no longer granted."""
    kept, asked = grants_in(lending), reach_of(files.manifest)
    return kept_as(_after(kept.get(name), name, asked, files, now) for name in lent_names(files.manifest))


def joined_files(lending: Json, files: Files, now: int) -> Json:
    """The record's grants while files are tried out beside the active ones: both have what they name."""
    kept, asked = grants_in(lending), reach_of(files.manifest)
    beside = {
        name: _after(kept.get(name), name, _joined(kept.get(name), asked), files, now)
        for name in lent_names(files.manifest)
    }
    return kept_as({**kept, **beside}.values())


def _joined(grant: CredentialGrant | None, asked: Reach) -> Reach:
    if grant is None or covers(grant.reach, asked):
        return asked if grant is None else grant.reach
    hosts = {*grant.reach.hosts, *asked.hosts}
    return Reach(tuple(sorted(hosts)), tuple(sorted({*grant.reach.tools, *asked.tools})))


def without_candidate(lending: Json, manifest: Manifest) -> Json:
    """The record's grants once the active files are alone again: what only others named is gone."""
    kept, names = grants_in(lending), lent_names(manifest)
    return kept_as(kept[name] for name in names if name in kept)


def _after(grant: CredentialGrant | None, name: str, asked: Reach, files: Files, now: int) -> CredentialGrant:
    if files.may_grant:
        return _granted_with_files(grant, name, asked, files.by, now)
    if grant is not None and covers(grant.reach, asked):
        return grant
    return _asked(name, asked, files.by, now)


def _granted_with_files(
    grant: CredentialGrant | None, name: str, asked: Reach, by: str, now: int
) -> CredentialGrant:
    if grant is None:
        grant = _asked(name, asked, by, now)
    match grant.status:
        case GrantStatus.APPROVED if covers(grant.reach, asked):
            return grant
        case GrantStatus.APPROVED | GrantStatus.PENDING:
            return _decided(msgspec.structs.replace(grant, reach=asked), GrantStatus.APPROVED, by, now)
        case GrantStatus.DENIED | GrantStatus.REVOKED:
            # Somebody said no to this very credential, which a change of the files in passing does not undo.
            return grant
        case _:
            assert_never(grant.status)


def decide(
    grant: CredentialGrant, wanted: GrantStatus, asked: Reach, by: str, now: int
) -> CredentialGrant | Refusal:
    """A person's word; the grant as it is where it changes nothing.

    Approval is for what the files ask now, and is possible at any time: these agents cannot ask again.
    """
    match wanted:
        case GrantStatus.APPROVED:
            if may_lend(grant, asked):
                return grant
            return _decided(msgspec.structs.replace(grant, reach=asked), wanted, by, now)
        case GrantStatus.DENIED:
            if grant.status is GrantStatus.DENIED:
                return grant
            legal, code = grant.status is GrantStatus.PENDING, "UZ-APPROVAL-002"
        case GrantStatus.REVOKED:
            legal, code = grant.status in {GrantStatus.PENDING, GrantStatus.APPROVED}, "UZ-REQ-009"
        case GrantStatus.PENDING:
            legal, code = False, "UZ-APPROVAL-002"
        case _:
            assert_never(wanted)
    if legal:
        return _decided(grant, wanted, by, now)
    facts = {
        "current_state": str(grant.status),
        "resolved_at": grant.decided_at,
        "resolved_by": grant.decided_by,
    }
    return Refusal(
        code, f"The grant of {grant.credential} is {grant.status}; it cannot become {wanted}.", facts
    )


def kept_as(grants: Iterable[CredentialGrant]) -> dict[str, Any]:
    """As they are kept in the agent's record."""
    return {grant.credential: msgspec.to_builtins(grant) for grant in grants}


def changed_frames(zombie_id: UUID, before: Json, after: Json, by: str, now: int) -> tuple[NewFrame, ...]:
    """What shows in the agent's stream of grants that are not as they were; nothing of the credentials."""
    old = grants_in(before)
    return tuple(
        NewFrame(zombie_id, None, GRANT_CHANGED, now, _facts(grant, by))
        for name, grant in grants_in(after).items()
        if old.get(name) != grant
    )


def _facts(grant: CredentialGrant, by: str) -> dict[str, Any]:
    return {
        "credential": grant.credential,
        "status": str(grant.status),
        "hosts": list(grant.reach.hosts),
        "tools": list(grant.reach.tools),
        "by": by,
    }


def waiting_frame(zombie_id: UUID, event_id: UUID, names: Sequence[str], now: int) -> NewFrame:
    """What an event says that waits because its agent may not be lent these credentials."""
    data: Mapping[str, Any] = {"credentials": list(names), "error_code": "UZ-GRANT-002"}
    return NewFrame(zombie_id, event_id, GRANT_PENDING, now, data)


def token_refused() -> Refusal:
    """Why an agent's approval token approves nothing that it was handed to a ``user`` with."""
    detail = (
        "The agent's approval token was handed to the user who wrote it: an operator has to rotate it first."
    )
    return Refusal(OWN, detail)


def _asked(name: str, asked: Reach, by: str, now: int) -> CredentialGrant:
    return CredentialGrant(name, GrantStatus.PENDING, asked, now, by)


def _decided(grant: CredentialGrant, status: GrantStatus, by: str, now: int) -> CredentialGrant:
    return msgspec.structs.replace(grant, status=status, decided_at=now, decided_by=by)
