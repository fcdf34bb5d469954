"""Reads a body that is one list, item by item, as each item would be read if it came alone."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, Protocol, Self, TypeVar, runtime_checkable

import msgspec
import trio

from sexton_actors.json_scale import MAX_DEPTH, Scale
from sexton_http.answers import Problem
from sexton_http.bodies.decoding import BodyDecoder, invalid
from sexton_http.bodies.weight import MAX_MARKS, SMALL_BODY, check_depth, weigh_on

T = TypeVar("T")

OUTER_LEVELS: Final = 2
"""The object and its list."""
MARKS: Final = 4 * MAX_MARKS
"""The bound of the whole; each item has that of one that comes alone."""
ESCAPES: Final = 640 * 1024
"""In the whole, which is told apart at one stretch: an item with more comes alone."""

_BEFORE: Final = re.compile(rb'\s*\{\s*"[^"]*"\s*:\s*\[\s*')
_BETWEEN: Final = re.compile(rb"\s*,?\s*")
_AFTER: Final = re.compile(rb"\s*\]\s*\}\s*")


@runtime_checkable
class Gathering(Protocol):
    """A body with one field, a list of which each item is read by itself."""

    @classmethod
    def gather(cls, read: Sequence[tuple[bytes, Any]]) -> Self:
        """Make the body of its items as they were sent: each with its value, or its ``Problem``."""
        ...


class ItemwiseDecoder(BodyDecoder[T]):
    """Looks at the whole only as far as to tell the items apart; what is wrong within one is its own."""

    def __init__(self, shape: type[T], items: BodyDecoder[Any]) -> None:
        """``items`` reads one of them."""
        super().__init__(shape)
        if not issubclass(shape, Gathering):
            raise TypeError(f"{shape.__name__} gathers no items")
        self._gather = shape.gather
        self._items = items
        self._field, most = list_of(shape)
        raws = Annotated[tuple[msgspec.Raw, ...], msgspec.Meta(max_length=most)]
        outer = msgspec.defstruct("Items", [(self._field, raws)], forbid_unknown_fields=True)
        self._outer = msgspec.json.Decoder(outer)

    def decode(self, body: bytes) -> T:
        """Raises Problem UZ-REQ-001 for what is no list of items."""
        check_depth(body, MAX_DEPTH + OUTER_LEVELS)
        return self._gather([(raw, self._item(raw)) for raw in self._told_apart(body, self._split(body))])

    async def decode_in_steps(self, body: bytes) -> T:
        """The same for a large body; others have their turn after each slice, and between items."""
        await weigh_on(Scale(min(ESCAPES, self._items.max_escapes), MARKS, MAX_DEPTH + OUTER_LEVELS), body)
        parts = self._split(body)
        await trio.lowlevel.checkpoint()
        read, since = list[tuple[bytes, Any]](), SMALL_BODY
        for raw in self._told_apart(body, parts):
            since += len(raw)
            if since > SMALL_BODY:
                since = 0
                await trio.lowlevel.checkpoint()
            read.append((raw, await self._item_in_steps(raw)))
        await trio.lowlevel.checkpoint()
        return self._gather(read)

    def _split(self, body: bytes) -> Sequence[msgspec.Raw]:
        try:
            outer = self._outer.decode(body)
        except msgspec.ValidationError as fault:
            raise invalid(fault) from fault
        except (msgspec.DecodeError, UnicodeDecodeError) as fault:
            raise Problem("UZ-REQ-001", f"the body is not JSON: {fault}") from fault
        parts: Sequence[msgspec.Raw] = getattr(outer, self._field)
        return parts

    def _told_apart(self, body: bytes, parts: Sequence[msgspec.Raw]) -> list[bytes]:
        """The items, if the body is nothing but them: of a field that comes twice one list was read."""
        raws = [bytes(part) for part in parts]
        before = _BEFORE.match(body)
        place = -1 if before is None else before.end()
        for number, raw in enumerate(raws):
            between = _BETWEEN.match(body, place) if number and place >= 0 else None
            start = place if between is None else between.end()
            place = start + len(raw) if place >= 0 and body.startswith(raw, start) else -1
        if place < 0 or _AFTER.fullmatch(body, place) is None:
            pointer = f"/{self._field}"
            raise Problem("UZ-REQ-001", f"{pointer}: stands there twice", facts={"pointer": pointer})
        return raws

    def _item(self, raw: bytes) -> Any:
        try:
            return self._items.decode(raw)
        except Problem as problem:
            return problem

    async def _item_in_steps(self, raw: bytes) -> Any:
        if len(raw) <= SMALL_BODY:
            return self._item(raw)
        try:
            return await self._items.decode_in_steps(raw)
        except Problem as problem:
            return problem


def list_of(shape: type[Any]) -> tuple[str, int]:
    """The name of the one field, and how many items it may have."""
    name, listed = _only_field(shape)
    if listed.max_length is None:
        raise TypeError(f"the list of {shape.__name__} has no bound")
    return name, listed.max_length


def item_of(shape: type[Any]) -> type[Any]:
    """The declared type of an item."""
    _, listed = _only_field(shape)
    if not isinstance(listed.item_type, msgspec.inspect.StructType):
        raise TypeError(f"the items of {shape.__name__} are no objects")
    return listed.item_type.cls


def _only_field(shape: type[Any]) -> tuple[str, msgspec.inspect.VarTupleType]:
    match msgspec.inspect.type_info(shape):
        case msgspec.inspect.StructType(
            fields=(msgspec.inspect.Field(encode_name=name, type=msgspec.inspect.VarTupleType() as listed),)
        ):
            return name, listed
        case _:
            raise TypeError(f"{shape.__name__} must have one field, a list")
