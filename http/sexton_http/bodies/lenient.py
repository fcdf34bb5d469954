"""Reads the bodies of which a small fault is to cost no more than itself."""

import json
import re
from typing import Any, Final, Protocol, Self, TypeVar, runtime_checkable

import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies.decoding import BodyDecoder, check_depth
from sexton_http.bodies.json_faults import check_keys

T = TypeVar("T")

NUL: Final = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")


@runtime_checkable
class Salvageable(Protocol):
    """A body of many items, each of which can be wrong by itself."""

    @classmethod
    def salvage(cls, plain: Any) -> Self | None:
        """What can be used of a body that was refused; None when that is nothing."""
        ...


def decoder_of(shape: type[T]) -> BodyDecoder[T]:
    """The decoder that a declared type asks for."""
    if getattr(shape, "mends_nul", False):
        return _Mending(shape)
    return _Salvaging(shape) if hasattr(shape, "salvage") else BodyDecoder(shape)


class _Mending(BodyDecoder[T]):
    def decode(self, body: bytes) -> T:
        """U+0000, which no store keeps, becomes U+FFFD."""
        if b"\\u0000" in body:
            body = NUL.sub(rb"\1\\ufffd", body)
        return super().decode(body)


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
            try:
                plain = msgspec.json.decode(body)
            except (msgspec.DecodeError, UnicodeDecodeError):
                raise problem from None
            check_keys(body)
            value = None if self._salvage is None else self._salvage(plain)
            if value is None:
                raise
            return value


class ItemDecoder(BodyDecoder[T]):
    """For one item of a body that was decoded already."""

    def read(self, item: Any) -> T | Problem:
        """The item, or what is wrong with it."""
        try:
            return self.decode(json.dumps(item).encode())
        except Problem as problem:
            return problem
