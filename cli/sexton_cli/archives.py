"""Opens the archive that an option names: for a server that writes to it, and for commands that read it."""

import importlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final
from uuid import UUID

import trio
import uuid_utils.compat

from sexton_cli.exits import CONFIG, StartupFault
from sexton_http.identity.context import VERSION
from sexton_storage.archives.batches import Archiver, PackParquet, Writer
from sexton_storage.archives.folder_place import FolderPlace
from sexton_storage.archives.place import ArchivePlace
from sexton_storage.archives.s3_place import S3Place
from sexton_storage.objects.s3_address import S3Address
from sexton_storage.objects.s3_calls import SignerMissing
from sexton_storage.objects.s3_store import open_s3_store
from sexton_storage.schema_number import schema_number
from sexton_storage.stores import Storage

OWNER_SETTING: Final = "archive_owner"
"""The setting that has this installation's name in its archives."""

_PARQUET: Final = "sexton_storage.archives.parquet"

ArchiveAddress = S3Address | Path


@asynccontextmanager
async def open_place(address: ArchiveAddress) -> AsyncIterator[ArchivePlace]:
    """The place of an archive; nothing is asked yet. Raises SignerMissing."""
    if isinstance(address, Path):
        yield FolderPlace(address.absolute())
        return
    async with open_s3_store(address) as store:
        yield S3Place(store, address)


async def open_archiver(
    stack: AsyncExitStack, address: ArchiveAddress | None, storage: Storage
) -> Archiver | None:
    """What takes a server's rows to its archive; None without one. Raises StartupFault."""
    if address is None:
        return None
    if storage.archives is None:
        what = "--archive: a server in memory keeps nothing long enough to archive it"
        raise StartupFault("UZ-STARTUP-002", what, "Leave --archive out", CONFIG)
    try:
        if isinstance(address, Path):
            make = partial(address.mkdir, mode=0o700, parents=True, exist_ok=True)
            await trio.to_thread.run_sync(make)
        place = await stack.enter_async_context(open_place(address))
    except OSError as fault:
        what = f"--archive {address}: {fault.strerror}"
        raise StartupFault("UZ-STARTUP-002", what, "Give a folder that can be written to", CONFIG) from fault
    except SignerMissing as fault:
        way_out = "Install it, or give --archive a folder"
        raise StartupFault("UZ-STARTUP-002", str(fault), way_out, CONFIG) from fault
    mine = await storage.instance.settle_setting(OWNER_SETTING, str(uuid_utils.compat.uuid7()).encode())
    parquet = await trio.to_thread.run_sync(load_parquet)
    writer = Writer(str(UUID(mine.decode())), VERSION, schema_number(), parquet)
    return Archiver(storage.archives, place, writer)


def load_parquet() -> PackParquet | None:
    """What writes Parquet; None where the extra is not installed. It takes a while to import."""
    try:
        module = importlib.import_module(_PARQUET)
    except ImportError:
        return None
    pack: PackParquet = module.pack_parquet
    return pack
