"""Looks whether the database role that an operator gave may do more than the server needs."""

from collections.abc import Mapping, Sequence
from typing import Final

from sexton_storage.postgres.connections.connection import Connection

ATTRIBUTES: Final = ("SUPERUSER", "CREATEDB", "CREATEROLE", "REPLICATION", "BYPASSRLS")
ROLES: Final = (
    "pg_execute_server_program",
    "pg_read_server_files",
    "pg_write_server_files",
    "pg_read_all_data",
    "pg_write_all_data",
)
"""Predefined roles, each of which reaches past the schema."""
_ASK: Final = """
SELECT r.rolsuper, r.rolcreatedb, r.rolcreaterole, r.rolreplication, r.rolbypassrls,
       ARRAY(SELECT p.rolname::text FROM pg_roles p
              WHERE p.rolname = ANY($1) AND pg_has_role(r.oid, p.oid, 'MEMBER') ORDER BY p.rolname)
  FROM pg_roles r WHERE r.rolname = current_user
"""


def excess_of(attributes: Mapping[str, bool], roles: Sequence[str]) -> tuple[str, ...]:
    """What a role has and the server does not need; a superuser has everything, so nothing else is named.

    >>> excess_of({"SUPERUSER": True, "CREATEDB": True}, ["pg_read_all_data"])
    ('SUPERUSER',)
    >>> excess_of({"SUPERUSER": False, "CREATEDB": True}, ["pg_read_all_data"])
    ('CREATEDB', 'pg_read_all_data')
    >>> excess_of({"SUPERUSER": False}, [])
    ()
    """
    if attributes["SUPERUSER"]:
        return ("SUPERUSER",)
    return (*(name for name, has in attributes.items() if has), *roles)


async def look_at_role(connection: Connection) -> tuple[str, ...]:
    """Give what the connection's role has in excess. Runs in the asyncio thread."""
    [(*has, roles)] = await connection.fetch(_ASK, list(ROLES))
    return excess_of(dict(zip(ATTRIBUTES, has, strict=True)), roles)
