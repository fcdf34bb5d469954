"""The page of the supervision tree: every supervisor and actor of this process, with its mailbox."""

from collections.abc import Iterator
from math import log2
from typing import Final, NamedTuple

from sexton_engine.statistics import TreeNode
from sexton_http.answers import Answer
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.pages.console import console_operation, refused_page
from sexton_http.pages.form_actions import act, may
from sexton_http.pages.templates.frame import Frame, show
from sexton_http.routes.fleet import SupervisorState, view_supervisor

HERE: Final = "tree"
FULL_BITS: Final = 10
"""A bar is full at 1,024 messages: depth is shown by its logarithm."""
LATE_S: Final = 1.0
"""A message that waits for longer makes its row amber."""
REFUSED: Final = "The tree holds the actors of every tenant, so only platform admins see it."


class Row(NamedTuple):
    """One node as the page shows it."""

    depth: int
    node: TreeNode
    share: float
    """How full its bar is."""
    is_late: bool


@console_operation(HERE, HERE, "Tree")
async def show_tree(call: Call[NoBody, NoQuery], frame: Frame) -> Answer:
    """Show the live supervision tree of the process that answers, to platform admins."""
    if not may(frame.signed_in, view_supervisor):
        return refused_page(frame, REFUSED, status=403)
    state: SupervisorState = await act(call, frame.signed_in, view_supervisor)
    return show(frame, "tree", rows=list(rows_of(state.tree)))


def rows_of(node: TreeNode, depth: int = 0) -> Iterator[Row]:
    """The node and all below it, from the top."""
    yield Row(depth, node, share_of(node.mailbox_depth), node.mailbox_age_s >= LATE_S)
    for child in node.children:
        yield from rows_of(child, depth + 1)


def share_of(messages: int) -> float:
    """How full the bar of a mailbox is.

    >>> [share_of(messages) for messages in (0, 1, 31, 1_023, 100_000)]
    [0.0, 0.1, 0.5, 1.0, 1.0]
    """
    return min(1.0, log2(messages + 1) / FULL_BITS)
