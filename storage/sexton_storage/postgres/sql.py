"""Spells the parts of SQL that would be tedious by hand."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

_encoder = msgspec.json.Encoder()


def unnest(types: str, first: int = 1) -> str:
    """Spell an ``unnest`` of one array parameter a column, from ``$first`` on.

    >>> unnest("int uuid")
    'unnest($1::int[], $2::uuid[])'
    """
    return f"unnest({', '.join(f'${i}::{name}[]' for i, name in enumerate(types.split(), first))})"


def unnest_literals(types: str, first: int = 1) -> str:
    """The same for arrays that come as literals.

    >>> unnest_literals("int uuid")
    'unnest($1::text::int[], $2::text::uuid[])'
    """
    return unnest(types, first).replace("::", "::text::")


def beside(row: str, condition: str) -> str:
    """Spell a condition on a table for a join with a batch's rows, so that it stays a part of the join.

    As a condition on the table alone (``status = 'pending'``) the planner would take it for one that leaves
    next to no rows: it would read all that there are, and compare each of them with every row of the batch.

    >>> beside("v.ord", "g.status = 'pending'")
    "CASE WHEN v.ord IS NOT NULL THEN g.status = 'pending' END"
    """
    return f"CASE WHEN {row} IS NOT NULL THEN {condition} END"


def array_literal(values: Sequence[int | UUID | None]) -> str:
    """Spell an array as PostgreSQL reads it.

    The driver's own coding of an array takes three times as long as this, and is the dearest part of a batch
    for the thread that all batches share. Not for texts: their escapes differ.

    >>> array_literal([1, None, 3])
    '{1,null,3}'
    >>> array_literal([UUID(int=7)])
    '{"00000000-0000-0000-0000-000000000007"}'
    """
    return f"{{{_encoder.encode(values)[1:-1].decode()}}}"
