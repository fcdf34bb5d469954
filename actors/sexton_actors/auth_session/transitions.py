"""How a terminal's wait for a token goes on, and how it ends."""

import hmac
from typing import Any, Final, assert_never
from uuid import UUID

import msgspec

from sexton_actors.protocol import auth_session as m
from sexton_actors.refusal import Refusal
from sexton_storage.records.auth_sessions import OPEN_SESSION, AuthSession, AuthSessionStatus

SESSION_TTL_MS: Final = 5 * 60 * 1000
MAX_WRONG_CODES: Final = 5
REPEAT_MS: Final = 60_000
"""How long a terminal that lost the answer to its code may ask again."""
EXPIRED: Final = "expired"


class Decision(msgspec.Struct, frozen=True):
    """``session`` None: nothing is to be saved."""

    session: AuthSession | None
    reply: Any


def opened(session_id: UUID, message: m.Open, now: int) -> AuthSession:
    """A new session.

    >>> opened(UUID(int=1), m.Open(None, "laptop"), 1_000).expires_at
    301000
    """
    return AuthSession(
        id=session_id,
        status=AuthSessionStatus.PENDING,
        version=1,
        created_at=now,
        expires_at=now + SESSION_TTL_MS,
        public_key=message.public_key,
        token_name=message.token_name,
        origin=message.origin,
    )


def status_at(session: AuthSession, now: int) -> str:
    """What a session is now; what was over before its time stays what it was.

    >>> pending = opened(UUID(int=1), m.Open(None, None), 0)
    >>> status_at(pending, SESSION_TTL_MS - 1), status_at(pending, SESSION_TTL_MS)
    ('pending', 'expired')
    """
    if session.status in OPEN_SESSION and now >= session.expires_at:
        return EXPIRED
    return str(session.status)


def decide(session: AuthSession, message: m.Ask, now: int) -> Decision:
    """What a message does to a session.

    >>> pending = opened(UUID(int=1), m.Open("key", None), 0)
    >>> approved = decide(pending, m.Approve("d", "c", "n", b"mac", "user:1"), 1).session
    >>> str(approved.status)
    'verification_pending'
    >>> decide(approved, m.Verify(b"mac", b"me"), 2).reply.ciphertext
    'c'
    >>> decide(approved, m.Verify(b"other", b"me"), 2).reply.code
    'UZ-AUTH-011'
    """
    match message:
        case m.Read():
            return _read(session, message, now)
        case m.Abort():
            return _abort(session, now)
        case m.Complete():
            return _complete(session, message, now)
        case m.Approve():
            return _approve(session, message, now)
        case m.Verify():
            return _verify(session, message, now)
        case _:
            assert_never(message)


def _read(session: AuthSession, message: m.Read, now: int) -> Decision:
    status = status_at(session, now)
    if status != AuthSessionStatus.COMPLETE or not message.take:
        return Decision(None, m.Seen(session, status))
    taken = _with(session, status=AuthSessionStatus.CONSUMED, sealed_token=None, consumed_at=now)
    return Decision(taken, m.Seen(session, status, session.sealed_token))


def _abort(session: AuthSession, now: int) -> Decision:
    if session.status not in OPEN_SESSION or now >= session.expires_at:
        return Decision(None, reply=False)
    return Decision(_aborted(session), reply=True)


def _complete(session: AuthSession, message: m.Complete, now: int) -> Decision:
    # What was completed stays so, also when its time is over.
    if session.status in {AuthSessionStatus.COMPLETE, AuthSessionStatus.CONSUMED}:
        return _refuse("UZ-AUTH-007")
    if refusal := _not_pending(session, now):
        return refusal
    changed = _with(
        session,
        status=AuthSessionStatus.COMPLETE,
        sealed_token=message.sealed_token,
        approved_by=message.by,
        expires_at=now + SESSION_TTL_MS,
    )
    return Decision(changed, changed)


def _approve(session: AuthSession, message: m.Approve, now: int) -> Decision:
    if refusal := _not_pending(session, now):
        return refusal
    if session.public_key is None:
        return _refuse("UZ-AUTH-016", "The terminal sent no public key to encrypt to.")
    changed = _with(
        session,
        status=AuthSessionStatus.VERIFICATION_PENDING,
        dashboard_public_key=message.dashboard_public_key,
        ciphertext=message.ciphertext,
        nonce=message.nonce,
        code_mac=message.code_mac,
        approved_by=message.by,
        expires_at=now + SESSION_TTL_MS,
    )
    return Decision(changed, changed)


def _not_pending(session: AuthSession, now: int) -> Decision | None:
    if over := _over(session, now):
        return over
    match session.status:
        case AuthSessionStatus.PENDING:
            return None
        case AuthSessionStatus.VERIFICATION_PENDING:
            return _refuse("UZ-AUTH-015")
        case AuthSessionStatus.COMPLETE:
            return _refuse("UZ-AUTH-007")
        case AuthSessionStatus.CONSUMED:
            return _refuse("UZ-AUTH-012")
        case AuthSessionStatus.ABORTED:
            return _refuse("UZ-AUTH-013")
        case _:
            assert_never(session.status)


def _verify(session: AuthSession, message: m.Verify, now: int) -> Decision:
    if over := _over(session, now):
        return over
    match session.status:
        case AuthSessionStatus.PENDING:
            return _refuse("UZ-AUTH-014")
        case AuthSessionStatus.VERIFICATION_PENDING:
            return _check_code(session, message, now)
        case AuthSessionStatus.COMPLETE:
            return _refuse("UZ-AUTH-007")
        case AuthSessionStatus.CONSUMED:
            return _repeat(session, message, now)
        case AuthSessionStatus.ABORTED:
            return _refuse("UZ-AUTH-013")
        case _:
            assert_never(session.status)


def _check_code(session: AuthSession, message: m.Verify, now: int) -> Decision:
    if not _same(session.code_mac, message.code_mac):
        wrong = session.wrong_codes + 1
        if wrong >= MAX_WRONG_CODES:
            return Decision(_aborted(session, wrong), _refusal("UZ-AUTH-013", "Too many codes were wrong."))
        left = {"attempts_left": MAX_WRONG_CODES - wrong}
        return Decision(_with(session, wrong_codes=wrong), _refusal("UZ-AUTH-011", facts=left))
    changed = _with(
        session, status=AuthSessionStatus.CONSUMED, consumed_at=now, consumer_mac=message.client_mac
    )
    return Decision(changed, _handed_over(session))


def _repeat(session: AuthSession, message: m.Verify, now: int) -> Decision:
    in_time = session.consumed_at is not None and now < session.consumed_at + REPEAT_MS
    same_client = _same(session.consumer_mac, message.client_mac)
    if in_time and same_client and _same(session.code_mac, message.code_mac):
        return Decision(None, _handed_over(session))
    return _refuse("UZ-AUTH-012")


def _handed_over(session: AuthSession) -> m.HandedOver:
    return m.HandedOver(session.dashboard_public_key or "", session.ciphertext or "", session.nonce or "")


def _over(session: AuthSession, now: int) -> Decision | None:
    return _refuse("UZ-AUTH-006") if status_at(session, now) == EXPIRED else None


def _aborted(session: AuthSession, wrong_codes: int = 0) -> AuthSession:
    # Nobody will be given any of it any more.
    return _with(
        session,
        status=AuthSessionStatus.ABORTED,
        wrong_codes=max(wrong_codes, session.wrong_codes),
        ciphertext=None,
        nonce=None,
        sealed_token=None,
    )


def _with(session: AuthSession, **changes: Any) -> AuthSession:
    return msgspec.structs.replace(session, version=session.version + 1, **changes)


def _same(one: bytes | None, other: bytes) -> bool:
    return one is not None and hmac.compare_digest(one, other)


_DETAILS: Final = {
    "UZ-AUTH-006": "The session has expired; begin again.",
    "UZ-AUTH-007": "The session was completed before.",
    "UZ-AUTH-011": "The code is not the one on the approval page.",
    "UZ-AUTH-012": "The token was handed over before.",
    "UZ-AUTH-013": "The session was ended; begin again.",
    "UZ-AUTH-014": "Nobody has approved the session yet.",
    "UZ-AUTH-015": "The session was approved before.",
}


def _refusal(code: str, detail: str = "", facts: dict[str, Any] | None = None) -> Refusal:
    return Refusal(code, detail or _DETAILS[code], facts or {})


def _refuse(code: str, detail: str = "") -> Decision:
    return Decision(None, _refusal(code, detail))
