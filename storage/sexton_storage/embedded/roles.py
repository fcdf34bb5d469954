"""The roles of an embedded cluster: who may connect, and what the server's own role may do."""

import os
import pwd
from pathlib import Path

from sexton_storage.embedded.accounts import Account, write_file

ROLE = "sexton"
"""The server's role: it owns its database, and nothing else."""
SUPERUSER = "sexton_superuser"
"""Makes the cluster, and serves an administrator; the server never connects as this role."""
DATABASE = "sexton"
_RIGHTS = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
SET_UP = (
    f"CREATE ROLE {ROLE} {_RIGHTS}",
    "REVOKE ALL ON SCHEMA public FROM PUBLIC",  # In the template, and so in the database that is made of it.
    f"CREATE DATABASE {DATABASE} OWNER {ROLE}",
    f"REVOKE ALL ON DATABASE {DATABASE}, postgres, template1 FROM PUBLIC",
)
"""Statements for the database ``template1`` of a new cluster."""
# Earlier releases connected as the role that made the cluster, which can never be less than a superuser. It
# gets another name, and one without rights gets its name and all that it made.
_TAKE_OVER = f"""
DO $take_over$
DECLARE
    found record;
BEGIN
    IF (SELECT rolname FROM pg_roles WHERE oid = 10) = '{ROLE}' THEN
        -- Nobody may rename himself.
        CREATE ROLE sexton_renamer SUPERUSER;
        SET SESSION AUTHORIZATION sexton_renamer;
        ALTER ROLE {ROLE} RENAME TO {SUPERUSER};
        SET SESSION AUTHORIZATION {SUPERUSER};
        DROP ROLE sexton_renamer;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{ROLE}') THEN
        CREATE ROLE {ROLE};
    END IF;
    ALTER ROLE {ROLE} {_RIGHTS};
    ALTER DATABASE {DATABASE} OWNER TO {ROLE};
    FOR found IN
        SELECT CASE classid WHEN 'pg_class'::regclass THEN 'TABLE'
                            WHEN 'pg_proc'::regclass THEN 'ROUTINE'
                            ELSE 'TYPE' END AS kind, name
          FROM (SELECT 'pg_class'::regclass AS classid, oid, oid::regclass::text AS name FROM pg_class
                 WHERE relnamespace = 'public'::regnamespace AND relowner = 10
                   AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
                 UNION ALL
                SELECT 'pg_proc'::regclass, oid, oid::regprocedure::text FROM pg_proc
                 WHERE pronamespace = 'public'::regnamespace AND proowner = 10
                 UNION ALL
                SELECT 'pg_type'::regclass, t.oid, t.oid::regtype::text
                  FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
                 WHERE t.typnamespace = 'public'::regnamespace AND t.typowner = 10
                   AND (t.typtype IN ('e', 'd', 'r') OR c.relkind = 'c')) AS owned
         -- What belongs to a table goes with it; what belongs to an extension stays its maker's.
         WHERE NOT EXISTS (SELECT FROM pg_depend d
                            WHERE d.classid = owned.classid AND d.objid = owned.oid
                              AND (d.deptype = 'e' OR d.deptype IN ('a', 'i') AND d.refobjsubid <> 0))
    LOOP
        EXECUTE format('ALTER %s %s OWNER TO {ROLE}', found.kind, found.name);
    END LOOP;
    REVOKE ALL ON SCHEMA public FROM PUBLIC;
    FOR found IN SELECT datname FROM pg_database WHERE datname IN ('{DATABASE}', 'postgres', 'template1') LOOP
        EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', found.datname);
    END LOOP;
END
$take_over$
"""
TAKE_OVER = (_TAKE_OVER,)
"""Statements for the database ``sexton`` of a cluster of an earlier release; once more does no harm."""
_MARK = "sexton_roles"
_ADMITTED = """\
# Written at each start. Only the owner of the data folder is let in, by the socket in it.
local  all          all  {method}
local  replication  all  {method}
"""


def as_superuser(dsn: str) -> str:
    """Give the address at which an administrator gets into the database that the server's role uses.

    >>> as_superuser("postgresql://sexton@/sexton?host=/run/sexton")
    'postgresql://sexton_superuser@/sexton?host=/run/sexton'
    """
    return dsn.replace(f"//{ROLE}@", f"//{SUPERUSER}@", 1)


def have_been_parted(data: Path) -> bool:
    """Whether the server's role of this cluster is known to be no superuser."""
    return (data / _MARK).exists()


def mark_parted(data: Path, account: Account | None) -> None:
    """Remember that the roles have been seen to."""
    write_file(data / _MARK, "1\n", account)


def admit_owner(data: Path, account: Account | None) -> None:
    """Let nobody into the cluster but whoever we are, as the kernel tells it of each connection."""
    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        # PostgreSQL knows people by name. It then runs as ourselves, and others cannot reach its socket.
        write_file(data / "pg_hba.conf", _ADMITTED.format(method="trust"), account)
        return
    write_file(data / "pg_hba.conf", _ADMITTED.format(method="peer map=owner"), account)
    # Before PostgreSQL 16 `all` was the name of a role like any other, so that ours are named as well.
    admitted = "".join(f'owner  "{name}"  {role}\n' for role in ("all", ROLE, SUPERUSER))
    write_file(data / "pg_ident.conf", admitted, account)
