"""Finds the activation of a kind and key, or makes it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from sexton_engine.activation.cell import Cell
from sexton_engine.activation.kind import Kind
from sexton_engine.errors import ActorStopped, UnknownKind
from sexton_engine.supervision.nodes import FamilyNode, Node, SingletonNode
from sexton_engine.supervision.supervisor import SupervisorNode

__all__ = ["Directory"]


class Directory:
    """All kinds of one system. pykka's registry, a list to be searched, is not used for supervised actors."""

    __slots__ = ("_families", "_kinds")

    def __init__(self) -> None:
        self._kinds: dict[str, Kind[Cell]] = {}
        self._families: dict[str, FamilyNode] = {}

    def add(self, node: Node) -> None:
        """Take in all kinds at and below the node; a kind that is there already raises ``ValueError``."""
        match node:
            case SupervisorNode():
                for child in node.children:
                    self.add(child.node)
            case FamilyNode():
                self._add_kind(node.of_kind)
                self._families[node.of_kind.name] = node
            case SingletonNode():
                self._add_kind(node.of_kind)
            case _:
                raise TypeError(node)

    def _add_kind(self, kind: Kind[Cell]) -> None:
        if kind.name in self._kinds:
            msg = f"the kind {kind.name} stands in the tree twice"
            raise ValueError(msg)
        self._kinds[kind.name] = kind

    def kinds(self) -> Iterable[Kind[Cell]]:
        """All kinds, in the order of the tree."""
        return self._kinds.values()

    def kind(self, name: str) -> Kind[Cell]:
        """One kind; raises ``UnknownKind``."""
        kind = self._kinds.get(name)
        if kind is None:
            msg = f"no actor of the kind {name} stands in the supervision tree"
            raise UnknownKind(msg)
        return kind

    def is_family(self, name: str) -> bool:
        """Whether the kind has an actor for each key, and not one alone."""
        return name in self._families

    def find(self, kind: str, key: Hashable) -> Cell | None:
        """The activation, if there is one."""
        return self.kind(kind).cells.get(key)

    def resolve(self, kind: str, key: Hashable) -> Cell:
        """The activation, made if its kind is a family; raises ``UnknownKind`` or ``ActorStopped``."""
        found = self._kinds.get(kind)
        if found is not None:
            cell = found.cells.get(key)
            if cell is not None:
                return cell
        family = self._families.get(self.kind(kind).name)
        if family is None:
            msg = f"{kind}/{key} is stopped, or is no key of a singleton"
            raise ActorStopped(msg)
        return family.activate(key)
