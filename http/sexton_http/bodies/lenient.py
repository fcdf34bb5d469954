"""Reads the bodies of which a small fault is to cost no more than itself."""

import json
from functools import cache
from typing import Any, Final, Protocol, Self, TypeVar, runtime_checkable

import msgspec
import trio

from sexton_http.answers import Problem
from sexton_http.bodies.decoding import BodyDecoder
from sexton_http.bodies.items import ItemwiseDecoder, item_of
from sexton_http.bodies.json_faults import check_keys
from sexton_http.bodies.weight import check_depth, weigh

T = TypeVar("T")

NUL: Final = rb"\u0000"
MAX_NULS: Final = 16_384
"""In a body that is not small; to mend more would take too long."""
AWAY: Final = b"\0\1"
"""Stands for an escaped backslash meanwhile. As long as that, so that nothing has to be moved."""


@runtime_checkable
class Salvageable(Protocol):
    """A body of many items, each of which can be wrong by itself."""

    @classmethod
    def salvage(cls, plain: Any) -> Self | None:
        """What can be used of a body that was refused; None when that is nothing."""
        ...


def decoder_of(shape: type[T]) -> BodyDecoder[T]:
    """The decoder that a declared type asks for; routes that take the same share one."""
    declared: Any = shape
    decoder: BodyDecoder[T] = _decoder_of(declared)
    return decoder


@cache
def _decoder_of(shape: Any) -> BodyDecoder[Any]:
    if getattr(shape, "mends_nul", False):
        return _Mending(shape)
    if hasattr(shape, "gather"):
        return ItemwiseDecoder(shape, decoder_of(item_of(shape)))
    return _Salvaging(shape) if hasattr(shape, "salvage") else BodyDecoder(shape)


class _Mending(BodyDecoder[T]):
    def decode(self, body: bytes) -> T:
        """U+0000, which no store keeps, becomes U+FFFD."""
        return super().decode(_mended(body))

    async def decode_in_steps(self, body: bytes) -> T:
        if NUL in body:
            if body.count(NUL) > MAX_NULS:
                raise Problem("UZ-REQ-001", f"a large body holds U+0000 {MAX_NULS} times at most")
            await trio.lowlevel.checkpoint()
            body = _mended(body)
            await trio.lowlevel.checkpoint()
        return await super().decode_in_steps(body)


def _mended(body: bytes) -> bytes:
    r"""The body with U+FFFD for U+0000; a backslash that is escaped begins no escape.

    >>> _mended(rb'"a\u0000\\u0000\\\u0000"').decode()
    '"a\\ufffd\\\\u0000\\\\\\ufffd"'
    """
    if NUL not in body or AWAY in body:  # With a bare control character it is no JSON.
        return body
    return body.replace(rb"\\", AWAY).replace(NUL, rb"\ufffd").replace(AWAY, rb"\\")


class _Salvaging(BodyDecoder[T]):
    def __init__(self, shape: type[T]) -> None:
        super().__init__(shape)
        self._salvage = shape.salvage if issubclass(shape, Salvageable) else None

    def decode(self, body: bytes) -> T:
        """As it is; only what was refused is looked at again, item by item."""
        try:
            return super().decode(body)
        except Problem as problem:
            check_depth(body)
            return self._saved(body, problem)

    async def decode_in_steps(self, body: bytes) -> T:
        try:
            return await super().decode_in_steps(body)
        except Problem as problem:
            await weigh(body, self.max_escapes)
            return self._saved(body, problem)

    def _saved(self, body: bytes, problem: Problem) -> T:
        """Raises the problem where nothing can be saved."""
        try:
            plain = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise problem from None
        check_keys(body)
        value = None if self._salvage is None else self._salvage(plain)
        if value is None:
            raise problem
        return value


class ItemDecoder(BodyDecoder[T]):
    """For one item of a body that was decoded already."""

    def take(self, item: Any) -> T | Problem:
        """The item, or what is wrong with it."""
        try:
            return self.decode(json.dumps(item).encode())
        except Problem as problem:
            return problem
