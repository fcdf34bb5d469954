"""Spells the parts of SQL that would be tedious by hand."""


def unnest(types: str, first: int = 1) -> str:
    """Spell an ``unnest`` of one array parameter a column, from ``$first`` on.

    >>> unnest("int uuid")
    'unnest($1::int[], $2::uuid[])'
    """
    return f"unnest({', '.join(f'${i}::{name}[]' for i, name in enumerate(types.split(), first))})"
