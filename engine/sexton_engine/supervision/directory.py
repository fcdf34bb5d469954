"""Finds the activation of a kind and key, or makes it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from sexton_engine.activation.cell import Cell
from sexton_engine.activation.kind import Home
from sexton_engine.errors import ActorStopped, UnknownKind
from sexton_engine.supervision.nodes import FamilyNode, Node, SingletonNode
from sexton_engine.supervision.supervisor import SupervisorNode

__all__ = ["Directory"]


class Directory:
    """All kinds of one system. pykka's registry, a list to be searched, is not used for supervised actors."""

    __slots__ = ("_families", "_homes")

    def __init__(self) -> None:
        self._homes: dict[str, Home[Cell]] = {}
        self._families: dict[str, FamilyNode] = {}

    def add(self, node: Node) -> None:
        """Take in all kinds at and below the node; a kind that is there already raises ``ValueError``."""
        match node:
            case SupervisorNode():
                for child in node.children:
                    self.add(child.node)
            case FamilyNode():
                self._add_home(node.home)
                self._families[node.home.kind] = node
            case SingletonNode():
                self._add_home(node.home)
            case _:
                raise TypeError(node)

    def _add_home(self, home: Home[Cell]) -> None:
        if home.kind in self._homes:
            msg = f"the kind {home.kind} stands in the tree twice"
            raise ValueError(msg)
        self._homes[home.kind] = home

    def homes(self) -> Iterable[Home[Cell]]:
        """All kinds, in the order of the tree."""
        return self._homes.values()

    def home(self, kind: str) -> Home[Cell]:
        """One kind; raises ``UnknownKind``."""
        home = self._homes.get(kind)
        if home is None:
            msg = f"no actor of the kind {kind} stands in the supervision tree"
            raise UnknownKind(msg)
        return home

    def find(self, kind: str, key: Hashable) -> Cell | None:
        """The activation, if there is one."""
        return self.home(kind).cells.get(key)

    def resolve(self, kind: str, key: Hashable) -> Cell:
        """The activation, made if its kind is a family; raises ``UnknownKind`` or ``ActorStopped``."""
        home = self._homes.get(kind)
        if home is not None:
            cell = home.cells.get(key)
            if cell is not None:
                return cell
        family = self._families.get(self.home(kind).kind)
        if family is None:
            msg = f"{kind}/{key} is stopped, or is no key of a singleton"
            raise ActorStopped(msg)
        return family.activate(key)
