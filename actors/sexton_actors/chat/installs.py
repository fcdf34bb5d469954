"""Keeps, probes and removes the install of a workspace's chat."""

import msgspec

from sexton_actors.chat.state import TOKEN_NAME, ChatState
from sexton_actors.ports.chat import BotIdentity, Trouble
from sexton_actors.protocol import chat as m
from sexton_actors.refusal import Refusal
from sexton_storage.records.chats import ChatInstall


async def install(chat: ChatState, message: m.Install) -> ChatInstall:
    """Keep the install and its bot's token; what waited for it is shown now."""
    world = chat.world
    before = await world.storage.chats.load(chat.id)
    install = message.install
    if before is not None:
        install = msgspec.structs.replace(install, created_at=before.created_at)
    # The token first: an install without its token would only be refused, a token without one is unused.
    await world.secrets.put(chat.id, TOKEN_NAME, {"bot_token": message.token})
    await world.storage.chats.save(install)
    chat.not_before = 0
    chat.work_in(0)
    return install


async def uninstall(chat: ChatState) -> bool:
    """Forget the install and give its token back; False when there was none."""
    world = chat.world
    token = await chat.token()
    removed = await world.storage.chats.remove(chat.id)
    await world.secrets.delete(chat.id, TOKEN_NAME)
    if token is not None and world.chat is not None:
        await world.chat.revoke(token)
    return removed


async def probe(chat: ChatState) -> BotIdentity | Refusal:
    """Ask the platform whether the token is good; one that is not is noted."""
    token, platform = await chat.token(), chat.world.chat
    install = await chat.world.storage.chats.load(chat.id)
    if install is None or token is None or platform is None:
        return _gone("The workspace has no chat integration; install it.")
    identity = await platform.test(token)
    if isinstance(identity, BotIdentity):
        return identity
    if identity.trouble is Trouble.BUSY:
        return Refusal("UZ-CHATPLUGIN-002", f"The chat platform gave no answer: {identity.detail}.")
    await chat.note_revoked(identity)
    return _gone(f"The chat platform refuses the token: {identity.detail}.")


def _gone(detail: str) -> Refusal:
    return Refusal("UZ-CHATPLUGIN-003", detail)
