"""Writes the parts of SQL that would be tedious by hand."""


def unnest(types: str, first: int = 1) -> str:
    """Spell an ``unnest`` of one array parameter a column, from ``$first`` on.

    >>> unnest("int uuid")
    'unnest($1::int[], $2::uuid[])'
    """
    return f"unnest({', '.join(f'${i}::{name}[]' for i, name in enumerate(types.split(), first))})"


def beside(row: str, condition: str) -> str:
    """Spell a condition on a table for a join with a batch's rows, so that it stays a part of the join.

    As a condition on the table alone (``status = 'pending'``) the planner would take it for one that leaves
    next to no rows: it would read all that there are, and compare each of them with every row of the batch.

    >>> beside("v.ord", "g.status = 'pending'")
    "CASE WHEN v.ord IS NOT NULL THEN g.status = 'pending' END"
    """
    return f"CASE WHEN {row} IS NOT NULL THEN {condition} END"
