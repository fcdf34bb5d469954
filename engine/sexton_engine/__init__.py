"""How an actor lives: pykka's actors on trio, supervised, with bounded mailboxes."""

from sexton_engine.actor import Actor
from sexton_engine.context import ActorSystem, Context, Ending, Terminated
from sexton_engine.dead_letters import DeadLetter, DeadLetters, Reason
from sexton_engine.errors import (
    ActorCrashed,
    ActorStopped,
    AskTimeout,
    EngineError,
    EngineFault,
    MailboxFull,
    UnknownKind,
)
from sexton_engine.future import FutureNotReadyError, TrioFuture
from sexton_engine.hold import Hold
from sexton_engine.home import ASK_TIMEOUT_S
from sexton_engine.mailbox import MailboxSpec, WhenFull
from sexton_engine.message import Lane, Message
from sexton_engine.nodes import SINGLETON_KEY
from sexton_engine.reply import DEFERRED, Deferred, ReplyPort
from sexton_engine.spec import (
    ActorSpec,
    Backoff,
    ChildSpec,
    FamilySpec,
    Intensity,
    Restart,
    Strategy,
    SupervisorSpec,
)
from sexton_engine.statistics import KindStatistics, MessageStatistics, SystemStatistics, TreeNode
from sexton_engine.system import open_system
from sexton_engine.trio_actor import TrioActor, TrioRef, actor_scope

__all__ = [
    "ASK_TIMEOUT_S",
    "DEFERRED",
    "SINGLETON_KEY",
    "Actor",
    "ActorCrashed",
    "ActorSpec",
    "ActorStopped",
    "ActorSystem",
    "AskTimeout",
    "Backoff",
    "ChildSpec",
    "Context",
    "DeadLetter",
    "DeadLetters",
    "Deferred",
    "Ending",
    "EngineError",
    "EngineFault",
    "FamilySpec",
    "FutureNotReadyError",
    "Hold",
    "Intensity",
    "KindStatistics",
    "Lane",
    "MailboxFull",
    "MailboxSpec",
    "Message",
    "MessageStatistics",
    "Reason",
    "ReplyPort",
    "Restart",
    "Strategy",
    "SupervisorSpec",
    "SystemStatistics",
    "Terminated",
    "TreeNode",
    "TrioActor",
    "TrioFuture",
    "TrioRef",
    "UnknownKind",
    "WhenFull",
    "actor_scope",
    "open_system",
]
