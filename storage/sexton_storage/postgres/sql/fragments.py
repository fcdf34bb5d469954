"""Writes the parts of SQL that would be tedious by hand."""

from collections.abc import Mapping


def same(*names: str) -> dict[str, str]:
    """Give columns that take the value of the same name; see ``insert_from``.

    >>> same("id", "day")
    {'id': 'id', 'day': 'day'}
    """
    return {name: name for name in names}


def insert_from(table: str, values: Mapping[str, str], source: str) -> str:
    """INSERT what a query gives, with each column beside the expression that it takes its value from.

    Two lists, one of columns and one of expressions, could come to differ in their order unnoticed.

    >>> insert_from("t", {"a": "v.x", "b": "0"}, "v WHERE v.x > 1")
    'INSERT INTO t (a, b) SELECT v.x, 0 FROM v WHERE v.x > 1'
    """
    return f"INSERT INTO {table} ({', '.join(values)}) SELECT {', '.join(values.values())} FROM {source}"


def opaque_to_planner(row: str, condition: str) -> str:
    """Write a condition on a table for a join with a batch's rows, so that it stays a part of the join.

    As a condition on the table alone (``status = 'pending'``) the planner would take it for one that leaves
    next to no rows: it would read all that there are, and compare each of them with every row of the batch.
    Inside a CASE that names the batch's row it has no statistics to judge by, so it looks up each row of the
    batch by its key, and only then asks for the rest.

    >>> opaque_to_planner("v.ord", "g.status = 'pending'")
    "CASE WHEN v.ord IS NOT NULL THEN g.status = 'pending' END"
    """
    return f"CASE WHEN {row} IS NOT NULL THEN {condition} END"
