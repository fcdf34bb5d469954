"""Writes lines as Parquet; it needs the extra parquet, and is imported only where that is installed."""

import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyarrow import parquet

_INTEGERS: Final = frozenset({"int2", "int4", "int8"})
_FLOATS: Final = frozenset({"float4", "float8"})


def pack_parquet(lines: Sequence[bytes], types: Mapping[str, str]) -> bytes:
    """Give a whole file. ``types``: the name that PostgreSQL gives to each column's type, in their order.

    Numbers and truths keep their types; everything else is text, JSON documents too.
    """
    rows: list[dict[str, Any]] = [msgspec.json.decode(line) for line in lines]
    columns = {name: _column([row.get(name) for row in rows], of) for name, of in types.items()}
    into = io.BytesIO()
    parquet.write_table(pa.table(columns), into, compression="zstd")
    return into.getvalue()


def _column(values: list[Any], type_name: str) -> Any:
    if type_name == "bool":
        return pa.array(values, pa.bool_())
    if type_name in _INTEGERS:
        return pa.array(values, pa.int64())
    if type_name in _FLOATS:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array([_text(value) for value in values], pa.string())


def _text(value: Any) -> str | None:
    """Write what is in a column of texts.

    >>> _text("a"), _text({"b": 1}), _text(None)
    ('a', '{"b":1}', None)
    """
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()
