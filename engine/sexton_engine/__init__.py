"""pykka's actors on trio, supervised, with bounded mailboxes."""

from sexton_engine.activation.cell_hold import finish_all
from sexton_engine.activation.kind import ASK_TIMEOUT_S
from sexton_engine.actor import Actor
from sexton_engine.context import ActorSystem, Context, Ending, Terminated
from sexton_engine.errors import (
    ActorCrashed,
    ActorStopped,
    AskTimeout,
    EngineError,
    EngineFault,
    MailboxFull,
    UnknownKind,
)
from sexton_engine.hold import Hold
from sexton_engine.inspection import Inspection
from sexton_engine.mail.dead_letters import DeadLetter, DeadLetters, Reason
from sexton_engine.mail.mailbox import MailboxSpec, WhenFull
from sexton_engine.mail.reply import DEFERRED, Deferred, ReplyPort
from sexton_engine.message import Lane, Message
from sexton_engine.pykka_bridge.future import FutureNotReadyError, TrioFuture
from sexton_engine.pykka_bridge.trio_actor import TrioActor, TrioRef, actor_scope
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
from sexton_engine.statistics import (
    ActorStatistics,
    CrashRecord,
    HandledMessage,
    KindStatistics,
    MessageStatistics,
    SystemStatistics,
    TreeNode,
)
from sexton_engine.supervision.nodes import SINGLETON_KEY
from sexton_engine.supervision.system import open_system

__all__ = [
    "ASK_TIMEOUT_S",
    "DEFERRED",
    "SINGLETON_KEY",
    "Actor",
    "ActorCrashed",
    "ActorSpec",
    "ActorStatistics",
    "ActorStopped",
    "ActorSystem",
    "AskTimeout",
    "Backoff",
    "ChildSpec",
    "Context",
    "CrashRecord",
    "DeadLetter",
    "DeadLetters",
    "Deferred",
    "Ending",
    "EngineError",
    "EngineFault",
    "FamilySpec",
    "FutureNotReadyError",
    "HandledMessage",
    "Hold",
    "Inspection",
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
    "finish_all",
    "open_system",
]
