"""What can be asked of a workspace's chat."""

import msgspec

from sexton_actors.ports.chat import BotIdentity
from sexton_actors.protocol.attributed import Attributed
from sexton_actors.refusal import Refusal
from sexton_engine import Message
from sexton_storage.records.chats import ChatInstall


class Install(Attributed, Message[ChatInstall], frozen=True):
    """Keep the install and its bot's token, in place of one before."""

    install: ChatInstall
    token: str


class Uninstall(Attributed, Message[bool], frozen=True):
    """Give the token back and forget the install; False when there was none."""


class Probe(msgspec.Struct, Message[BotIdentity | Refusal], frozen=True):
    """Ask the platform whether the token is good."""


class Look(msgspec.Struct, Message[None], frozen=True):
    """There may be something to be shown or closed."""


class Work(msgspec.Struct, Message[None], frozen=True):
    """Do what there is to be done; many looks are one of these."""
