"""What is to be done about a gate or a notice in a chat, and what follows from the platform's answer."""

from typing import assert_never

import msgspec

from sexton_actors.ports.chat import ChatFault, Shown, Trouble
from sexton_storage.records.chats import ChatNotice, ChatPost, ChatWork
from sexton_storage.records.gates import GateStatus

RETRY_FIRST_MS = 1_000
RETRY_MAX_MS = 15 * 60 * 1000
NOTICE_TERM_MS = 24 * 60 * 60 * 1000
"""A notice that could not be told for as long is let be: it stands in the stream and in the audit log."""


class Post(msgspec.Struct, frozen=True):
    """Show it, as it is now."""


class Update(msgspec.Struct, frozen=True):
    """Show its outcome in the message that is there."""

    message_id: str


class Drop(msgspec.Struct, frozen=True):
    """Nobody was asked in the chat, and nobody needs to be any more."""


class Keep(msgspec.Struct, frozen=True):
    post: ChatPost


class Forget(msgspec.Struct, frozen=True):
    """It is done, or can never be."""


def todo(work: ChatWork) -> Post | Update | Drop:
    """By what stands in the chat and how the gate is.

    A try of unknown outcome is made again even when the gate has been resolved meanwhile: the same key gives
    the message that may be there, which is then closed.
    """
    post = work.post
    if post.message_id is not None:
        return Update(post.message_id)
    return Post() if _is_pending(work) or post.unsure else Drop()


def posted(work: ChatWork, channel_id: str, answer: Shown | ChatFault, now: int) -> Keep | Forget:
    """After a try to post in this channel; what is refused and needed by nobody any more is let be."""
    post = work.post
    match answer:
        case ChatFault(trouble=Trouble.REFUSED) if not _is_pending(work):
            return Forget()
        case Shown():
            # Due at once: should the gate have been resolved meanwhile, the message is closed next.
            kept = msgspec.structs.replace(
                post, channel_id=answer.channel_id, message_id=answer.message_id, unsure=False, due_at=now
            )
        case ChatFault():
            kept = msgspec.structs.replace(
                post,
                channel_id=channel_id,
                unsure=post.unsure or not answer.heard,
                due_at=_later(post, answer, now),
            )
        case _:
            assert_never(answer)
    return Keep(kept)


def updated(work: ChatWork, answer: Shown | ChatFault, now: int) -> Keep | Forget:
    """After a try to close the message; one that cannot be changed any more is let be."""
    match answer:
        case Shown() | ChatFault(trouble=Trouble.REFUSED):
            return Forget()
        case ChatFault():
            return Keep(
                msgspec.structs.replace(work.post, unsure=False, due_at=_later(work.post, answer, now))
            )
        case _:
            assert_never(answer)


def is_stale(notice: ChatNotice, now: int) -> bool:
    """Whether it is too old to be told."""
    return now - notice.created_at >= NOTICE_TERM_MS


def told(notice: ChatNotice, answer: Shown | ChatFault, now: int) -> ChatNotice | None:
    """After a try to tell it; None: it was told, else when it is due again.

    Nobody knows whether a try without an answer was heard. The next one has the same key, so it is seen once.
    """
    if isinstance(answer, Shown):
        return None
    return msgspec.structs.replace(notice, due_at=_later(notice, answer, now))


def _is_pending(work: ChatWork) -> bool:
    return work.gate is not None and work.gate.status is GateStatus.PENDING


def _later(tried: ChatPost | ChatNotice, fault: ChatFault, now: int) -> int:
    """When to try again: under a new install at once, else after a growing pause."""
    if fault.trouble is Trouble.REVOKED:
        return now
    pause = min(RETRY_FIRST_MS << min(tried.attempts - 1, 20), RETRY_MAX_MS)
    return now + max(pause, fault.wait_s * 1_000)
