"""Does what a request with an Idempotency-Key asks for once, and answers its repetitions as the first."""

import hashlib
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec
import structlog
import trio

from sexton_engine import MailboxFull
from sexton_http.answers import Answer, Problem
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Creates, Operation
from sexton_http.gateway.seeds import Seed
from sexton_http.identity.principals import Delegate, Enroller, Member, Nobody, RunnerHost
from sexton_http.identity.tokens import TOKEN_BYTES
from sexton_http.wire.masking import masked
from sexton_storage.errors import StorageError
from sexton_storage.records.key_uses import KeyUse
from sexton_storage.terms import KEY_SOON_MS, KEY_STALE_MS

HEADER: Final = b"idempotency-key"
MAX_KEY_CHARS: Final = 255
REPLAYED: Final = (b"idempotent-replayed", b"true")
TRANSIENT: Final = 429
"""This status and those of the server's own faults say nothing that would hold for a day."""
SERVER_FAULT: Final = 500
AGAIN_S: Final = 1
_KEY: Final = re.compile(rb"[ -~]{1,%d}" % MAX_KEY_CHARS)

log = structlog.get_logger()
T = TypeVar("T")


class _Kept(msgspec.Struct, frozen=True):
    """An answer, as it is sealed."""

    media: str
    body: str
    request_id: str


async def once(
    operation: Operation, call: Call[Any, Any], answer: Callable[[Call[Any, Any]], Awaitable[T]]
) -> T | Answer:
    """Answer, or replay. Raises Problem UZ-REQ-001, UZ-REQ-007 or UZ-REQ-008, and what ``answer`` raises."""
    key, scope = call.head.headers.get(HEADER), _scope_of(call)
    if operation.creates is Creates.NOTHING or key is None or scope is None:
        return await answer(call)
    use = _use_of(operation, call, scope, _checked(key))
    # A client that leaves must not leave behind what nobody knows the outcome of.
    answers: list[T | Answer] = []
    with trio.CancelScope(shield=True):
        stale_ms = KEY_SOON_MS if operation.creates is Creates.EVENT else KEY_STALE_MS
        kept = await call.ctx.world.storage.key_uses.begin(use, stale_ms=stale_ms)
        mine = kept.claim == use.claim
        answers.append(await _first(call, kept, answer) if mine else _replay(call, use, kept))
    return answers[0]


async def _first(call: Call[Any, Any], use: KeyUse, answer: Callable[[Call[Any, Any]], Awaitable[T]]) -> T:
    seed = Seed(bytes.fromhex(call.ctx.keys.open(use.sealed, _identity(use))), use.created_at)
    try:
        done = await answer(msgspec.structs.replace(call, seed=seed))
    except Problem as problem:
        if problem.status >= SERVER_FAULT or problem.status == TRANSIENT:
            await _give_up(call, use, nothing_done=False)
        else:
            await _keep(call, use, problem.answer(call.ctx.settings.base_url, call.request_id))
        raise
    except Exception as fault:
        await _give_up(call, use, nothing_done=isinstance(fault, MailboxFull))
        raise
    if isinstance(done, Answer):
        await _keep(call, use, done)
    return done


async def _keep(call: Call[Any, Any], use: KeyUse, answer: Answer) -> None:
    media = dict(answer.headers).get(b"content-type", b"").decode()
    text = msgspec.json.encode(_Kept(media, answer.body.decode(), call.request_id)).decode()
    sealed = call.ctx.keys.seal(text, _identity(use))
    done = msgspec.structs.replace(use, status=answer.status, sealed=sealed)
    try:
        await call.ctx.world.storage.key_uses.settle(done)
    except StorageError as fault:
        # What was asked for is done, and says so; to the next it is as if the server had died here.
        log.warning("idempotent_answer_not_kept", path=masked(call.head.path), fault=repr(fault))


async def _give_up(call: Call[Any, Any], use: KeyUse, *, nothing_done: bool) -> None:
    store = call.ctx.world.storage.key_uses
    try:
        await (store.forget(use) if nothing_done else store.release(use))
    except StorageError as fault:
        log.warning("idempotency_key_not_released", path=masked(call.head.path), fault=repr(fault))


def _replay(call: Call[Any, Any], use: KeyUse, kept: KeyUse) -> Answer:
    if kept.digest != use.digest:
        raise Problem("UZ-REQ-008", "this Idempotency-Key was used with another request")
    if kept.status is None or not kept.sealed:
        # Of the second kind the answer was erased: it may have had what a person asked to be forgotten.
        raise Problem(
            "UZ-REQ-007",
            "the first request with this Idempotency-Key has no answer yet, or its outcome was lost: "
            "look whether it was done before you use another key",
            wait_s=AGAIN_S,
        )
    first = msgspec.json.decode(call.ctx.keys.open(kept.sealed, _identity(kept)), type=_Kept)
    # The first answer as it was, its id included.
    headers = [(b"content-type", first.media.encode())] if first.media else []
    headers += [(b"x-request-id", first.request_id.encode()), REPLAYED]
    return Answer(kept.status, tuple(headers), first.body.encode())


def _use_of(operation: Operation, call: Call[Any, Any], scope: UUID, key: bytes) -> KeyUse:
    world = call.ctx.world
    now, key_hash = world.now_ms(), hashlib.sha256(key).digest()
    return KeyUse(
        scope=scope,
        key_hash=key_hash,
        digest=_digest(operation, call),
        claim=world.new_id(),
        created_at=now,
        running_since=now,
        resumable=operation.creates is not Creates.ONCE,
        sealed=call.ctx.keys.seal(world.new_token(TOKEN_BYTES), scope.bytes + key_hash),
    )


def _identity(use: KeyUse) -> bytes:
    return use.scope.bytes + use.key_hash


def _checked(key: bytes) -> bytes:
    if not _KEY.fullmatch(key):
        raise Problem("UZ-REQ-001", f"Idempotency-Key: 1 to {MAX_KEY_CHARS} printable characters of ASCII")
    return key


def _scope_of(call: Call[Any, Any]) -> UUID | None:
    """The caller's tenant; the runner; for a token that enrols one runner, that token; else the address."""
    match call.principal:
        case Member(tenant_id=tenant_id) | Delegate(tenant_id=tenant_id):
            return tenant_id
        case Enroller(enrolment_hash=None, admin=Member(tenant_id=tenant_id)):
            return tenant_id
        case Enroller(enrolment_hash=bytes(hashed)):
            return UUID(bytes=hashed[:16])
        case RunnerHost(runner=runner):
            return runner.id
        case Nobody():
            return UUID(bytes=hashlib.sha256(b"address " + call.head.client.encode()).digest()[:16])
        case _:
            return None


def _digest(operation: Operation, call: Call[Any, Any]) -> bytes:
    """The digest of the request and of the caller's rights, so that nobody with fewer gets the answer.

    An answer with a secret is for the very caller that was given it, whatever others may.
    """
    match call.principal:
        case (Member() as member) | Enroller(admin=Member() as member):
            who = f"{member.by} {member.person}" if operation.secret else ""
            rank = f"{member.role.value} {member.platform_admin} {who}".encode()
        case Delegate(zombie_id=zombie_id):
            rank = f"agent {zombie_id}".encode()
        case _:
            rank = b""
    body = call.raw if call.body is None else msgspec.json.encode(call.body, order="deterministic")
    parts = (operation.method.encode(), call.head.path.encode(), call.head.query, rank, body)
    return hashlib.sha256(msgspec.json.encode([part.hex() for part in parts])).digest()
