"""Makes a backup of a database while it serves."""

import os
import secrets
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

from sexton_storage.backups.faults import BackupFault
from sexton_storage.backups.manifest import Kind, Manifest, Wal
from sexton_storage.backups.repository import Repository, pack_all
from sexton_storage.backups.sealed_keys import public_text, seal
from sexton_storage.backups.tools import run_tool, tools_folder, without_password
from sexton_storage.embedded.programs import find_bindir
from sexton_storage.embedded.roles import as_superuser

BASE_FILE: Final = "base.tar.gz"
WAL_FILE: Final = "pg_wal.tar.gz"
POSTGRES_MANIFEST: Final = "backup_manifest"
KEYS_FILE: Final = "keys.sealed"
DUMP_FILE: Final = "rows.dump"
CLUSTER_FILES: Final = frozenset({BASE_FILE, WAL_FILE, POSTGRES_MANIFEST, KEYS_FILE})


class Source(NamedTuple):
    """A database that serves."""

    dsn: str
    kind: Kind
    release: str
    schema: int
    now: Callable[[], Awaitable[int]]
    """The database's clock; Unix ms."""


class Sealing(NamedTuple):
    """Whom the keys are sealed to, and what gives them."""

    recipient: X25519PublicKey
    keys: Callable[[], Mapping[str, bytes]]
    """Asked when the database has been copied: a key that was made meanwhile may have sealed its rows."""


async def make_backup(repository: Repository, source: Source, sealing: Sealing | None) -> Manifest:
    """Copy the database, then its keys; the folder gets its name when all is on disk. Raises BackupFault."""
    with repository.locked() as lock:
        began = await source.now()
        backup_id = _new_id(began)
        draft = repository.begin(backup_id)
        try:
            wal = await _copy(source, draft, lock)
        except OSError as fault:
            raise BackupFault(f"{draft}: {fault.strerror}", "See whether the disk is full") from fault
        # A dump shows the rows as they were when it began, a cluster is as it was when the copy ended.
        ended = began if wal is None else await source.now()
        if sealing is not None:
            sealed = seal(sealing.keys(), sealing.recipient, backup_id)
            (draft / KEYS_FILE).write_bytes(sealed)
        manifest = Manifest(
            id=backup_id,
            kind=source.kind,
            release=source.release,
            schema=source.schema,
            began_at=began,
            ended_at=ended,
            wal=wal,
            recipient=None if sealing is None else public_text(sealing.recipient),
            files=pack_all(draft),
        )
        repository.finish(draft, manifest)
        return manifest


async def _copy(source: Source, draft: Path, lock: int) -> Wal | None:
    if source.kind is Kind.DUMP:
        dsn, password = without_password(source.dsn)
        words = ["--format=custom", "--no-owner", "--no-privileges", "--lock-wait-timeout=60s"]
        program = str(tools_folder(os.environ) / "pg_dump")
        await run_tool(
            [program, *words, f"--file={draft / DUMP_FILE}", f"--dbname={dsn}"], password=password, lock=lock
        )
        return None
    program = str(find_bindir(os.environ) / "pg_basebackup")
    words = ["--format=tar", "--compress=client-gzip:1", "--wal-method=stream", "--checkpoint=fast"]
    words += ["--manifest-checksums=SHA256", "--no-password", f"--dbname={as_superuser(source.dsn)}"]
    await run_tool([program, *words, f"--pgdata={draft}"], lock=lock)
    if others := {*os.listdir(draft)} - CLUSTER_FILES:  # noqa: PTH208 - names are wanted
        raise BackupFault(
            f"the database has tablespaces ({', '.join(sorted(others))}), which this backup does not handle",
            "Move the tables back, or back up with a tool such as pgBackRest",
        )
    return _wal_of((draft / POSTGRES_MANIFEST).read_bytes())


def _new_id(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


class _Range(msgspec.Struct, rename={"timeline": "Timeline", "start": "Start-LSN", "stop": "End-LSN"}):
    timeline: int
    start: str
    stop: str


class _Copied(msgspec.Struct, rename={"system": "System-Identifier", "ranges": "WAL-Ranges"}):
    """As much of PostgreSQL's own manifest as is needed."""

    system: int
    ranges: list[_Range]


def _wal_of(raw: bytes) -> Wal:
    found = msgspec.json.decode(raw, type=_Copied)
    first, last = found.ranges[0], found.ranges[-1]
    return Wal(str(found.system), last.timeline, first.start, last.stop)
