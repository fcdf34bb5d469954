"""What is wrong with the engine, on every server of the database: crashed actors and silent servers."""

from typing import Any, Final, NamedTuple
from uuid import UUID

import trio

from sexton_http.answers import Problem
from sexton_http.gateway.call import Call
from sexton_http.identity.context import SeenNode
from sexton_http.pages.form_actions import act, may
from sexton_http.pages.templates.frame import Frame
from sexton_http.routes.actors import TreeQuery, view_tree
from sexton_http.routes.shared.actor_shapes import ActorTree, CrashItem

RECENT_S: Final = 3600.0
"""How long a crash of an actor, or a server that is gone, is shown."""
MOST_CRASHES: Final = 5
MOST_SILENT: Final = 5
MOST_ASKED: Final = 16
"""Other servers, and other workers of one, that are asked; the *Tree* page reaches all of them."""
ELSEWHERE_S: Final = 0.5
"""A server that takes longer to answer is left out, so that the page never waits for a frozen one."""


class Crash(NamedTuple):
    """The last crash of an actor, and where it was."""

    item: CrashItem
    node: UUID
    worker: int | None
    host: str
    is_elsewhere: bool
    """It was in another process than the one that makes the page."""

    @property
    def place(self) -> str:
        """The rest of a query that finds the actor again."""
        return f"&node={self.node}" + ("" if self.worker is None else f"&worker={self.worker}")


class EngineTroubles(NamedTuple):
    crashes: list[Crash]
    silent: list[SeenNode]


async def engine_troubles(call: Call[Any, Any], frame: Frame) -> EngineTroubles:
    """What went wrong within the hour, the latest first; nothing for who may not see the engine."""
    if not may(frame.signed_in, view_tree):
        return EngineTroubles([], [])
    here: ActorTree = await act(call, frame.signed_in, view_tree, query=TreeQuery())
    trees = [here, *await _elsewhere(call, frame, here)]
    return EngineTroubles(latest_crashes(trees), silent_nodes(here.nodes))


async def _elsewhere(call: Call[Any, Any], frame: Frame, here: ActorTree) -> list[ActorTree]:
    """The trees of the other workers and servers, as far as they answer in time."""
    trees: list[ActorTree] = []

    async def look(query: TreeQuery) -> ActorTree | None:
        try:
            tree: ActorTree = await act(call, frame.signed_in, view_tree, query=query)
        except Problem:
            return None  # It went silent, or is of another release; that is no reason to show no page.
        trees.append(tree)
        return tree

    async def look_at_node(node: SeenNode) -> None:
        tree = await look(TreeQuery(node=node.node))
        if tree is not None:
            for worker in tree.workers:
                if worker != tree.worker:
                    await look(TreeQuery(node=node.node, worker=worker))

    others = [node for node in here.nodes if node.node != here.node and not node.is_silent]
    with trio.move_on_after(ELSEWHERE_S):
        async with trio.open_nursery() as nursery:
            for worker in [number for number in here.workers if number != here.worker][:MOST_ASKED]:
                nursery.start_soon(look, TreeQuery(node=here.node, worker=worker))
            for node in others[:MOST_ASKED]:
                nursery.start_soon(look_at_node, node)
    return trees


def latest_crashes(trees: list[ActorTree]) -> list[Crash]:
    """The last crash of each actor at each place, the latest first; the first tree is of this process."""
    latest: dict[tuple[UUID, int | None, str, str], Crash] = {}
    for tree in trees:
        for item in tree.crashes:
            if item.age_s < RECENT_S:
                crash = Crash(item, tree.node, tree.worker, tree.host, tree is not trees[0])
                latest.setdefault((tree.node, tree.worker, item.kind, item.key), crash)
    return sorted(latest.values(), key=lambda crash: crash.item.age_s)[:MOST_CRASHES]


def silent_nodes(nodes: list[SeenNode]) -> list[SeenNode]:
    """Servers that ended or froze without a word within the hour; not those begun again at their host since.

    >>> def node(number: int, host: str, heard_ago_s: float, started_at: int = 0) -> SeenNode:
    ...     return SeenNode(UUID(int=number), host, "1", started_at, heard_ago_s, heard_ago_s > 15)
    >>> [seen.host for seen in silent_nodes([node(1, "a", 0.0), node(2, "b", 60.0), node(3, "c", 9_000.0)])]
    ['b']
    >>> silent_nodes([node(1, "a", 0.0, started_at=5_000), node(2, "a", 60.0, started_at=1_000)])
    []
    """
    found = [
        node
        for node in nodes
        if node.is_silent
        and node.heard_ago_s < RECENT_S
        and not any(one.host == node.host and one.started_at > node.started_at for one in nodes)
    ]
    return sorted(found, key=lambda node: node.heard_ago_s)[:MOST_SILENT]
