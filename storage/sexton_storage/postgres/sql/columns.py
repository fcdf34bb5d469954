"""The columns of a batch's rows, each declared once: its name, its type and where its value comes from."""

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from operator import itemgetter
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    NamedTuple,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)
from uuid import UUID

import msgspec

R = TypeVar("R")
T = TypeVar("T")
Int4: TypeAlias = Annotated[int, "int"]
"""A number of a column of 4 bytes; ``int`` alone is a ``bigint``."""
_encoder = msgspec.json.Encoder()
_SQL_TYPES: Final = {UUID: "uuid", bool: "bool", int: "bigint", float: "float8", str: "text", bytes: "bytea"}
_CODED: Final = frozenset({"text", "bytea"})
"""Types whose literals need escapes."""


def array_literal(values: Sequence[int | UUID | None]) -> str:
    """Write an array as PostgreSQL reads it.

    The driver's own coding of an array takes three times as long as this, and is the dearest part of a batch
    for the thread that all batches share. Not for texts: their escapes differ.

    >>> array_literal([1, None, 3])
    '{1,null,3}'
    >>> array_literal([UUID(int=7)])
    '{"00000000-0000-0000-0000-000000000007"}'
    """
    return f"{{{_encoder.encode(values)[1:-1].decode()}}}"


def _constant(argument: str | Sequence[str | None]) -> str:
    """Spell one argument as a constant that no setting of the session reads otherwise.

    >>> print(_constant("{1,2}"), _constant(["it's", None]))
    E'{1,2}' E'{"it''s",null}'
    """
    if not isinstance(argument, str):
        argument = f"{{{','.join(map(_element, argument))}}}"
    spelled = argument.replace("\\", "\\\\").replace("'", "''")
    return f"E'{spelled}'"


def _element(value: str | None) -> str:
    if value is None:
        return "null"
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


class _Column(NamedTuple):
    name: str
    sql_type: str
    source: str
    """The Python expression of all its values, as a list; see ``_reader``."""


class Columns(Generic[T]):
    """The columns of rows that are made of values of one class: a parameter each.

    A column is declared by the path to its value, and is named as the path is (``lease.version`` is
    ``lease_version``), or by a function, and is named as the function is. As the name and the value cannot be
    given apart, a value cannot come to stand under another's name, whatever the order. A function that gives
    a named tuple makes a column of each of its fields. The SQL types follow from the annotations. What lies
    beyond None is None.

    >>> class Part(NamedTuple):
    ...     seq: Int4
    ...     label: str
    >>> class Row(NamedTuple):
    ...     part: Part | None
    ...     at: int
    >>> def doubled(row: Row) -> int:
    ...     return 2 * row.at
    >>> columns = Columns(Row, "at", "part.seq", doubled, first=3)
    >>> columns.rows
    'unnest($3::text::bigint[], $4::text::int[], $5::text::bigint[]) AS v(at, part_seq, doubled)'
    >>> columns.arrays([Row(Part(1, "one"), 5), Row(None, 6)])
    ['{5,6}', '{1,null}', '{10,12}']
    """

    def __init__(self, source: type[T], *columns: str | Callable[[T], Any], first: int = 1) -> None:
        self._above: dict[str, tuple[str, str]] = {}
        """Path of what has columns to its local name and its source."""
        self._functions: dict[str, Callable[[Any], Any]] = {}
        declared = [part for column in columns for part in self._declare(source, column)]
        self.names: Final = tuple(column.name for column in declared)
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"two columns have one name: {', '.join(self.names)}")
        parameters = ", ".join(
            f"${i}::{'' if c.sql_type in _CODED else 'text::'}{c.sql_type}[]"
            for i, c in enumerate(declared, first)
        )
        names = ", ".join(self.names)
        self.rows: Final = f"unnest({parameters}) AS v({names})"
        """For a FROM clause, under the name ``v``."""
        self.numbered_rows: Final = f"unnest({parameters}) WITH ORDINALITY AS v({names}, ord)"
        """The same, with the number of each row, from 1, as ``ord``."""
        self.argument_types: Final = tuple(
            f"{c.sql_type}[]" if c.sql_type in _CODED else "text" for c in declared
        )
        """What the parameters are sent as, for a function that is to have them as its arguments."""
        self.arrays: Final[Callable[[Sequence[T]], list[Any]]] = self._reader(declared)
        """Gives one argument a column; there is at least one row."""

    def constants(self, rows: Sequence[T]) -> str:
        """Spell the arguments in a script, for a statement that was prepared by name; none may be bytes.

        If the script fails, the database may write them into its log: they must tell nothing of a person.
        """
        return ", ".join(map(_constant, self.arrays(rows)))

    def _declare(self, source: Any, column: str | Callable[[T], Any]) -> Iterator[_Column]:
        if isinstance(column, str):
            *above, last = column.split(".")
            owner, rows, optional = self._walk(source, above)
            hint, _ = _without_none(_hint_of(owner, last))
            yield _Column(
                column.replace(".", "_"), sql_type(hint), _read(f"row.{last}", rows, optional=optional)
            )
            return
        name = column.__name__.lstrip("_")
        self._functions[name] = column
        hint, optional = _without_none(get_type_hints(column, include_extras=True)["return"])
        if not hasattr(hint, "_fields"):
            yield _Column(name, sql_type(hint), _read(f"{name}(row)", "rows", optional=False))
            return
        self._above[name] = (f"_{name}", _read(f"{name}(row)", "rows", optional=False))
        for field in hint._fields:
            bare, _ = _without_none(_hint_of(hint, field))
            yield _Column(
                f"{name}_{field}", sql_type(bare), _read(f"row.{field}", f"_{name}", optional=optional)
            )

    def _walk(self, source: Any, above: Sequence[str]) -> tuple[Any, str, bool]:
        """Give the class at the end of a path, the local name of its values, and whether some may be None."""
        owner, rows, optional = source, "rows", False
        for depth, name in enumerate(above, 1):
            path, local = ".".join(above[:depth]), "_".join(["", *above[:depth]])
            self._above.setdefault(path, (local, _read(f"row.{name}", rows, optional=optional)))
            hint, missing = _without_none(_hint_of(owner, name))
            owner, rows, optional = hint, local, optional or missing
        return owner, rows, optional

    def _reader(self, declared: Sequence[_Column]) -> Callable[[Sequence[T]], list[Any]]:
        """Write a function that reads all columns, as ``namedtuple`` writes its own.

        A getter that is called for each value takes twice as long, for every write of the journal.
        """
        spelled = (c.source if c.sql_type in _CODED else f"array_literal({c.source})" for c in declared)
        lines = ["def arrays(rows):", *(f"    {local} = {source}" for local, source in self._above.values())]
        lines.append(f"    return [{', '.join(spelled)}]")
        scope: dict[str, Any] = {"array_literal": array_literal, **self._functions}
        exec("\n".join(lines), scope)  # noqa: S102 - of names that are fields of our own classes
        arrays: Callable[[Sequence[T]], list[Any]] = scope["arrays"]
        return arrays


def record_reader(record: type[R]) -> Callable[[Mapping[Any, Any]], R]:
    """Read rows by the names of a record's fields, whatever the order of their columns.

    >>> class Paid(NamedTuple):
    ...     charged: int
    ...     balance: int
    >>> record_reader(Paid)({"balance": 7, "ord": 1, "charged": 3})
    Paid(charged=3, balance=7)
    """
    values = itemgetter(*get_type_hints(record))
    return lambda row: record(*values(row))


def _read(value: str, rows: str, *, optional: bool) -> str:
    return f"[{'None if row is None else ' if optional else ''}{value} for row in {rows}]"


def _hint_of(owner: Any, name: str) -> Any:
    hints = get_type_hints(owner, include_extras=True)
    if name not in hints:
        raise TypeError(f"{owner.__name__} has no {name}")
    return hints[name]


def _without_none(hint: Any) -> tuple[Any, bool]:
    """Give the type behind ``X | None``, and whether None was allowed."""
    if get_origin(hint) not in {types.UnionType, Union}:
        return hint, False
    (bare,) = (arm for arm in get_args(hint) if arm is not types.NoneType)
    return bare, True


def sql_type(hint: Any) -> str:
    """Give the type of a column for values of a class; TypeError where a function must make text of them.

    >>> sql_type(int), sql_type(Int4), sql_type(UUID)
    ('bigint', 'int', 'uuid')
    """
    if get_origin(hint) is Annotated:
        return str(hint.__metadata__[0])
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return "text"
    if hint not in _SQL_TYPES:
        raise TypeError(f"no SQL type holds {hint}: let a function make text of it")
    return _SQL_TYPES[hint]
