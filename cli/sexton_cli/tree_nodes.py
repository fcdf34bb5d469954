"""The nodes of a supervision tree, one below the other."""

from collections.abc import Iterator

from sexton_cli.client import Row


def walk(node: Row, depth: int = 0) -> Iterator[tuple[int, Row]]:
    """A node and all below it, each with how deep it lies.

    >>> [d for d, _ in walk({"name": "a", "children": [{"name": "b"}, {"name": "c"}]})]
    [0, 1, 1]
    """
    yield depth, node
    for child in node.get("children") or ():
        yield from walk(child, depth + 1)
