"""Shows approval requests in a workspace's chat, closes what is decided, and tells notices; one at a time."""

from typing import Final, assert_never

import msgspec
import structlog

from sexton_actors.chat import transitions
from sexton_actors.chat.notices import notice_of
from sexton_actors.chat.state import ChatState
from sexton_actors.chat.trial_notices import trial_notice_of
from sexton_actors.ports.chat import ChatFault, ChatPlatform, Subject, Trouble
from sexton_storage.records.chats import ChatInstall, ChatNotice, ChatWork

CLAIM_MS: Final = 60_000
"""What a node has begun and not finished, another node begins again after this time."""
TURN_STEPS: Final = 20
"""Things done before other messages have their turn."""

log = structlog.get_logger()


class _Turn(msgspec.Struct, frozen=True):
    """What a turn works with, as it was when the turn began."""

    platform: ChatPlatform
    install: ChatInstall
    token: str


async def take_turn(chat: ChatState) -> None:
    """Do what there is to be done, and come again at once if that is more than one turn."""
    platform = chat.world.chat
    if platform is None or chat.not_before > chat.world.now_ms():
        return
    # Most workspaces have no chat: they cost a read, and no claim.
    install = await chat.world.storage.chats.load(chat.id)
    if install is None or install.revoked_at is not None or (token := await chat.token()) is None:
        return
    turn = _Turn(platform, install, token)
    chats = chat.world.storage.chats
    for _ in range(TURN_STEPS):
        now = chat.world.now_ms()
        # People are waited for at a gate, so gates come first.
        if (work := await chats.claim(chat.id, now, now + CLAIM_MS)) is not None:
            goes_on = await _do(chat, work, turn)
        elif (notice := await chats.claim_notice(chat.id, now, now + CLAIM_MS)) is not None:
            goes_on = await _tell(chat, notice, turn)
        else:
            return
        if not goes_on:
            return
    chat.work_in(0)


async def _do(chat: ChatState, work: ChatWork, turn: _Turn) -> bool:
    """One step; False when the platform wants to be left alone for a while."""
    platform, channel_id, token = turn.platform, turn.install.channel_id, turn.token
    notice, post = notice_of(work.gate), work.post
    match transitions.todo(work):
        case transitions.Drop():
            await chat.world.storage.chats.forget(post)
            return True
        case transitions.Post():
            answer = await platform.post(token, channel_id, notice, Subject.GATE, post.gate_id)
            outcome = transitions.posted(work, channel_id, answer, chat.world.now_ms())
        case transitions.Update(message_id=message_id):
            answer = await platform.update(token, post.channel_id, message_id, notice)
            outcome = transitions.updated(work, answer, chat.world.now_ms())
        case unexpected:
            assert_never(unexpected)
    await _save(chat, work, outcome)
    return await _may_go_on(chat, answer)


async def _tell(chat: ChatState, notice: ChatNotice, turn: _Turn) -> bool:
    """Tell one notice; as ``_do``."""
    chats, world = chat.world.storage.chats, chat.world
    if transitions.is_stale(notice, world.now_ms()):
        log.warning("chat_notice_dropped", workspace_id=str(chat.id), notice_id=str(notice.id))
        await chats.forget_notice(notice)
        return True
    words = trial_notice_of(notice.zombie_name, notice.facts)
    answer = await turn.platform.post(turn.token, turn.install.channel_id, words, Subject.TRIAL, notice.id)
    again = transitions.told(notice, answer, world.now_ms())
    if again is None:
        await chats.forget_notice(notice)
    else:
        await chats.postpone_notice(again)
    return await _may_go_on(chat, answer)


async def _save(chat: ChatState, work: ChatWork, outcome: transitions.Keep | transitions.Forget) -> None:
    chats = chat.world.storage.chats
    match outcome:
        case transitions.Keep(post=post):
            await chats.keep(post)
        case transitions.Forget():
            await chats.forget(work.post)
        case _:
            assert_never(outcome)


async def _may_go_on(chat: ChatState, answer: object) -> bool:
    """Whether the platform may be asked for more at once."""
    if not isinstance(answer, ChatFault):
        return True
    match answer.trouble:
        case Trouble.REVOKED:
            await chat.note_revoked(answer)
            return False
        case Trouble.BUSY:
            chat.not_before = chat.world.now_ms() + max(1, answer.wait_s) * 1_000
            chat.work_in(max(1, answer.wait_s))
            return False
        case Trouble.REFUSED:
            log.warning("chat_refused", workspace_id=str(chat.id), detail=answer.detail)
            return True
        case _:
            assert_never(answer.trouble)
