"""The page of the supervision tree: every supervisor and actor of a process, its mailbox, its crashes."""

from collections.abc import Iterator
from math import log2
from typing import Any, Final, NamedTuple

from sexton_engine.statistics import TreeNode
from sexton_http.answers import Answer, Problem
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody
from sexton_http.pages.console import OK, console_operation, refused_page
from sexton_http.pages.form_actions import act, may
from sexton_http.pages.forms import sentence
from sexton_http.pages.templates.frame import Frame, show
from sexton_http.routes.actors import TreeQuery, view_tree
from sexton_http.routes.shared.actor_shapes import ActorItem, ActorKind, ActorTree

HERE: Final = "tree"
FULL_BITS: Final = 10
"""A bar is full at 1,024 messages: depth is shown by its logarithm."""
LATE_S: Final = 1.0
"""A message that waits for longer makes its row amber."""
SILENT: Final = "UZ-ACTOR-003"
REFUSED: Final = "The tree holds the actors of every tenant, so only platform admins see it."


class Row(NamedTuple):
    """One node as the page shows it."""

    depth: int
    node: TreeNode
    share: float
    """How full its bar is."""
    is_late: bool
    handled: int
    mean_ms: float | None
    """How long its handlers took, on average; None where none was called."""


@console_operation(HERE, HERE, "Tree")
async def show_tree(call: Call[NoBody, TreeQuery], frame: Frame) -> Answer:
    """Show the live supervision tree of one process, to platform admins; with a kind, also its actors."""
    if not may(frame.signed_in, view_tree):
        return refused_page(frame, REFUSED, status=403)
    query = call.query
    try:
        seen: ActorTree = await act(call, frame.signed_in, view_tree, query=query)
    except Problem as problem:
        if problem.row.code != SILENT:
            raise
        return silent_page(call, frame, problem)
    kinds = {} if call.query.kind else {kind.kind: kind for kind in seen.kinds}
    return show(
        frame,
        "tree",
        rows=list(rows_of(seen.tree, kinds)),
        seen=seen,
        kind=query.kind,
        node="" if query.node is None else f"&node={query.node}",
        actors=[(actor, share_of(actor.mailbox_depth)) for actor in seen.actors],
    )


def silent_page(call: Call[Any, Any], frame: Frame, problem: Problem) -> Answer:
    """Instead of the actors of a node that does not answer: since when it is silent."""
    trace = f"{problem.row.code}, request {call.request_id}"
    return refused_page(frame, sentence(problem.detail), OK, problem.row.code, trace)


def rows_of(node: TreeNode, kinds: dict[str, ActorKind], depth: int = 0) -> Iterator[Row]:
    """The node and all below it, from the top."""
    counts = kinds[node.name].messages if node.name in kinds else []
    handled = sum(one.count for one in counts)
    mean_ms = 1000 * sum(one.seconds for one in counts) / handled if handled else None
    is_late = node.mailbox_age_s >= LATE_S
    yield Row(depth, node, share_of(node.mailbox_depth), is_late, handled, mean_ms)
    for child in node.children:
        yield from rows_of(child, kinds, depth + 1)


def rows_of_actor(actor: ActorItem) -> tuple[float, bool]:
    """How full the bar of its mailbox is, and whether its oldest message is late."""
    return share_of(actor.mailbox_depth), actor.mailbox_age_s >= LATE_S


def share_of(messages: int) -> float:
    """How full the bar of a mailbox is.

    >>> [share_of(messages) for messages in (0, 1, 31, 1_023, 100_000)]
    [0.0, 0.1, 0.5, 1.0, 1.0]
    """
    return min(1.0, log2(messages + 1) / FULL_BITS)
