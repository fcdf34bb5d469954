"""What keeps a server from starting."""

from typing import Final

from sexton_http.error_codes.code import STARTUP, Code

# fmt: off
ROWS: Final = (
    Code(
        "UZ-STARTUP-001", 500, "Environment check failed", STARTUP,
        cause="The machine lacks something that the server needs.",
        way_out="Do what the line says after the colon. `sexton doctor` looks at the sandbox and the database of this machine; `sexton up --runners 0` starts without a runner, `--workers 1` with one process whose words stand alone.",
        detail="runner 1 does not start: the sandbox cannot be given here",
    ),
    Code(
        "UZ-STARTUP-002", 500, "Config load failed", STARTUP,
        cause="The configuration cannot be read, or is wrong.",
        way_out="Mend the file, option or variable that the line names. The help of `sexton up` lists all of them with their defaults. A master key that does not fit means another data folder, or another `SEXTON_MASTER_KEY`, than the database was begun with.",
        detail="/etc/sexton/billing.toml: line 3: there is no such plan",
    ),
    Code(
        "UZ-STARTUP-003", 500, "Database connect failed", STARTUP,
        cause="The database cannot be reached or started.",
        way_out="Check `DATABASE_URL`: host, port, name, password. PostgreSQL must be new enough and reached without a pooler that works by transaction. With the embedded database read its log in the data folder; a full disk and another server on the same folder are the usual reasons.",
        detail="the database at db.example.com:5432 does not answer",
    ),
    Code(
        "UZ-STARTUP-004", 500, "Key-value store connect failed", STARTUP,
        cause="The key-value store cannot be reached.",
        way_out="This server needs no key-value store and never prints this. The code is kept for programs that know it from elsewhere.",
        detail="the key-value store cannot be reached",
    ),
    Code(
        "UZ-STARTUP-005", 500, "Migration check failed", STARTUP,
        cause="The database's schema does not belong to this version.",
        way_out="Start the release that changed the schema, or a newer one; an older one runs on it only as far back as the line says. With `--no-migrate` run `sexton migrate` first. To go back further, restore the backup that was made before the upgrade. If a step failed, mend what the line names and run `sexton migrate` again: what has run stays.",
        detail="the database is of a newer release",
    ),
    Code(
        "UZ-STARTUP-007", 500, "Consumer group creation failed", STARTUP,
        cause="The queues could not be prepared.",
        way_out="This server keeps its queues in PostgreSQL and never prints this. The code is kept for programs that know it from elsewhere.",
        detail="the queues could not be prepared",
    ),
)
# fmt: on
