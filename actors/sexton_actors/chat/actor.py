"""Shows one workspace's approval requests in its chat, one after the other, and closes what is decided."""

from collections.abc import Mapping
from typing import Any, assert_never
from uuid import UUID

import msgspec
import structlog

from sexton_actors.addresses import uuid_key
from sexton_actors.chat import transitions
from sexton_actors.chat.notices import notice_of
from sexton_actors.ports.chat import ChatFault, ChatPlatform, Standing, Trouble
from sexton_actors.protocol import chat as m
from sexton_actors.refusal import Refusal
from sexton_actors.world import World
from sexton_engine import Actor, Context, MailboxSpec
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.chats import ChatInstall, ChatWork

CLAIM_MS = 60_000
"""What a node has begun and not finished, another node begins again after this time."""
TOKEN_NAME = "chat/slack"  # noqa: S105  the credential's name; with a slash no person can give, read or lend it
TURN = 20
"""Things done before other messages have their turn."""

Message = m.Install | m.Uninstall | m.Probe | m.Look | m.Work

log = structlog.get_logger()


class _Desk(msgspec.Struct, frozen=True):
    """What a turn works with: as it was when the turn began."""

    platform: ChatPlatform
    install: ChatInstall
    token: str


class ChatActor(Actor):
    """One workspace's chat, and the only writer of its install on this node.

    What it knows of messages stands in rows that are claimed before the platform is asked and finished
    after: a crash in between leaves a claim that runs out and is made again under the same key.
    """

    kind = "chat"
    mailbox = MailboxSpec(capacity=256)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world
        self._not_before = 0

    @property
    def _id(self) -> UUID:
        return uuid_key(self.context)

    async def on_receive(self, message: Message) -> Any:
        """Dispatch. Looks only wind up the timer, so that a thousand gates at once are one piece of work."""
        match message:
            case m.Look():
                left_ms = max(0, self._not_before - self._world.now_ms())
                self.context.set_timer("work", left_ms / 1000, m.Work())
                return None
            case m.Work():
                return await self._work()
            case m.Install():
                return await self._install(message)
            case m.Uninstall():
                return await self._uninstall()
            case m.Probe():
                return await self._probe()
            case _:
                assert_never(message)

    # --- the install ----------------------------------------------------------------------------------------

    async def _install(self, message: m.Install) -> ChatInstall:
        world = self._world
        before = await world.storage.chats.load(self._id)
        install = message.install
        if before is not None:
            install = msgspec.structs.replace(install, created_at=before.created_at)
        # The token first: an install without its token would only be refused, a token without one is unused.
        await world.secrets.put(self._id, TOKEN_NAME, {"bot_token": message.token})
        await world.storage.chats.save(install)
        self._not_before = 0
        self.context.set_timer("work", 0, m.Work())
        return install

    async def _uninstall(self) -> bool:
        world = self._world
        token = await self._token()
        removed = await world.storage.chats.remove(self._id)
        await world.secrets.delete(self._id, TOKEN_NAME)
        if token is not None and world.chat is not None:
            await world.chat.revoke(token)
        return removed

    async def _probe(self) -> Standing | Refusal:
        token, platform = await self._token(), self._world.chat
        install = await self._world.storage.chats.load(self._id)
        if install is None or token is None or platform is None:
            return _gone("The workspace has no chat integration; install it.")
        standing = await platform.test(token)
        if isinstance(standing, Standing):
            return standing
        if standing.trouble is Trouble.BUSY:
            return Refusal("UZ-CHATPLUGIN-002", f"The chat platform gave no answer: {standing.detail}.")
        await self._note_revoked(standing)
        return _gone(f"The chat platform refuses the token: {standing.detail}.")

    async def _token(self) -> str | None:
        data: Mapping[str, Any] | None = await self._world.secrets.open(self._id, TOKEN_NAME)
        token = None if data is None else data.get("bot_token")
        return token if isinstance(token, str) else None

    async def _note_revoked(self, fault: ChatFault) -> None:
        log.warning("chat_token_refused", workspace_id=str(self._id), detail=fault.detail)
        await self._world.storage.chats.revoke(self._id, self._world.now_ms())

    # --- the messages ---------------------------------------------------------------------------------------

    async def _work(self) -> None:
        platform = self._world.chat
        if platform is None or self._not_before > self._world.now_ms():
            return
        # Most workspaces have no chat: they cost a read, and no claim.
        install = await self._world.storage.chats.load(self._id)
        if install is None or install.revoked_at is not None or (token := await self._token()) is None:
            return
        desk = _Desk(platform, install, token)
        for _ in range(TURN):
            now = self._world.now_ms()
            work = await self._world.storage.chats.claim(self._id, now, now + CLAIM_MS)
            if work is None:
                return
            if not await self._do(work, desk):
                return
        self.context.set_timer("work", 0, m.Work())

    async def _do(self, work: ChatWork, desk: _Desk) -> bool:
        """False when the platform wants to be left alone for a while."""
        platform, channel_id, token = desk.platform, desk.install.channel_id, desk.token
        notice, post = notice_of(work.gate), work.post
        match transitions.todo(work):
            case transitions.Drop():
                await self._world.storage.chats.forget(post)
                return True
            case transitions.Post():
                answer = await platform.post(token, channel_id, notice, post.gate_id)
                came = transitions.posted(work, channel_id, answer, self._world.now_ms())
            case transitions.Update(message_id=message_id):
                answer = await platform.update(token, post.channel_id, message_id, notice)
                came = transitions.updated(work, answer, self._world.now_ms())
            case unexpected:
                assert_never(unexpected)
        await self._save(work, came)
        return await self._went_on(answer)

    async def _save(self, work: ChatWork, came: transitions.Keep | transitions.Forget) -> None:
        chats = self._world.storage.chats
        match came:
            case transitions.Keep(post=post):
                await chats.keep(post)
            case transitions.Forget():
                await chats.forget(work.post)
            case _:
                assert_never(came)

    async def _went_on(self, answer: object) -> bool:
        if not isinstance(answer, ChatFault):
            return True
        match answer.trouble:
            case Trouble.REVOKED:
                await self._note_revoked(answer)
                return False
            case Trouble.BUSY:
                self._not_before = self._world.now_ms() + max(1, answer.wait_s) * 1_000
                self.context.set_timer("work", max(1, answer.wait_s), m.Work())
                return False
            case Trouble.REFUSED:
                log.warning("chat_refused", workspace_id=str(self._id), detail=answer.detail)
                return True
            case _:
                assert_never(answer.trouble)


def _gone(detail: str) -> Refusal:
    return Refusal("UZ-CHATPLUGIN-003", detail)
