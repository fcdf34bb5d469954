"""Turns records into rows and rows into records, by the record's own fields."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from sexton_storage.documents import from_json, storable, to_json
from sexton_storage.postgres.sql.columns import sql_type
from sexton_storage.postgres.sql.fragments import insert_from
from sexton_storage.records.leases import ModelShare

T = TypeVar("T", bound=msgspec.Struct)
Convert = Callable[[Any], Any]
_encoder = msgspec.json.Encoder()


def shares_json(shares: Sequence[ModelShare] | None) -> str | None:
    """Spell the shares of a lease's models for a ``json`` column; None where it has one model only.

    >>> shares_json(None)
    """
    return None if shares is None else _encoder.encode(shares).decode()


def _shares(text: str) -> tuple[ModelShare, ...]:
    return msgspec.json.decode(text, type=tuple[ModelShare, ...])


class _Field(msgspec.Struct, frozen=True):
    name: str
    columns: tuple[str, ...]
    to_row: Convert | None
    from_row: Convert | None
    nested: type[msgspec.Struct] | None = None


def _bare(hint: Any) -> Any:
    """Strip the ``| None`` off a type."""
    if get_origin(hint) is not UnionType:
        return hint
    return next(arm for arm in get_args(hint) if arm is not NoneType)


def _field(name: str, hint: Any) -> _Field:
    bare = _bare(hint)
    if get_origin(bare) is Mapping:
        return _Field(name, (name,), to_json, from_json)
    if bare == tuple[ModelShare, ...]:
        return _Field(name, (name,), shares_json, _shares)
    if get_origin(bare) is tuple:
        return _Field(name, (name,), list, tuple)
    if isinstance(bare, type) and issubclass(bare, StrEnum):
        return _Field(name, (name,), None, bare)
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        return _Field(name, tuple(f.name for f in msgspec.structs.fields(bare)), None, None, bare)
    return _Field(name, (name,), storable if bare is str else None, None)


class Rows(Generic[T]):
    """The columns of one kind of record, named as its fields.

    A nested record is spread over columns of its own.

    Mappings are JSON, tuples are arrays, enums are text. ``without`` names fields that live in another table.
    """

    def __init__(self, record: type[T], *, without: Sequence[str] = ()) -> None:
        hints = get_type_hints(record)
        self._record = record
        self._hints = hints
        self._fields = tuple(_field(n, hints[n]) for n in record.__struct_fields__)
        self._stored = tuple(f for f in self._fields if f.name not in without)
        self.names = tuple(c for f in self._stored for c in f.columns)
        self._columns: dict[str, str] = {}
        self.width = sum(len(field.columns) for field in self._fields)
        """How many columns ``record`` reads."""
        self._read = self._reader()

    def _reader(self) -> Callable[[Sequence[Any]], T]:
        """Write a function that makes a record of its columns' values, as ``namedtuple`` writes its own.

        A loop over the fields takes three times as long, and each run of an agent is read thrice.
        """
        scope: dict[str, Any] = {"Record": self._record}
        parts, position = [], 0
        for number, field in enumerate(self._fields):
            values = [f"row[{place}]" for place in range(position, position + len(field.columns))]
            position += len(field.columns)
            convert = field.nested or field.from_row
            if convert is None:
                parts += values
                continue
            scope[f"convert_{number}"] = convert
            made = f"convert_{number}({', '.join(values)})"
            is_plain = field.nested is not None and len(values) > 1
            parts.append(made if is_plain else f"None if {values[0]} is None else {made}")
        exec(f"def read(row):\n    return Record({', '.join(parts)})", scope)  # noqa: S102 - of our own fields
        read: Callable[[Sequence[Any]], T] = scope["read"]
        return read

    def columns(self, table: str = "") -> str:
        """List all columns in the order that ``record`` reads them, for a SELECT or RETURNING."""
        known = self._columns.get(table)
        if known is None:
            prefix = f"{table}." if table else ""
            known = ", ".join(prefix + c for f in self._fields for c in f.columns)
            self._columns[table] = known
        return known

    def insert(self, table: str) -> str:
        """INSERT of one record; its parameters are ``values``."""
        marks = ", ".join(f"${i}" for i in range(1, len(self.names) + 1))
        return f"INSERT INTO {table} ({', '.join(self.names)}) VALUES ({marks})"

    def insert_many(self, table: str) -> str:
        """INSERT of many records; its parameters are ``arrays``. Not for nested records and arrays."""
        kinds = [(f, _bare(self._hints[f.name])) for f in self._stored]
        types = ["text" if f.to_row is to_json else sql_type(bare) for f, bare in kinds]
        arrays = ", ".join(f"${i}::{name}[]" for i, name in enumerate(types, 1))
        values = {f.name: f"v.{f.name}" + ("::json" if f.to_row is to_json else "") for f, _ in kinds}
        return insert_from(table, values, f"unnest({arrays}) AS v({', '.join(self.names)})")

    def values(self, record: T) -> list[Any]:
        """Give the stored columns of a record, in the order of ``names``."""
        values: list[Any] = []
        for field in self._stored:
            value = getattr(record, field.name)
            if field.nested is not None:
                values.extend(msgspec.structs.astuple(value))
            elif value is None or field.to_row is None:
                values.append(value)
            else:
                values.append(field.to_row(value))
        return values

    def record(self, row: Mapping[Any, Any], offset: int = 0) -> T:
        """Read a record out of a row whose columns begin at ``offset``."""
        values = tuple(row.values())
        return self._read(values[offset : offset + self.width] if offset else values)

    def maybe(self, row: Mapping[Any, Any] | None) -> T | None:
        """Read a row that may be missing."""
        return None if row is None else self.record(row)

    def many(self, rows: Sequence[Mapping[Any, Any]]) -> list[T]:
        return [self.record(row) for row in rows]

    def arrays(self, records: Sequence[T]) -> list[list[Any]]:
        """Give one list a stored column, for ``insert_many``."""
        if not records:
            return [[] for _ in self.names]
        return [list(column) for column in zip(*(self.values(r) for r in records), strict=True)]
