"""The rows of the product as frozen values, each with its enums and what its store promises.

Records are frozen ``msgspec.Struct``: immutable like a frozen dataclass, and made and replaced ten times
faster, which a renewal pays several times over. None can be part of a cycle, so the collector need not walk
them (``gc`` off): a server holds a hundred thousand. Every ``*_at`` is Unix milliseconds by the database's
clock, every ``*_nanos`` a billionth of a US dollar, every id a UUIDv7.
"""
