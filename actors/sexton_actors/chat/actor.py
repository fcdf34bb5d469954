"""Shows one workspace's approval requests in its chat."""

from typing import Any, assert_never

from sexton_actors.chat import installs, posts
from sexton_actors.chat.state import ChatState
from sexton_actors.protocol import chat as m
from sexton_actors.world import World
from sexton_engine import Actor, Context, MailboxSpec
from sexton_storage.attribution import attributed
from sexton_storage.errors import StorageUnavailable

Message = m.Install | m.Uninstall | m.Probe | m.Look | m.Work


class ChatActor(Actor):
    """One workspace's chat; it serialises what becomes of its install on this node.

    What it knows of messages stands in rows that are claimed before the platform is asked and finished
    after: a crash in between leaves a claim that runs out and is made again under the same key.
    """

    kind = "chat"
    mailbox = MailboxSpec(capacity=256)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._chat = ChatState(context, world)

    async def on_receive(self, message: Message) -> Any:
        """Dispatch. Looks only wind up the timer, so that a thousand gates at once are one piece of work."""
        chat = self._chat
        match message:
            case m.Look():
                left_ms = max(0, chat.not_before - chat.world.now_ms())
                chat.work_in(left_ms / 1000)
                return None
            case m.Work():
                return await posts.take_turn(chat)
            case m.Install():
                with attributed(message.audit):
                    return await installs.install(chat, message)
            case m.Uninstall():
                with attributed(message.audit):
                    return await installs.uninstall(chat)
            case m.Probe():
                return await installs.probe(chat)
            case _:
                assert_never(message)
