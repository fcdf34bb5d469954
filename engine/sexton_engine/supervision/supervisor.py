"""Keeps the children of one supervisor running, by its strategy, until restarts no longer help."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

import trio

from sexton_engine.activation.cell import Cell
from sexton_engine.activation.kind import Environment
from sexton_engine.errors import EngineFault
from sexton_engine.mail.deadlines import NEVER
from sexton_engine.spec import ActorSpec, ChildSpec, FamilySpec, Strategy, SupervisorSpec
from sexton_engine.statistics import TreeNode
from sexton_engine.supervision.nodes import FamilyNode, Node, NodeListener, SingletonNode
from sexton_engine.supervision.strategy import affected, delay, restarts, within

__all__ = ["SupervisorNode"]

logger = logging.getLogger("sexton_engine")


class State(Enum):
    """The state of a child, as its supervisor sees it."""

    DOWN = "down"
    """To be started when its time has come."""
    STARTING = "starting"
    UP = "up"
    GONE = "gone"
    """Ended for good."""


class Child:
    """A node and what its supervisor knows of it."""

    __slots__ = ("due", "node", "restarted_at", "state")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.state = State.DOWN
        self.due = 0.0
        self.restarted_at: list[float] = []
        """As far as it counts: the back-off grows with them."""


Notice: TypeAlias = Callable[[], None]


class SupervisorNode(Node, NodeListener):
    """One task that takes notices of its children, one by one, and acts on them.

    While it stops some of them or waits for a back-off to pass, further notices queue up; there is
    never more than one decision at a time.
    """

    def __init__(self, spec: SupervisorSpec, env: Environment[Cell], listener: NodeListener) -> None:
        self.name = spec.name
        self.restart = spec.restart
        self.restarts = 0
        self._spec = spec
        self._env = env
        self._listener = listener
        self.children = tuple(Child(self._make(child)) for child in spec.children)
        self._crashes: deque[tuple[Node, BaseException | None]] = deque()
        self._wishes: deque[Node] = deque()
        """Children that somebody wants to start again."""
        self._changed = trio.Event()
        self._restarted_at: list[float] = []
        self._scope: trio.CancelScope | None = None
        self._announced = False

    def _make(self, spec: ChildSpec) -> Node:
        match spec:
            case ActorSpec():
                return SingletonNode(spec, self._env, self, self._spec.backoff)
            case FamilySpec():
                return FamilyNode(spec, self._env, self, self._spec.backoff)
            case SupervisorSpec():
                return SupervisorNode(spec, self._env, self)

    # --- as a child ----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start the children in order, in a task of its own."""
        for child in self.children:
            if child.state is not State.GONE:
                child.state, child.due, child.restarted_at = State.DOWN, self._env.monotonic(), []
        self._crashes.clear()
        self._wishes.clear()
        self._restarted_at = []
        self._announced = False
        self._scope = trio.CancelScope()
        self._env.nursery.start_soon(self._run, self._scope, name=f"supervisor {self.name}")

    async def stop(self, *, keep_mail: bool) -> None:
        """Stop the children in reverse order within the budget, then kill those that are left."""
        self._give_up_running()
        with trio.move_on_after(self._spec.shutdown_s):
            await self._stop_children(keep_mail=keep_mail)
            return
        logger.warning("%s did not stop within %s s; the rest is killed", self.name, self._spec.shutdown_s)
        self.kill(keep_mail=keep_mail)
        await trio.lowlevel.checkpoint()

    async def _stop_children(self, *, keep_mail: bool) -> None:
        for child in reversed(self.children):
            await self._stop_child(child, keep_mail=keep_mail)

    async def _stop_child(self, child: Child, *, keep_mail: bool) -> None:
        if child.state is State.GONE:
            return
        await child.node.stop(keep_mail=keep_mail)
        child.state = State.DOWN if keep_mail else State.GONE

    def kill(self, *, keep_mail: bool) -> None:
        """Kill the children in reverse order."""
        self._give_up_running()
        for child in reversed(self.children):
            if child.state is not State.GONE:
                child.node.kill(keep_mail=keep_mail)

    def _give_up_running(self) -> None:
        if self._scope is not None:
            self._scope.cancel()
            self._scope = None

    def close(self) -> None:
        """Close the children."""
        for child in reversed(self.children):
            child.node.close()
            child.state = State.GONE

    def tree(self) -> TreeNode:
        """What is to be seen of it and of all below it."""
        below = tuple(child.node.tree() for child in self.children)
        return TreeNode(
            name=self.name,
            role="supervisor",
            state="down" if self._scope is None else "up" if self._announced else "starting",
            restart=self.restart.value,
            strategy=self._spec.strategy.value,
            restarts=self.restarts,
            live=sum(node.live for node in below),
            mailbox_depth=sum(node.mailbox_depth for node in below),
            mailbox_age_s=max((node.mailbox_age_s for node in below), default=0.0),
            children=below,
        )

    # --- as a listener -----------------------------------------------------------------------------------

    def child_started(self, node: Node) -> None:
        """Note it; the next child may start."""
        child = self._child(node)
        if child.state is State.STARTING:
            child.state = State.UP
            self._changed.set()

    def child_crashed(self, node: Node, exc: BaseException) -> None:
        """Queue the notice."""
        self._crashes.append((node, exc))
        self._changed.set()

    def child_restart_wanted(self, node: Node) -> None:
        """Queue the wish."""
        self._wishes.append(node)
        self._changed.set()

    def child_finished(self, node: Node) -> None:
        """Queue the notice."""
        self._crashes.append((node, None))
        self._changed.set()

    def _child(self, node: Node) -> Child:
        return next(child for child in self.children if child.node is node)

    # --- the task ----------------------------------------------------------------------------------------

    async def _run(self, scope: trio.CancelScope) -> None:
        fault: EngineFault | None = None
        with scope:
            fault = await self._supervise()
        if fault is not None and self._scope is scope:
            self._scope = None
            self._listener.child_crashed(self, fault)

    async def _supervise(self) -> EngineFault:
        """Act on notices until one is one too many; then everything below is stopped.

        Stopping this supervisor cancels the task, but a task that is ready to run learns of it only at its
        next checkpoint. So it looks before each decision: a child that it started now would be running
        already when its turn to start comes again.
        """
        while True:
            self._changed = trio.Event()
            while self._crashes:
                await trio.lowlevel.checkpoint_if_cancelled()
                fault = await self._handle(*self._crashes.popleft())
                if fault is not None:
                    await self._stop_children(keep_mail=True)
                    return fault
            while self._wishes:
                await trio.lowlevel.checkpoint_if_cancelled()
                await self._begin_again(self._wishes.popleft())
            await trio.lowlevel.checkpoint_if_cancelled()
            self._start_due()
            self._announce_once()
            if not self._crashes and not self._wishes and not self._changed.is_set():
                await self._wait_for_change()

    async def _wait_for_change(self) -> None:
        next_due = min((child.due for child in self._startable()), default=NEVER)
        with trio.move_on_after(max(next_due - self._env.monotonic(), 0)):
            await self._changed.wait()

    def _announce_once(self) -> None:
        if not self._announced and all(child.state in {State.UP, State.GONE} for child in self.children):
            self._announced = True
            self._listener.child_started(self)

    def _startable(self) -> list[Child]:
        """Those that are down and need not wait for another one to be up first."""
        down = [child for child in self.children if child.state is State.DOWN]
        if self._announced and self._spec.strategy is Strategy.ONE_FOR_ONE:
            return down  # restarts under one_for_one are each on their own
        if any(child.state is State.STARTING for child in self.children):
            return []
        return down[:1]

    def _start_due(self) -> None:
        while due := [child for child in self._startable() if child.due <= self._env.monotonic()]:
            due[0].state = State.STARTING
            due[0].node.begin()

    async def _handle(self, node: Node, exc: BaseException | None) -> EngineFault | None:
        """Take down what goes down with the child; the fault if that was one restart too many."""
        failed = self._child(node)
        if failed.state in {State.DOWN, State.GONE}:
            return None  # a notice from before it was taken down with others
        if not restarts(node.restart, crashed=exc is not None):
            node.close()
            failed.state = State.GONE
            return None
        counted = within(self._spec.intensity, self._restarted_at, self._env.monotonic())
        if counted is None:
            return self._fault(node, exc)
        self._restarted_at = counted
        failed.state = State.DOWN
        failed.restarted_at = [at for at in failed.restarted_at if at >= counted[0]] + [counted[-1]]
        attempt = len(failed.restarted_at) - 1
        await self._take_down(failed, delay(self._spec.backoff, attempt, self._env.rng.random()))
        self._count_restart(node)
        return None

    async def _begin_again(self, node: Node) -> None:
        """What was wished: nobody has failed, so nothing counts against the intensity, and none waits."""
        child = self._child(node)
        if child.state is State.UP:
            await self._take_down(child, 0)
            self._count_restart(node)

    def _fault(self, node: Node, exc: BaseException | None) -> EngineFault:
        if isinstance(node, SingletonNode):
            node.of_kind.counters.escalations += 1
        logger.error("%s gives up: more than %s, %s was the last", self.name, self._spec.intensity, node.name)
        fault = EngineFault(f"{self.name} gave up after {node.name} ended once too often")
        fault.__cause__ = exc
        return fault

    def _count_restart(self, node: Node) -> None:
        node.restarts += 1
        if isinstance(node, SingletonNode):
            node.of_kind.counters.restarts += 1

    async def _take_down(self, failed: Child, wait_s: float) -> None:
        index = self.children.index(failed)
        group = [self.children[place] for place in affected(self._spec.strategy, index, len(self.children))]
        for child in reversed(group):
            if child.state in {State.UP, State.STARTING}:
                await child.node.stop(keep_mail=restarts(child.node.restart, crashed=True))
                # A temporary child that goes down with others is not started again.
                child.state = State.DOWN if restarts(child.node.restart, crashed=True) else State.GONE
        due = self._env.monotonic() + wait_s
        for child in group:
            if child.state is State.DOWN:
                child.due = due
